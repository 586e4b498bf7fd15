import { nowSql, oneOf, textsFor } from "./database.ts";
import { wakeLanesSql } from "./lanes.ts";

interface RecordTexts {
  /**
   * For so many outcomes, said so that the planner knows. $1 now, $2 outcomes (JSON array).
   * Answers ord, id, status, attempts of the rows that counted.
   */
  readonly outcomes: (count: number) => string;
  /** $1 now, $2 the mark (JSON object). Answers known and counted (0 or 1). */
  readonly mark: string;
}

/**
 * Every outcome of a batch in one statement: rows that are pending and hold the token are locked in id order, so
 * that two batches cannot deadlock, then changed by what became of them; failed attempts are inserted; lanes that
 * got work, or must wait, are written last. A success writes its row and nothing else.
 */
export const recordTexts = textsFor((s): RecordTexts => {
  const lockedSql = `SELECT d.id AS locked_id, d.subscription_id FROM ${s}.delivery d
  JOIN i ON i.id = d.id
  WHERE d.status = 'pending' AND d.lease_token IS NOT DISTINCT FROM i.token
  ORDER BY d.id
  FOR UPDATE OF d`;
  const now = "(SELECT now FROM t)";
  return {
    outcomes: (count) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), i AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_recordset($2::text::jsonb) AS x(ord int, id text, token text, kind text, sent boolean,
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
    due_at = CASE i.kind WHEN 'retry' THEN ${now} + i.delay_ms ELSE d.next_attempt_at END,
    lease_token = NULL, lease_until = NULL, updated_at = ${now},
    delivered_at = CASE i.kind WHEN 'delivered' THEN ${now} END,
    error_code = coalesce(i.error_code, d.error_code),
    last_error = coalesce(i.last_error, d.last_error),
    last_started_at = CASE i.kind WHEN 'delivered' THEN i.started_at END,
    last_duration_ms = CASE i.kind WHEN 'delivered' THEN i.duration_ms END,
    last_status_code = CASE i.kind WHEN 'delivered' THEN i.status_code END
  FROM i JOIN locked ON locked.locked_id = i.id
  WHERE d.id = i.id
  RETURNING i.ord, d.id, d.status, d.attempts, d.round, d.subscription_id, i.kind, i.sent, i.hold_ms,
    d.due_at AS next_due
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
), lanes AS MATERIALIZED (
  SELECT done.subscription_id, bool_or(done.kind = 'released') AS ready,
    min(done.next_due) FILTER (WHERE done.kind = 'retry') AS next_due,
    max(done.hold_ms) AS hold_ms, bool_or(disabled.id IS NOT NULL) AS gone
  FROM done LEFT JOIN disabled ON disabled.id = done.subscription_id
  WHERE done.kind IN ('retry', 'released') OR done.hold_ms IS NOT NULL OR disabled.id IS NOT NULL
  GROUP BY done.subscription_id
), wait AS (
  INSERT INTO ${s}.lane AS l (subscription_id, held, hold_until, ready, next_due)
  SELECT lanes.subscription_id, CASE WHEN lanes.gone THEN 2 ELSE 0 END, ${now} + lanes.hold_ms,
    lanes.hold_ms IS NULL, ${now} + lanes.hold_ms
  FROM lanes ORDER BY lanes.subscription_id
  ON CONFLICT (subscription_id) DO UPDATE SET
    held = greatest(l.held, excluded.held),
    hold_until = greatest(l.hold_until, excluded.hold_until),
    ready = CASE
      WHEN greatest(l.hold_until, excluded.hold_until) > ${now} THEN false
      ELSE l.ready OR (SELECT lanes.ready FROM lanes WHERE lanes.subscription_id = excluded.subscription_id) END,
    next_due = CASE
      WHEN greatest(l.hold_until, excluded.hold_until) > ${now} THEN greatest(l.hold_until, excluded.hold_until)
      ELSE least(l.next_due,
        (SELECT lanes.next_due FROM lanes WHERE lanes.subscription_id = excluded.subscription_id)) END
)
SELECT done.ord, done.id, done.status, done.attempts FROM done ORDER BY done.ord`,

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
    due_at = coalesce(i.next_attempt_at, d.next_attempt_at),
    lease_token = NULL, lease_until = NULL,
    last_error = coalesce(i.last_error, d.last_error),
    updated_at = coalesce(i.at, ${now}),
    delivered_at = CASE i.status WHEN 'delivered' THEN i.at END
  FROM i JOIN locked ON locked.locked_id = i.id
  WHERE d.id = i.id
  RETURNING d.id, d.subscription_id, d.status
), woken AS (
  ${wakeLanesSql(s, "SELECT done.subscription_id FROM done WHERE done.status = 'pending'", now)}
)
SELECT (SELECT count(*) FROM ${s}.delivery d JOIN i ON i.id = d.id)::int AS known,
  (SELECT count(*) FROM done)::int AS counted`,
  };
});
