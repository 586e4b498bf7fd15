import type { Program } from "../../adapters/seam.ts";
import { EncryptionKeyError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import { keysOfFile, readKeyFile } from "../key-file.ts";
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

  /** The same proof, changing nothing. `unused`: no key is there, and nothing is sealed. @throws EncryptionKeyError */
  *check(): Program<"usable" | "unused"> {
    const checks = toChecks(yield statement(checksText));
    const isThere =
      this.#given !== undefined || (this.#file !== undefined && readKeyFile(this.#file) !== undefined);
    if (!isThere && checks.size === 0) return "unused";
    this.#loaded(checks.size > 0).verify(checks);
    return "usable";
  }

  #loaded(inUse: boolean): KeyRing {
    if (this.#ring) return this.#ring;
    if (this.#given !== undefined) return KeyRing.parse(this.#given);
    const file = this.#file;
    if (!file) {
      this.#ring = KeyRing.parse(`k1:${generateKey()}`);
      return this.#ring;
    }
    if (inUse && readKeyFile(file) === undefined)
      throw new EncryptionKeyError(
        `The database has sealed secrets, and neither HOOKWELL_ENCRYPTION_KEYS (encryptionKeys) nor the key file ${file} is there; restore the file or give the keys.`,
      );
    return KeyRing.parse(keysOfFile(file, this.#logger));
  }
}

function toChecks(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, string> {
  return new Map(rows.map((row) => [text(row.key), text(row.value)]));
}
