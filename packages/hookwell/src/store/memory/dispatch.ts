import { randomUUID } from "node:crypto";
import { InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { CaptureInput, EventKey } from "../../model/event.ts";
import { canMove, eventTransitions } from "../../model/states.ts";
import type { DispatchItem, DispatchResult, DispatchRoom } from "../contract.ts";
import { claimedAtOnce } from "../dispatch-claims.ts";
import { isGuarded } from "../lane-state.ts";
import { Tally } from "../minute-counts.ts";
import { isOperational, parkedInput } from "../operational.ts";
import { blockedAt, orderKey } from "../ordering.ts";
import { storable } from "../storable.ts";
import { isRunnable } from "./claim.ts";
import { settleOrder } from "./ordering.ts";
import { bodyKey, type DeliveryRow, eventKey, type MemoryState, pairKey } from "./state.ts";
import { defined, toDelivery } from "./view.ts";

/** Gives those events that are still new their bodies and rows, and claims of these what there is room for. */
export function dispatch(
  state: MemoryState,
  items: readonly DispatchItem[],
  now: number,
  room?: DispatchRoom,
): DispatchResult {
  const dispatched: EventKey[] = [];
  const tally = new Tally();
  const ordered: string[] = [];
  const claimed: DeliveryRow[] = [];
  const fresh = items.filter((item) => state.newEvents.get(eventKey(item)));
  const atOnce = claimedAtOnce(fresh, room, (lane) => isOpen(state, lane, now));
  for (const item of fresh) {
    const key = eventKey(item);
    const event = state.newEvents.get(key);
    // Named twice in the batch.
    if (!event) continue;
    for (const { variant, bytes } of item.bodies) {
      const body = bodyKey(item.projectId, item.id, variant);
      if (!state.bodies.has(body)) state.putBody(item, variant, Uint8Array.from(bytes));
    }
    for (const { id, subscriptionId, endpointId, variant, ordered: isOrdered } of item.deliveries) {
      if (state.pairs.has(pairKey(item.id, subscriptionId)) || state.deliveries.has(id)) continue;
      const place = isOrdered ? orderKey(event.record) : undefined;
      if (place !== undefined) ordered.push(id);
      const row: DeliveryRow = {
        id,
        projectId: item.projectId,
        eventId: item.id,
        subscriptionId,
        endpointId,
        variant,
        type: event.record.type,
        status: "pending",
        attempts: 0,
        round: 1,
        nextAttemptAt: now,
        dueAt: place === undefined ? now : blockedAt,
        ...(place !== undefined && { order: { key: place, at: event.record.revision ?? event.seq } }),
        createdAt: now,
        updatedAt: now,
        ...(room && atOnce.has(id) && leased(now + room.leaseMs)),
      };
      state.putDelivery(row);
      if (row.lease) claimed.push(row);
    }
    state.putEvent({
      ...event,
      record: defined({
        ...event.record,
        state: "dispatched",
        dispatchedAt: new Date(now),
        patch: item.patch ?? event.record.patch,
      }),
    });
    dispatched.push({ projectId: item.projectId, id: item.id });
    tally.add(item.projectId, { dispatched: 1 });
  }
  for (const id of ordered) settleOrder(state, state.deliveries.get(id)!, now);
  state.countMinute(tally, now);
  return { dispatched, deliveries: claimed.map((row) => toDelivery(state, row, now)), failed: [] };
}

function leased(until: number): Pick<DeliveryRow, "attempts" | "lease" | "dueAt"> {
  return { attempts: 1, lease: { token: randomUUID(), until }, dueAt: until };
}

/** True when a claim would take the next row of the lane at once. */
function isOpen(state: MemoryState, lane: string, now: number): boolean {
  if (!isRunnable(state, lane, now) || isGuarded(state.lane(lane), state.limits(lane))) return false;
  for (const _ of state.holds.values()) return false;
  for (const row of state.pending.values()) if (row.subscriptionId === lane && row.dueAt <= now) return false;
  return true;
}

/** Counts a failed try; parks the event when there is to be no other. */
export function failDispatch(
  state: MemoryState,
  key: EventKey,
  error: string,
  retryInMs: number | null,
  now: number,
  emit: (event: CaptureInput) => void,
): boolean {
  const event = state.newEvents.get(eventKey(key));
  if (!event) return false;
  state.putEvent({
    ...event,
    record: {
      ...event.record,
      state: retryInMs === null ? "parked" : "new",
      tries: event.record.tries + 1,
      error: storable(error),
    },
    dueAt: retryInMs === null ? event.dueAt : now + Math.round(retryInMs),
  });
  if (retryInMs === null && !isOperational(event.record.type))
    emit(parkedInput(key, event.record.type, storable(error), now));
  return true;
}

/** Sends a parked event through dispatch again. */
export function releaseEvent(state: MemoryState, key: EventKey): void {
  const event = state.events.get(eventKey(key));
  if (!event) throw new NotFoundError("event", key.id);
  if (!canMove(eventTransitions, event.record.state, "new"))
    throw new InvalidStateError("event", key.id, event.record.state, "release");
  state.putEvent({
    ...event,
    record: defined({ ...event.record, state: "new", tries: 0, error: undefined }),
    dueAt: event.record.capturedAt.getTime(),
  });
}
