import { blockedAt } from "../ordering.ts";
import { nowSql, textsFor } from "./database.ts";
import { eventColumnsSql } from "./event-rows.ts";
import { heldByStatusSql, newLanesSql, restsUntilSql, wakeLanesSql } from "./lanes.ts";
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
  /**
   * The same, and rows are claimed as they are made: $6 limit, $7 room, $8 rooms (JSON object), $9 lease in ms, $10 what
   * the tokens begin with. Rows without a project are those that were claimed, with their lease_token.
   */
  readonly dispatchClaiming: (count: number) => string;
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

    dispatch: (count) => dispatchSql(s, count, false),
    dispatchClaiming: (count) => dispatchSql(s, count, true),

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

/** Lanes are written last, from what the inserts returned: see lanes.ts. */
function dispatchSql(s: string, count: number, claims: boolean): string {
  const claimed = "row.place <= t.most";
  const due = `CASE WHEN row.key IS NULL THEN t.now ELSE ${blockedAt} END`;
  const claimParameters = `, $6::text::int AS most, $7::text::int AS room, $8::text::jsonb AS rooms, $9::text::bigint AS lease,
    $10::text AS token`;
  const workedLanes = `SELECT made.subscription_id FROM made
    UNION ALL
    SELECT d.subscription_id FROM still
    CROSS JOIN LATERAL (
      SELECT d.subscription_id FROM ${s}.delivery d
      WHERE d.event_id = still.id AND d.project_id = still.project_id AND d.status = 'pending' OFFSET 0
    ) AS d
    WHERE still.fanned_out`;
  return `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now${claims ? claimParameters : ""}
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
), row AS MATERIALIZED (
  SELECT d.nr, d.id, still.project_id, still.id AS event_id, d.subscription_id, d.endpoint_id, d.variant, still.type,
    CASE WHEN d.ordered THEN still.tenant_id || chr(31) || still.subject || chr(31)
      || CASE WHEN still.revision IS NULL THEN 'c' ELSE 'r' END END AS key,
    coalesce(still.revision, still.seq) AS place_at${
      claims
        ? `, d.ordered,
    row_number() OVER (PARTITION BY d.subscription_id, d.ordered ORDER BY d.nr) AS turn`
        : ""
    }
  FROM jsonb_to_recordset($4::text::jsonb)
    AS d(ord int, nr int, id text, subscription_id text, endpoint_id text, variant text, ordered boolean)
  JOIN still ON still.ord = d.ord
), ${claims ? placedSql(s) : ""}made AS (
  INSERT INTO ${s}.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
    next_attempt_at, due_at, created_at, updated_at, order_key, order_at${claims ? ", attempts, lease_token, lease_until" : ""})
  SELECT row.id, row.project_id, row.event_id, row.subscription_id, row.endpoint_id, row.variant, row.type,
    t.now, ${claims ? `CASE WHEN ${claimed} THEN t.now + t.lease ELSE ${due} END` : due}, t.now, t.now, row.key,
    CASE WHEN row.key IS NOT NULL THEN row.place_at END${
      claims
        ? `,
    CASE WHEN ${claimed} THEN 1 ELSE 0 END, CASE WHEN ${claimed} THEN t.token || '.' || row.id END,
    CASE WHEN ${claimed} THEN t.now + t.lease END`
        : ""
    }
  FROM ${claims ? "placed AS row" : "row"} CROSS JOIN t
  ON CONFLICT DO NOTHING
  RETURNING subscription_id${claims ? ", id, lease_token" : ""}
), marked AS (
  UPDATE ${s}.event e
  SET state = 'dispatched', dispatched_at = t.now, patch = coalesce(still.patch, e.patch)
  FROM still, t
  WHERE e.project_id = still.project_id AND e.id = still.id
  RETURNING e.project_id
), woken AS (
  ${wakeLanesSql(s, workedLanes, "(SELECT now FROM t)")}
), opened AS (
  ${newLanesSql(s, "SELECT made.subscription_id FROM made", "(SELECT now FROM t)")}
), minute AS (
  ${countMinuteSql(s, "marked", "$5", { dispatched: "true" })}
)
SELECT still.project_id, still.id${claims ? ", NULL AS lease_token, still.ord" : ""} FROM still${
    claims
      ? `
UNION ALL
SELECT NULL, made.id, made.lease_token, NULL FROM made WHERE made.lease_token IS NOT NULL`
      : ""
  }
ORDER BY ${claims ? "ord" : "still.ord"}`;
}

/**
 * The rows with their place among those that may be claimed: the rule of store/dispatch-claims.ts. A lane that is not
 * there yet is what its subscription makes it. Rooms are looked up in an object: joined, each row is compared with each
 * lane.
 */
function placedSql(s: string): string {
  const room = "coalesce(((SELECT rooms FROM t) ->> w.subscription_id)::int, (SELECT room FROM t))";
  const free = "((SELECT rooms FROM open) ->> row.subscription_id)::int";
  return `open AS MATERIALIZED (
  SELECT jsonb_object_agg(w.subscription_id, ${room}) AS rooms
  FROM (SELECT DISTINCT row.subscription_id FROM row) AS w
  LEFT JOIN LATERAL (
    SELECT l.held, l.guarded, coalesce(${restsUntilSql}, 0) AS rests FROM ${s}.lane l
    WHERE l.subscription_id = w.subscription_id LIMIT 1
  ) AS l ON true
  LEFT JOIN LATERAL (
    SELECT ${heldByStatusSql} AS held, s.rate_limit IS NOT NULL OR s.max_in_flight IS NOT NULL AS guarded
    FROM ${s}.subscription s WHERE l.held IS NULL AND s.id = w.subscription_id LIMIT 1
  ) AS s ON true
  LEFT JOIN LATERAL (
    SELECT d.id FROM ${s}.delivery d
    WHERE d.subscription_id = w.subscription_id AND d.status = 'pending' AND d.due_at <= (SELECT now FROM t)
    ORDER BY d.due_at, d.id LIMIT 1
  ) AS due ON true
  WHERE coalesce(l.held, s.held, 0) = 0 AND NOT coalesce(l.guarded, s.guarded, false)
    AND coalesce(l.rests, 0) <= (SELECT now FROM t) AND due.id IS NULL
    AND NOT EXISTS (SELECT 1 FROM ${s}.hold)
), placed AS MATERIALIZED (
  SELECT row.*, CASE WHEN row.turn <= row.free
    THEN row_number() OVER (ORDER BY row.turn <= row.free DESC, row.turn, row.subscription_id COLLATE "C") END AS place
  FROM (SELECT row.*, CASE WHEN row.ordered THEN 0 ELSE coalesce(${free}, 0) END AS free FROM row) AS row
), `;
}
