import type { Row } from "../../adapters/seam.ts";
import type { DispatchItem, DispatchRoom } from "../contract.ts";
import { claimedAtOnce } from "../dispatch-claims.ts";
import { tokenStart } from "./claim.ts";
import { type Database, nowSql, textsFor } from "./database.ts";
import { bodiesJson, deliveriesJson } from "./dispatch-parameters.ts";
import { restsUntilSql, wakeLanesSql } from "./lanes.ts";
import { countMinuteSql } from "./minute-counts-sql.ts";

/**
 * What an idle worker is given: one event, all of whose rows go out at once. Its statement is a small one, which the
 * server parses and plans in half the time of the one for everything. $1 now, $2 project, $3 id, $4 patch, $5 bodies
 * (base64), $6 deliveries (JSON arrays), $7 slot of counts, $8 lease in ms, $9 what the tokens begin with. Answers the
 * event, then id and lease_token of its rows; or nothing when the event is no longer new, or a lane is not one of which
 * the row would be claimed at once: then nothing was written.
 */
const texts = textsFor((s): string => {
  const now = "(SELECT now FROM t)";
  return `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS project_id, $3::text AS id, $8::text::bigint AS lease
), row AS MATERIALIZED (
  SELECT d.* FROM jsonb_to_recordset($6::text::jsonb) AS d(id text, subscription_id text, endpoint_id text, variant text)
), closed AS MATERIALIZED (
  SELECT row.id FROM row
  LEFT JOIN LATERAL (
    SELECT l.held, l.guarded, coalesce(${restsUntilSql}, 0) AS rests FROM ${s}.lane l
    WHERE l.subscription_id = row.subscription_id LIMIT 1
  ) AS l ON true
  LEFT JOIN LATERAL (
    SELECT d.id FROM ${s}.delivery d
    WHERE d.subscription_id = row.subscription_id AND d.status = 'pending' AND d.due_at <= ${now}
    ORDER BY d.due_at, d.id LIMIT 1
  ) AS due ON true
  WHERE l.held IS DISTINCT FROM 0 OR l.guarded OR l.rests > ${now} OR due.id IS NOT NULL
), still AS MATERIALIZED (
  SELECT e.type FROM ${s}.event e
  WHERE e.project_id = (SELECT project_id FROM t) AND e.id = (SELECT id FROM t) AND e.state = 'new' AND NOT e.fanned_out
    AND NOT EXISTS (SELECT 1 FROM closed) AND NOT EXISTS (SELECT 1 FROM ${s}.hold)
  FOR UPDATE SKIP LOCKED
), bodies AS (
  INSERT INTO ${s}.body (project_id, event_id, variant, bytes)
  SELECT t.project_id, t.id, b.variant, decode(b.bytes, 'base64')
  FROM still CROSS JOIN t CROSS JOIN jsonb_to_recordset($5::text::jsonb) AS b(variant text, bytes text)
  ON CONFLICT DO NOTHING
), made AS (
  INSERT INTO ${s}.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, next_attempt_at,
    due_at, created_at, updated_at, attempts, lease_token, lease_until)
  SELECT row.id, t.project_id, t.id, row.subscription_id, row.endpoint_id, row.variant, still.type, t.now,
    t.now + t.lease, t.now, t.now, 1, $9::text || '.' || row.id, t.now + t.lease
  FROM still CROSS JOIN t CROSS JOIN row
  ON CONFLICT DO NOTHING
  RETURNING subscription_id, id, lease_token
), marked AS (
  UPDATE ${s}.event e
  SET state = 'dispatched', dispatched_at = t.now, patch = coalesce($4::text, e.patch)
  FROM still, t
  WHERE e.project_id = t.project_id AND e.id = t.id
  RETURNING e.project_id, e.id
), woken AS (
  ${wakeLanesSql(s, "SELECT made.subscription_id FROM made", now)}
), minute AS (
  ${countMinuteSql(s, "marked", "$7", { dispatched: "true" })}
)
SELECT marked.project_id, marked.id, NULL AS lease_token FROM marked
UNION ALL
SELECT NULL, made.id, made.lease_token FROM made`;
});

/** Undefined = nothing was written: it is for the statement that knows all kinds of events and lanes. */
export async function dispatchOne(
  db: Database,
  item: DispatchItem,
  now: string | null,
  room: DispatchRoom,
): Promise<readonly Row[] | undefined> {
  const { projectId, id, patch, deliveries } = item;
  const goOut = claimedAtOnce([item], room, () => true).size;
  if (goOut === 0 || goOut < deliveries.length || !db.shortWays.dispatch.tries()) return undefined;
  const rows = await db.slots.use((slot) =>
    db.hot({
      text: texts(db.schema),
      params: [
        now,
        projectId,
        id,
        patch ?? null,
        bodiesJson([item]),
        deliveriesJson([item]),
        slot,
        String(room.leaseMs),
        tokenStart(),
      ],
    }),
  );
  if (rows.length > 0) return rows;
  db.shortWays.dispatch.close();
  return undefined;
}
