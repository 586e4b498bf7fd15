import { runProgramSync } from "../../adapters/seam.ts";
import type { ResealResult, SealedCounts } from "../key-rotation.ts";
import {
  nextCursor,
  type Resealed,
  readCursor,
  type SealedCursor,
  type SealedPlace,
  sealedPlaces,
} from "../sealed-places.ts";
import { type KeyRing, keyRecords } from "../sealing.ts";
import type { Connection } from "./connection.ts";
import type { Keys } from "./keys.ts";
import { integer, text } from "./rows.ts";

// Texts that begin with the prefix of the newest key are not looked at.
const byOthers = "sealed IS NOT NULL AND substr(sealed, 1, length(?)) <> ?";

interface PlaceTexts {
  readonly count: string;
  /** Key to go on after, prefix twice, limit. */
  readonly next: string;
  /** New text, key, old text. */
  readonly reseal: string;
  /** Prefix twice. */
  readonly left: string;
}

function textsOf({ table, columns }: SealedPlace): PlaceTexts {
  const from = `FROM hookwell_${table}`;
  const key = columns.join(", ");
  const marks = columns.map(() => "?").join(", ");
  return {
    count: `
SELECT substr(sealed, 1, max(instr(sealed, ':') - 1, 0)) AS key_id, count(*) AS count
${from} WHERE sealed IS NOT NULL GROUP BY 1`,
    next: `
SELECT ${key}, sealed ${from} WHERE (${key}) > (${marks}) AND ${byOthers}
ORDER BY ${key} LIMIT CAST(? AS INTEGER)`,
    reseal: `
UPDATE hookwell_${table} SET sealed = ? WHERE (${key}) = (${marks}) AND sealed = ? RETURNING 1 AS written`,
    left: `SELECT 1 AS found ${from} WHERE ${byOthers} LIMIT 1`,
  };
}

const texts = sealedPlaces.map(textsOf);

export function countSealed(connection: Connection, keys: Keys): SealedCounts {
  const known = runProgramSync(keys.known(), connection.run);
  const byKey = new Map<string, number>();
  for (const { count } of texts)
    for (const row of connection.all(count)) {
      const id = text(row.key_id);
      byKey.set(id, (byKey.get(id) ?? 0) + integer(row.count));
    }
  const newest = known && {
    id: known.ring.newestId,
    standing: known.ring.standing(known.records),
    others: known.ring.others(known.records),
  };
  return { ...(newest && { newest }), byKey };
}

/** Opens and seals outside the write, which is then short. */
export async function reseal(
  connection: Connection,
  keys: Keys,
  ring: KeyRing,
  limit: number,
  cursorText: string | undefined,
): Promise<ResealResult> {
  const cursor = readCursor(cursorText);
  const next = nextTexts(connection, ring, limit, cursor);
  const statement = texts[cursor.place]!.reseal;
  const written =
    next.length === 0
      ? []
      : await connection.write(() => {
          // Another rotation may have retired the key meanwhile.
          runProgramSync(keys.ring(), connection.run);
          return next.filter(
            ({ values, old, sealed }) => connection.all(statement, [sealed, ...values, old]).length > 0,
          );
        });
  const goOn = nextCursor(cursor, next.length === limit ? next.at(-1)!.values : undefined);
  return {
    resealed: written.length,
    damaged: written.filter(({ damaged }) => damaged).map(({ name }) => name),
    ...(goOn !== undefined && { cursor: goOn }),
  };
}

function nextTexts(connection: Connection, ring: KeyRing, limit: number, cursor: SealedCursor): Resealed[] {
  const { columns, nameOf } = sealedPlaces[cursor.place]!;
  const after = columns.map((_, index) => cursor.after[index] ?? "");
  const prefix = `${ring.newestId}:`;
  return connection.all(texts[cursor.place]!.next, [...after, prefix, prefix, limit]).map((row) => {
    const values = columns.map((column) => text(row[column]));
    const name = nameOf(values);
    const old = text(row.sealed);
    return { values, name, old, ...ring.reseal(old, name) };
  });
}

const retireText =
  "DELETE FROM hookwell_meta WHERE key >= 'key_check:' AND key < 'key_check;' AND key <> ? RETURNING key";
const rememberText = "INSERT INTO hookwell_meta (key, value) VALUES (?, '') ON CONFLICT DO NOTHING";

/** In one write: nobody can seal between the look and the end of the keys. */
export function retireKeys(connection: Connection, keys: Keys): Promise<readonly string[] | undefined> {
  return connection.write((): readonly string[] | undefined => {
    const ring = runProgramSync(keys.ring(), connection.run);
    const prefix = `${ring.newestId}:`;
    if (texts.some(({ left }) => connection.all(left, [prefix, prefix]).length > 0)) return undefined;
    const checks = keyRecords.check("");
    const retired = connection
      .all(retireText, [keyRecords.check(ring.newestId)])
      .map((row) => text(row.key).slice(checks.length));
    for (const id of retired) connection.all(rememberText, [keyRecords.retired(id)]);
    return retired.sort();
  });
}
