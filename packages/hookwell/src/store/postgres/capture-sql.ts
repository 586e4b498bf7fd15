import type { Statement } from "../../adapters/seam.ts";
import type { EventKey } from "../../model/event.ts";
import { textsFor } from "./database.ts";
import { matchesSql } from "./matching.ts";

/** The statements of capture. They have no `?`. */
export interface CaptureTexts {
  /** One event without fan-out. $1 … its facts, then now. Answers written (0 or 1). */
  readonly one: string;
  /** Any number of events without fan-out, as one JSON text. Answers ord (int) and outcome (text). */
  readonly many: string;
  /** The same, and those with a body are fanned out. */
  readonly fanOut: string;
  /** Takes back what an earlier statement of the same call wrote. */
  takeBack(keys: readonly EventKey[]): Statement;
}

const clock = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const givenColumns = `ord int, project_id text, id text, type text, tenant_id text, subject text, revision bigint,
  actor text, audience text, occurred_at bigint, data text, content_hash text, route text`;

const eventColumns = `project_id, id, type, tenant_id, subject, revision, actor, audience, occurred_at,
  data, content_hash, captured_at, due_at, route`;

const eventValues = `i.project_id, i.id, i.type, i.tenant_id, i.subject, i.revision, i.actor, i.audience, i.occurred_at,
  i.data, i.content_hash, i.now, i.now`;

/** What is written of an event, each a text or null: names of columns, in the order of the function's arguments. */
export const factNames = [
  "project_id",
  "id",
  "type",
  "tenant_id",
  "subject",
  "revision",
  "actor",
  "audience",
  "occurred_at",
  "data",
  "content_hash",
  "route",
] as const;
export type FactName = (typeof factNames)[number];

/** Names of arguments, types and columns that the text could do without would be a tenth of the statement's time. */
const functionArguments = [...factNames, "now"].map((_, index) => `$${index + 1}`).join(", ");

export const captureTexts = textsFor((s): CaptureTexts => {
  return {
    one: `SELECT ${s}.capture_event(${functionArguments}) AS written`,
    many: severalSql(s, false),
    fanOut: severalSql(s, true),
    takeBack: (keys) => ({
      text: `WITH k AS MATERIALIZED (
  SELECT x.project_id, x.id FROM jsonb_to_recordset($1::text::jsonb) AS x(project_id text, id text)
), bodies AS (
  DELETE FROM ${s}.body b USING k WHERE b.project_id = k.project_id AND b.event_id = k.id
), deliveries AS (
  DELETE FROM ${s}.delivery d USING k WHERE d.event_id = k.id AND d.project_id = k.project_id
)
DELETE FROM ${s}.event e USING k WHERE e.project_id = k.project_id AND e.id = k.id RETURNING 1 AS gone`,
      params: [JSON.stringify(keys.map(({ projectId, id }) => ({ project_id: projectId, id })))],
    }),
  };
});

/**
 * Looks at what is there, decides whether anything is refused, and writes only if nothing is. `unknown` = not
 * written: another event of the call was refused, or another transaction was first and this statement could not
 * see it yet.
 */
function severalSql(s: string, withFanOut: boolean): string {
  const columns = withFanOut
    ? `${givenColumns}, body text, filters jsonb, operational boolean`
    : givenColumns;
  return `WITH g AS MATERIALIZED (
  SELECT $1::text::jsonb AS j
), i AS MATERIALIZED (
  SELECT x.*, coalesce((g.j ->> 'now_ms')::bigint, ${clock}) AS now
  FROM g, jsonb_to_recordset(g.j -> 'events') AS x(${columns})
), seen AS MATERIALIZED (
  SELECT i.ord, e.content_hash = i.content_hash AS same, e.fanned_out
  FROM i
  CROSS JOIN LATERAL (
    SELECT e.content_hash, e.fanned_out FROM ${s}.event e WHERE e.id = i.id AND e.project_id = i.project_id LIMIT 1
  ) AS e
), taken AS MATERIALIZED (
  SELECT i.ord
  FROM i
  CROSS JOIN LATERAL (
    SELECT 1 FROM ${s}.event e
    WHERE e.subject = i.subject AND e.revision = i.revision AND e.project_id = i.project_id
      AND e.tenant_id = i.tenant_id LIMIT 1
  ) AS e
  WHERE NOT EXISTS (SELECT 1 FROM seen WHERE seen.ord = i.ord)
), go AS MATERIALIZED (
  SELECT 1 AS yes FROM g
  WHERE (g.j ->> 'dry')::boolean IS NOT TRUE
    AND NOT EXISTS (SELECT 1 FROM seen WHERE NOT same) AND NOT EXISTS (SELECT 1 FROM taken)
)${withFanOut ? matchedSql(s) : ""}, ins AS (
  INSERT INTO ${s}.event (${eventColumns}${withFanOut ? ", fanned_out" : ""})
  SELECT ${eventValues}, ${withFanOut ? "CASE WHEN mode.emit THEN '*' ELSE i.route END, mode.emit" : "i.route"}
  FROM go, i${withFanOut ? " JOIN mode ON mode.ord = i.ord" : ""}
  WHERE NOT EXISTS (SELECT 1 FROM seen WHERE seen.ord = i.ord)
  ORDER BY i.ord
  ON CONFLICT DO NOTHING
  RETURNING project_id, id
)${withFanOut ? fannedSql(s) : ""}
SELECT i.ord, CASE
    WHEN seen.same THEN 'duplicate'
    WHEN seen.ord IS NOT NULL THEN 'mismatch'
    WHEN taken.ord IS NOT NULL THEN 'conflict'
    WHEN ins.id IS NOT NULL THEN 'inserted'
    ELSE 'unknown' END AS outcome
FROM i
LEFT JOIN seen ON seen.ord = i.ord
LEFT JOIN taken ON taken.ord = i.ord
LEFT JOIN ins ON ins.project_id = i.project_id AND ins.id = i.id
ORDER BY i.ord`;
}

/** Who gets the events that have a body, and which events are few enough to be fanned out here. */
function matchedSql(s: string): string {
  return `, asked AS MATERIALIZED (
  SELECT i.ord, i.project_id, i.tenant_id, i.audience::jsonb AS audience, i.filters, i.operational
  FROM i WHERE i.body IS NOT NULL
), matched AS MATERIALIZED (
  ${matchesSql(s, { from: "asked", where: "EXISTS (SELECT 1 FROM go)" }).replaceAll("\n", "\n  ")}
), mode AS MATERIALIZED (
  SELECT i.ord, i.body IS NOT NULL
    -- What must be put in order is the dispatcher's: capture waits for nobody.
    AND (i.subject IS NULL OR NOT EXISTS (SELECT 1 FROM matched m WHERE m.ord = i.ord AND m.ordering = 'subject'))
    AND (SELECT count(*) FROM matched m WHERE m.ord = i.ord) <= (SELECT (g.j ->> 'most')::int FROM g) AS emit
  FROM i
)`;
}

/**
 * Bodies and deliveries of the events written here, and of repeats the subscriptions that have no row yet: those
 * get the first body, and a note that readies their lane, as the dispatcher may have been there already.
 */
function fannedSql(s: string): string {
  return `, bodies AS (
  INSERT INTO ${s}.body (project_id, event_id, variant, bytes)
  SELECT i.project_id, i.id, '', convert_to(i.body, 'UTF8')
  FROM i JOIN mode ON mode.ord = i.ord AND mode.emit JOIN ins ON ins.project_id = i.project_id AND ins.id = i.id
  ON CONFLICT DO NOTHING
), made AS (
  INSERT INTO ${s}.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
    next_attempt_at, due_at, created_at, updated_at)
  SELECT 'dlv_' || left(encode(sha256(convert_to(i.id || chr(31) || m.subscription_id, 'UTF8')), 'hex'), 32),
    i.project_id, i.id, m.subscription_id, m.endpoint_id, '', i.type, i.now, i.now, i.now, i.now
  FROM matched m
  JOIN i ON i.ord = m.ord
  JOIN mode ON mode.ord = i.ord
  LEFT JOIN ins ON ins.project_id = i.project_id AND ins.id = i.id
  LEFT JOIN seen ON seen.ord = i.ord AND seen.fanned_out
  WHERE (ins.id IS NOT NULL AND mode.emit) OR seen.ord IS NOT NULL
  ORDER BY i.ord, m.subscription_id
  ON CONFLICT DO NOTHING
  RETURNING project_id, event_id, subscription_id
), noted AS (
  INSERT INTO ${s}.lane_wake (subscription_id)
  SELECT made.subscription_id
  FROM made JOIN i ON i.project_id = made.project_id AND i.id = made.event_id JOIN seen ON seen.ord = i.ord
)`;
}
