import { hash } from "node:crypto";
import { type Program, runProgramSync } from "../../adapters/seam.ts";
import type { Delivery, DeliveryRecord } from "../../model/delivery.ts";
import {
  DeliveryExistsError,
  DuplicateIdError,
  InvalidStateError,
  NotFoundError,
  ValidationError,
} from "../../model/errors.ts";
import { canMove, type DeliveryStatus, deliveryTransitions } from "../../model/states.ts";
import type { Visibility } from "../contract.ts";
import { checkRetried } from "../retry-guard.ts";
import { storable } from "../storable.ts";
import type { Connection } from "./connection.ts";
import { recordColumns, recordJoins, toDeliveryRecord } from "./delivery-rows.ts";
import { type Endpoint, insertEndpoint } from "./endpoints.ts";
import { wakeLanes } from "./lanes.ts";
import type { Endpoints } from "./last-look.ts";
import { isSuperseded, settleOrder } from "./ordering.ts";
import { optionalInteger, optionalName, optionalText, statement, text } from "./rows.ts";
import { isVisible } from "./subscription-rows.ts";
import type { Making } from "./subscriptions.ts";

const pairText = "SELECT id FROM hookwell_delivery WHERE event_id = ? AND subscription_id = ?";
const idText = "SELECT id FROM hookwell_delivery WHERE id = ?";
const bodyText = `
INSERT INTO hookwell_body (project_id, event_id, variant, bytes) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING`;
const insertText = `
INSERT INTO hookwell_delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, status,
  attempts, round, next_attempt_at, due_at, last_error, created_at, updated_at, delivered_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const versionsText = `
SELECT id FROM hookwell_endpoint WHERE subscription_id = ? AND superseded_by IS NULL
ORDER BY created_at DESC LIMIT 5`;

/** Inside a write: the reference way in, a row with a copy of its payload. */
export function enqueue(
  connection: Connection,
  { keys, endpointId, now }: Making,
  endpoints: Endpoints,
  delivery: Delivery,
): void {
  const { id, eventId, subscriptionId, payload, projectId = "" } = delivery;
  if (connection.all(pairText, [eventId, subscriptionId]).length > 0)
    throw new DeliveryExistsError(eventId, subscriptionId);
  if (connection.all(idText, [id]).length > 0) throw new DuplicateIdError("delivery", id);
  const secrets = [delivery.secret, ...(delivery.secrets ?? []).filter((item) => item !== delivery.secret)];
  const wanted: Endpoint = {
    url: delivery.url,
    headers: delivery.headers ?? {},
    secrets: secrets.map((secret) => ({ secret })),
  };
  let version = connection
    .all(versionsText, [subscriptionId])
    .map((row) => text(row.id))
    .find((known) => isEqual(endpoints.get(known), wanted));
  if (version === undefined) {
    version = endpointId;
    const ring = runProgramSync(keys.ring(), connection.run);
    runProgramSync(insertEndpoint(ring, version, subscriptionId, wanted, now), connection.run);
  }
  const variant = hash("sha256", payload, "hex");
  connection.all(bodyText, [projectId, eventId, variant, payload]);
  const { status, attempts, round = 1, lastError } = delivery;
  const due = delivery.nextAttemptAt.getTime();
  const updated = delivery.updatedAt.getTime();
  const place = [id, projectId, eventId, subscriptionId, version, variant, delivery.type ?? ""];
  const state = [status, attempts, round, due, due, lastError === undefined ? null : storable(lastError)];
  const times = [delivery.createdAt.getTime(), updated, status === "delivered" ? updated : null];
  connection.all(insertText, [...place, ...state, ...times]);
  connection.run(wakeLanes([subscriptionId], now));
}

/** @throws ValidationError */
export function checkDelivery(delivery: Delivery): void {
  if (!delivery || !(delivery.payload instanceof Uint8Array))
    throw new ValidationError([
      { pointer: "/delivery", message: "must be a delivery with a payload of bytes" },
    ]);
}

function isEqual(a: Endpoint | undefined, b: Endpoint): boolean {
  return (
    a !== undefined &&
    JSON.stringify(a) === JSON.stringify({ url: b.url, headers: b.headers, secrets: b.secrets })
  );
}

// Written before it is read, so that a transaction begun DEFERRED waits for the write lock here.
const lockText = `
UPDATE hookwell_delivery SET attempts = attempts WHERE id = ?
RETURNING project_id, subscription_id, status, lease_until, order_key, order_at`;
const ownerText =
  "SELECT project_id, tenant_id, owner_id, status, status_reason FROM hookwell_subscription WHERE id = ?";

export const keepSuccessText = `
INSERT INTO hookwell_attempt (delivery_id, round, number, started_at, duration_ms, status_code)
SELECT id, round, attempts, last_started_at, last_duration_ms, last_status_code
FROM hookwell_delivery WHERE id = ? AND last_started_at IS NOT NULL
ON CONFLICT DO NOTHING`;

const dueNowText = `
UPDATE hookwell_delivery SET next_attempt_at = CAST(? AS INTEGER),
  due_at = CASE due_at WHEN 9000000000000000 THEN due_at ELSE CAST(? AS INTEGER) END,
  updated_at = CAST(? AS INTEGER), lease_token = NULL, lease_until = NULL
WHERE id = ?`;
const reopenText = `
UPDATE hookwell_delivery SET status = 'pending', reason = NULL, attempts = 0, round = round + 1, replay_id = NULL,
  due_at = CASE WHEN order_key IS NULL THEN due_at ELSE 9000000000000000 END,
  delivered_at = NULL, last_started_at = NULL, last_duration_ms = NULL, last_status_code = NULL
WHERE id = ?`;
// The lease stays: until it ends nobody sends the row again.
export const cancelText = `
UPDATE hookwell_delivery SET status = 'cancelled', reason = 'by_hand', updated_at = CAST(? AS INTEGER)
WHERE id = ?`;
const recordText = `SELECT ${recordColumns} FROM hookwell_delivery d ${recordJoins} WHERE d.id = ?`;

interface Locked {
  readonly lane: string;
  readonly status: DeliveryStatus;
  readonly leaseUntil: number | undefined;
  readonly subscriptionStatus: string | undefined;
  readonly subscriptionReason: string | undefined;
  readonly orderKey: string | undefined;
  readonly orderAt: number | undefined;
}

/** A final row opens its next round; a waiting one becomes due now. @throws NotFoundError, InvalidStateError */
export function* retryProgram(id: string, visibility: Visibility, now: number): Program<DeliveryRecord> {
  const locked = yield* lockVisible(id, visibility);
  const { lane, status, leaseUntil, orderKey, orderAt } = locked;
  if (leaseUntil !== undefined && leaseUntil > now)
    throw new InvalidStateError("delivery", id, "in flight", "retry");
  checkRetried(id, locked.subscriptionStatus, locked.subscriptionReason);
  if (status !== "pending") {
    if (yield* isSuperseded(lane, orderKey, orderAt))
      throw new InvalidStateError("delivery", id, "superseded", "retry");
    // The row has room for one success; the log keeps the one of the round that ends here.
    yield statement(keepSuccessText, id);
    yield statement(reopenText, id);
  }
  yield statement(dueNowText, now, now, now, id);
  yield* settleOrder(id, now);
  yield wakeLanes([lane], now);
  return yield* readRecord(id, now);
}

/** A send in flight goes on, and its outcome is stale. @throws NotFoundError, InvalidStateError */
export function* cancelProgram(id: string, visibility: Visibility, now: number): Program<DeliveryRecord> {
  const { status } = yield* lockVisible(id, visibility);
  if (!canMove(deliveryTransitions, status, "cancelled"))
    throw new InvalidStateError("delivery", id, status, "cancel");
  yield statement(cancelText, now, id);
  yield* settleOrder(id, now);
  return yield* readRecord(id, now);
}

function* readRecord(id: string, now: number): Program<DeliveryRecord> {
  const [row] = yield statement(recordText, id);
  return toDeliveryRecord(row!, now);
}

/** Tenant and owner of a delivery are those of the subscription it goes to. */
function* lockVisible(id: string, visibility: Visibility): Program<Locked> {
  const [row] = yield statement(lockText, id);
  if (!row) throw new NotFoundError("delivery", id);
  const lane = text(row.subscription_id);
  const [owner] = yield statement(ownerText, lane);
  const tenantId = optionalName(owner?.tenant_id);
  const ownerId = optionalName(owner?.owner_id);
  const place = {
    projectId: text(row.project_id),
    ...(tenantId && { tenantId }),
    ...(ownerId && { ownerId }),
  };
  if (!isVisible(place, visibility)) throw new NotFoundError("delivery", id);
  return {
    lane,
    status: text(row.status) as DeliveryStatus,
    leaseUntil: optionalInteger(row.lease_until),
    subscriptionStatus: optionalText(owner?.status),
    subscriptionReason: optionalText(owner?.status_reason),
    orderKey: optionalText(row.order_key),
    orderAt: optionalInteger(row.order_at),
  };
}
