import { hash } from "node:crypto";
import type { Delivery, DeliveryRecord } from "../../model/delivery.ts";
import {
  DeliveryExistsError,
  DuplicateIdError,
  InvalidStateError,
  NotFoundError,
  ValidationError,
} from "../../model/errors.ts";
import { canMove, deliveryTransitions } from "../../model/states.ts";
import type { Visibility } from "../contract.ts";
import { blockedAt, placeAt } from "../ordering.ts";
import { checkRetried } from "../retry-guard.ts";
import { storable } from "../storable.ts";
import { isSuperseded, settleOrder } from "./ordering.ts";
import { appendAttempt } from "./record.ts";
import { bodyKey, type DeliveryRow, type MemoryState, pairKey } from "./state.ts";
import { isVisible } from "./subscriptions.ts";
import { defined, successRecord, toDeliveryRecord } from "./view.ts";

/** The reference way in: a row with its own endpoint version and a copy of its payload. */
export function enqueue(state: MemoryState, delivery: Delivery, endpointId: string): void {
  if (!delivery || !(delivery.payload instanceof Uint8Array))
    throw new ValidationError([
      { pointer: "/delivery", message: "must be a delivery with a payload of bytes" },
    ]);
  const { id, eventId, subscriptionId, payload, projectId = "" } = delivery;
  if (state.pairs.has(pairKey(eventId, subscriptionId)))
    throw new DeliveryExistsError(eventId, subscriptionId);
  if (state.deliveries.has(id)) throw new DuplicateIdError("delivery", id);
  const secrets = [delivery.secret, ...(delivery.secrets ?? []).filter((item) => item !== delivery.secret)];
  state.endpoints.set(endpointId, {
    id: endpointId,
    subscriptionId,
    url: delivery.url,
    headers: { ...delivery.headers },
    secrets: secrets.map((secret) => ({ secret })),
  });
  const variant = hash("sha256", payload, "hex");
  const body = bodyKey(projectId, eventId, variant);
  if (!state.bodies.has(body)) state.putBody({ projectId, id: eventId }, variant, Uint8Array.from(payload));
  const dueAt = delivery.nextAttemptAt.getTime();
  state.putDelivery(
    defined<DeliveryRow>({
      id,
      projectId,
      eventId,
      subscriptionId,
      endpointId,
      variant,
      type: delivery.type ?? "",
      status: delivery.status,
      attempts: delivery.attempts,
      round: delivery.round ?? 1,
      nextAttemptAt: dueAt,
      dueAt,
      lastError: delivery.lastError === undefined ? undefined : storable(delivery.lastError),
      createdAt: delivery.createdAt.getTime(),
      updatedAt: delivery.updatedAt.getTime(),
      deliveredAt: delivery.status === "delivered" ? delivery.updatedAt.getTime() : undefined,
    }),
  );
}

/** A final row opens its next round; a waiting one becomes due now. */
export function retryDelivery(
  state: MemoryState,
  id: string,
  visibility: Visibility,
  now: number,
): DeliveryRecord {
  const row = visibleDelivery(state, id, visibility);
  if (row.lease && row.lease.until > now) throw new InvalidStateError("delivery", id, "in flight", "retry");
  const { status, statusReason } = state.subscriptions.get(row.subscriptionId)?.record ?? {};
  checkRetried(id, status, statusReason);
  const due = { nextAttemptAt: now, dueAt: now, updatedAt: now, lease: undefined };
  if (row.status === "pending")
    return put(state, { ...row, ...due, ...(row.dueAt === blockedAt && { dueAt: blockedAt }) }, now);
  if (isSuperseded(state, row)) throw new InvalidStateError("delivery", id, "superseded", "retry");
  return put(state, reopened(state, row, now), now);
}

/** A final row as its next round, due now; opened by a replay it goes behind live rows. */
export function reopened(state: MemoryState, row: DeliveryRow, now: number, replayId?: string): DeliveryRow {
  // The row has room for one success; the log keeps the one of the round that ends here.
  const success = successRecord(row);
  if (success) appendAttempt(state, row.id, success);
  return defined<DeliveryRow>({
    ...row,
    nextAttemptAt: now,
    dueAt: row.order ? blockedAt : placeAt(now, replayId),
    updatedAt: now,
    lease: undefined,
    replayId,
    status: "pending",
    reason: undefined,
    attempts: 0,
    round: row.round + 1,
    success: undefined,
    deliveredAt: undefined,
  });
}

/** A send in flight goes on, and its outcome is stale. The lease stays: until it ends nobody sends the row again. */
export function cancelDelivery(
  state: MemoryState,
  id: string,
  visibility: Visibility,
  now: number,
): DeliveryRecord {
  const row = visibleDelivery(state, id, visibility);
  if (!canMove(deliveryTransitions, row.status, "cancelled"))
    throw new InvalidStateError("delivery", id, row.status, "cancel");
  return put(state, { ...row, status: "cancelled", reason: "by_hand", updatedAt: now }, now);
}

function put(state: MemoryState, row: DeliveryRow, now: number): DeliveryRecord {
  const stored = defined(row);
  state.putDelivery(stored);
  settleOrder(state, stored, now);
  return toDeliveryRecord(state, state.deliveries.get(row.id)!, now);
}

function visibleDelivery(state: MemoryState, id: string, visibility: Visibility): DeliveryRow {
  const row = state.deliveries.get(id);
  if (!row || !isDeliveryVisible(state, row, visibility)) throw new NotFoundError("delivery", id);
  return row;
}

/** Tenant and owner of a delivery are those of the endpoint it goes to. */
export function isDeliveryVisible(state: MemoryState, row: DeliveryRow, visibility: Visibility): boolean {
  const subscription = state.subscriptions.get(row.subscriptionId)?.record;
  const { tenantId, ownerId } = subscription ?? {};
  return isVisible({ projectId: row.projectId, tenantId, ownerId }, visibility);
}
