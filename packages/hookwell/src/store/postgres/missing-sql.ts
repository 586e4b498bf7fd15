import { behindLive, blockedAt } from "../ordering.ts";
import { nowSql, textsFor } from "./database.ts";
import { eventColumnsSql } from "./event-rows.ts";
import { newLanesSql, wakeLanesSql } from "./lanes.ts";

interface MissingTexts {
  /** $1 now, $2 routes (JSON array), $3 limit. Answers the note (note_…) and its event, null where that is gone. */
  readonly take: string;
  /** $1 replay ids (JSON array). Locks them in id order. */
  readonly lock: string;
  /** For so many. $1 now, $2 the fills (JSON array). Answers id and ordered (0 or 1) of the deliveries made. */
  readonly fill: (count: number) => string;
  /** $1 now, $2 replay, $3 event, $4 ms to the next try. */
  readonly again: string;
  /** $1 replay, $2 event, $3 error. */
  readonly giveUp: string;
}

export const missingTexts = textsFor(
  (s): MissingTexts => ({
    take: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::jsonb AS routes, $3::text::int AS most
), due AS MATERIALIZED (
  SELECT head.*
  FROM (SELECT DISTINCT r.route FROM t, jsonb_array_elements_text(t.routes) AS r(route)) AS wanted
  CROSS JOIN LATERAL (
    SELECT m.replay_id, m.project_id, m.event_id, m.subscription_id, m.tries, m.due_at FROM ${s}.replay_missing m
    WHERE m.route = wanted.route AND m.due_at <= (SELECT now FROM t)
    ORDER BY m.due_at, m.replay_id, m.event_id LIMIT (SELECT most FROM t)
  ) AS head
  ORDER BY head.due_at, head.replay_id, head.event_id LIMIT (SELECT most FROM t)
)
SELECT due.replay_id AS note_replay, due.project_id AS note_project, due.event_id AS note_event,
  due.subscription_id AS note_subscription, due.tries AS note_tries, ${eventColumnsSql("e")}
FROM due
LEFT JOIN LATERAL (
  SELECT e.* FROM ${s}.event e WHERE e.id = due.event_id AND e.project_id = due.project_id LIMIT 1
) AS e ON true
ORDER BY due.due_at, due.replay_id, due.event_id`,

    lock: `SELECT r.id FROM ${s}.replay r
WHERE r.id = ANY (ARRAY(SELECT w.id FROM jsonb_array_elements_text($1::text::jsonb) AS w(id)))
ORDER BY r.id FOR UPDATE`,

    fill: (count) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), given AS MATERIALIZED (
  SELECT x.* FROM jsonb_to_recordset($2::text::jsonb) AS x(replay_id text, project_id text, event_id text, id text,
    subscription_id text, endpoint_id text, variant text, body text, ordered boolean, patch text)
  LIMIT ${count}
), dropped AS (
  DELETE FROM ${s}.replay_missing m USING given
  WHERE m.replay_id = given.replay_id AND m.event_id = given.event_id
  RETURNING m.replay_id, m.event_id
), facts AS MATERIALIZED (
  SELECT given.*, e.type, coalesce(e.revision, e.seq) AS place,
    CASE WHEN given.ordered THEN e.tenant_id || chr(31) || e.subject || chr(31)
      || CASE WHEN e.revision IS NULL THEN 'c' ELSE 'r' END END AS key
  FROM given
  JOIN dropped ON dropped.replay_id = given.replay_id AND dropped.event_id = given.event_id
  CROSS JOIN LATERAL (
    SELECT e.type, e.tenant_id, e.subject, e.revision, e.seq FROM ${s}.event e
    WHERE e.id = given.event_id AND e.project_id = given.project_id LIMIT 1
  ) AS e
  WHERE given.id IS NOT NULL
), bodies AS (
  INSERT INTO ${s}.body (project_id, event_id, variant, bytes)
  SELECT f.project_id, f.event_id, f.variant, decode(f.body, 'base64') FROM facts f WHERE f.body IS NOT NULL
  ON CONFLICT DO NOTHING
), made AS (
  INSERT INTO ${s}.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
    next_attempt_at, due_at, created_at, updated_at, order_key, order_at, replay_id)
  SELECT f.id, f.project_id, f.event_id, f.subscription_id, f.endpoint_id, f.variant, f.type,
    t.now, CASE WHEN f.key IS NULL THEN t.now + ${behindLive} ELSE ${blockedAt} END, t.now, t.now, f.key,
    CASE WHEN f.key IS NOT NULL THEN f.place END, f.replay_id
  FROM facts f, t
  ON CONFLICT DO NOTHING
  RETURNING id, subscription_id, event_id, replay_id, order_key
), patched AS (
  UPDATE ${s}.event e SET patch = coalesce(e.patch, f.patch)
  FROM facts f WHERE f.patch IS NOT NULL AND e.id = f.event_id AND e.project_id = f.project_id
), counted AS (
  UPDATE ${s}.replay r SET noted = r.noted - k.dropped, queued = r.queued + k.made,
    skipped = r.skipped + k.dropped - k.made
  FROM (
    SELECT dropped.replay_id, count(*) AS dropped, count(made.id) AS made
    FROM dropped LEFT JOIN made ON made.replay_id = dropped.replay_id AND made.event_id = dropped.event_id
    GROUP BY dropped.replay_id
  ) AS k
  WHERE r.id = k.replay_id
), woken AS (
  ${wakeLanesSql(s, "SELECT made.subscription_id FROM made", "(SELECT now FROM t)")}
), opened AS (
  ${newLanesSql(s, "SELECT made.subscription_id FROM made", "(SELECT now FROM t)")}
)
SELECT made.id, (made.order_key IS NOT NULL)::int AS ordered FROM made`,

    again: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS replay_id, $3::text AS event_id, $4::text::bigint AS wait
)
UPDATE ${s}.replay_missing m SET tries = m.tries + 1, due_at = t.now + t.wait
FROM t WHERE m.replay_id = t.replay_id AND m.event_id = t.event_id
RETURNING 1 AS counted`,

    giveUp: `WITH t AS MATERIALIZED (
  SELECT $1::text AS replay_id, $2::text AS event_id, $3::text AS error
), dropped AS (
  DELETE FROM ${s}.replay_missing m USING t WHERE m.replay_id = t.replay_id AND m.event_id = t.event_id
  RETURNING m.replay_id
)
UPDATE ${s}.replay r SET noted = r.noted - 1, skipped = r.skipped + 1, error = t.error
FROM t, dropped WHERE r.id = dropped.replay_id
RETURNING 1 AS counted`,
  }),
);
