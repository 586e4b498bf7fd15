import { blockedAt } from "../ordering.ts";
import { nowSql, textsFor } from "./database.ts";
import { eventColumnsSql } from "./event-rows.ts";
import { wakeLanesSql } from "./lanes.ts";
import { matchesSql } from "./matching.ts";
import { countMinuteSql } from "./minute-counts-sql.ts";
import { operationalIdSql } from "./operational-sql.ts";

interface DispatchTexts {
  /** $1 now, $2 routes (JSON array), $3 limit. */
  readonly takeNew: string;
  /** $1 queries (JSON array). Answers ord, subscription_id, endpoint_id, fields. */
  readonly match: string;
  /**
   * For so many events, said so that the planner knows. $1 now, $2 events, $3 bodies (base64), $4 deliveries (JSON
   * arrays), $5 slot of counts. Answers project_id and id of those still new.
   */
  readonly dispatch: (count: number) => string;
  /** $1 now, $2 project, $3 id, $4 error, $5 ms to the next try or null to park. */
  readonly fail: string;
  /** $1 project, $2 id. Locks the event and answers its state. */
  readonly state: string;
  /** $1 now, $2 project, $3 id. */
  readonly release: string;
}

export const dispatchTexts = textsFor(
  (s): DispatchTexts => ({
    // For each route the head of (route, due_at, seq) where new: the cost does not grow with the backlog.
    takeNew: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::jsonb AS routes, $3::text::int AS most
), due AS MATERIALIZED (
  SELECT head.project_id, head.id
  FROM (SELECT DISTINCT r.route FROM t, jsonb_array_elements_text(t.routes) AS r(route)) AS wanted
  CROSS JOIN LATERAL (
    SELECT e.project_id, e.id, e.due_at, e.seq FROM ${s}.event e
    WHERE e.route = wanted.route AND e.state = 'new' AND e.due_at <= (SELECT now FROM t)
    ORDER BY e.due_at, e.seq LIMIT (SELECT most FROM t)
  ) AS head
  ORDER BY head.due_at, head.seq LIMIT (SELECT most FROM t)
)
SELECT ${eventColumnsSql("e")}
FROM due
CROSS JOIN LATERAL (
  SELECT e.* FROM ${s}.event e WHERE e.id = due.id AND e.project_id = due.project_id LIMIT 1
) AS e
ORDER BY e.seq`,

    match: `WITH asked AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_recordset($1::text::jsonb)
    AS x(ord int, project_id text, tenant_id text, audience jsonb, filters jsonb, operational boolean)
)
${matchesSql(s, { from: "asked", where: "true" })}
ORDER BY 1, 2`,

    // Lanes are written last, from what the inserts returned: see lanes.ts.
    dispatch: (count) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), given AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_recordset($2::text::jsonb) AS x(ord int, project_id text, id text, patch text)
  LIMIT ${count}
), still AS MATERIALIZED (
  SELECT given.ord, given.patch, e.project_id, e.id, e.type, e.fanned_out, e.tenant_id, e.subject, e.revision, e.seq
  FROM given JOIN ${s}.event e ON e.project_id = given.project_id AND e.id = given.id
  WHERE e.state = 'new'
  ORDER BY e.seq
  FOR UPDATE OF e SKIP LOCKED
), bodies AS (
  INSERT INTO ${s}.body (project_id, event_id, variant, bytes)
  SELECT still.project_id, still.id, b.variant, decode(b.bytes, 'base64')
  FROM jsonb_to_recordset($3::text::jsonb) AS b(ord int, variant text, bytes text)
  JOIN still ON still.ord = b.ord
  ON CONFLICT DO NOTHING
), made AS (
  INSERT INTO ${s}.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
    next_attempt_at, due_at, created_at, updated_at, order_key, order_at)
  SELECT d.id, still.project_id, still.id, d.subscription_id, d.endpoint_id, d.variant, still.type,
    t.now, CASE WHEN place.key IS NULL THEN t.now ELSE ${blockedAt} END, t.now, t.now, place.key,
    CASE WHEN place.key IS NOT NULL THEN coalesce(still.revision, still.seq) END
  FROM jsonb_to_recordset($4::text::jsonb)
    AS d(ord int, id text, subscription_id text, endpoint_id text, variant text, ordered boolean)
  JOIN still ON still.ord = d.ord
  CROSS JOIN LATERAL (
    SELECT CASE WHEN d.ordered THEN still.tenant_id || chr(31) || still.subject || chr(31)
      || CASE WHEN still.revision IS NULL THEN 'c' ELSE 'r' END END AS key
  ) AS place
  CROSS JOIN t
  ON CONFLICT DO NOTHING
  RETURNING subscription_id
), marked AS (
  UPDATE ${s}.event e
  SET state = 'dispatched', dispatched_at = t.now, patch = coalesce(still.patch, e.patch)
  FROM still, t
  WHERE e.project_id = still.project_id AND e.id = still.id
  RETURNING e.project_id
), woken AS (
  ${wakeLanesSql(
    s,
    `SELECT made.subscription_id FROM made
    UNION ALL
    SELECT d.subscription_id FROM still
    CROSS JOIN LATERAL (
      SELECT d.subscription_id FROM ${s}.delivery d
      WHERE d.event_id = still.id AND d.project_id = still.project_id AND d.status = 'pending' OFFSET 0
    ) AS d
    WHERE still.fanned_out`,
    "(SELECT now FROM t)",
  )}
), minute AS (
  ${countMinuteSql(s, "marked", "$5", { dispatched: "true" })}
)
SELECT still.project_id, still.id FROM still ORDER BY still.ord`,

    fail: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS project_id, $3::text AS id, $4::text AS error, $5::text::bigint AS wait
), counted AS (
UPDATE ${s}.event e
SET tries = e.tries + 1, error = t.error, state = CASE WHEN t.wait IS NULL THEN 'parked' ELSE 'new' END,
  due_at = coalesce(t.now + t.wait, e.due_at)
FROM t WHERE e.project_id = t.project_id AND e.id = t.id AND e.state = 'new'
RETURNING e.project_id, e.id, e.type, e.state, e.error
), told AS (
  INSERT INTO ${s}.event (project_id, id, type, occurred_at, data, content_hash, captured_at, due_at, route)
  SELECT c.project_id, ${operationalIdSql("'hookwell.event.parked'", "c.id", "t.now")}, 'hookwell.event.parked',
    t.now, '{"event_id":' || to_json(c.id) || ',"event_type":' || to_json(c.type) || ',"error":' || to_json(c.error)
      || '}', 'operational', t.now, t.now, '*'
  FROM counted c, t WHERE c.state = 'parked' AND NOT starts_with(c.type, 'hookwell.')
  ON CONFLICT DO NOTHING
)
SELECT 1 AS counted FROM counted`,

    state: `SELECT e.state FROM ${s}.event e WHERE e.project_id = $1::text AND e.id = $2::text FOR UPDATE`,

    release: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS project_id, $3::text AS id
)
UPDATE ${s}.event e SET state = 'new', tries = 0, error = NULL, due_at = e.captured_at
FROM t WHERE e.project_id = t.project_id AND e.id = t.id
RETURNING 1 AS released`,
  }),
);
