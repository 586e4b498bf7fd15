import { behindLive, blockedAt } from "../ordering.ts";
import { nowSql, oneOf, textsFor } from "./database.ts";
import { newLanesSql, wakeLanesSql } from "./lanes.ts";

interface ReplayTexts {
  /** $1 now, $2 the replay (JSON object). Nothing is answered when its id is taken. */
  readonly create: string;
  /** $1 id. */
  readonly get: string;
  /** $1 id. Locks it. */
  readonly lock: string;
  /** $1 now, $2 id, $3 status, $4 error or null. */
  readonly end: string;
  /** $1 now, $2 ms that ended replays are kept, or null. Answers running, due, tallies, old (0 or 1). */
  readonly any: string;
  /** Counts outcomes of the replay that has waited longest. */
  readonly fold: string;
  /** $1 now, $2 ms kept. */
  readonly forget: string;
  /** $1 now. Locks the running replay that has waited longest, and answers it with now. */
  readonly take: string;
  /** $1 now, $2 replay, $3 delivery ids. Opens the next rounds; answers id and ordered (0 or 1). */
  readonly requeue: (count: number) => string;
  /** $1 now, $2 the events (JSON array). */
  readonly note: (count: number) => string;
  /** $1 id, $2 phase, $3 at, $4 id there, $5 queued, $6 skipped, $7 noted, $8 next look. */
  readonly move: string;
}

const now = "(SELECT now FROM t)";

/** A replay `r` as it is read: what is counted, and what waits to be. */
export function replayColumnsSql(s: string): string {
  return `r.id, r.project_id, r.tenant_id, r.owner_id, r.subscription_id, r.selection, r.statuses, r.since, r.until,
  r.status, r.phase, r.walk_at, r.walk_id, r.count, r.noted, r.queued, r.skipped, r.error, r.created_at, r.finished_at,
  r.delivered + tally.delivered AS delivered, r.failed + tally.failed AS failed,
  r.cancelled + tally.cancelled AS cancelled
FROM ${s}.replay r
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE k.status = 'delivered') AS delivered,
    count(*) FILTER (WHERE k.status = 'failed') AS failed,
    count(*) FILTER (WHERE k.status = 'cancelled') AS cancelled
  FROM ${s}.replay_tally k WHERE k.replay_id = r.id
) AS tally`;
}

export const replayTexts = textsFor(
  (s): ReplayTexts => ({
    create: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::jsonb AS j
)
INSERT INTO ${s}.replay (id, project_id, tenant_id, owner_id, subscription_id, selection, statuses, since, until,
  status, phase, walk_at, walk_id, next_at, count, created_at)
SELECT i.id, i.project_id, i.tenant_id, i.owner_id, i.subscription_id, i.selection, i.statuses, i.since, i.until,
  'running', i.phase, i.walk_at, i.walk_id, t.now, i.count, t.now
FROM t, jsonb_to_record(t.j) AS i(id text, project_id text, tenant_id text, owner_id text, subscription_id text,
  selection text, statuses text, since bigint, until bigint, phase text, walk_at bigint, walk_id text, count bigint)
ON CONFLICT DO NOTHING
RETURNING id`,

    get: `SELECT ${replayColumnsSql(s)} WHERE r.id = $1::text`,

    lock: `SELECT r.id, r.project_id, r.tenant_id, r.owner_id, r.status FROM ${s}.replay r
WHERE r.id = $1::text FOR UPDATE`,

    end: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS id, $3::text AS status, $4::text AS error
), dropped AS (
  DELETE FROM ${s}.replay_missing m USING t WHERE m.replay_id = t.id
)
UPDATE ${s}.replay r SET status = t.status, error = coalesce(t.error, r.error), noted = 0, finished_at = t.now
FROM t WHERE r.id = t.id`,

    any: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::bigint AS kept
)
SELECT EXISTS (SELECT 1 FROM ${s}.replay r WHERE r.status = 'running')::int AS running,
  EXISTS (SELECT 1 FROM ${s}.replay r WHERE r.status = 'running' AND r.next_at <= ${now})::int AS due,
  ((SELECT k.id FROM ${s}.replay_tally k ORDER BY k.id LIMIT 1) IS NOT NULL)::int AS tallies,
  EXISTS (SELECT 1 FROM ${s}.replay r
    WHERE r.finished_at IS NOT NULL AND r.finished_at <= ${now} - (SELECT kept FROM t))::int AS old`,

    // What is counted for a replay that is forgotten goes too.
    fold: `WITH oldest AS MATERIALIZED (
  SELECT k.replay_id FROM ${s}.replay_tally k ORDER BY k.id LIMIT 1
), own AS MATERIALIZED (
  SELECT r.id FROM ${s}.replay r WHERE r.id = (SELECT replay_id FROM oldest)
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${s}.replay_tally k
  WHERE ${oneOf("k.id", `SELECT c.id FROM ${s}.replay_tally c WHERE c.replay_id = (SELECT replay_id FROM oldest) ORDER BY c.id LIMIT 2000`)}
    AND (EXISTS (SELECT 1 FROM own)
      OR NOT EXISTS (SELECT 1 FROM ${s}.replay r WHERE r.id = (SELECT replay_id FROM oldest)))
  RETURNING k.status
), counted AS (
  SELECT count(*) FILTER (WHERE gone.status = 'delivered') AS delivered,
    count(*) FILTER (WHERE gone.status = 'failed') AS failed,
    count(*) FILTER (WHERE gone.status = 'cancelled') AS cancelled
  FROM gone
)
UPDATE ${s}.replay r SET delivered = r.delivered + counted.delivered, failed = r.failed + counted.failed,
  cancelled = r.cancelled + counted.cancelled
FROM counted WHERE r.id = (SELECT id FROM own)`,

    forget: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::bigint AS kept
), old AS MATERIALIZED (
  SELECT r.id FROM ${s}.replay r
  WHERE r.finished_at IS NOT NULL AND r.finished_at <= ${now} - (SELECT kept FROM t)
  ORDER BY r.finished_at LIMIT 100
  FOR UPDATE SKIP LOCKED
)
DELETE FROM ${s}.replay r WHERE ${oneOf("r.id", "SELECT old.id FROM old")}`,

    take: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), own AS MATERIALIZED (
  SELECT r.id FROM ${s}.replay r WHERE r.status = 'running' AND r.next_at <= ${now}
  ORDER BY r.next_at, r.id LIMIT 1
  FOR UPDATE SKIP LOCKED
)
SELECT (SELECT now FROM t) AS now, own_subscription.status AS subscription_status, ${replayColumnsSql(s)}
LEFT JOIN ${s}.subscription own_subscription ON own_subscription.id = r.subscription_id
WHERE r.id = (SELECT own.id FROM own)`,

    // Which are superseded is decided for all of them before any of them changes; the row has room for one
    // success, and the log keeps the one of the round that ends here.
    requeue: (count) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS replay_id
), wanted AS MATERIALIZED (
  SELECT w.id FROM jsonb_array_elements_text($3::text::jsonb) AS w(id) LIMIT ${count}
), locked AS MATERIALIZED (
  SELECT d.id, d.subscription_id, d.order_key, d.order_at FROM ${s}.delivery d
  WHERE ${oneOf("d.id", "SELECT wanted.id FROM wanted")} AND d.status <> 'pending'
    AND (d.lease_until IS NULL OR d.lease_until <= ${now})
  ORDER BY d.id FOR UPDATE OF d
), kept AS MATERIALIZED (
  SELECT locked.id FROM locked
  LEFT JOIN LATERAL (
    SELECT m.order_at FROM ${s}.delivery m
    WHERE m.subscription_id = locked.subscription_id AND m.order_key = locked.order_key AND m.order_key IS NOT NULL
      AND (m.attempts > 0 OR m.round > 1)
    ORDER BY m.order_at DESC LIMIT 1
  ) AS mark ON right(locked.order_key, 1) = 'r'
  WHERE (locked.order_at < mark.order_at) IS NOT TRUE
), success AS (
  INSERT INTO ${s}.attempt (delivery_id, round, number, started_at, duration_ms, status_code)
  SELECT d.id, d.round, d.attempts, d.last_started_at, d.last_duration_ms, d.last_status_code
  FROM ${s}.delivery d WHERE ${oneOf("d.id", "SELECT kept.id FROM kept")} AND d.last_started_at IS NOT NULL
  ON CONFLICT DO NOTHING
), done AS (
  UPDATE ${s}.delivery d SET
    status = 'pending', reason = NULL, attempts = 0, round = d.round + 1, replay_id = t.replay_id,
    next_attempt_at = t.now, updated_at = t.now, lease_token = NULL, lease_until = NULL,
    due_at = CASE WHEN d.order_key IS NULL THEN t.now + ${behindLive} ELSE ${blockedAt} END,
    delivered_at = NULL, last_started_at = NULL, last_duration_ms = NULL, last_status_code = NULL
  FROM t WHERE ${oneOf("d.id", "SELECT kept.id FROM kept")}
  RETURNING d.id, d.subscription_id, d.order_key
), woken AS (
  ${wakeLanesSql(s, "SELECT done.subscription_id FROM done", now)}
), opened AS (
  ${newLanesSql(s, "SELECT done.subscription_id FROM done", now)}
)
SELECT done.id, (done.order_key IS NOT NULL)::int AS ordered FROM done`,

    note: (count) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
)
INSERT INTO ${s}.replay_missing (replay_id, event_id, project_id, subscription_id, route, due_at)
SELECT i.replay_id, i.event_id, i.project_id, i.subscription_id, i.route, t.now
FROM t, (
  SELECT x.* FROM jsonb_to_recordset($2::text::jsonb) AS x(replay_id text, event_id text, project_id text,
    subscription_id text, route text) LIMIT ${count}
) AS i
ON CONFLICT DO NOTHING`,

    move: `UPDATE ${s}.replay r SET phase = $2::text, walk_at = $3::text::bigint, walk_id = $4::text,
  queued = r.queued + $5::text::bigint, skipped = r.skipped + $6::text::bigint, noted = r.noted + $7::text::bigint,
  next_at = $8::text::bigint
WHERE r.id = $1::text`,
  }),
);
