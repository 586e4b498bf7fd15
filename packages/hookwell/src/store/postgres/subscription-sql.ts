import { nowSql, textsFor } from "./database.ts";
import { awakeSql, heldByStatusSql } from "./lanes.ts";

interface SubscriptionTexts {
  /** $1 now, $2 `{subscription, filters, endpoint}`. Answers the row, or nothing when the id is taken. */
  readonly create: string;
  /** The same; replaces what is there, its fields and its creation time apart. */
  readonly put: string;
  /** $1 id. Locks the row and answers it. */
  readonly lock: string;
  /** $1 id of an endpoint version, $2 now. Answers `{url, sealed, now}`. */
  readonly sealed: string;
  /** $1 now, $2 `{subscription, filters, endpoint or null}`. Answers the row. */
  readonly update: string;
  /** $1 now, $2 id, $3 status, $4 reason. Answers the row. */
  readonly status: string;
  /** $1 id. */
  readonly get: string;
  /** $1 project. Active ones with their endpoint, by id. */
  readonly active: string;
}

/** Conditions on the subscription as it is (`s`) and was (`before`), and the ms that it was paused. */
interface LaneChanges {
  readonly forgiven: string;
  readonly limits: string;
  readonly paused: string;
}

const columns = `id text, project_id text, tenant_id text, owner_id text, url text, url_host text, event_types text,
  fields text, header_names text, description text, metadata text, external_id text, rate_limit text,
  max_in_flight int, ordering text, status text, status_reason text`;

const names = `id, project_id, tenant_id, owner_id, url, url_host, event_types, fields, header_names, description,
  metadata, external_id, rate_limit, max_in_flight, ordering, status, status_reason`;

export const subscriptionTexts = textsFor((s): SubscriptionTexts => {
  const given = `t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::jsonb AS j
), i AS MATERIALIZED (
  SELECT x.* FROM t, jsonb_to_record(t.j -> 'subscription') AS x(${columns})
), e AS MATERIALIZED (
  SELECT x.* FROM t, jsonb_to_record(t.j -> 'endpoint') AS x(id text, url text, sealed text)
)`;
  const endpoint = (written: string): string => `endpoint AS (
  INSERT INTO ${s}.endpoint (id, subscription_id, url, sealed, created_at)
  SELECT e.id, ${written}.id, e.url, e.sealed, t.now FROM e, t, ${written} WHERE e.id IS NOT NULL
)`;
  const filters = (written: string): string => `filters AS (
  INSERT INTO ${s}.subscription_filter (project_id, filter, owner_id, tenant_id, subscription_id)
  SELECT ${written}.project_id, f.filter, ${written}.owner_id, ${written}.tenant_id, ${written}.id
  FROM ${written}, t, jsonb_array_elements_text(t.j -> 'filters') AS f(filter)
  ON CONFLICT DO NOTHING
)`;
  // Filters that the new list has not; those it keeps stay, so that no statement deletes and inserts one row.
  const dropped = (written: string): string => `dropped AS (
  DELETE FROM ${s}.subscription_filter f USING ${written}, t
  WHERE f.subscription_id = ${written}.id AND NOT (
    f.project_id = ${written}.project_id AND f.owner_id = ${written}.owner_id
    AND f.tenant_id = ${written}.tenant_id AND jsonb_exists(t.j -> 'filters', f.filter))
)`;
  const lane = (written: string): string => `lane AS (
  INSERT INTO ${s}.lane AS l (subscription_id, held, rate_limit, max_in_flight)
  SELECT s.id, ${heldByStatusSql}, s.rate_limit, s.max_in_flight FROM ${written} s
  ON CONFLICT (subscription_id) DO UPDATE SET
    held = excluded.held, rate_limit = excluded.rate_limit, max_in_flight = excluded.max_in_flight,
    ${awakeSql("(SELECT now FROM t)")}
)`;
  // Enabled, or with another url, nothing is known of the receiver; limits that changed begin anew; the time that it
  // was paused does not count towards its disabling.
  const changedLane = (written: string, when: LaneChanges): string => `lane AS (
  UPDATE ${s}.lane l SET (held, rate_limit, max_in_flight, rate_tat, failures, failing_since, breaks, opened_at,
    probe_step, probe_at, probe_id, blocked_until, ready, next_due) = (
    SELECT ${heldByStatusSql}, s.rate_limit, s.max_in_flight, CASE WHEN ${when.limits} THEN 0 ELSE l.rate_tat END,
      CASE WHEN ${when.forgiven} THEN 0 ELSE l.failures END,
      CASE WHEN ${when.forgiven} THEN NULL ELSE l.failing_since + ${when.paused} END,
      CASE WHEN ${when.forgiven} THEN 0 ELSE l.breaks END,
      n.opened_at,
      CASE WHEN n.opened_at IS NOT NULL THEN l.probe_step END,
      CASE WHEN n.opened_at IS NOT NULL THEN l.probe_at END,
      CASE WHEN n.opened_at IS NOT NULL THEN l.probe_id END,
      n.blocked_until, coalesce(greatest(l.hold_until, n.blocked_until), 0) <= t.now,
      CASE WHEN greatest(l.hold_until, n.blocked_until) > t.now THEN greatest(l.hold_until, n.blocked_until) END
    FROM (
      SELECT CASE WHEN ${when.forgiven} THEN NULL ELSE l.opened_at END AS opened_at,
        CASE WHEN ${when.forgiven} THEN 0 WHEN ${when.limits} THEN coalesce(l.probe_at, 0) ELSE l.blocked_until END
          AS blocked_until
    ) AS n
  )
  FROM ${written} s, before, t
  WHERE l.subscription_id = s.id
)`;
  const insert = `INSERT INTO ${s}.subscription AS sub (${names}, endpoint_id, created_at, updated_at, status_changed_at)
  SELECT i.${names.replaceAll(/,\s+/g, ", i.")}, e.id, t.now, t.now, t.now FROM i, e, t`;

  return {
    create: `WITH ${given}, written AS (
  ${insert}
  ON CONFLICT DO NOTHING
  RETURNING *
), ${endpoint("written")}, ${filters("written")}, ${lane("written")}
SELECT * FROM written`,

    put: `WITH ${given}, written AS (
  ${insert}
  ON CONFLICT (id) DO UPDATE SET
    project_id = excluded.project_id, tenant_id = excluded.tenant_id, owner_id = excluded.owner_id,
    url = excluded.url, url_host = excluded.url_host, event_types = excluded.event_types,
    header_names = excluded.header_names, status = excluded.status, status_reason = excluded.status_reason,
    endpoint_id = excluded.endpoint_id, updated_at = excluded.updated_at,
    status_changed_at = CASE WHEN sub.status = excluded.status THEN sub.status_changed_at
      ELSE excluded.status_changed_at END
  RETURNING *
), ${dropped("written")}, ${endpoint("written")}, ${filters("written")}, ${lane("written")}
SELECT * FROM written`,

    // Its endpoint is read by a statement of its own: one that waited here for another writer would look for the
    // endpoint in its old snapshot, where the one made meanwhile is not.
    lock: `SELECT s.* FROM ${s}.subscription s WHERE s.id = $1::text FOR UPDATE`,

    sealed: `SELECT e.url, e.sealed, ${nowSql("$2")} AS now FROM ${s}.endpoint e WHERE e.id = $1::text`,

    update: `WITH ${given}, before AS (
  SELECT sub.* FROM i JOIN ${s}.subscription sub ON sub.id = i.id
), written AS (
  UPDATE ${s}.subscription sub SET
    url = i.url, url_host = i.url_host, event_types = i.event_types, fields = i.fields,
    header_names = i.header_names, description = i.description, metadata = i.metadata,
    external_id = i.external_id, rate_limit = i.rate_limit, max_in_flight = i.max_in_flight,
    ordering = i.ordering, endpoint_id = coalesce(e.id, sub.endpoint_id), updated_at = t.now
  FROM i, e, t WHERE sub.id = i.id
  RETURNING sub.*
), superseded AS (
  UPDATE ${s}.endpoint older SET superseded_by = e.id
  FROM written, e WHERE older.subscription_id = written.id AND e.id IS NOT NULL AND older.id <> e.id
), ${dropped("written")}, ${endpoint("written")}, ${filters("written")}, ${changedLane("written", {
      forgiven: "s.url <> before.url",
      limits:
        "(s.rate_limit IS DISTINCT FROM before.rate_limit OR s.max_in_flight IS DISTINCT FROM before.max_in_flight)",
      paused: "0",
    })}
SELECT * FROM written`,

    status: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS id, $3::text AS status, $4::text AS reason
), before AS (
  SELECT sub.* FROM t JOIN ${s}.subscription sub ON sub.id = t.id
), written AS (
  UPDATE ${s}.subscription sub
  SET status = t.status, status_reason = t.reason, status_changed_at = t.now, updated_at = t.now
  FROM t WHERE sub.id = t.id
  RETURNING sub.*
), unmatched AS (
  DELETE FROM ${s}.subscription_filter f USING written
  WHERE f.subscription_id = written.id AND written.status = 'deleted'
), ${changedLane("written", {
      forgiven: "(s.status = 'active' AND before.status = 'disabled')",
      limits: "false",
      paused:
        "CASE WHEN s.status = 'active' AND before.status = 'paused' THEN t.now - before.status_changed_at ELSE 0 END",
    })}
SELECT * FROM written`,

    get: `SELECT s.* FROM ${s}.subscription s WHERE s.id = $1::text`,

    active: `SELECT s.*, e.id AS bound_id, e.url AS bound_url, e.sealed
FROM ${s}.subscription s JOIN ${s}.endpoint e ON e.id = s.endpoint_id
WHERE s.project_id = $1::text AND s.status = 'active'
ORDER BY s.id`,
  };
});
