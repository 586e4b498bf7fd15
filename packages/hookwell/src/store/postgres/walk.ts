import type { Row, Statement } from "../../adapters/seam.ts";
import type { EventRecord } from "../../model/event.ts";
import type { DeliverySelection, ReplayWork } from "../../model/replay.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { ReplayLimits, WalkPosition } from "../replay-contract.ts";
import { finalStatuses, isSelectedEvent, isWanted } from "../replay-work.ts";
import { nowSql } from "./database.ts";
import { Conditions } from "./lists.ts";
import { flag, integer, nonEmpty, optionalJson, optionalText, text } from "./rows.ts";

/** One row of a walk. */
export interface Step {
  readonly id: string;
  readonly at: number;
}

/** What a look at the next rows of a walk found, oldest first, and where it ended; absent = there are no more. */
export interface Window<Hit extends Step> {
  readonly hits: readonly Hit[];
  readonly last?: Step;
}

/** Adds what a selection says of a delivery `d`, its subscription `s` and its event `e`. */
export function addSelection(where: Conditions, selection: DeliverySelection): void {
  where.equal("d.project_id", selection.projectId);
  where.equal("s.tenant_id", selection.tenantId);
  where.equal("s.owner_id", selection.ownerId);
  where.equal("d.subscription_id", selection.subscriptionId);
  where.equal("d.event_id", selection.eventId);
  where.equal("d.type", selection.type);
  where.equal("e.subject", selection.subject);
  where.host("s.url_host", selection.urlHost);
  where.equal("d.error_code", selection.errorCode);
  where.equal("d.replay_id", selection.replayId);
}

/** Where the columns of a selection come from, for rows of `seen d`. One probe each, however large the tables are. */
export function selectionJoinsSql(s: string, { subject }: DeliverySelection): string {
  const ofEvent = `
LEFT JOIN LATERAL (
  SELECT e.subject FROM ${s}.event e WHERE e.id = d.event_id AND e.project_id = d.project_id LIMIT 1
) AS e ON true`;
  return `LEFT JOIN LATERAL (
  SELECT s.tenant_id, s.owner_id, s.url_host, s.status FROM ${s}.subscription s
  WHERE s.id = d.subscription_id LIMIT 1
) AS s ON true${subject === undefined ? "" : ofEvent}`;
}

/** Equalities that begin an index of the table. */
export function addServed(where: Conditions, { subscriptionId, eventId, replayId }: DeliverySelection): void {
  where.equal("d.subscription_id", subscriptionId);
  where.equal("d.event_id", eventId);
  where.equal("d.replay_id", replayId);
}

/**
 * Deliveries that are to be sent again, among the next `look` ones: those of the rows that the index gives are
 * looked at, and no others. Answers the hits and the last row, each with hit (0 or 1) and looked.
 */
export function deliveryWindow(s: string, work: ReplayWork, position: WalkPosition, look: number): Statement {
  const { selection, until } = work;
  const statuses = finalStatuses(work);
  const [only] = statuses;
  const where = new Conditions();
  addServed(where, selection);
  // A literal, so that the partial index of this state is known to serve.
  if (statuses.length === 1 && only !== "delivered") where.add(`d.status = '${only}'`);
  addPlace(where, "d.created_at", "d.id", position, until);
  const wanted = new Conditions(where.params);
  wanted.add(`d.status IN (${statuses.map((status) => `'${status}'`).join(", ")})`);
  wanted.add("coalesce(s.status, 'active') IN ('active', 'paused')");
  addSelection(wanted, selection);
  return {
    text: `WITH seen AS MATERIALIZED (
  SELECT d.id, d.created_at AS at, d.subscription_id, d.project_id, d.event_id, d.status, d.type, d.error_code, d.replay_id
  FROM ${s}.delivery d WHERE ${where.sql}
  ORDER BY d.created_at, d.id LIMIT ${look}
), judged AS (
  SELECT d.id, d.at, (${wanted.sql})::int AS hit
  FROM seen d
  ${selectionJoinsSql(s, selection)}
)
${markedSql("at, id")}`,
    params: wanted.params,
  };
}

/** The hits among `judged`, and its last row, in this order. */
export function markedSql(order: string): string {
  return `SELECT * FROM (
  SELECT judged.*, count(*) OVER () AS looked, row_number() OVER (ORDER BY ${order}) AS place FROM judged
) AS marked
WHERE hit = 1 OR place = looked
ORDER BY place`;
}

/** Reads what {@link deliveryWindow} answers. */
export function toWindow(rows: readonly Row[], look: number): Window<Step> {
  const end = rows.at(-1);
  const full = end !== undefined && integer(end, "looked") === look;
  return {
    hits: rows.filter((row) => flag(row, "hit")).map(toStep),
    ...(full && { last: toStep(end) }),
  };
}

/** An event without a delivery. */
export interface MissingStep extends Step {
  readonly projectId: string;
  readonly route: string;
}

/** The next `look` events, with what matching looks at. $1 now, $2 lane. `missing` is 0 where there is a delivery. */
export function eventWindow(
  s: string,
  work: ReplayWork,
  position: WalkPosition,
  { look, missingMs }: Pick<ReplayLimits, "look" | "missingMs">,
  now: string | null,
): Statement {
  const { selection, until } = work;
  const where = new Conditions([now, selection.subscriptionId ?? ""]);
  where.equal("e.id", selection.eventId);
  where.equal("e.subject", selection.subject);
  addPlace(where, "e.captured_at", "e.id", position, until);
  if (missingMs !== null) where.add(`e.captured_at >= (SELECT now FROM t) - ${Math.round(missingMs)}`);
  // The lane comes from a query: were it known to the planner, it might go through what it takes for a short lane.
  return {
    text: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text COLLATE "C" AS lane
), seen AS MATERIALIZED (
  SELECT e.id, e.captured_at AS at, e.project_id, e.tenant_id, e.type, e.subject, e.audience, e.route, e.state
  FROM ${s}.event e WHERE ${where.sql}
  ORDER BY e.captured_at, e.id LIMIT ${look}
)
SELECT e.*, (e.state = 'dispatched' AND NOT EXISTS (
  SELECT 1 FROM ${s}.delivery d WHERE d.event_id = e.id AND d.subscription_id = (SELECT lane FROM t) OFFSET 0
))::int AS missing
FROM seen e ORDER BY e.at, e.id`,
    params: where.params,
  };
}

/** Reads what {@link eventWindow} answers: events that match the subscription as it is now and have no delivery. */
export function toMissing(
  rows: readonly Row[],
  look: number,
  selection: DeliverySelection,
  subscription: SubscriptionRecord,
): Window<MissingStep> {
  const hits = rows
    .filter((row) => flag(row, "missing"))
    .map((row) => ({ row, event: toMatched(row) }))
    .filter(({ event }) => isSelectedEvent(event, selection) && isWanted(event, subscription))
    .map(({ row, event }) => ({ ...toStep(row), projectId: event.projectId, route: text(row, "route") }));
  return { hits, ...(rows.length === look && { last: toStep(rows.at(-1)!) }) };
}

function addPlace(
  where: Conditions,
  time: string,
  id: string,
  { at, id: after }: WalkPosition,
  until: Date,
): void {
  where.add(
    `(${time}, ${id}) > (${where.use(String(at.getTime()))}::text::bigint, ${where.use(after)}::text)`,
  );
  where.range(time, undefined, until);
}

function toMatched(
  row: Row,
): Pick<EventRecord, "id" | "type" | "subject" | "projectId" | "tenantId" | "audience"> {
  const tenantId = nonEmpty(row, "tenant_id");
  const subject = optionalText(row, "subject");
  const audience = optionalJson<string[]>(row, "audience");
  return {
    id: text(row, "id"),
    type: text(row, "type"),
    projectId: text(row, "project_id"),
    ...(tenantId !== undefined && { tenantId }),
    ...(subject !== undefined && { subject }),
    ...(audience !== undefined && { audience }),
  };
}

function toStep(row: Row): Step {
  return { id: text(row, "id"), at: integer(row, "at") };
}
