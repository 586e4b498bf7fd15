import type { Delivery } from "../../model/delivery.ts";
import type { CaptureInput } from "../../model/event.ts";
import type { Lag, MaintenanceResult, RetentionPolicy } from "../contract.ts";
import { heldTooLong, reportFailures } from "../lane-news.ts";
import { restsUntil } from "../lane-state.ts";
import { minuteOf, minutesKept, Tally } from "../minute-counts.ts";
import { operationalInput } from "../operational.ts";
import { dueTime } from "../ordering.ts";
import { isRunnable } from "./claim.ts";
import { isCovered } from "./holds.ts";
import { pruneRequests } from "./requests.ts";
import {
  bodyKey,
  compareText,
  type DeliveryRow,
  type EventRow,
  eventKey,
  type MemoryState,
  minuteKey,
  revisionKey,
} from "./state.ts";
import { defined, toDelivery } from "./view.ts";

/** One pass of upkeep: at most `limit` rows of each kind. */
export function maintain(
  state: MemoryState,
  retention: RetentionPolicy | null,
  limit: number,
  now: number,
  emit: (event: CaptureInput) => void,
): MaintenanceResult {
  const cancelled = cancelEnded(state, limit, now);
  const requests = pruneRequests(state, limit, now);
  for (const { minute, projectId } of state.minutes.values())
    if (minute < minuteOf(now) - minutesKept) state.minutes.delete(minuteKey(minute, projectId));
  if (retention === null) {
    const more = [cancelled, requests].includes(limit);
    return { cancelled, failed: [], prunedDeliveries: 0, prunedEvents: 0, more };
  }
  const failed = failHeld(state, retention, limit, now, emit);
  const prunedDeliveries = pruneDeliveries(state, retention, limit, now);
  const prunedEvents = pruneEvents(state, retention, limit, now);
  pruneSubscriptions(state, retention, now);
  const more = [cancelled, requests, failed.length, prunedDeliveries, prunedEvents].includes(limit);
  return { cancelled, failed, prunedDeliveries, prunedEvents, more };
}

/** Pending rows that no send is using now. */
function waiting(state: MemoryState, now: number): DeliveryRow[] {
  return [...state.pending.values()]
    .filter((row) => row.lease === undefined || row.lease.until <= now)
    .sort((a, b) => compareText(a.id, b.id));
}

/** What waits for a deleted or gone subscription is cancelled. */
function cancelEnded(state: MemoryState, limit: number, now: number): number {
  const reasonFor = (row: DeliveryRow): string | undefined => {
    const record = state.subscriptions.get(row.subscriptionId)?.record;
    if (record?.status === "deleted") return "deleted";
    return record?.statusReason === "gone" ? "gone" : undefined;
  };
  const rows = waiting(state, now)
    .filter((row) => reasonFor(row) !== undefined)
    .slice(0, limit);
  for (const row of rows)
    state.putDelivery(
      defined({ ...row, status: "cancelled", reason: reasonFor(row), lease: undefined, updatedAt: now }),
    );
  return rows.length;
}

/** What a disabled subscription held for too long fails with the subscription's reason. */
function failHeld(
  state: MemoryState,
  retention: RetentionPolicy,
  limit: number,
  now: number,
  emit: (event: CaptureInput) => void,
): Delivery[] {
  const reasonFor = (row: DeliveryRow): string | undefined => {
    const subscription = state.subscriptions.get(row.subscriptionId);
    if (subscription?.record.status !== "disabled") return undefined;
    return subscription.statusChangedAt <= now - retention.heldMs
      ? subscription.record.statusReason
      : undefined;
  };
  const rows = waiting(state, now)
    .filter((row) => reasonFor(row) !== undefined)
    .slice(0, limit);
  const tally = new Tally();
  for (const row of rows) tally.add(row.projectId, { failed: 1 });
  state.countMinute(tally, now);
  for (const { projectId, subscriptionId, failed } of heldTooLong(rows)) {
    const { lane, news } = reportFailures(state.lane(subscriptionId), subscriptionId, failed, now);
    state.lanes.set(subscriptionId, lane);
    for (const [type, data] of news) emit(operationalInput(projectId, type, subscriptionId, data, now));
  }
  return rows.map((row) => {
    const failed: DeliveryRow = defined({
      ...row,
      status: "failed",
      reason: reasonFor(row),
      lease: undefined,
      updatedAt: now,
    });
    state.putDelivery(failed);
    return toDelivery(state, failed, now);
  });
}

/** Final rows go when their own time and the window of their event are over: the pair must stay known till then. */
function pruneDeliveries(state: MemoryState, retention: RetentionPolicy, limit: number, now: number): number {
  const rows = [...state.deliveries.values()]
    .filter((row) => {
      if (row.status === "pending") return false;
      const keptMs = row.status === "failed" ? retention.failedMs : retention.deliveredMs;
      const event = state.events.get(eventKey({ projectId: row.projectId, id: row.eventId }));
      return row.updatedAt <= now - keptMs && (event === undefined || isWindowOver(event, retention, now));
    })
    .sort((a, b) => compareText(a.id, b.id))
    .slice(0, limit);
  for (const row of rows) state.dropDelivery(row);
  for (const row of rows) {
    const event = eventKey({ projectId: row.projectId, id: row.eventId });
    if (!state.events.has(event) && !isUsed(state, row))
      state.bodies.delete(bodyKey(row.projectId, row.eventId, row.variant));
  }
  return rows.length;
}

function isUsed(state: MemoryState, dropped: DeliveryRow): boolean {
  for (const row of state.deliveries.values())
    if (
      row.eventId === dropped.eventId &&
      row.projectId === dropped.projectId &&
      row.variant === dropped.variant
    )
      return true;
  return false;
}

function isWindowOver(event: EventRow, retention: RetentionPolicy, now: number): boolean {
  return event.record.capturedAt.getTime() <= now - retention.eventsMs;
}

/** Dispatched and parked events go after their window, once their last delivery is gone. New ones stay. */
function pruneEvents(state: MemoryState, retention: RetentionPolicy, limit: number, now: number): number {
  const used = new Set<string>();
  for (const row of state.deliveries.values())
    used.add(eventKey({ projectId: row.projectId, id: row.eventId }));
  const rows = [...state.events.values()]
    .filter(
      (event) =>
        event.record.state !== "new" &&
        isWindowOver(event, retention, now) &&
        !used.has(eventKey(event.record)),
    )
    .sort((a, b) => a.seq - b.seq)
    .slice(0, limit);
  const gone = new Set(rows.map((row) => eventKey(row.record)));
  for (const body of state.bodies.values())
    if (gone.has(eventKey(body))) state.bodies.delete(bodyKey(body.projectId, body.id, body.variant));
  for (const row of rows) {
    const { projectId, tenantId, subject, revision } = row.record;
    state.events.delete(eventKey(row.record));
    if (subject !== undefined && revision !== undefined)
      state.revisions.delete(revisionKey(projectId, tenantId, subject, revision));
  }
  return rows.length;
}

/** Tombstones of deleted subscriptions go when no delivery to them is left. */
function pruneSubscriptions(state: MemoryState, retention: RetentionPolicy, now: number): void {
  const used = new Set<string>();
  for (const row of state.deliveries.values()) used.add(row.subscriptionId);
  for (const { record, statusChangedAt } of state.subscriptions.values()) {
    if (record.status !== "deleted" || used.has(record.id)) continue;
    if (statusChangedAt > now - retention.eventsMs) continue;
    state.subscriptions.delete(record.id);
    state.lanes.delete(record.id);
    for (const endpoint of state.endpoints.values())
      if (endpoint.subscriptionId === record.id) state.endpoints.delete(endpoint.id);
  }
}

/** Age of the oldest work that could be done now. A lane that was held (Retry-After, rate, breaker) counts from the end of the hold. */
export function lag(state: MemoryState, now: number): Lag {
  const due = [...state.pending.values()].filter((row) => row.dueAt <= now && isClaimable(state, row, now));
  return { at: new Date(now), ...lagOf(state, due, [...state.newEvents.values()]) };
}

/** The oldest of these due rows and new events. */
export function lagOf(
  state: MemoryState,
  rows: readonly DeliveryRow[],
  newEvents: readonly EventRow[],
): { readonly oldestDueAt?: Date; readonly oldestNewAt?: Date } {
  const due = rows.map((row) => Math.max(row.dueAt, restsUntil(state.lane(row.subscriptionId))));
  const captured = newEvents.map((event) => event.record.capturedAt.getTime());
  return {
    ...(due.length > 0 && { oldestDueAt: new Date(least(due)) }),
    ...(captured.length > 0 && { oldestNewAt: new Date(least(captured)) }),
  };
}

/** It could be claimed now. */
export function isClaimable(state: MemoryState, row: DeliveryRow, now: number): boolean {
  return dueTime(row.dueAt) <= now && isRunnable(state, row.subscriptionId, now) && !isCovered(state, row);
}

function least(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.min(a, b));
}

/** Work that could be done now, counted up to `max`. */
export function countRemaining(
  state: MemoryState,
  max: number,
  now: number,
): { readonly pending: number; readonly newEvents: number } {
  let pending = 0;
  for (const row of state.pending.values()) if (isClaimable(state, row, now)) pending++;
  const newEvents = [...state.newEvents.values()].length;
  return { pending: Math.min(pending, max), newEvents: Math.min(newEvents, max) };
}
