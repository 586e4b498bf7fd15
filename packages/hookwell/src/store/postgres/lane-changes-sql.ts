import { reportEveryMs } from "../operational.ts";
import { oneOf } from "./database.ts";
import { blockedUntilSql } from "./lanes.ts";
import { operationalIdSql } from "./operational-sql.ts";

/**
 * What recorded outcomes mean for their lanes: the rules of store/lane-state.ts as parts of one statement. Reads
 * `done` (ord, id, subscription_id, kind, sent, breakable, hold_ms, next_due), `disabled` (id) and `t` (now and the
 * policy); gives `changed` (subscription_id, change). Lanes that are well and got no failure are not written. The
 * others are locked in id order, so that two batches cannot deadlock, and seen as they are then.
 */
export function laneChangesSql(s: string): string {
  const failure = "done.sent AND done.kind IN ('retry', 'failed')";
  return `marked AS (
  SELECT done.*, ${failure} AS failure, done.status = 'failed' AND NOT starts_with(done.type, 'hookwell.') AS ended,
    CASE WHEN done.kind = 'released' OR (done.kind = 'failed' AND NOT done.sent) THEN 'released'
      ELSE 'sent' END AS probe,
    max(done.ord) FILTER (WHERE done.kind = 'delivered') OVER lane AS success,
    max(done.ord) FILTER (WHERE done.kind = 'delivered' OR (${failure} AND done.breakable IS NOT TRUE))
      OVER lane AS unbroken
  FROM done WINDOW lane AS (PARTITION BY done.subscription_id)
), told AS MATERIALIZED (
  SELECT m.subscription_id, bool_or(m.kind = 'released') AS released,
    min(m.next_due) FILTER (WHERE m.kind = 'retry') AS next_due, max(m.hold_ms) AS hold_ms,
    bool_or(disabled.id IS NOT NULL) AS gone, bool_or(m.kind IN ('retry', 'released', 'failed', 'gone') OR m.failure) AS bad,
    bool_or(m.success IS NOT NULL) AS success, bool_or(m.unbroken IS NOT NULL) AS unbroken,
    count(*) FILTER (WHERE m.failure AND m.ord > coalesce(m.success, -1))::int AS failed,
    count(*) FILTER (WHERE m.failure AND m.breakable AND m.ord > coalesce(m.unbroken, -1))::int AS broken,
    array_agg(m.id) AS ids, array_agg(m.id) FILTER (WHERE m.probe = 'released') AS unsent,
    count(*) FILTER (WHERE m.ended)::int AS ended, max(m.ord) FILTER (WHERE m.ended) AS last_ended
  FROM marked m LEFT JOIN disabled ON disabled.id = m.subscription_id
  GROUP BY m.subscription_id
), suspects AS MATERIALIZED (
  SELECT sub.id, sub.status FROM ${s}.subscription sub
  WHERE ${oneOf(
    "sub.id",
    `SELECT k.subscription_id FROM told, t, LATERAL (
      SELECT k.subscription_id, k.failures, k.failing_since FROM ${s}.lane k
      WHERE k.subscription_id = told.subscription_id LIMIT 1) AS k
    WHERE t.disable AND told.failed > 0 AND k.failures + told.failed >= t.disable_failures
      AND coalesce(k.failing_since, t.now) <= t.now - t.disable_ms`,
  )}
  ORDER BY sub.id
  FOR UPDATE
), own AS MATERIALIZED (
  SELECT l.* FROM ${s}.lane l
  WHERE (SELECT count(*) FROM suspects) >= 0 AND ${oneOf(
    "l.subscription_id",
    `SELECT told.subscription_id FROM told WHERE told.bad OR told.gone OR EXISTS (
      SELECT 1 FROM ${s}.lane k WHERE k.subscription_id = told.subscription_id
        AND (k.failures > 0 OR k.breaks > 0 OR k.opened_at IS NOT NULL OR k.slots <> '{}'))`,
  )}
  ORDER BY l.subscription_id
  FOR UPDATE
), counted AS MATERIALIZED (
  SELECT l.*, told.ended, told.last_ended, told.failed > 0 AS last_failed, told.released, told.next_due AS row_due, told.gone, told.ids, told.unsent, told.success,
    l.slots - told.ids AS slots_left, greatest(l.hold_until, t.now + told.hold_ms) AS held_until,
    CASE WHEN told.success THEN 0 ELSE l.failures END + CASE WHEN t.counted THEN told.failed ELSE 0 END
      AS failures_now,
    CASE WHEN told.success OR told.unbroken THEN 0 ELSE l.breaks END
      + CASE WHEN t.breaker THEN told.broken ELSE 0 END AS breaks_now
  FROM own l JOIN told ON told.subscription_id = l.subscription_id, t
), probed AS MATERIALIZED (
  SELECT l.*, n.circuit, n.step
  FROM counted l, t, LATERAL (
    SELECT CASE
        WHEN l.opened_at IS NULL OR l.success THEN
          CASE WHEN t.breaker AND l.breaks_now >= t.break_failures THEN 'opens' ELSE 'shut' END
        WHEN l.probe_id = ANY (l.unsent) THEN 'unsent'
        WHEN l.probe_id = ANY (l.ids) THEN 'probed'
        ELSE 'open' END AS circuit,
      least(l.probe_step * 2, coalesce(t.probe_max_ms, 300000)) AS step
    OFFSET 0
  ) AS n
), written AS MATERIALIZED (
  SELECT l.subscription_id, l.failures_now, l.breaks_now, l.slots_left, l.held_until, l.gone, l.released,
    l.row_due, l.slots_left <> l.slots AS freed, l.ended, l.last_ended, l.unreported,
    coalesce(l.reported_at, 0) <= t.now - ${reportEveryMs} AS may_report,
    EXISTS (SELECT 1 FROM suspects WHERE suspects.id = l.subscription_id AND suspects.status = 'active')
      AND NOT l.gone AND l.last_failed AND l.failures_now >= t.disable_failures
      AND CASE WHEN NOT l.success THEN l.failing_since END <= t.now - t.disable_ms AS disables,
    CASE WHEN l.failures_now > 0 THEN coalesce(CASE WHEN NOT l.success THEN l.failing_since END, t.now) END
      AS failing_since,
    CASE l.circuit WHEN 'shut' THEN NULL WHEN 'opens' THEN t.now ELSE l.opened_at END AS opened_at,
    CASE l.circuit WHEN 'shut' THEN NULL WHEN 'opens' THEN t.probe_ms WHEN 'probed' THEN l.step
      ELSE l.probe_step END AS probe_step,
    p.probe_at, CASE WHEN l.circuit = 'open' THEN l.probe_id END AS probe_id,
    ${blockedUntilSql("t.now", "p.probe_at", "l.rate_tat", "l.slots_left")} AS blocked_until,
    CASE WHEN l.opened_at IS NULL AND l.circuit = 'opens' THEN 'opened'
      WHEN l.opened_at IS NOT NULL AND l.circuit = 'shut' THEN 'closed' END AS change
  FROM probed l, t, LATERAL (
    SELECT CASE l.circuit WHEN 'opens' THEN t.now + t.probe_ms WHEN 'unsent' THEN t.now
      WHEN 'probed' THEN t.now + l.step WHEN 'open' THEN l.probe_at END AS probe_at
    OFFSET 0
  ) AS p
), changed AS (
  UPDATE ${s}.lane l SET
    held = CASE WHEN w.gone THEN 2 WHEN w.disables THEN greatest(l.held, 1) ELSE l.held END,
    reported_at = CASE WHEN t.report AND w.ended > 0 AND w.may_report THEN t.now ELSE l.reported_at END,
    unreported = CASE WHEN NOT t.report OR w.ended = 0 THEN l.unreported WHEN w.may_report THEN 0
      ELSE l.unreported + w.ended END,
    hold_until = w.held_until, failures = w.failures_now, failing_since = w.failing_since, breaks = w.breaks_now,
    opened_at = w.opened_at, probe_step = w.probe_step, probe_at = w.probe_at, probe_id = w.probe_id,
    slots = w.slots_left, blocked_until = w.blocked_until,
    ready = CASE
      WHEN greatest(w.held_until, w.blocked_until) > t.now THEN false
      ELSE l.ready OR w.released OR w.freed OR l.guarded END,
    next_due = CASE
      WHEN greatest(w.held_until, w.blocked_until) > t.now THEN greatest(w.held_until, w.blocked_until)
      ELSE least(l.next_due, w.row_due) END
  FROM written w, t WHERE l.subscription_id = w.subscription_id
  RETURNING l.subscription_id, w.change, w.freed, CASE WHEN w.disables THEN 'disabled' END AS disables
), failing AS (
  UPDATE ${s}.subscription sub
  SET status = 'disabled', status_reason = 'failing', status_changed_at = t.now, updated_at = t.now
  FROM written w, t WHERE w.disables AND sub.id = w.subscription_id
), news AS (
  INSERT INTO ${s}.event (project_id, id, type, occurred_at, data, content_hash, captured_at, due_at, route)
  SELECT sub.project_id, ${operationalIdSql("n.type", "w.subscription_id", "t.now")}, n.type, t.now, n.data,
    'operational', t.now, t.now, '*'
  FROM t, written w, LATERAL (
    SELECT sub.project_id FROM ${s}.subscription sub WHERE sub.id = w.subscription_id LIMIT 1
  ) AS sub, LATERAL (
    SELECT '{"subscription_id":' || to_json(w.subscription_id) AS about
  ) AS a, LATERAL (
    VALUES
      (1, 'hookwell.subscription.failing', w.change = 'opened', a.about || ',"failures":' || w.failures_now || '}'),
      (2, 'hookwell.subscription.recovered', w.change = 'closed', a.about || '}'),
      (3, 'hookwell.subscription.disabled', w.gone OR w.disables, a.about || ',"reason":"'
        || CASE WHEN w.gone THEN 'gone' ELSE 'failing' END || '","failures":' || w.failures_now || '}'),
      (4, 'hookwell.delivery.failed', w.ended > 0 AND w.may_report, (
        SELECT a.about || ',"delivery_id":' || to_json(done.id) || ',"event_id":' || to_json(done.event_id)
          || ',"event_type":' || to_json(done.type) || ',"error_code":' || to_json(coalesce(done.error_code, ''))
          || ',"count":' || w.unreported + w.ended || '}'
        FROM done WHERE done.ord = w.last_ended))
  ) AS n(rank, type, tell, data)
  WHERE t.report AND n.tell
  ORDER BY w.subscription_id, n.rank
  ON CONFLICT DO NOTHING
)`;
}
