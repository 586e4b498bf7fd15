import { runProgram } from "../../adapters/seam.ts";
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
import { type Database, oneOf, textsFor } from "./database.ts";
import { holdKey, keyRecordTexts, toRecords, turnName } from "./key-records.ts";
import { integer, text } from "./rows.ts";

interface PlaceTexts {
  readonly count: string;
  /** $1 prefix of the newest key, $2 limit, then the key to go on after. Answers where each row lies. */
  readonly next: string;
  /** $1 `[{at, old, new}]`. Answers where the rows lay that were written; never waits for one. */
  readonly reseal: string;
  /** $1 prefix of the newest key. */
  readonly left: string;
}

function textsOf(s: string, { table, columns }: SealedPlace): PlaceTexts {
  const key = columns.map((column) => `r.${column}`).join(", ");
  const after = columns.map((_, index) => `$${index + 3}::text`).join(", ");
  const of = (column: string) => `(SELECT want.${column} FROM want WHERE want.at = r.ctid)`;
  return {
    count: `SELECT CASE WHEN strpos(r.sealed, ':') > 0 THEN split_part(r.sealed, ':', 1) ELSE '' END AS key_id,
  count(*)::int AS count
FROM ${s}.${table} r WHERE r.sealed IS NOT NULL GROUP BY 1`,

    next: `SELECT ${key}, r.sealed, r.ctid::text AS at FROM ${s}.${table} r
WHERE (${key}) > (${after}) AND NOT starts_with(r.sealed, $1::text)
ORDER BY ${key} LIMIT $2::text::int`,

    // By place: a row that somebody changes meanwhile lies elsewhere then, and is left for the next round.
    reseal: `WITH want AS MATERIALIZED (
  SELECT w.at::tid AS at, w.old, w.new FROM jsonb_to_recordset($1::text::jsonb) AS w(at text, old text, new text)
), free AS MATERIALIZED (
  SELECT r.ctid AS at FROM ${s}.${table} r WHERE ${oneOf("r.ctid", "SELECT want.at FROM want")}
  FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE ${s}.${table} r SET sealed = ${of("new")}
WHERE ${oneOf("r.ctid", "SELECT free.at FROM free")} AND r.sealed = ${of("old")}
RETURNING r.sealed`,

    left: `SELECT EXISTS (
  SELECT 1 FROM ${s}.${table} r WHERE NOT starts_with(r.sealed, $1::text)
)::int AS some`,
  };
}

const texts = textsFor((s) => ({
  places: sealedPlaces.map((place) => textsOf(s, place)),

  /** $1 check value of the newest key. Waits for transactions that seal with the others. */
  others: `SELECT m.key FROM ${s}.meta m WHERE m.key >= 'key_check:' AND m.key < 'key_check;' AND m.key <> $1::text
ORDER BY m.key FOR UPDATE`,

  /** $1 names (JSON). */
  end: `DELETE FROM ${s}.meta m
WHERE ${oneOf("m.key", "SELECT n.name FROM jsonb_array_elements_text($1::text::jsonb) AS n(name)")}`,
}));

export async function countSealed(db: Database, ring: KeyRing): Promise<SealedCounts> {
  const records = toRecords(await db.run({ text: keyRecordTexts(db.schema).read, params: [] }));
  ring.verify(records);
  const byKey = new Map<string, number>();
  for (const { count } of texts(db.schema).places)
    for (const row of await db.run({ text: count, params: [] })) {
      const id = text(row, "key_id");
      byKey.set(id, (byKey.get(id) ?? 0) + integer(row, "count"));
    }
  return {
    newest: { id: ring.newestId, standing: ring.standing(records), others: ring.others(records) },
    byKey,
  };
}

export async function reseal(
  db: Database,
  ring: KeyRing,
  limit: number,
  cursorText: string | undefined,
): Promise<ResealResult> {
  const cursor = readCursor(cursorText);
  const next = await nextTexts(db, ring, limit, cursor);
  const want = next.map(({ at, old, sealed }) => ({ at, old, new: sealed }));
  const written =
    next.length === 0
      ? []
      : await db.transaction(async (run) => {
          await runProgram(holdKey(db.schema, ring), run);
          const statement = texts(db.schema).places[cursor.place]!.reseal;
          return await run({ text: statement, params: [JSON.stringify(want)] });
        });
  const done = new Set(written.map((row) => text(row, "sealed")));
  const goOn = nextCursor(cursor, next.length === limit ? next.at(-1)!.values : undefined);
  return {
    resealed: done.size,
    damaged: next.filter(({ damaged, sealed }) => damaged && done.has(sealed)).map(({ name }) => name),
    ...(goOn !== undefined && { cursor: goOn }),
  };
}

async function nextTexts(
  db: Database,
  ring: KeyRing,
  limit: number,
  cursor: SealedCursor,
): Promise<(Resealed & { readonly at: string })[]> {
  const { columns, nameOf } = sealedPlaces[cursor.place]!;
  const after = columns.map((_, index) => cursor.after[index] ?? "");
  const rows = await db.run({
    text: texts(db.schema).places[cursor.place]!.next,
    params: [`${ring.newestId}:`, String(limit), ...after],
  });
  return rows.map((row) => {
    const values = columns.map((column) => text(row, column));
    const name = nameOf(values);
    const old = text(row, "sealed");
    return { values, name, old, at: text(row, "at"), ...ring.reseal(old, name) };
  });
}

export async function retireKeys(db: Database, ring: KeyRing): Promise<readonly string[] | undefined> {
  const newest = keyRecords.check(ring.newestId);
  return await db.transaction(async (run) => {
    await run({ text: keyRecordTexts(db.schema).turn, params: [turnName(db.schema)] });
    await runProgram(holdKey(db.schema, ring), run);
    const others = await run({ text: texts(db.schema).others, params: [newest] });
    const names = others.map((row) => text(row, "key"));
    // Statements of their own see what the transactions that were waited for have committed.
    for (const { left } of texts(db.schema).places) {
      const [found] = await run({ text: left, params: [`${ring.newestId}:`] });
      if (integer(found!, "some") === 1) return undefined;
    }
    await run({ text: texts(db.schema).end, params: [JSON.stringify(names)] });
    const ids = names.map((name) => name.slice(keyRecords.check("").length));
    for (const id of ids)
      await run({ text: keyRecordTexts(db.schema).add, params: [keyRecords.retired(id), ""] });
    return ids;
  });
}
