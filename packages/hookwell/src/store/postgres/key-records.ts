import type { Program, Row } from "../../adapters/seam.ts";
import { type KeyRing, keyRecords } from "../sealing.ts";
import { textsFor } from "./database.ts";
import { text } from "./rows.ts";

interface KeyRecordTexts {
  /** $1 name of the check value. Answers it, and holds it until the transaction ends. */
  readonly hold: string;
  /** $1 name of the lock. Whoever adds or ends keys takes turns. */
  readonly turn: string;
  readonly read: string;
  /** $1 name, $2 value. */
  readonly add: string;
}

export const keyRecordTexts = textsFor(
  (s): KeyRecordTexts => ({
    hold: `SELECT m.value FROM ${s}.meta m WHERE m.key = $1::text FOR KEY SHARE`,
    turn: "SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))::text",
    read: `SELECT m.key, m.value FROM ${s}.meta m WHERE starts_with(m.key, 'key_')`,
    add: `INSERT INTO ${s}.meta AS m (key, value) VALUES ($1::text, $2::text)
ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE m.key = '${keyRecords.latest}'`,
  }),
);

/**
 * To be run in each transaction that seals, before it writes: the database knows the key, and it is not retired before
 * the transaction ends, because that waits for the row that is held here.
 * @throws EncryptionKeyError
 */
export function* holdKey(schema: string, keys: KeyRing): Program<void> {
  const name = keyRecords.check(keys.newestId);
  const [row] = yield { text: keyRecordTexts(schema).hold, params: [name] };
  if (row) keys.verify(new Map([[name, text(row, "value")]]));
  else yield* recordKeys(schema, keys);
}

/**
 * Makes the newest key known, after the keys were found to be the ones that sealed what the database holds. Two
 * processes that begin at once with different keys of one id cannot both pass: the second reads what the first wrote.
 * @throws EncryptionKeyError
 */
export function* recordKeys(schema: string, keys: KeyRing): Program<void> {
  const texts = keyRecordTexts(schema);
  yield { text: texts.turn, params: [turnName(schema)] };
  const missing = keys.verify(toRecords(yield { text: texts.read, params: [] }));
  for (const [name, value] of missing) yield { text: texts.add, params: [name, value] };
}

export function turnName(schema: string): string {
  return `hookwell keys ${schema}`;
}

export function toRecords(rows: readonly Row[]): ReadonlyMap<string, string> {
  return new Map(rows.map((row) => [text(row, "key"), text(row, "value")]));
}
