import { DuplicateIdError, InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { CaptureInput } from "../../model/event.ts";
import type { DisabledReason, SubscriptionStatus } from "../../model/states.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionPatch,
  SubscriptionRecord,
} from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { afterPause, forgiven, withNewLimits } from "../lane-state.ts";
import { mergedPatch } from "../merge-patch.ts";
import { disabledByHandInput } from "../operational.ts";
import { storable } from "../storable.ts";
import { checkVersion, mustMove, type SubscriptionGuard } from "../subscription-guard.ts";
import { dropOrder, settleLane } from "./ordering.ts";
import type { EndpointRow, MemoryState, StoredSubscription, SubscriptionRow } from "./state.ts";
import { defined, toSubscriptionRecord } from "./view.ts";

export function createSubscription(
  state: MemoryState,
  input: NewSubscription,
  endpointId: string,
  now: number,
): SubscriptionRecord {
  if (state.subscriptions.has(input.id)) throw new DuplicateIdError("subscription", input.id);
  const { secret, headers = {}, ...rest } = structuredClone(input);
  state.endpoints.set(endpointId, {
    id: endpointId,
    subscriptionId: input.id,
    url: input.url,
    headers,
    secrets: [{ secret }],
  });
  const record = defined<StoredSubscription>({
    ...rest,
    description: rest.description === undefined ? undefined : storable(rest.description),
    externalId: rest.externalId === undefined ? undefined : storable(rest.externalId),
    headerNames: Object.keys(headers),
    status: "active",
    createdAt: new Date(now),
    updatedAt: new Date(now),
  });
  const row: SubscriptionRow = { record, endpointId, statusChangedAt: now };
  state.subscriptions.set(input.id, row);
  return toSubscriptionRecord(row);
}

/** Behind the publisher's back: a new endpoint version that replaces no older one. */
export function addSubscription(
  state: MemoryState,
  subscription: Subscription,
  endpointId: string,
  now: number,
): void {
  const { id, projectId, tenantId, ownerId, url, secret, eventTypes, active } = subscription;
  state.endpoints.set(endpointId, {
    id: endpointId,
    subscriptionId: id,
    url,
    headers: {},
    secrets: [{ secret }],
  });
  const existing = state.subscriptions.get(id);
  const status: SubscriptionStatus = active ? "active" : "disabled";
  const record = defined<StoredSubscription>({
    ordering: "none",
    createdAt: new Date(now),
    ...existing?.record,
    id,
    projectId,
    tenantId: tenantId || undefined,
    ownerId: ownerId || undefined,
    url,
    eventTypes: [...eventTypes],
    headerNames: [],
    status,
    statusReason: active ? undefined : "by_hand",
    updatedAt: new Date(now),
  });
  const statusChangedAt = existing?.record.status === status ? existing.statusChangedAt : now;
  state.subscriptions.set(id, { record, endpointId, statusChangedAt });
}

/** A url or headers given make a new endpoint version, and every older one points at it. */
export function updateSubscription(
  state: MemoryState,
  id: string,
  patch: SubscriptionPatch,
  visibility: Visibility,
  guard: SubscriptionGuard | undefined,
  newEndpointId: string,
  now: number,
): SubscriptionRecord {
  const row = visibleSubscription(state, id, visibility);
  if (row.record.status === "deleted") throw new InvalidStateError("subscription", id, "deleted", "change");
  checkVersion(toSubscriptionRecord(row), guard);
  const { headers, ...rest } = mergedPatch(
    structuredClone(patch),
    row.record,
    () => state.endpoints.get(row.endpointId)!.headers,
  );
  let { endpointId } = row;
  let { headerNames } = row.record;
  if (rest.url !== undefined || headers !== undefined) {
    const current = state.endpoints.get(endpointId)!;
    endpointId = newEndpointId;
    const endpoint = {
      ...current,
      id: endpointId,
      url: rest.url ?? row.record.url,
      headers: headers === undefined ? current.headers : (headers ?? {}),
    };
    supersedeWith(state, endpoint);
    headerNames = Object.keys(endpoint.headers);
  }
  const changes = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, value === null ? undefined : value]);
  const record = defined<StoredSubscription>({
    ...row.record,
    ...Object.fromEntries(changes),
    headerNames,
    updatedAt: new Date(now),
  });
  const stored = defined<StoredSubscription>({
    ...record,
    description: record.description === undefined ? undefined : storable(record.description),
    externalId: record.externalId === undefined ? undefined : storable(record.externalId),
  });
  const changed: SubscriptionRow = { ...row, record: stored, endpointId };
  state.subscriptions.set(id, changed);
  if (stored.ordering !== row.record.ordering && stored.ordering === "none") dropOrder(state, id);
  const lane = state.lanes.get(id);
  if (lane && stored.url !== row.record.url) state.lanes.set(id, forgiven(lane));
  if (lane && limitsOf(stored) !== limitsOf(row.record)) state.lanes.set(id, withNewLimits(state.lane(id)));
  return toSubscriptionRecord(changed);
}

/** Stores a new endpoint version, which every older one of its subscription points at from now on. */
export function supersedeWith(state: MemoryState, endpoint: EndpointRow): void {
  for (const older of [...state.endpoints.values()])
    if (older.subscriptionId === endpoint.subscriptionId)
      state.endpoints.set(older.id, { ...older, supersededBy: endpoint.id });
  const { supersededBy: _older, ...newest } = endpoint;
  state.endpoints.set(endpoint.id, newest);
}

function limitsOf({ rateLimit, maxInFlight }: StoredSubscription): string {
  return JSON.stringify([rateLimit, maxInFlight]);
}

export function setSubscriptionStatus(
  state: MemoryState,
  id: string,
  status: SubscriptionStatus,
  reason: DisabledReason | undefined,
  visibility: Visibility,
  guard: SubscriptionGuard | undefined,
  now: number,
  emit: (event: CaptureInput) => void,
): SubscriptionRecord {
  const row = visibleSubscription(state, id, visibility);
  const current = toSubscriptionRecord(row);
  if (!mustMove(current, status, guard)) return current;
  const changed = toSubscriptionRecord(setStatus(state, row, status, reason, now));
  if (changed.statusReason === "by_hand") emit(disabledByHandInput(changed.projectId, id, now));
  return changed;
}

/** Writes a status; the reason stays only while it is disabled. */
export function setStatus(
  state: MemoryState,
  row: SubscriptionRow,
  status: SubscriptionStatus,
  reason: DisabledReason | undefined,
  now: number,
): SubscriptionRow {
  const record = defined<StoredSubscription>({
    ...row.record,
    status,
    statusReason: status === "disabled" ? (reason ?? "by_hand") : undefined,
    updatedAt: new Date(now),
  });
  const changed = { ...row, record, statusChangedAt: now };
  state.subscriptions.set(record.id, changed);
  if (status === "active") settleLane(state, record.id, now);
  const lane = state.lanes.get(record.id);
  if (lane && status === "active")
    state.lanes.set(
      record.id,
      row.record.status === "paused" ? afterPause(lane, now - row.statusChangedAt) : forgiven(lane),
    );
  return changed;
}

/** @throws NotFoundError also when it belongs to somebody else */
export function visibleSubscription(state: MemoryState, id: string, visibility: Visibility): SubscriptionRow {
  const row = state.subscriptions.get(id);
  if (!row || !isVisible(row.record, visibility)) throw new NotFoundError("subscription", id);
  return row;
}

/** Every part that is asked for must be equal. */
export function isVisible(
  record: { readonly projectId: string; readonly tenantId?: string; readonly ownerId?: string },
  { projectId, tenantId, ownerId }: Visibility,
): boolean {
  return (
    (projectId === undefined || record.projectId === projectId) &&
    (tenantId === undefined || record.tenantId === tenantId) &&
    (ownerId === undefined || record.ownerId === ownerId)
  );
}
