import type { Row } from "../../adapters/seam.ts";
import type { EventRecord } from "../../model/event.ts";
import type { DeliverySelection, ReplayWork } from "../../model/replay.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { ReplayLimits, WalkPosition } from "../replay-contract.ts";
import { finalStatuses, isSelectedEvent, isWanted, missingSince, takesEvents } from "../replay-work.ts";
import type { Connection } from "./connection.ts";
import { indexFor, ofEvent, ofSubscription } from "./delivery-queries.ts";
import { type Condition, condition } from "./pages.ts";
import { integer, optionalJson, optionalName, optionalText, text } from "./rows.ts";
import { onHost } from "./subscription-queries.ts";
import { toSubscriptionRecord } from "./subscription-rows.ts";

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

/** What a selection says of a delivery `d`, besides what its index serves. */
export function selectionFilters(selection: DeliverySelection): Condition[] {
  const {
    projectId,
    tenantId,
    ownerId,
    subscriptionId,
    eventId,
    type,
    subject,
    urlHost,
    errorCode,
    replayId,
  } = selection;
  const filters: Condition[] = [];
  const equal = (column: string, value: string | undefined): void => {
    if (value !== undefined) filters.push(condition(`d.${column} = ?`, value));
  };
  equal("project_id", projectId);
  equal("subscription_id", subscriptionId);
  equal("event_id", eventId);
  equal("type", type);
  equal("error_code", errorCode);
  equal("replay_id", replayId);
  if (tenantId !== undefined) filters.push(condition(`${ofSubscription} f.tenant_id = ?)`, tenantId));
  if (ownerId !== undefined) filters.push(condition(`${ofSubscription} f.owner_id = ?)`, ownerId));
  if (subject !== undefined) filters.push(condition(`${ofEvent} f.subject = ?)`, subject));
  if (urlHost !== undefined) {
    const host = onHost("f", urlHost);
    filters.push(condition(`${ofSubscription} ${host.sql})`, ...host.params));
  }
  return filters;
}

/** Deliveries that are to be sent again, among the next `look` ones. */
export function deliveryWindow(
  connection: Connection,
  work: ReplayWork,
  position: WalkPosition,
  look: number,
): Window<Step> {
  const statuses = finalStatuses(work);
  const [only] = statuses;
  const { index, served } = indexFor({
    ...work.selection,
    ...(statuses.length === 1 && { status: only }),
  });
  const wanted = [
    condition("d.status IN (SELECT value FROM json_each(?))", JSON.stringify(statuses)),
    ...selectionFilters(work.selection),
    condition(`NOT ${ofSubscription} f.status NOT IN ('active', 'paused'))`),
  ];
  const place = [
    condition("(d.created_at, d.id) > (?, ?)", position.at.getTime(), position.id),
    condition("d.created_at < ?", work.until.getTime()),
  ];
  const rows = connection.all(
    `SELECT d.id, d.created_at AS at, ${allOf(wanted)} AS hit
FROM hookwell_delivery d INDEXED BY ${index} WHERE ${allOf([...served, ...place])}
ORDER BY d.created_at, d.id LIMIT CAST(? AS INTEGER)`,
    [...paramsOf(wanted), ...paramsOf(served), ...paramsOf(place), look],
  );
  const hits = rows.filter((row) => integer(row.hit) === 1).map(toStep);
  return { hits, ...(rows.length === look && { last: toStep(rows.at(-1)!) }) };
}

/** An event without a delivery. */
export interface MissingStep extends Step {
  readonly projectId: string;
  readonly route: string;
}

/** Events that match the subscription as it is now and have no delivery to it, among the next `look` ones. */
export function eventWindow(
  connection: Connection,
  work: ReplayWork,
  position: WalkPosition,
  limits: Pick<ReplayLimits, "look" | "missingMs">,
  now: number,
): Window<MissingStep> {
  const { selection, until } = work;
  const subscription = readSubscription(connection, selection.subscriptionId);
  if (!subscription || !takesEvents(subscription.status)) return { hits: [] };
  const { index, served } = eventIndex(selection);
  const place = [
    condition("(e.captured_at, e.id) > (?, ?)", position.at.getTime(), position.id),
    condition("e.captured_at >= ?", missingSince(work.since, limits.missingMs, now)),
    condition("e.captured_at < ?", until.getTime()),
  ];
  const rows = connection.all(
    `SELECT e.id, e.captured_at AS at, e.project_id, e.tenant_id, e.type, e.subject, e.audience, e.route,
  e.state = 'dispatched' AND NOT EXISTS (
    SELECT 1 FROM hookwell_delivery d INDEXED BY hookwell_delivery_pair
    WHERE d.event_id = e.id AND d.subscription_id = ?) AS missing
FROM hookwell_event e INDEXED BY ${index} WHERE ${allOf([...served, ...place])}
ORDER BY e.captured_at, e.id LIMIT CAST(? AS INTEGER)`,
    [subscription.id, ...paramsOf(served), ...paramsOf(place), limits.look],
  );
  const hits = rows
    .filter((row) => integer(row.missing) === 1)
    .map((row) => ({ row, event: toMatched(row) }))
    .filter(({ event }) => isSelectedEvent(event, selection) && isWanted(event, subscription))
    .map(({ row, event }) => ({ ...toStep(row), projectId: event.projectId, route: text(row.route) }));
  return { hits, ...(rows.length === limits.look && { last: toStep(rows.at(-1)!) }) };
}

export function readSubscription(
  connection: Connection,
  id: string | undefined,
): (SubscriptionRecord & { readonly endpointId: string }) | undefined {
  const [row] = connection.all("SELECT * FROM hookwell_subscription WHERE id = ?", [id ?? ""]);
  return row && { ...toSubscriptionRecord(row), endpointId: text(row.endpoint_id) };
}

function eventIndex({ eventId, subject }: DeliverySelection): {
  readonly index: string;
  readonly served: readonly Condition[];
} {
  if (eventId !== undefined) return { index: "hookwell_event_key", served: [condition("e.id = ?", eventId)] };
  if (subject !== undefined)
    return { index: "hookwell_event_subject", served: [condition("e.subject = ?", subject)] };
  return { index: "hookwell_event_list", served: [] };
}

function toMatched(
  row: Row,
): Pick<EventRecord, "id" | "type" | "subject" | "projectId" | "tenantId" | "audience"> {
  const tenantId = optionalName(row.tenant_id);
  const subject = optionalText(row.subject);
  const audience = optionalJson<string[]>(row.audience);
  return {
    id: text(row.id),
    type: text(row.type),
    projectId: text(row.project_id),
    ...(tenantId !== undefined && { tenantId }),
    ...(subject !== undefined && { subject }),
    ...(audience !== undefined && { audience }),
  };
}

function toStep(row: Row): Step {
  return { id: text(row.id), at: integer(row.at) };
}

export function allOf(conditions: readonly Condition[]): string {
  return conditions.map(({ sql }) => sql).join("\n  AND ");
}

export function paramsOf(conditions: readonly Condition[]): Condition["params"][number][] {
  return conditions.flatMap(({ params }) => params);
}
