import type { AttemptRecord, Delivery, DeliveryDetail, DeliveryRecord } from "../../model/delivery.ts";
import type { EventOutcome } from "../../model/event.ts";
import type { Hold } from "../../model/states.ts";
import { type Subscription, type SubscriptionRecord, subscriptionVersion } from "../../model/subscription.ts";
import { rateFreeAt } from "../lane-state.ts";
import { blockedAt, dueTime } from "../ordering.ts";
import { validSecrets } from "../secret-rotation.ts";
import { isCovered } from "./holds.ts";
import {
  bodyKey,
  type DeliveryRow,
  type EndpointRow,
  type EventRow,
  eventKey,
  type MemoryState,
  type SubscriptionRow,
} from "./state.ts";

/** The same object without the keys whose value is undefined. */
export function defined<T extends object>(value: T): T {
  const kept: Partial<T> = {};
  for (const key of Object.keys(value) as (keyof T)[]) if (value[key] !== undefined) kept[key] = value[key];
  return kept as T;
}

/** The version that counts: the newest one for a replaced version, otherwise itself. */
function currentEndpoint(state: MemoryState, row: DeliveryRow): EndpointRow {
  const own = state.endpoints.get(row.endpointId)!;
  return own.supersededBy === undefined ? own : state.endpoints.get(own.supersededBy)!;
}

/** A row as the engine works on it: url, headers and valid secrets of the version that counts. */
export function toDelivery(state: MemoryState, row: DeliveryRow, now: number): Delivery {
  const own = state.endpoints.get(row.endpointId)!;
  const current = currentEndpoint(state, row);
  const secrets = validSecrets(current.secrets, now);
  const bound = own.secrets[0]!.secret;
  const event = state.events.get(eventKey({ projectId: row.projectId, id: row.eventId }))?.record;
  return defined<Delivery>({
    id: row.id,
    eventId: row.eventId,
    subscriptionId: row.subscriptionId,
    url: current.url,
    secret: secrets.includes(bound) ? bound : (secrets[0] ?? bound),
    payload: bytesOf(state, row),
    status: row.status,
    attempts: row.attempts,
    lastError: row.lastError,
    nextAttemptAt: new Date(row.nextAttemptAt),
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    type: row.type || undefined,
    projectId: row.projectId || undefined,
    tenantId: event?.tenantId,
    subject: event?.subject,
    secrets,
    headers: Object.keys(current.headers).length > 0 ? { ...current.headers } : undefined,
    round: row.round,
    leaseToken: row.lease?.token,
    leaseUntil: row.lease && new Date(row.lease.until),
  });
}

function bytesOf(state: MemoryState, row: DeliveryRow): Uint8Array {
  return Uint8Array.from(state.bodies.get(bodyKey(row.projectId, row.eventId, row.variant))!.bytes);
}

/** A row as management shows it. */
export function toDeliveryRecord(state: MemoryState, row: DeliveryRow, now: number): DeliveryRecord {
  const event = state.events.get(eventKey({ projectId: row.projectId, id: row.eventId }))?.record;
  return defined<DeliveryRecord>({
    id: row.id,
    eventId: row.eventId,
    subscriptionId: row.subscriptionId,
    projectId: row.projectId,
    tenantId: event?.tenantId,
    type: row.type,
    subject: event?.subject,
    status: row.status,
    reason: row.reason,
    hold: holdOf(state, row, now),
    attempts: row.attempts,
    round: row.round,
    errorCode: row.errorCode,
    lastError: row.lastError,
    nextAttemptAt: row.status === "pending" ? new Date(row.nextAttemptAt) : undefined,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    deliveredAt: row.deliveredAt === undefined ? undefined : new Date(row.deliveredAt),
  });
}

export function toDeliveryDetail(state: MemoryState, row: DeliveryRow, now: number): DeliveryDetail {
  return {
    ...toDeliveryRecord(state, row, now),
    url: currentEndpoint(state, row).url,
    body: bytesOf(state, row),
    attemptLog: attemptLog(state, row),
  };
}

/** Failed attempts, and last the exchange that delivered it. */
export function attemptLog(state: MemoryState, row: DeliveryRow): AttemptRecord[] {
  const failed = (state.attempts.get(row.id) ?? []).map((attempt) => ({ ...attempt }));
  return row.success ? [...failed, successRecord(row)!] : failed;
}

/** What the log says of the send that delivered the row. */
export function successRecord(row: DeliveryRow): AttemptRecord | undefined {
  return row.success && { ...row.success, number: row.attempts, round: row.round };
}

function holdOf(state: MemoryState, row: DeliveryRow, now: number): Hold | undefined {
  if (row.status !== "pending") return undefined;
  if (isHeld(state, row.subscriptionId))
    return state.subscriptions.get(row.subscriptionId)!.record.status === "paused" ? "paused" : "disabled";
  if (isCovered(state, row)) return "held";
  if (row.dueAt === blockedAt) return "ordering";
  const lane = state.lane(row.subscriptionId);
  if (lane.open) return "circuit_open";
  if (lane.holdUntil > now) return "retry_after";
  const free = rateFreeAt(lane, state.limits(row.subscriptionId));
  return free > now && dueTime(row.dueAt) <= now ? "rate_limited" : undefined;
}

/** True when management holds the lane. A lane without a subscription is nobody's to hold. */
export function isHeld(state: MemoryState, subscriptionId: string): boolean {
  const subscription = state.subscriptions.get(subscriptionId);
  return subscription !== undefined && subscription.record.status !== "active";
}

/** What became of an event, from its deliveries. */
export function outcomeOf(state: MemoryState, event: EventRow, rows: readonly DeliveryRow[]): EventOutcome {
  if (event.record.state === "parked") return "parked";
  if (rows.length === 0) return event.record.state === "new" ? "pending" : "unmatched";
  const pending = rows.filter((row) => row.status === "pending");
  if (pending.length > 0)
    return pending.every((row) => isHeld(state, row.subscriptionId) || isCovered(state, row))
      ? "held"
      : "pending";
  if (rows.some((row) => row.status === "failed")) return "failed";
  return rows.some((row) => row.status === "delivered") ? "delivered" : "cancelled";
}

/** The reference form of a subscription, with the secret that new deliveries are bound to. */
export function toSubscription(state: MemoryState, row: SubscriptionRow): Subscription {
  const { record } = row;
  return defined<Subscription>({
    id: record.id,
    projectId: record.projectId,
    tenantId: record.tenantId,
    ownerId: record.ownerId,
    url: record.url,
    secret: state.endpoints.get(row.endpointId)!.secrets[0]!.secret,
    eventTypes: [...record.eventTypes],
    active: record.status === "active",
  });
}

/** A copy of the row as management shows it. */
export function toSubscriptionRecord({ record, endpointId }: SubscriptionRow): SubscriptionRecord {
  return { ...structuredClone(record), version: subscriptionVersion(record, endpointId) };
}
