import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { EncryptionKeyError } from "../model/errors.ts";
import type { Logger } from "../model/observe.ts";
import { generateKey } from "./sealing.ts";

/**
 * The encryption keys in the file, in the form of HOOKWELL_ENCRYPTION_KEYS. A file that is missing is made, with a
 * new key, readable by its owner alone, and the logger is told. @throws EncryptionKeyError
 */
export function keysOfFile(file: string, logger: Logger | undefined): string {
  const stored = readKeyFile(file);
  if (stored !== undefined) return stored;
  if (makeKeyFile(file, `k1:${generateKey()}\n`))
    logger?.warn(
      `No encryption key was given; one was made in ${file} (mode 0600). Back it up: without it the stored secrets cannot be read.`,
    );
  return readKeyFile(file) ?? "";
}

/** The keys in the file; undefined when there is no file. @throws EncryptionKeyError when it cannot be read */
export function readKeyFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new EncryptionKeyError(`The key file ${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Makes the file whole and durable before anything is sealed with it; false when another process was first. */
function makeKeyFile(file: string, content: string): boolean {
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const descriptor = openSync(draft, "wx", 0o600);
    try {
      writeSync(descriptor, content);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    try {
      // A link, unlike a rename, never replaces a file that is there.
      linkSync(draft, file);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
      throw error;
    } finally {
      unlinkSync(draft);
    }
    syncDirectory(dirname(file));
    return true;
  } catch (error) {
    throw new EncryptionKeyError(
      `No encryption key was given, and none could be made in ${file} (${(error as Error).message}); make the directory writable, or give HOOKWELL_ENCRYPTION_KEYS (encryptionKeys).`,
    );
  }
}

function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
