import { nowSql, oneOf, textsFor } from "./database.ts";
import { laneChangesSql } from "./lane-changes-sql.ts";
import { blockedUntilSql, wakeLanesSql } from "./lanes.ts";
import { countMinuteSql } from "./minute-counts-sql.ts";
import { behindReplayedSql } from "./ordering-sql.ts";

interface RecordTexts {
  /**
   * For so many outcomes, said so that the planner knows. $1 now, $2 outcomes (JSON array), $3 policy (JSON object), $4 slot
   * of counts.
   * Answers ord, id, status, attempts of the rows that counted, then lane and change of circuits.
   */
  readonly outcomes: (count: number) => string;
  /** $1 now, $2 the mark (JSON object), $3 slot of counts. Answers known, counted, and guarded for a lane to be told (0 or 1). */
  readonly mark: string;
  /** $1 now, $2 id, $3 whether it was delivered. Frees the slot of a guarded lane; a success closes its circuit. */
  readonly marked: string;
}

/**
 * The rows of `i` (id, token) that hold their token, locked in id order. Each is one probe of the primary key: the
 * state is looked at outside of it, or a planner that knows little of a young table reads every pending row by the
 * partial index instead.
 */
export function lockedRowsSql(s: string): string {
  return `SELECT d.id AS locked_id, d.subscription_id,
    d.attempts - CASE WHEN d.lease_token IS NULL THEN 0 ELSE 1 END AS sent_before
  FROM (SELECT i.id, i.token FROM i ORDER BY i.id) AS want
  CROSS JOIN LATERAL (
    SELECT d.id, d.subscription_id, d.status, d.lease_token, d.attempts FROM ${s}.delivery d
    WHERE d.id = want.id LIMIT 1
    FOR UPDATE
  ) AS d
  WHERE d.status = 'pending' AND d.lease_token IS NOT DISTINCT FROM want.token`;
}

/**
 * Every outcome of a batch in one statement: rows that are pending and hold the token are locked in id order, so
 * that two batches cannot deadlock, then changed by what became of them; failed attempts are inserted; lanes that
 * got work, or must wait, are written last. A success writes its row and nothing else.
 */
export const recordTexts = textsFor((s): RecordTexts => {
  const lockedSql = lockedRowsSql(s);
  const now = "(SELECT now FROM t)";
  return {
    outcomes: (count) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, p.* FROM jsonb_to_record($3::text::jsonb) AS p(counted boolean, breaker boolean,
    break_failures int, probe_ms bigint, probe_max_ms bigint, disable boolean, disable_failures int,
    disable_ms bigint, report boolean)
), i AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_recordset($2::text::jsonb) AS x(ord int, id text, token text, kind text, sent boolean, breakable boolean,
    delay_ms bigint, hold_ms bigint, reason text, error_code text, last_error text, started_at bigint,
    duration_ms bigint, status_code int, attempt_code text, attempt_error text, excerpt text)
  LIMIT ${count}
), locked AS MATERIALIZED (
  ${lockedSql}
), done AS (
  UPDATE ${s}.delivery d SET
    status = CASE i.kind WHEN 'delivered' THEN 'delivered' WHEN 'failed' THEN 'failed' WHEN 'gone' THEN 'failed'
      ELSE 'pending' END,
    reason = CASE i.kind WHEN 'failed' THEN i.reason WHEN 'gone' THEN 'gone' END,
    attempts = d.attempts - CASE WHEN i.sent THEN 0 ELSE 1 END,
    next_attempt_at = CASE i.kind WHEN 'retry' THEN ${now} + i.delay_ms ELSE d.next_attempt_at END,
    due_at = CASE i.kind WHEN 'retry' THEN ${now} + i.delay_ms ELSE d.next_attempt_at END + ${behindReplayedSql("d")},
    lease_token = NULL, lease_until = NULL, updated_at = ${now},
    delivered_at = CASE i.kind WHEN 'delivered' THEN ${now} END,
    error_code = coalesce(i.error_code, d.error_code),
    last_error = coalesce(i.last_error, d.last_error),
    last_started_at = CASE i.kind WHEN 'delivered' THEN i.started_at END,
    last_duration_ms = CASE i.kind WHEN 'delivered' THEN i.duration_ms END,
    last_status_code = CASE i.kind WHEN 'delivered' THEN i.status_code END
  FROM i JOIN locked ON locked.locked_id = i.id
  WHERE d.id = i.id
  RETURNING i.ord, d.id, d.status, d.attempts, d.round, d.project_id, d.subscription_id, d.event_id, d.type,
    d.error_code, i.kind, i.sent, i.breakable, i.hold_ms,
    d.next_attempt_at AS next_due
), logged AS (
  INSERT INTO ${s}.attempt (delivery_id, round, number, started_at, duration_ms, status_code, error_code, error,
    response_excerpt)
  SELECT done.id, done.round, done.attempts, i.started_at, i.duration_ms, i.status_code, i.attempt_code,
    i.attempt_error, i.excerpt
  FROM done JOIN i ON i.ord = done.ord
  WHERE done.sent AND done.kind <> 'delivered'
  ON CONFLICT DO NOTHING
), gone AS MATERIALIZED (
  SELECT sub.id FROM ${s}.subscription sub
  WHERE ${oneOf("sub.id", "SELECT done.subscription_id FROM done WHERE done.kind = 'gone'")}
    AND sub.status IN ('active', 'paused')
  ORDER BY sub.id
  FOR UPDATE
), disabled AS (
  UPDATE ${s}.subscription sub
  SET status = 'disabled', status_reason = 'gone', status_changed_at = ${now}, updated_at = ${now}
  WHERE ${oneOf("sub.id", "SELECT gone.id FROM gone")}
  RETURNING sub.id
), ${laneChangesSql(s)}, minute AS (
  ${countMinuteSql(s, "done", "$4", {
    delivered: "r.kind = 'delivered'",
    failed_attempts: "r.sent AND r.kind <> 'delivered'",
    failed: "r.status = 'failed'",
  })}
)
SELECT done.ord, done.id, done.status, done.attempts, NULL AS lane, NULL AS change FROM done
UNION ALL
SELECT NULL, NULL, NULL, NULL, changed.subscription_id, c.change
FROM changed, LATERAL (VALUES (1, changed.change), (2, changed.disables), (3, CASE WHEN changed.freed THEN 'freed' END)) AS c(rank, change)
WHERE c.change IS NOT NULL
ORDER BY ord, lane, change DESC`,

    mark: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), i AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_record($2::text::jsonb) AS x(id text, token text, status text, reason text, at bigint,
    attempts int, last_error text, next_attempt_at bigint)
), locked AS MATERIALIZED (
  ${lockedSql}
), done AS (
  UPDATE ${s}.delivery d SET
    status = i.status, reason = i.reason,
    attempts = coalesce(i.attempts, CASE WHEN d.lease_token IS NULL THEN d.attempts + 1 ELSE d.attempts END),
    next_attempt_at = coalesce(i.next_attempt_at, d.next_attempt_at),
    due_at = coalesce(i.next_attempt_at, d.next_attempt_at) + ${behindReplayedSql("d")},
    lease_token = NULL, lease_until = NULL,
    last_error = coalesce(i.last_error, d.last_error),
    updated_at = coalesce(i.at, ${now}),
    delivered_at = CASE i.status WHEN 'delivered' THEN i.at END
  FROM i JOIN locked ON locked.locked_id = i.id
  WHERE d.id = i.id
  RETURNING d.id, d.project_id, d.subscription_id, d.status, d.attempts > locked.sent_before AS sent
), woken AS (
  ${wakeLanesSql(s, "SELECT done.subscription_id FROM done WHERE done.status = 'pending'", now)}
), minute AS (
  ${countMinuteSql(s, "done", "$3", {
    delivered: "r.status = 'delivered'",
    failed_attempts: "r.sent AND r.status <> 'delivered'",
    failed: "r.status = 'failed'",
  })}
)
SELECT (SELECT count(*) FROM ${s}.delivery d JOIN i ON i.id = d.id)::int AS known,
  (SELECT count(*) FROM done)::int AS counted,
  (SELECT count(*) FROM done JOIN ${s}.lane l ON l.subscription_id = done.subscription_id WHERE l.guarded)::int AS guarded`,

    marked: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS id, $3::text::boolean AS delivered
)
UPDATE ${s}.lane l SET (slots, failures, failing_since, breaks, opened_at, probe_step, probe_at, probe_id,
    blocked_until, ready, next_due) = (
  SELECT n.slots, CASE WHEN t.delivered THEN 0 ELSE l.failures END,
    CASE WHEN t.delivered THEN NULL ELSE l.failing_since END, CASE WHEN t.delivered THEN 0 ELSE l.breaks END,
    CASE WHEN t.delivered THEN NULL ELSE l.opened_at END, CASE WHEN t.delivered THEN NULL ELSE l.probe_step END,
    n.probe_at, CASE WHEN t.delivered THEN NULL ELSE l.probe_id END, b.until,
    coalesce(greatest(l.hold_until, b.until), 0) <= t.now,
    CASE WHEN greatest(l.hold_until, b.until) > t.now THEN greatest(l.hold_until, b.until) END
  FROM (
    SELECT l.slots - t.id AS slots, CASE WHEN t.delivered THEN NULL ELSE l.probe_at END AS probe_at
  ) AS n CROSS JOIN LATERAL (
    SELECT ${blockedUntilSql("t.now", "n.probe_at", "l.rate_tat", "n.slots")} AS until
  ) AS b
)
FROM t, ${s}.delivery d WHERE d.id = t.id AND l.subscription_id = d.subscription_id`,
  };
});
