import type { Program } from "../../adapters/seam.ts";
import { EncryptionKeyError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import { keysOfFile, readKeyFile } from "../key-file.ts";
import { generateKey, KeyRing, keyRecords } from "../sealing.ts";
import { statement, text } from "./rows.ts";

// The character after "_" is number 96.
const recordsText = "SELECT key, value FROM hookwell_meta WHERE key > 'key_' AND key < 'key' || char(96)";
// In a transaction of a caller nothing may come between; alone, a rotation may have retired the key meanwhile.
const addRecordText = `
INSERT INTO hookwell_meta (key, value)
SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM hookwell_meta WHERE key = ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE key = '${keyRecords.latest}'`;

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
    const records = toRecords(yield statement(recordsText));
    const ring = this.#loaded(records.size > 0);
    const missing = ring.verify(records);
    if (missing.size > 0) {
      const retired = keyRecords.retired(ring.newestId);
      for (const [name, value] of missing) yield statement(addRecordText, name, value, retired);
      // Another process may have been first, with another key under the same id.
      ring.verify(toRecords(yield statement(recordsText)));
    }
    this.#ring = ring;
    return ring;
  }

  /** The keys and what the database knows of them, without writing; undefined where there are none yet. @throws EncryptionKeyError */
  *known(): Program<{ readonly ring: KeyRing; readonly records: ReadonlyMap<string, string> } | undefined> {
    const records = toRecords(yield statement(recordsText));
    const made =
      this.#ring || this.#given !== undefined || (this.#file && readKeyFile(this.#file) !== undefined);
    if (records.size === 0 && !made) return undefined;
    const ring = this.#loaded(records.size > 0);
    ring.verify(records);
    return { ring, records };
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

function toRecords(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, string> {
  return new Map(rows.map((row) => [text(row.key), text(row.value)]));
}
