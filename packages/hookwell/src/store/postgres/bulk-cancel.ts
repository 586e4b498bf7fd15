import type { Row, Statement } from "../../adapters/seam.ts";
import type { DeliverySelection } from "../../model/replay.ts";
import type { TimeRange } from "../contract.ts";
import type { CancelPosition, CancelWindow } from "../replay-contract.ts";
import { type Database, nowSql, oneOf, textsFor } from "./database.ts";
import { Conditions } from "./lists.ts";
import { lockOrder, settleOrder } from "./ordering.ts";
import { flag, integer, text } from "./rows.ts";
import { addSelection, addServed, markedSql, selectionJoinsSql } from "./walk.ts";

/** $1 now, $2 ids (JSON array). Rows that another transaction has in hand are passed over. */
export const cancelAllText = textsFor(
  (s) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), locked AS MATERIALIZED (
  SELECT d.id FROM ${s}.delivery d
  WHERE ${oneOf("d.id", "SELECT w.id FROM jsonb_array_elements_text($2::text::jsonb) AS w(id)")} AND d.status = 'pending'
  ORDER BY d.id FOR UPDATE OF d SKIP LOCKED
)
UPDATE ${s}.delivery d SET status = 'cancelled', reason = 'by_hand', updated_at = t.now
FROM t WHERE ${oneOf("d.id", "SELECT locked.id FROM locked")}
RETURNING d.id`,
);

/** Cancels what it selects among the next `look` pending rows, in one short transaction. */
export async function cancelWindow(
  db: Database,
  selection: DeliverySelection,
  period: TimeRange,
  after: CancelPosition | undefined,
  { look, dryRun }: { readonly look: number; readonly dryRun: boolean },
  now: string | null,
): Promise<CancelWindow> {
  const window = pendingWindow(db.schema, selection, period, after, look);
  if (dryRun) {
    const rows = await db.run(window);
    return { count: rows.filter((row) => flag(row, "hit")).length, ...nextOf(rows, look) };
  }
  return await db.program({ kind: "own" }, function* () {
    const rows = yield window;
    const hits = rows.filter((row) => flag(row, "hit"));
    const ids = hits.map((row) => text(row, "id"));
    const ordered = hits.filter((row) => flag(row, "ordered")).map((row) => text(row, "id"));
    if (ordered.length > 0) yield* lockOrder(db.schema, ordered);
    const cancelled =
      ids.length > 0 ? yield { text: cancelAllText(db.schema), params: [now, JSON.stringify(ids)] } : [];
    yield* settleOrder(db.schema, ordered, now);
    return { count: cancelled.length, ...nextOf(rows, look) };
  });
}

function nextOf(rows: readonly Row[], look: number): { readonly next?: CancelPosition } {
  const end = rows.at(-1);
  if (!end || integer(end, "looked") < look) return {};
  return {
    next: {
      subscriptionId: text(end, "subscription_id"),
      dueAt: integer(end, "due_at"),
      id: text(end, "id"),
    },
  };
}

/** The next pending rows along the lanes, by the index that claims use; of one event, its handful of rows. */
export function pendingWindow(
  s: string,
  selection: DeliverySelection,
  period: TimeRange,
  after: CancelPosition | undefined,
  look: number,
): Statement {
  const where = new Conditions();
  where.add("d.status = 'pending'");
  addServed(where, selection);
  if (after) {
    const { subscriptionId, dueAt, id } = after;
    where.add(
      `(d.subscription_id, d.due_at, d.id) > (${where.use(subscriptionId)}::text, ${where.use(String(dueAt))}::text::bigint, ${where.use(id)}::text)`,
    );
  }
  const wanted = new Conditions(where.params);
  wanted.add("d.id IS NOT NULL");
  wanted.range("d.created_at", period.since, period.until);
  addSelection(wanted, selection);
  return {
    text: `WITH seen AS MATERIALIZED (
  SELECT d.id, d.subscription_id, d.due_at, d.created_at, d.project_id, d.event_id, d.type, d.error_code, d.replay_id,
    d.order_key
  FROM ${s}.delivery d WHERE ${where.sql}
  ORDER BY d.subscription_id, d.due_at, d.id LIMIT ${look}
), judged AS (
  SELECT d.id, d.subscription_id, d.due_at, (d.order_key IS NOT NULL)::int AS ordered, (${wanted.sql})::int AS hit
  FROM seen d
  ${selectionJoinsSql(s, selection)}
)
${markedSql("subscription_id, due_at, id")}`,
    params: wanted.params,
  };
}
