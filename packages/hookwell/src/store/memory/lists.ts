import type { DeliveryRecord } from "../../model/delivery.ts";
import { ValidationError } from "../../model/errors.ts";
import type { EventOutcome, EventRecord } from "../../model/event.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type {
  ApiKeyRecord,
  DeliveryFilter,
  EventFilter,
  Page,
  PageOf,
  SubscriptionFilter,
  TimeRange,
  Visibility,
} from "../contract.ts";
import { urlHost } from "../url-host.ts";
import { copyEvent } from "./copies.ts";
import { isDeliveryVisible } from "./deliveries.ts";
import { compareText, type DeliveryRow, type EventRow, eventKey, type MemoryState } from "./state.ts";
import { isVisible } from "./subscriptions.ts";
import { outcomeOf, toDeliveryRecord, toSubscriptionRecord } from "./view.ts";

type EventWithOutcome = EventRecord & { outcome: EventOutcome };

export function listSubscriptions(
  state: MemoryState,
  filter: SubscriptionFilter,
  page: Page,
): PageOf<SubscriptionRecord> {
  const { status, urlHost: host, externalId } = filter;
  const found = [...state.subscriptions.values()]
    .map((row) => ({ ...row, id: row.record.id }))
    .filter(
      ({ record }) =>
        isVisible(record, filter) &&
        (status === undefined ? record.status !== "deleted" : record.status === status) &&
        (host === undefined || isOnHost(record.url, host)) &&
        (externalId === undefined || record.externalId === externalId),
    );
  const { items, next } = pageOf(found, page, ({ record }) => record.createdAt.getTime());
  return { items: items.map(toSubscriptionRecord), ...(next && { next }) };
}

/** The event a caller may see under this id; without a project, the first one captured. */
export function findEvent(
  state: MemoryState,
  id: string,
  visibility: Visibility,
): EventWithOutcome | undefined {
  const [row] = [...state.events.values()]
    .filter(({ record }) => record.id === id && isEventVisible(record, visibility))
    .sort((a, b) => a.seq - b.seq);
  return row && withOutcome(state, row, rowsOf(state, row));
}

export function listEvents(state: MemoryState, filter: EventFilter, page: Page): PageOf<EventWithOutcome> {
  const rows = rowsByEvent(state);
  const found = [...state.events.values()]
    .filter(
      ({ record }) =>
        isEventVisible(record, filter) &&
        isWithin(record.capturedAt.getTime(), filter) &&
        isEqualTo(record, filter, ["id", "type", "subject"]),
    )
    .map((row) => ({ id: row.record.id, row, deliveries: rows.get(eventKey(row.record)) ?? [] }))
    .filter(
      ({ row, deliveries }) =>
        filter.outcome === undefined || outcomeOf(state, row, deliveries) === filter.outcome,
    );
  const { items, next } = pageOf(found, page, ({ row }) => row.record.capturedAt.getTime());
  return {
    items: items.map(({ row, deliveries }) => withOutcome(state, row, deliveries)),
    ...(next && { next }),
  };
}

export function listDeliveries(
  state: MemoryState,
  filter: DeliveryFilter,
  page: Page,
  now: number,
): PageOf<DeliveryRecord> {
  const { urlHost: host, subject } = filter;
  const found = [...state.deliveries.values()].filter(
    (row) =>
      isDeliveryVisible(state, row, filter) &&
      isWithin(row.createdAt, filter) &&
      isEqualTo(row, filter, ["status", "subscriptionId", "eventId", "type", "errorCode", "replayId"]) &&
      (subject === undefined || toDeliveryRecord(state, row, now).subject === subject) &&
      (host === undefined || isOnHost(state.subscriptions.get(row.subscriptionId)?.record.url ?? "", host)),
  );
  const { items, next } = pageOf(found, page, (row) => row.createdAt);
  return { items: items.map((row) => toDeliveryRecord(state, row, now)), ...(next && { next }) };
}

export function listApiKeys(state: MemoryState, page: Page, projectId?: string): PageOf<ApiKeyRecord> {
  const found = [...state.apiKeys.values()].filter(
    (row) => projectId === undefined || row.projectId === projectId,
  );
  const { items, next } = pageOf(found, page, (row) => row.createdAt.getTime());
  return { items: items.map(withoutHash), ...(next && { next }) };
}

/** An API key as it may be shown. */
export function withoutHash(row: ApiKeyRecord & { readonly hash: string }): ApiKeyRecord {
  const { hash: _hash, ...record } = structuredClone(row);
  return record;
}

/** Newest first by (time, id), after the position; a next position only when more rows follow. */
export function pageOf<T extends { readonly id: string }>(
  found: readonly T[],
  { limit, after }: Page,
  timeOf: (item: T) => number,
): PageOf<T> {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 100)
    throw new ValidationError([{ pointer: "/limit", message: "must be a whole number from 1 to 100" }]);
  const sorted = [...found].sort((a, b) => timeOf(b) - timeOf(a) || compareText(b.id, a.id));
  const rest = after
    ? sorted.filter((item) => {
        const later = timeOf(item) - after.at.getTime();
        return later < 0 || (later === 0 && item.id < after.id);
      })
    : sorted;
  const items = rest.slice(0, limit);
  const last = rest.length > limit ? items.at(-1)! : undefined;
  return { items, ...(last && { next: { at: new Date(timeOf(last)), id: last.id } }) };
}

export function isWithin(time: number, { since, until }: TimeRange): boolean {
  return (since === undefined || time >= since.getTime()) && (until === undefined || time < until.getTime());
}

function isEqualTo<K extends string>(
  record: { readonly [key in K]?: string },
  filter: { readonly [key in K]?: string },
  keys: readonly K[],
): boolean {
  return keys.every((key) => filter[key] === undefined || record[key] === filter[key]);
}

/** The host with its port, or without it. */
export function isOnHost(url: string, host: string): boolean {
  const own = urlHost(url);
  return own === host || own.startsWith(`${host}:`);
}

/** The owners of an event are its audience. */
function isEventVisible(record: EventRecord, { projectId, tenantId, ownerId }: Visibility): boolean {
  return (
    isVisible(record, { projectId, tenantId }) &&
    (ownerId === undefined || (record.audience?.includes(ownerId) ?? false))
  );
}

function rowsOf(state: MemoryState, { record }: EventRow): DeliveryRow[] {
  return [...state.deliveries.values()].filter(
    (row) => row.eventId === record.id && row.projectId === record.projectId,
  );
}

function rowsByEvent(state: MemoryState): Map<string, DeliveryRow[]> {
  const rows = new Map<string, DeliveryRow[]>();
  for (const row of state.deliveries.values()) {
    const key = eventKey({ projectId: row.projectId, id: row.eventId });
    const list = rows.get(key);
    if (list) list.push(row);
    else rows.set(key, [row]);
  }
  return rows;
}

function withOutcome(
  state: MemoryState,
  row: EventRow,
  deliveries: readonly DeliveryRow[],
): EventWithOutcome {
  return { ...copyEvent(row.record), outcome: outcomeOf(state, row, deliveries) };
}
