import { minuteMs, minutesKept } from "../minute-counts.ts";
import { reportEveryMs } from "../operational.ts";
import { behindLive } from "../ordering.ts";
import { nowSql, oneOf, textsFor } from "./database.ts";
import { coveredSql, firstUnheldSql } from "./holds-sql.ts";
import { restsUntilSql } from "./lanes.ts";
import { countMinuteSql } from "./minute-counts-sql.ts";
import { operationalIdSql } from "./operational-sql.ts";
import { oldestNewSql } from "./stats-sql.ts";

/** Takes how many rows to look at and how many to prune: literals, so that the planner knows how few they are. */
type Prune = (look: number, most: number) => string;

interface UpkeepTexts {
  /** $1 now, $2 limit. Answers a row for each cancelled delivery. */
  readonly cancelEnded: string;
  /** $1 now, $2 ms that a disabled subscription holds, $3 limit, $4 slot of counts. Answers id of each failed delivery. */
  readonly failHeld: string;
  /** $1 now, $2 limit. Answers a row for each count that is dropped. */
  readonly dropCounts: string;
  /** $1 now, $2 status, $3 ms kept, $4 ms events are kept, $5 where to begin (updated_at). */
  readonly pruneDeliveries: Prune;
  /** $1 now, $2 ms kept, $3 where to begin (captured_at). */
  readonly pruneEvents: Prune;
  /** $1 now, $2 ms kept, $3 limit. */
  readonly pruneSubscriptions: string;
  /** $1 now. */
  readonly lag: string;
  /** $1 now, $2 most. */
  readonly remaining: string;
}

const now = "(SELECT now FROM t)";

// Rows are locked in id order and SKIP LOCKED, so that upkeep waits for nobody and two processes may do it at once.
export const upkeepTexts = textsFor(
  (s): UpkeepTexts => ({
    cancelEnded: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::int AS most
), waiting AS MATERIALIZED (
  SELECT found.id FROM ${s}.lane l
  CROSS JOIN LATERAL (
    SELECT d.id FROM ${s}.delivery d
    WHERE d.subscription_id = l.subscription_id AND d.status = 'pending'
      AND (d.lease_until IS NULL OR d.lease_until <= ${now})
    LIMIT (SELECT most FROM t)
  ) AS found
  WHERE l.held = 2
  LIMIT (SELECT most FROM t)
), locked AS MATERIALIZED (
  SELECT d.id FROM ${s}.delivery d
  WHERE ${oneOf("d.id", "SELECT waiting.id FROM waiting")} AND d.status = 'pending'
  ORDER BY d.id FOR UPDATE OF d SKIP LOCKED
)
UPDATE ${s}.delivery d
SET status = 'cancelled', lease_token = NULL, lease_until = NULL, updated_at = ${now},
  reason = CASE WHEN s.status = 'deleted' THEN 'deleted' ELSE 'gone' END
FROM ${s}.subscription s
WHERE ${oneOf("d.id", "SELECT locked.id FROM locked")} AND s.id = d.subscription_id
RETURNING 1 AS cancelled`,

    failHeld: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::bigint AS held, $3::text::int AS most
), waiting AS MATERIALIZED (
  SELECT found.id FROM ${s}.subscription s
  CROSS JOIN LATERAL (
    SELECT d.id FROM ${s}.delivery d
    WHERE d.subscription_id = s.id AND d.status = 'pending'
      AND (d.lease_until IS NULL OR d.lease_until <= ${now})
    LIMIT (SELECT most FROM t)
  ) AS found
  WHERE s.status = 'disabled' AND s.status_changed_at <= ${now} - (SELECT held FROM t)
  LIMIT (SELECT most FROM t)
), locked AS MATERIALIZED (
  SELECT d.id FROM ${s}.delivery d
  WHERE ${oneOf("d.id", "SELECT waiting.id FROM waiting")} AND d.status = 'pending'
  ORDER BY d.id FOR UPDATE OF d SKIP LOCKED
), failed AS (
  UPDATE ${s}.delivery d
  SET status = 'failed', lease_token = NULL, lease_until = NULL, updated_at = ${now}, reason = s.status_reason
  FROM ${s}.subscription s
  WHERE ${oneOf("d.id", "SELECT locked.id FROM locked")} AND s.id = d.subscription_id AND s.status = 'disabled'
  RETURNING d.id, d.project_id, d.subscription_id, d.event_id, d.type, d.status
), ended AS MATERIALIZED (
  SELECT f.subscription_id, count(*)::int AS number, max(f.id) AS last FROM failed f
  WHERE NOT starts_with(f.type, 'hookwell.') GROUP BY f.subscription_id
), lanes AS MATERIALIZED (
  SELECT l.subscription_id, l.unreported, coalesce(l.reported_at, 0) <= ${now} - ${reportEveryMs} AS tells
  FROM ${s}.lane l WHERE ${oneOf("l.subscription_id", "SELECT ended.subscription_id FROM ended")}
  ORDER BY l.subscription_id FOR UPDATE
), remembered AS (
  UPDATE ${s}.lane l SET
    reported_at = CASE WHEN lanes.tells THEN ${now} ELSE l.reported_at END,
    unreported = CASE WHEN lanes.tells THEN 0 ELSE l.unreported + ended.number END
  FROM lanes JOIN ended ON ended.subscription_id = lanes.subscription_id
  WHERE l.subscription_id = lanes.subscription_id
), news AS (
  INSERT INTO ${s}.event (project_id, id, type, occurred_at, data, content_hash, captured_at, due_at, route)
  SELECT f.project_id, ${operationalIdSql("'hookwell.delivery.failed'", "f.subscription_id", now)},
    'hookwell.delivery.failed', ${now}, '{"subscription_id":' || to_json(f.subscription_id) || ',"delivery_id":'
      || to_json(f.id) || ',"event_id":' || to_json(f.event_id) || ',"event_type":' || to_json(f.type)
      || ',"error_code":"held_too_long","count":' || lanes.unreported + ended.number || '}',
    'operational', ${now}, ${now}, '*'
  FROM lanes JOIN ended ON ended.subscription_id = lanes.subscription_id JOIN failed f ON f.id = ended.last
  WHERE lanes.tells ORDER BY f.subscription_id
  ON CONFLICT DO NOTHING
), minute AS (
  ${countMinuteSql(s, "failed", "$4", { failed: "true" })}
)
SELECT failed.id FROM failed ORDER BY failed.id`,

    dropCounts: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::int AS most
), old AS MATERIALIZED (
  SELECT c.minute, c.project_id, c.slot FROM ${s}.minute_count c
  WHERE c.minute < ${now} / ${minuteMs} - ${minutesKept}
  ORDER BY c.minute, c.project_id, c.slot LIMIT (SELECT most FROM t)
  FOR UPDATE SKIP LOCKED
)
DELETE FROM ${s}.minute_count c USING old
WHERE c.minute = old.minute AND c.project_id = old.project_id AND c.slot = old.slot
RETURNING 1 AS dropped`,

    pruneDeliveries: (look, most) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text COLLATE "C" AS status, $3::text::bigint AS kept, $4::text::bigint AS events_kept,
    $5::text::bigint AS begin
), seen AS MATERIALIZED (
  SELECT d.id, d.updated_at, d.event_id, d.project_id, d.variant FROM ${s}.delivery d
  WHERE d.status = (SELECT status FROM t) AND d.status IN ('delivered', 'failed', 'cancelled')
    AND d.updated_at >= (SELECT begin FROM t) AND d.updated_at <= ${now} - (SELECT kept FROM t)
  ORDER BY d.updated_at, d.id LIMIT ${look}
), over AS MATERIALIZED (
  SELECT seen.id FROM seen
  WHERE (
    SELECT 1 FROM ${s}.event e WHERE e.id = seen.event_id AND e.project_id = seen.project_id
      AND e.captured_at > ${now} - (SELECT events_kept FROM t) LIMIT 1) IS NULL
  ORDER BY seen.updated_at, seen.id LIMIT ${most}
), locked AS MATERIALIZED (
  SELECT d.id FROM ${s}.delivery d
  WHERE ${oneOf("d.id", "SELECT over.id FROM over")} AND d.status = (SELECT status FROM t)
  ORDER BY d.id FOR UPDATE OF d SKIP LOCKED
), gone AS (
  DELETE FROM ${s}.delivery d WHERE ${oneOf("d.id", "SELECT locked.id FROM locked")}
  RETURNING d.id, d.event_id, d.project_id, d.variant
), attempts AS (
  DELETE FROM ${s}.attempt a WHERE ${oneOf("a.delivery_id", "SELECT gone.id FROM gone")}
), bodies AS (
  DELETE FROM ${s}.body b USING gone
  WHERE b.event_id = gone.event_id AND b.project_id = gone.project_id AND b.variant = gone.variant
    AND (SELECT 1 FROM ${s}.event e WHERE e.id = b.event_id AND e.project_id = b.project_id LIMIT 1) IS NULL
    AND (
      SELECT 1 FROM ${s}.delivery d
      WHERE d.event_id = b.event_id AND d.project_id = b.project_id AND d.variant = b.variant
        AND NOT EXISTS (SELECT 1 FROM locked WHERE locked.id = d.id) LIMIT 1) IS NULL
)
SELECT (SELECT count(*) FROM gone)::int AS pruned, (SELECT count(*) FROM seen)::int AS seen,
  (SELECT max(seen.updated_at) FROM seen)::text AS last`,

    pruneEvents: (look, most) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::bigint AS kept, $3::text::bigint AS begin
), seen AS MATERIALIZED (
  SELECT e.id, e.project_id, e.state, e.captured_at, e.seq FROM ${s}.event e
  WHERE e.captured_at >= (SELECT begin FROM t) AND e.captured_at <= ${now} - (SELECT kept FROM t)
  ORDER BY e.captured_at, e.id LIMIT ${look}
), over AS MATERIALIZED (
  SELECT seen.id, seen.project_id FROM seen
  WHERE seen.state <> 'new' AND (
    SELECT 1 FROM ${s}.delivery d WHERE d.event_id = seen.id AND d.project_id = seen.project_id LIMIT 1) IS NULL
  ORDER BY seen.captured_at, seen.id LIMIT ${most}
), locked AS MATERIALIZED (
  SELECT e.id, e.project_id FROM ${s}.event e JOIN over ON over.id = e.id AND over.project_id = e.project_id
  WHERE e.state <> 'new'
  ORDER BY e.seq FOR UPDATE OF e SKIP LOCKED
), bodies AS (
  DELETE FROM ${s}.body b USING locked
  WHERE b.event_id = locked.id AND b.project_id = locked.project_id
), gone AS (
  DELETE FROM ${s}.event e USING locked
  WHERE e.id = locked.id AND e.project_id = locked.project_id
  RETURNING 1 AS one
)
SELECT (SELECT count(*) FROM gone)::int AS pruned, (SELECT count(*) FROM seen)::int AS seen,
  (SELECT max(seen.captured_at) FROM seen)::text AS last`,

    pruneSubscriptions: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::bigint AS kept, $3::text::int AS most
), locked AS MATERIALIZED (
  SELECT s.id FROM ${s}.subscription s
  WHERE s.status = 'deleted' AND s.status_changed_at <= ${now} - (SELECT kept FROM t)
    AND (SELECT 1 FROM ${s}.delivery d WHERE d.subscription_id = s.id LIMIT 1) IS NULL
  LIMIT (SELECT most FROM t)
  FOR UPDATE OF s SKIP LOCKED
), endpoints AS (
  DELETE FROM ${s}.endpoint e WHERE ${oneOf("e.subscription_id", "SELECT locked.id FROM locked")}
), filters AS (
  DELETE FROM ${s}.subscription_filter f WHERE ${oneOf("f.subscription_id", "SELECT locked.id FROM locked")}
), gone AS (
  DELETE FROM ${s}.subscription s WHERE ${oneOf("s.id", "SELECT locked.id FROM locked")} RETURNING s.id
)
DELETE FROM ${s}.lane l WHERE ${oneOf("l.subscription_id", "SELECT gone.id FROM gone")}`,

    // A lane that was held (Retry-After, breaker, rate) counts from the end of the hold.
    lag: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), runnable AS (
  SELECT l.subscription_id, ${restsUntilSql} AS rests_until FROM ${s}.lane l
  WHERE l.ready AND l.held = 0 AND coalesce(${restsUntilSql}, 0) <= ${now}
  UNION ALL
  SELECT l.subscription_id, ${restsUntilSql} AS rests_until FROM ${s}.lane l
  WHERE NOT l.ready AND l.held = 0 AND l.next_due <= ${now} AND coalesce(${restsUntilSql}, 0) <= ${now}
)
SELECT ${now}::text AS now, (
  SELECT min(greatest(head.due_at, r.rests_until)) FROM runnable r
  CROSS JOIN LATERAL (
    ${firstUnheldSql(s, "r.subscription_id", ` AND d.due_at <= ${now}`)}
  ) AS head
)::text AS oldest_due, ${oldestNewSql(s)}::text AS oldest_new`,

    remaining: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::int AS most
), runnable AS (
  SELECT l.subscription_id FROM ${s}.lane l
  WHERE l.ready AND l.held = 0 AND coalesce(${restsUntilSql}, 0) <= ${now}
  UNION ALL
  SELECT l.subscription_id FROM ${s}.lane l
  WHERE NOT l.ready AND l.held = 0 AND l.next_due <= ${now} AND coalesce(${restsUntilSql}, 0) <= ${now}
)
SELECT (SELECT count(*) FROM (
  SELECT 1 FROM runnable r
  CROSS JOIN LATERAL (
    SELECT 1 FROM ${s}.delivery d
    WHERE d.subscription_id = r.subscription_id AND d.status = 'pending' AND d.due_at <= ${now}
      AND NOT ${coveredSql(`${s}.hold`)}
    UNION ALL
    SELECT 1 FROM ${s}.delivery d
    WHERE d.subscription_id = r.subscription_id AND d.status = 'pending'
      AND d.due_at >= ${behindLive} AND d.due_at <= ${behindLive} + ${now}
      AND NOT ${coveredSql(`${s}.hold`)}
    LIMIT (SELECT most FROM t)
  ) AS due
  LIMIT (SELECT most FROM t)
) AS counted)::int AS pending, (SELECT count(*) FROM (
  SELECT 1 FROM ${s}.event e WHERE e.state = 'new' LIMIT (SELECT most FROM t)
) AS counted)::int AS new_events`,
  }),
);
