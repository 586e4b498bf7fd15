import { hash } from "node:crypto";
import { type Program, type Row, runProgram, type Statement } from "../../adapters/seam.ts";
import type { AttemptRecord, Delivery, DeliveryDetail, DeliveryRecord } from "../../model/delivery.ts";
import {
  DeliveryExistsError,
  DuplicateIdError,
  InvalidStateError,
  NotFoundError,
  StorageError,
  ValidationError,
} from "../../model/errors.ts";
import { canMove, type DeliveryStatus, deliveryTransitions } from "../../model/states.ts";
import type { Visibility } from "../contract.ts";
import { checkRetried } from "../retry-guard.ts";
import { type KeyRing, keyRecords } from "../sealing.ts";
import { storable } from "../storable.ts";
import type { Database } from "./database.ts";
import { toAttempt, toDeliveryRecord } from "./delivery-rows.ts";
import { deliveryTexts } from "./delivery-sql.ts";
import { sealEndpoint } from "./endpoints.ts";
import { recordKeys } from "./key-records.ts";
import { isSuperseded, lockOrder, settleOrder } from "./ordering.ts";
import { bytes, flag, nonEmpty, optionalText, text } from "./rows.ts";

/** The reference way in: a row with its own endpoint version and a copy of its payload. */
export async function enqueueDelivery(
  db: Database,
  keys: KeyRing,
  delivery: Delivery,
  endpointId: string,
  now: string | null,
): Promise<void> {
  if (!delivery || !(delivery.payload instanceof Uint8Array))
    throw new ValidationError([
      { pointer: "/delivery", message: "must be a delivery with a payload of bytes" },
    ]);
  const statement = enqueueStatement(db.schema, keys, delivery, endpointId, now);
  // Neither written nor seen = another transaction was first and has committed by now: look once more.
  for (let tries = 0; tries < 3; tries++) {
    const [row] = await db.run(statement);
    if (flag(row!, "written")) return;
    if (flag(row!, "pair")) throw new DeliveryExistsError(delivery.eventId, delivery.subscriptionId);
    if (flag(row!, "taken")) throw new DuplicateIdError("delivery", delivery.id);
    if (!flag(row!, "known")) await db.transaction((run) => runProgram(recordKeys(db.schema, keys), run));
  }
  throw new StorageError(`Delivery ${delivery.id} could not be written; try again.`);
}

function enqueueStatement(
  schema: string,
  keys: KeyRing,
  delivery: Delivery,
  endpointId: string,
  now: string | null,
): Statement {
  const { payload, secret } = delivery;
  const secrets = [secret, ...(delivery.secrets ?? []).filter((item) => item !== secret)];
  const sealed = sealEndpoint(keys, {
    id: endpointId,
    headers: delivery.headers ?? {},
    secrets: secrets.map((item) => ({ secret: item })),
  });
  const parameter = {
    id: delivery.id,
    project_id: delivery.projectId ?? "",
    event_id: delivery.eventId,
    subscription_id: delivery.subscriptionId,
    endpoint_id: endpointId,
    variant: hash("sha256", payload, "hex"),
    type: delivery.type ?? "",
    status: delivery.status,
    attempts: delivery.attempts,
    round: delivery.round ?? 1,
    next_attempt_at: delivery.nextAttemptAt.getTime(),
    last_error: delivery.lastError === undefined ? null : storable(delivery.lastError),
    created_at: delivery.createdAt.getTime(),
    updated_at: delivery.updatedAt.getTime(),
    url: delivery.url,
    sealed,
    key_check: keyRecords.check(keys.newestId),
    body: Buffer.from(payload).toString("base64"),
  };
  return { text: deliveryTexts(schema).enqueue, params: [now, JSON.stringify(parameter)] };
}

/** A final row opens its next round; a waiting one becomes due now. */
export function* retryDelivery(
  schema: string,
  id: string,
  visibility: Visibility,
  now: string | null,
): Program<DeliveryRecord> {
  yield* lockOrder(schema, [id]);
  const row = yield* lockVisible(schema, id, visibility, now);
  if (flag(row, "in_flight")) throw new InvalidStateError("delivery", id, "in flight", "retry");
  checkRetried(id, optionalText(row, "subscription_status"), optionalText(row, "subscription_reason"));
  if (text(row, "status") !== "pending" && (yield* isSuperseded(schema, id)))
    throw new InvalidStateError("delivery", id, "superseded", "retry");
  yield { text: deliveryTexts(schema).retry, params: [now, id] };
  yield* settleOrder(schema, [id], now);
  return yield* recordOf(schema, id, now);
}

/** A send in flight goes on, and its outcome is stale. */
export function* cancelDelivery(
  schema: string,
  id: string,
  visibility: Visibility,
  now: string | null,
): Program<DeliveryRecord> {
  yield* lockOrder(schema, [id]);
  const row = yield* lockVisible(schema, id, visibility, now);
  const status = text(row, "status") as DeliveryStatus;
  if (!canMove(deliveryTransitions, status, "cancelled"))
    throw new InvalidStateError("delivery", id, status, "cancel");
  yield { text: deliveryTexts(schema).cancel, params: [now, id] };
  yield* settleOrder(schema, [id], now);
  return yield* recordOf(schema, id, now);
}

export async function getDelivery(
  db: Database,
  id: string,
  visibility: Visibility,
  now: string | null,
): Promise<DeliveryDetail | undefined> {
  const [row] = await db.run({ text: deliveryTexts(db.schema).get, params: [now, id] });
  if (!row || !isVisible(row, "visible_tenant", "visible_owner", visibility)) return undefined;
  return {
    ...toDeliveryRecord(row),
    url: text(row, "url"),
    body: bytes(row, "body"),
    attemptLog: await listAttempts(db, id),
  };
}

/** Oldest first; the last one of a delivered row is the send that delivered it. */
export async function listAttempts(db: Database, deliveryId: string): Promise<AttemptRecord[]> {
  const rows = await db.run({ text: deliveryTexts(db.schema).attempts, params: [deliveryId] });
  return rows.map(toAttempt);
}

function* recordOf(schema: string, id: string, now: string | null): Program<DeliveryRecord> {
  const [row] = yield { text: deliveryTexts(schema).get, params: [now, id] };
  return toDeliveryRecord(row!);
}

/** Locks the row until the transaction ends. @throws NotFoundError also when it belongs to somebody else */
function* lockVisible(schema: string, id: string, visibility: Visibility, now: string | null): Program<Row> {
  const [row] = yield { text: deliveryTexts(schema).lock, params: [now, id] };
  if (!row || !isVisible(row, "tenant_id", "owner_id", visibility)) throw new NotFoundError("delivery", id);
  return row;
}

/** Tenant and owner of a delivery are those of the endpoint it goes to. */
function isVisible(row: Row, tenant: string, owner: string, visibility: Visibility): boolean {
  const { projectId, tenantId, ownerId } = visibility;
  return (
    (projectId === undefined || text(row, "project_id") === projectId) &&
    (tenantId === undefined || nonEmpty(row, tenant) === tenantId) &&
    (ownerId === undefined || nonEmpty(row, owner) === ownerId)
  );
}
