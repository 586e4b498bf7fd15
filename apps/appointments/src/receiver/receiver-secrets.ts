import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/**
 * The signing secrets that the receiver page verifies with, by receiver. Hookwell shows a secret once and seals
 * its own copy, so a receiver keeps one too: here a file that only this user can read, beside the encryption
 * key of the SQLite database. A table of the application would put them in every dump of it, in the clear.
 */
export interface ReceiverSecrets {
  get(receiver: string): string | undefined;
  /** A new secret, written before it is answered, so that a subscription made with it can always be verified. */
  renew(receiver: string): string;
}

/** @throws Error naming the file when it cannot be read or is not what {@link ReceiverSecrets.renew} wrote */
export function receiverSecrets(path: string): ReceiverSecrets {
  const secrets = read(path);
  return {
    get: (receiver) => secrets.get(receiver),
    renew(receiver) {
      const secret = `whsec_${randomBytes(32).toString("base64")}`;
      secrets.set(receiver, secret);
      write(path, secrets);
      return secret;
    },
  };
}

function read(path: string): Map<string, string> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return new Map();
    throw new Error(`The receiver page's secrets cannot be read from ${path}.`, { cause: error });
  }
  try {
    const entries = Object.entries(JSON.parse(text) as object);
    if (entries.every(([, secret]) => typeof secret === "string")) return new Map(entries);
  } catch {
    // Falls through: the message must not quote the file.
  }
  throw new Error(`${path} is not the receiver page's secrets; remove it to have new ones made.`);
}

function write(path: string, secrets: ReadonlyMap<string, string>): void {
  mkdirSync(dirname(path), { recursive: true });
  const whole = `${path}.new`;
  writeFileSync(whole, `${JSON.stringify(Object.fromEntries(secrets), null, 2)}\n`, { mode: 0o600 });
  // An old file of that name keeps its mode when it is written.
  chmodSync(whole, 0o600);
  renameSync(whole, path);
}
