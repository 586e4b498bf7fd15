import { blockedAt } from "../ordering.ts";
import { nowSql, textsFor } from "./database.ts";
import { recordColumnsSql, recordJoinsSql } from "./delivery-rows.ts";
import { newLanesSql, wakeLanesSql } from "./lanes.ts";

interface DeliveryTexts {
  /** $1 now, $2 the delivery (JSON object). Answers pair, taken, known (the key) and written (0 or 1). */
  readonly enqueue: string;
  /** $1 now, $2 id. Locks the row; answers it with tenant and owner of its subscription, and in_flight (0 or 1). */
  readonly lock: string;
  /** $1 now, $2 id. */
  readonly retry: string;
  /** $1 now, $2 id. */
  readonly cancel: string;
  /** $1 now, $2 id. Answers the record, visible parts, url and body. */
  readonly get: string;
  /** $1 id. Answers the attempts, oldest first. */
  readonly attempts: string;
}

const now = "(SELECT now FROM t)";

export const deliveryTexts = textsFor((s): DeliveryTexts => {
  const target = `t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS id
)`;
  return {
    enqueue: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::jsonb AS j
), i AS MATERIALIZED (
  SELECT x.* FROM t, jsonb_to_record(t.j) AS x(id text, project_id text, event_id text, subscription_id text,
    endpoint_id text, variant text, type text, status text, attempts int, round int, next_attempt_at bigint,
    last_error text, created_at bigint, updated_at bigint, url text, sealed text, key_check text, body text)
), pair AS MATERIALIZED (
  SELECT d.id FROM i JOIN ${s}.delivery d ON d.event_id = i.event_id AND d.subscription_id = i.subscription_id
), taken AS MATERIALIZED (
  SELECT d.id FROM i JOIN ${s}.delivery d ON d.id = i.id
), known AS MATERIALIZED (
  -- Held, so that the key which sealed it is not retired before this commits.
  SELECT m.key FROM ${s}.meta m WHERE m.key = (SELECT i.key_check FROM i) FOR KEY SHARE
), written AS (
  INSERT INTO ${s}.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, status, attempts,
    round, next_attempt_at, due_at, last_error, created_at, updated_at, delivered_at)
  SELECT i.id, i.project_id, i.event_id, i.subscription_id, i.endpoint_id, i.variant, i.type, i.status, i.attempts,
    i.round, i.next_attempt_at, i.next_attempt_at, i.last_error, i.created_at, i.updated_at,
    CASE WHEN i.status = 'delivered' THEN i.updated_at END
  FROM i
  WHERE NOT EXISTS (SELECT 1 FROM pair) AND NOT EXISTS (SELECT 1 FROM taken) AND EXISTS (SELECT 1 FROM known)
  ON CONFLICT DO NOTHING
  RETURNING subscription_id
), endpoint AS (
  INSERT INTO ${s}.endpoint (id, subscription_id, url, sealed, created_at)
  SELECT i.endpoint_id, i.subscription_id, i.url, i.sealed, t.now FROM i, t, written
), body AS (
  INSERT INTO ${s}.body (project_id, event_id, variant, bytes)
  SELECT i.project_id, i.event_id, i.variant, decode(i.body, 'base64') FROM i, written
  ON CONFLICT DO NOTHING
), woken AS (
  ${wakeLanesSql(s, "SELECT written.subscription_id FROM written", now)}
), opened AS (
  ${newLanesSql(s, "SELECT written.subscription_id FROM written", now)}
)
SELECT (SELECT count(*) FROM pair)::int AS pair, (SELECT count(*) FROM taken)::int AS taken,
  (SELECT count(*) FROM known)::int AS known, (SELECT count(*) FROM written)::int AS written`,

    lock: `WITH ${target}
SELECT d.status, d.project_id, s.tenant_id, s.owner_id, s.status AS subscription_status, s.status_reason AS subscription_reason,
  (d.lease_until IS NOT NULL AND d.lease_until > ${now})::int AS in_flight
FROM t JOIN ${s}.delivery d ON d.id = t.id
LEFT JOIN ${s}.subscription s ON s.id = d.subscription_id
FOR UPDATE OF d`,

    // The row has room for one success; the log keeps the one of the round that ends here.
    retry: `WITH ${target}, success AS (
  INSERT INTO ${s}.attempt (delivery_id, round, number, started_at, duration_ms, status_code)
  SELECT d.id, d.round, d.attempts, d.last_started_at, d.last_duration_ms, d.last_status_code
  FROM t JOIN ${s}.delivery d ON d.id = t.id
  WHERE d.status = 'delivered' AND d.last_started_at IS NOT NULL
  ON CONFLICT DO NOTHING
), done AS (
  UPDATE ${s}.delivery d SET
    next_attempt_at = t.now, updated_at = t.now, lease_token = NULL, lease_until = NULL,
    due_at = CASE WHEN d.due_at = ${blockedAt} OR (d.status <> 'pending' AND d.order_key IS NOT NULL)
      THEN ${blockedAt} ELSE t.now END,
    attempts = CASE d.status WHEN 'pending' THEN d.attempts ELSE 0 END,
    round = d.round + CASE d.status WHEN 'pending' THEN 0 ELSE 1 END,
    replay_id = CASE d.status WHEN 'pending' THEN d.replay_id END,
    status = 'pending', reason = NULL, delivered_at = NULL,
    last_started_at = NULL, last_duration_ms = NULL, last_status_code = NULL
  FROM t WHERE d.id = t.id
  RETURNING d.subscription_id
), woken AS (
  ${wakeLanesSql(s, "SELECT done.subscription_id FROM done", now)}
)
${newLanesSql(s, "SELECT done.subscription_id FROM done", now)}`,

    // The lease stays: until it ends nobody sends the row again.
    cancel: `WITH ${target}
UPDATE ${s}.delivery d SET status = 'cancelled', reason = 'by_hand', updated_at = t.now
FROM t WHERE d.id = t.id`,

    get: `WITH ${target}
SELECT ${recordColumnsSql(s)}, s.tenant_id AS visible_tenant, s.owner_id AS visible_owner,
  coalesce(newest.url, own.url) AS url, encode(b.bytes, 'base64') AS body
FROM t JOIN ${s}.delivery d ON d.id = t.id
${recordJoinsSql(s)}
LEFT JOIN ${s}.endpoint own ON own.id = d.endpoint_id
LEFT JOIN ${s}.endpoint newest ON newest.id = own.superseded_by
LEFT JOIN ${s}.body b ON b.event_id = d.event_id AND b.project_id = d.project_id AND b.variant = d.variant`,

    attempts: `WITH t AS MATERIALIZED (
  SELECT $1::text AS id
)
SELECT a.round, a.number, a.started_at, a.duration_ms, a.status_code, a.error_code, a.error, a.response_excerpt
FROM t JOIN ${s}.attempt a ON a.delivery_id = t.id
UNION ALL
SELECT d.round, d.attempts, d.last_started_at, d.last_duration_ms, d.last_status_code, NULL, NULL, NULL
FROM t JOIN ${s}.delivery d ON d.id = t.id
WHERE d.last_started_at IS NOT NULL
ORDER BY 1, 2`,
  };
});
