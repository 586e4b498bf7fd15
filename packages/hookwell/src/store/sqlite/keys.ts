import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Program } from "../../adapters/seam.ts";
import { EncryptionKeyError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import { generateKey, KeyRing } from "../sealing.ts";
import { statement, text } from "./rows.ts";

const checksText = "SELECT key, value FROM hookwell_meta WHERE key >= 'key_check:' AND key < 'key_check;'";
const addCheckText = "INSERT INTO hookwell_meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING";

/** Where the keys of a SQLite store come from: the given text, or a file beside the database. */
export class Keys {
  readonly #given: string | undefined;
  readonly #file: string | undefined;
  readonly #logger: Logger | undefined;
  #ring: KeyRing | undefined;

  constructor(given: string | undefined, databasePath: string, logger: Logger | undefined) {
    this.#given = given || undefined;
    this.#file = databasePath === ":memory:" ? undefined : `${databasePath}.key`;
    this.#logger = logger;
  }

  /**
   * The keys, after they were found to be the ones that sealed what the database holds; the newest is made known
   * there. Runs in any transaction, because a caller's may hold the write lock.
   * @throws EncryptionKeyError
   */
  *ring(): Program<KeyRing> {
    const checks = toChecks(yield statement(checksText));
    const ring = this.#loaded(checks.size > 0);
    const missing = ring.verify(checks);
    if (missing.size > 0) {
      for (const [name, sealed] of missing) yield statement(addCheckText, name, sealed);
      // Another process may have been first, with another key under the same id.
      ring.verify(toChecks(yield statement(checksText)));
    }
    this.#ring = ring;
    return ring;
  }

  #loaded(inUse: boolean): KeyRing {
    if (this.#ring) return this.#ring;
    if (this.#given !== undefined) return KeyRing.parse(this.#given);
    const file = this.#file;
    if (!file) {
      this.#ring = KeyRing.parse(`k1:${generateKey()}`);
      return this.#ring;
    }
    const stored = readIfThere(file);
    if (stored !== undefined) return KeyRing.parse(stored);
    if (inUse)
      throw new EncryptionKeyError(
        `The database has sealed secrets, and neither HOOKWELL_ENCRYPTION_KEYS (encryptionKeys) nor the key file ${file} is there; restore the file or give the keys.`,
      );
    if (makeKeyFile(file, `k1:${generateKey()}\n`))
      this.#logger?.warn(
        `No encryption key was given; one was made in ${file} (mode 0600). Back it up: without it the stored secrets cannot be read.`,
      );
    return KeyRing.parse(readIfThere(file) ?? "");
  }
}

function toChecks(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, string> {
  return new Map(rows.map((row) => [text(row.key), text(row.value)]));
}

function readIfThere(file: string): string | undefined {
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
