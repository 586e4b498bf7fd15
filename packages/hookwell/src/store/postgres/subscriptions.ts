import type { Program, Row } from "../../adapters/seam.ts";
import { DuplicateIdError, InvalidStateError, NotFoundError, StorageError } from "../../model/errors.ts";
import { storedFilters } from "../../model/matching.ts";
import type { DisabledReason, SubscriptionStatus } from "../../model/states.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionPatch,
  SubscriptionRecord,
} from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { mergedPatch, opensEndpoint } from "../merge-patch.ts";
import { disabledByHandInput } from "../operational.ts";
import type { KeyRing } from "../sealing.ts";
import { storable } from "../storable.ts";
import { checkVersion, mustMove, type SubscriptionGuard } from "../subscription-guard.ts";
import { capture } from "./capture.ts";
import type { Database } from "./database.ts";
import { type Endpoint, openEndpoint, sealEndpoint } from "./endpoints.ts";
import { holdKey } from "./key-records.ts";
import { dropOrder, settleLane } from "./ordering.ts";
import { defined, integer, text } from "./rows.ts";
import { subscriptionJson, toSubscription } from "./subscription-rows.ts";
import { subscriptionTexts } from "./subscription-sql.ts";

type Written = Omit<SubscriptionRecord, "status" | "statusReason" | "createdAt" | "updatedAt" | "version">;

export function* createSubscription(
  schema: string,
  keys: KeyRing,
  input: NewSubscription,
  endpointId: string,
  now: string | null,
): Program<SubscriptionRecord> {
  const { secret, headers = {}, ...rest } = input;
  const parameter = writeJson(
    keys,
    { ...rest, headerNames: Object.keys(headers) },
    { id: endpointId, url: input.url, headers, secrets: [{ secret }] },
    { status: "active", status_reason: null },
  );
  yield* holdKey(schema, keys);
  const [row] = yield { text: subscriptionTexts(schema).create, params: [now, parameter] };
  if (!row) throw new DuplicateIdError("subscription", input.id);
  return toSubscription(row);
}

/** Behind the publisher's back: a new endpoint version that replaces no older one. */
export function* putSubscription(
  schema: string,
  keys: KeyRing,
  subscription: Subscription,
  endpointId: string,
  now: string | null,
): Program<void> {
  const { id, projectId, tenantId, ownerId, url, secret, eventTypes, active } = subscription;
  const record = defined<Written>({
    id,
    projectId,
    tenantId: tenantId || undefined,
    ownerId: ownerId || undefined,
    url,
    eventTypes,
    headerNames: [],
    ordering: "none",
  });
  const status = active
    ? { status: "active", status_reason: null }
    : { status: "disabled", status_reason: "by_hand" };
  const endpoint = { id: endpointId, url, headers: {}, secrets: [{ secret }] };
  yield* holdKey(schema, keys);
  yield {
    text: subscriptionTexts(schema).put,
    params: [now, writeJson(keys, record, endpoint, status)],
  };
}

/** A url or headers given make a new endpoint version, and every older one points at it. */
export function* updateSubscription(
  schema: string,
  keys: KeyRing,
  id: string,
  patch: SubscriptionPatch,
  visibility: Visibility,
  guard: SubscriptionGuard | undefined,
  newEndpointId: string,
  now: string | null,
): Program<SubscriptionRecord> {
  const row = yield* lockVisible(schema, id, visibility);
  const current = toSubscription(row);
  if (current.status === "deleted") throw new InvalidStateError("subscription", id, "deleted", "change");
  checkVersion(current, guard);
  const bound = opensEndpoint(patch) ? (yield* currentEndpoint(schema, keys, row, now)).endpoint : undefined;
  const { headers, ...changes } = mergedPatch(patch, current, () => bound?.headers ?? {});
  let { headerNames } = current;
  let endpoint: Endpoint | null = null;
  if (bound) {
    endpoint = {
      id: newEndpointId,
      url: changes.url ?? current.url,
      headers: headers === undefined ? bound.headers : (headers ?? {}),
      secrets: bound.secrets,
    };
    headerNames = Object.keys(endpoint.headers);
  }
  const given = Object.entries(changes)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, value === null ? undefined : value]);
  const record: Written = { ...current, ...Object.fromEntries(given), headerNames };
  const [written] = yield {
    text: subscriptionTexts(schema).update,
    params: [now, writeJson(keys, record, endpoint)],
  };
  if (current.ordering === "subject" && record.ordering === "none") yield* dropOrder(schema, id, now);
  return toSubscription(written!);
}

export function* setSubscriptionStatus(
  schema: string,
  id: string,
  status: SubscriptionStatus,
  reason: DisabledReason | undefined,
  visibility: Visibility,
  guard: SubscriptionGuard | undefined,
  now: string | null,
): Program<SubscriptionRecord> {
  const current = toSubscription(yield* lockVisible(schema, id, visibility));
  if (!mustMove(current, status, guard)) return current;
  const [written] = yield {
    text: subscriptionTexts(schema).status,
    params: [now, id, status, status === "disabled" ? (reason ?? "by_hand") : null],
  };
  if (status === "active" && current.ordering === "subject") yield* settleLane(schema, id, now);
  const changed = toSubscription(written!);
  if (changed.statusReason === "by_hand") {
    const event = disabledByHandInput(changed.projectId, id, changed.updatedAt.getTime());
    yield* capture(schema, [event], now);
  }
  return changed;
}

export async function getSubscription(
  db: Database,
  id: string,
  visibility: Visibility,
): Promise<SubscriptionRecord | undefined> {
  const [row] = await db.run({ text: subscriptionTexts(db.schema).get, params: [id] });
  const record = row && toSubscription(row);
  return record && isVisible(record, visibility) ? record : undefined;
}

/** Active subscriptions of the project, by id, with the secret that new deliveries are bound to. */
export async function listActiveSubscriptions(
  db: Database,
  keys: KeyRing,
  projectId: string,
): Promise<Subscription[]> {
  const rows = await db.run({ text: subscriptionTexts(db.schema).active, params: [projectId] });
  return rows.map((row) => {
    const record = toSubscription(row);
    const bound = openEndpoint(keys, text(row, "bound_id"), text(row, "bound_url"), text(row, "sealed"));
    return defined<Subscription>({
      id: record.id,
      projectId: record.projectId,
      tenantId: record.tenantId,
      ownerId: record.ownerId,
      url: record.url,
      secret: bound.secrets[0]!.secret,
      eventTypes: record.eventTypes,
      active: true,
    });
  });
}

/** Every part that is asked for must be equal. */
export function isVisible(record: SubscriptionRecord, { projectId, tenantId, ownerId }: Visibility): boolean {
  return (
    (projectId === undefined || record.projectId === projectId) &&
    (tenantId === undefined || record.tenantId === tenantId) &&
    (ownerId === undefined || record.ownerId === ownerId)
  );
}

/** The endpoint version of a locked row, to be replaced, and the time at which it was read. @throws EncryptionKeyError, StorageError */
export function* currentEndpoint(
  schema: string,
  keys: KeyRing,
  row: Row,
  now: string | null,
): Program<{ readonly endpoint: Endpoint; readonly now: number }> {
  yield* holdKey(schema, keys);
  const id = text(row, "endpoint_id");
  const [found] = yield { text: subscriptionTexts(schema).sealed, params: [id, now] };
  if (!found) throw new StorageError(`Endpoint version ${id} of subscription ${text(row, "id")} is missing.`);
  return {
    endpoint: openEndpoint(keys, id, text(found, "url"), text(found, "sealed")),
    now: integer(found, "now"),
  };
}

/** Locks the row until the transaction ends. @throws NotFoundError also when it belongs to somebody else */
export function* lockVisible(schema: string, id: string, visibility: Visibility): Program<Row> {
  const [row] = yield { text: subscriptionTexts(schema).lock, params: [id] };
  if (!row || !isVisible(toSubscription(row), visibility)) throw new NotFoundError("subscription", id);
  return row;
}

function writeJson(
  keys: KeyRing,
  record: Written,
  endpoint: Endpoint | null,
  status: { readonly status?: string; readonly status_reason?: string | null } = {},
): string {
  const kept = defined<Written>({
    ...record,
    description: record.description === undefined ? undefined : storable(record.description),
    externalId: record.externalId === undefined ? undefined : storable(record.externalId),
  });
  return JSON.stringify({
    subscription: { ...subscriptionJson(kept), ...status },
    filters: storedFilters(record.eventTypes),
    endpoint: endpoint ? { id: endpoint.id, url: endpoint.url, sealed: sealEndpoint(keys, endpoint) } : {},
  });
}
