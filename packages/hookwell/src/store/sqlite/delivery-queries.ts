import type { AttemptRecord, DeliveryDetail, DeliveryRecord } from "../../model/delivery.ts";
import type { DeliveryFilter, Page, PageOf, Visibility } from "../contract.ts";
import type { Connection } from "./connection.ts";
import { recordColumns, recordJoins, toAttempt, toDeliveryRecord } from "./delivery-rows.ts";
import { type Condition, condition, type Listing, readPage } from "./pages.ts";
import { optionalName, optionalText, text } from "./rows.ts";
import { onHost } from "./subscription-queries.ts";
import { isVisible } from "./subscription-rows.ts";

const getDeliveryText = `
SELECT ${recordColumns}, s.tenant_id AS subscription_tenant, s.owner_id AS subscription_owner, b.bytes,
  coalesce(n.url, o.url) AS url
FROM hookwell_delivery d ${recordJoins}
LEFT JOIN hookwell_body b INDEXED BY hookwell_body_key ON b.event_id = d.event_id AND b.project_id = d.project_id AND b.variant = d.variant
LEFT JOIN hookwell_endpoint o ON o.id = d.endpoint_id
LEFT JOIN hookwell_endpoint n ON n.id = o.superseded_by
WHERE d.id = ?`;

export function getDelivery(
  connection: Connection,
  id: string,
  visibility: Visibility,
  now: number,
): DeliveryDetail | undefined {
  const [row] = connection.all(getDeliveryText, [id]);
  if (!row) return undefined;
  const tenantId = optionalName(row.subscription_tenant);
  const ownerId = optionalName(row.subscription_owner);
  const place = {
    projectId: text(row.project_id),
    ...(tenantId && { tenantId }),
    ...(ownerId && { ownerId }),
  };
  if (!isVisible(place, visibility)) return undefined;
  return {
    ...toDeliveryRecord(row, now),
    url: optionalText(row.url) ?? "",
    body: row.bytes instanceof Uint8Array ? row.bytes : new Uint8Array(),
    attemptLog: listAttempts(connection, id),
  };
}

const attemptsText = `
SELECT round, number, started_at, duration_ms, status_code, error_code, error, response_excerpt
FROM hookwell_attempt WHERE delivery_id = ? ORDER BY round, number`;
const successText = `
SELECT round, attempts AS number, last_started_at AS started_at, last_duration_ms AS duration_ms,
  last_status_code AS status_code
FROM hookwell_delivery WHERE id = ? AND last_started_at IS NOT NULL`;

/** Failed attempts, and last the exchange that delivered it. */
export function listAttempts(connection: Connection, deliveryId: string): AttemptRecord[] {
  const rows = [...connection.all(attemptsText, [deliveryId]), ...connection.all(successText, [deliveryId])];
  return rows.map(toAttempt);
}

export const ofSubscription =
  "EXISTS (SELECT 1 FROM hookwell_subscription f WHERE f.id = d.subscription_id AND";
export const ofEvent =
  "EXISTS (SELECT 1 FROM hookwell_event f WHERE f.id = d.event_id AND f.project_id = d.project_id AND";

function deliveryListing(filter: DeliveryFilter): Listing {
  const {
    projectId,
    tenantId,
    ownerId,
    status,
    subscriptionId,
    eventId,
    type,
    subject,
    urlHost,
    errorCode,
    replayId,
  } = filter;
  const place = indexFor(filter);
  const filters: Condition[] = [];
  const equal = (column: string, value: string | undefined): void => {
    if (value !== undefined && column !== place.column) filters.push(condition(`d.${column} = ?`, value));
  };
  equal("project_id", projectId);
  equal("subscription_id", subscriptionId);
  equal("event_id", eventId);
  equal("type", type);
  equal("error_code", errorCode);
  equal("replay_id", replayId);
  equal("status", status);
  // Tenant and owner of a delivery are those of the subscription it goes to.
  if (tenantId !== undefined) filters.push(condition(`${ofSubscription} f.tenant_id = ?)`, tenantId));
  if (ownerId !== undefined) filters.push(condition(`${ofSubscription} f.owner_id = ?)`, ownerId));
  if (subject !== undefined) filters.push(condition(`${ofEvent} f.subject = ?)`, subject));
  if (urlHost !== undefined) {
    const host = onHost("f", urlHost);
    filters.push(condition(`${ofSubscription} ${host.sql})`, ...host.params));
  }
  return {
    columns: recordColumns,
    from: `hookwell_delivery d INDEXED BY ${place.index}`,
    joins: recordJoins,
    time: "d.created_at",
    id: "d.id",
    served: place.served,
    filters,
    few: place.few ?? false,
  };
}

/** The index that leaves the fewest rows to look at. */
export function indexFor({ status, subscriptionId, eventId, subject, replayId }: DeliveryFilter): {
  readonly index: string;
  readonly served: readonly Condition[];
  readonly column?: string;
  readonly few?: boolean;
} {
  if (eventId !== undefined)
    return {
      index: "hookwell_delivery_pair",
      served: [condition("d.event_id = ?", eventId)],
      column: "event_id",
      few: true,
    };
  if (subject !== undefined)
    return {
      index: "hookwell_delivery_pair",
      served: [condition("d.event_id IN (SELECT id FROM hookwell_event WHERE subject = ?)", subject)],
      few: true,
    };
  if (replayId !== undefined)
    return {
      index: "hookwell_delivery_replay",
      served: [condition("d.replay_id IS NOT NULL"), condition("d.replay_id = ?", replayId)],
      column: "replay_id",
    };
  if (subscriptionId !== undefined)
    return {
      index: "hookwell_delivery_lane",
      served: [condition("d.subscription_id = ?", subscriptionId)],
      column: "subscription_id",
    };
  if (status === "failed" || status === "cancelled")
    return {
      index: "hookwell_delivery_trouble",
      // The first term is that of the partial index, word for word.
      served: [condition("d.status NOT IN ('pending', 'delivered')"), condition("d.status = ?", status)],
      column: "status",
    };
  return { index: "hookwell_delivery_list", served: [] };
}

export function listDeliveries(
  connection: Connection,
  filter: DeliveryFilter,
  page: Page,
  now: number,
): Promise<PageOf<DeliveryRecord>> {
  return readPage(connection, deliveryListing(filter), filter, page, (row) => toDeliveryRecord(row, now));
}
