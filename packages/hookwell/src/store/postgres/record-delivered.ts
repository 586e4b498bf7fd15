import type { Row } from "../../adapters/seam.ts";
import type { Outcome } from "../../model/delivery.ts";
import { type Database, nowSql, roundedCount, textsFor } from "./database.ts";
import { countMinuteSql } from "./minute-counts-sql.ts";
import { lockedRowsSql } from "./record-sql.ts";

/**
 * What nearly every batch is: successes on lanes that are well. Such a batch writes its rows, counts them, and does nothing else, so
 * its statement is a small one, which the server plans in a fraction of the time that the one for all kinds of
 * outcomes takes. $1 now, $2 outcomes (JSON array), $3 slot of its counts. Answers ord, id, status and attempts of the rows that counted,
 * or one row without an id when a lane is not well: then nothing was written.
 */
const texts = textsFor(
  (s) =>
    (count: number): string =>
      `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), i AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_recordset($2::text::jsonb) AS x(ord int, id text, token text, started_at bigint,
    duration_ms bigint, status_code int)
  LIMIT ${count}
), locked AS MATERIALIZED (
  ${lockedRowsSql(s)}
), unwell AS MATERIALIZED (
  SELECT 1 FROM (SELECT DISTINCT locked.subscription_id FROM locked) AS g
  CROSS JOIN LATERAL (
    SELECT l.failures, l.breaks, l.opened_at, l.slots FROM ${s}.lane l
    WHERE l.subscription_id = g.subscription_id LIMIT 1
  ) AS l
  WHERE l.failures > 0 OR l.breaks > 0 OR l.opened_at IS NOT NULL OR l.slots <> '{}'
), done AS (
  UPDATE ${s}.delivery d SET status = 'delivered', reason = NULL, due_at = d.next_attempt_at,
    lease_token = NULL, lease_until = NULL, updated_at = t.now, delivered_at = t.now,
    last_started_at = i.started_at, last_duration_ms = i.duration_ms, last_status_code = i.status_code
  FROM locked JOIN i ON i.id = locked.locked_id CROSS JOIN t
  WHERE d.id = locked.locked_id AND NOT EXISTS (SELECT 1 FROM unwell)
  RETURNING i.ord, d.id, d.status, d.attempts, d.project_id
), minute AS (
  ${countMinuteSql(s, "done", "$3", { delivered: "true" })}
)
SELECT done.ord, done.id, done.status, done.attempts FROM done
UNION ALL
SELECT NULL, NULL, NULL, NULL WHERE EXISTS (SELECT 1 FROM unwell)
ORDER BY ord`,
);

/** Undefined = nothing was written: the batch is for the statement that knows all kinds of outcomes and lanes. */
export async function recordDelivered(
  db: Database,
  batch: readonly Outcome[],
  now: string | null,
  slot: string,
): Promise<readonly Row[] | undefined> {
  const given: unknown[] = [];
  for (const [ord, outcome] of batch.entries()) {
    if (outcome.kind !== "delivered") return undefined;
    const { startedAt, durationMs, statusCode } = outcome.exchange;
    const numbers = [startedAt.getTime(), durationMs, statusCode ?? 0];
    // The other statement finds the outcome at fault.
    if (!numbers.every(Number.isFinite)) return undefined;
    given.push({
      ord,
      id: outcome.id,
      token: outcome.leaseToken,
      started_at: Math.round(startedAt.getTime()),
      duration_ms: Math.round(durationMs),
      status_code: statusCode,
    });
  }
  const way = db.shortWays.record;
  if (!way.tries()) return undefined;
  const rows = await db.hot({
    text: texts(db.schema)(roundedCount(given.length)),
    params: [now, JSON.stringify(given), slot],
  });
  if (rows.at(-1)?.id !== null) return rows;
  way.close();
  return undefined;
}
