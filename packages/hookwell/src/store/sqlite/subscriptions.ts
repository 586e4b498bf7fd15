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
import { storable } from "../storable.ts";
import { checkVersion, mustMove, type SubscriptionGuard } from "../subscription-guard.ts";
import { urlHost } from "../url-host.ts";
import { captureProgram } from "./capture.ts";
import { type Endpoint, insertEndpoint, readEndpoint } from "./endpoints.ts";
import type { Keys } from "./keys.ts";
import { afterPause, followStatus, forgive, newLimits } from "./lanes.ts";
import { dropOrder, settleLane } from "./ordering.ts";
import { integer, statement, text } from "./rows.ts";
import { isVisible, toSubscriptionRecord } from "./subscription-rows.ts";

/** What a program needs from the store it runs for. */
export interface Making {
  readonly keys: Keys;
  readonly endpointId: string;
  readonly now: number;
}

// Changes nothing, but takes the write lock: a transaction begun DEFERRED waits for it here.
const lockText = "DELETE FROM hookwell_meta WHERE key = ''";

// Every write of a row: a new one, and a replaced one of the reference's back door.
const putText = `
INSERT INTO hookwell_subscription (id, project_id, tenant_id, owner_id, url, url_host, event_types, fields,
  header_names, status, status_reason, description, metadata, external_id, rate_limit, max_in_flight, ordering,
  endpoint_id, created_at, updated_at, status_changed_at)
SELECT value ->> 'id', value ->> 'project', value ->> 'tenant', value ->> 'owner', value ->> 'url',
  value ->> 'host', value ->> 'types', value ->> 'fields', value ->> 'headers', value ->> 'status',
  value ->> 'reason', value ->> 'description', value ->> 'metadata', value ->> 'external', value ->> 'rate',
  value ->> 'flight', value ->> 'ordering', value ->> 'endpoint', value ->> 'now', value ->> 'now',
  value ->> 'now'
FROM json_each(?)
WHERE true
ON CONFLICT (id) DO `;
const createText = `${putText} NOTHING RETURNING *`;
const replaceText = `${putText} UPDATE SET project_id = excluded.project_id, tenant_id = excluded.tenant_id,
  owner_id = excluded.owner_id, url = excluded.url, url_host = excluded.url_host,
  event_types = excluded.event_types, header_names = excluded.header_names, status = excluded.status,
  status_reason = excluded.status_reason, endpoint_id = excluded.endpoint_id, updated_at = excluded.updated_at,
  status_changed_at = CASE WHEN status = excluded.status THEN status_changed_at ELSE excluded.updated_at END`;

const dropFiltersText = "DELETE FROM hookwell_subscription_filter WHERE subscription_id = ?";
const addFiltersText = `
INSERT INTO hookwell_subscription_filter (project_id, filter, owner_id, tenant_id, subscription_id)
SELECT s.project_id, j.value, s.owner_id, s.tenant_id, s.id
FROM hookwell_subscription s, json_each(?) j
WHERE s.id = ?`;

function* putFilters(id: string, eventTypes: readonly string[]): Program<void> {
  yield statement(dropFiltersText, id);
  yield statement(addFiltersText, JSON.stringify(storedFilters(eventTypes)), id);
}

/** @throws DuplicateIdError, EncryptionKeyError */
export function* createProgram(
  { keys, endpointId, now }: Making,
  input: NewSubscription,
): Program<SubscriptionRecord> {
  yield statement(lockText);
  const ring = yield* keys.ring();
  const { secret, headers = {} } = input;
  const columns = columnsOf(input, Object.keys(headers), endpointId);
  const [row] = yield statement(createText, JSON.stringify([{ ...columns, now }]));
  if (!row) throw new DuplicateIdError("subscription", input.id);
  const endpoint = { url: input.url, headers, secrets: [{ secret }] };
  yield* insertEndpoint(ring, endpointId, input.id, endpoint, now);
  yield* putFilters(input.id, input.eventTypes);
  yield* followStatus(input.id, now);
  // The lane may be older than its subscription: deliveries can be enqueued for an id.
  if (input.rateLimit !== undefined || input.maxInFlight !== undefined)
    yield* newLimits(input.id, jsonOrNull(input.rateLimit), input.maxInFlight ?? null, now);
  return toSubscriptionRecord(row);
}

/** Behind the publisher's back: a new endpoint version that replaces no older one. */
export function* addProgram({ keys, endpointId, now }: Making, subscription: Subscription): Program<void> {
  const { id, url, secret, eventTypes, active } = subscription;
  const ring = yield* keys.ring();
  yield* insertEndpoint(ring, endpointId, id, { url, headers: {}, secrets: [{ secret }] }, now);
  const columns = columnsOf({ ...subscription, ordering: "none" }, [], endpointId);
  const status = active ? { status: "active", reason: null } : { status: "disabled", reason: "by_hand" };
  yield statement(replaceText, JSON.stringify([{ ...columns, ...status, now }]));
  yield* putFilters(id, eventTypes);
  yield* followStatus(id, now);
}

/** The columns that the caller decides, as {@link putText} takes them. */
function columnsOf(
  input: Omit<NewSubscription, "secret" | "headers">,
  headerNames: readonly string[],
  endpointId: string,
): Readonly<Record<string, unknown>> {
  return {
    id: input.id,
    project: input.projectId,
    tenant: input.tenantId ?? "",
    owner: input.ownerId ?? "",
    url: input.url,
    host: urlHost(input.url),
    types: JSON.stringify(input.eventTypes),
    fields: jsonOrNull(input.fields),
    headers: JSON.stringify(headerNames),
    status: "active",
    description: storableOrNull(input.description),
    metadata: jsonOrNull(input.metadata),
    external: storableOrNull(input.externalId),
    rate: jsonOrNull(input.rateLimit),
    flight: input.maxInFlight ?? null,
    ordering: input.ordering,
    endpoint: endpointId,
  };
}

function jsonOrNull(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function storableOrNull(value: string | undefined): string | null {
  return value === undefined ? null : storable(value);
}

const changeText = `
UPDATE hookwell_subscription SET url = ?, url_host = ?, event_types = ?, fields = ?, header_names = ?,
  description = ?, metadata = ?, external_id = ?, rate_limit = ?, max_in_flight = CAST(? AS INTEGER),
  ordering = ?, endpoint_id = ?, updated_at = CAST(? AS INTEGER)
WHERE id = ?
RETURNING *`;
const supersedeText = "UPDATE hookwell_endpoint SET superseded_by = ? WHERE subscription_id = ? AND id <> ?";

/** Makes a new endpoint version out of the current one, and every older one points at it. @throws EncryptionKeyError */
export function* supersede(
  { keys, endpointId, now }: Making,
  id: string,
  currentId: string,
  change: (current: Endpoint) => Endpoint,
): Program<void> {
  const ring = yield* keys.ring();
  const current = yield* readEndpoint(ring, currentId);
  if (!current) throw new StorageError(`Endpoint version ${currentId} of subscription ${id} is missing.`);
  yield* insertEndpoint(ring, endpointId, id, change(current), now);
  yield statement(supersedeText, endpointId, id, endpointId);
}

/** A url or headers given make a new endpoint version, and every older one points at it. */
export function* updateProgram(
  making: Making,
  id: string,
  given: SubscriptionPatch,
  visibility: Visibility,
  guard: SubscriptionGuard | undefined,
): Program<SubscriptionRecord> {
  const { endpointId, now } = making;
  const row = yield* lockVisible(id, visibility);
  const record = toSubscriptionRecord(row);
  if (record.status === "deleted") throw new InvalidStateError("subscription", id, "deleted", "change");
  checkVersion(record, guard);
  let version = text(row.endpoint_id);
  let patch: ReturnType<typeof mergedPatch> = {};
  let { headerNames } = record;
  if (opensEndpoint(given)) {
    let headers: Readonly<Record<string, string>> = {};
    yield* supersede(making, id, version, (current) => {
      patch = mergedPatch(given, record, () => current.headers);
      headers = patch.headers === undefined ? current.headers : (patch.headers ?? {});
      return { ...current, url: patch.url ?? record.url, headers };
    });
    version = endpointId;
    headerNames = Object.keys(headers);
  } else patch = mergedPatch(given, record, () => ({}));
  const url = patch.url ?? record.url;
  const changed = <Key extends keyof SubscriptionPatch & keyof SubscriptionRecord>(
    key: Key,
  ): SubscriptionRecord[Key] | undefined => {
    const value = patch[key] as SubscriptionRecord[Key] | null | undefined;
    return value === undefined ? record[key] : (value ?? undefined);
  };
  const eventTypes = patch.eventTypes ?? record.eventTypes;
  const [stored] = yield statement(
    changeText,
    url,
    urlHost(url),
    JSON.stringify(eventTypes),
    jsonOrNull(changed("fields")),
    JSON.stringify(headerNames),
    storableOrNull(changed("description")),
    jsonOrNull(changed("metadata")),
    storableOrNull(changed("externalId")),
    jsonOrNull(changed("rateLimit")),
    changed("maxInFlight") ?? null,
    patch.ordering ?? record.ordering,
    version,
    now,
    id,
  );
  if (patch.eventTypes) yield* putFilters(id, eventTypes);
  if (patch.ordering === "none" && record.ordering === "subject") yield* dropOrder(id, now);
  if (url !== record.url) yield* forgive(id, now);
  const rate = jsonOrNull(changed("rateLimit"));
  const most = changed("maxInFlight");
  if (rate !== jsonOrNull(record.rateLimit) || most !== record.maxInFlight)
    yield* newLimits(id, rate, most ?? null, now);
  return toSubscriptionRecord(stored!);
}

const statusText = `
UPDATE hookwell_subscription SET status = ?, status_reason = ?, updated_at = CAST(? AS INTEGER),
  status_changed_at = CAST(? AS INTEGER)
WHERE id = ?
RETURNING *`;

/** @throws NotFoundError, InvalidStateError */
export function* statusProgram(
  id: string,
  status: SubscriptionStatus,
  reason: DisabledReason | undefined,
  visibility: Visibility,
  guard: SubscriptionGuard | undefined,
  now: number,
): Program<SubscriptionRecord> {
  const before = yield* lockVisible(id, visibility);
  const record = toSubscriptionRecord(before);
  if (!mustMove(record, status, guard)) return record;
  const stored = status === "disabled" ? (reason ?? "by_hand") : null;
  const [row] = yield statement(statusText, status, stored, now, now, id);
  if (status === "deleted") yield statement(dropFiltersText, id);
  if (record.status === "paused" && status === "active")
    yield afterPause(id, now - integer(before.status_changed_at));
  else if (status === "active") yield* forgive(id, now);
  yield* followStatus(id, now);
  if (status === "active") yield* settleLane(id, now);
  if (stored === "by_hand") yield* captureProgram([disabledByHandInput(record.projectId, id, now)], now);
  return toSubscriptionRecord(row!);
}

// Written before it is read, so that a transaction begun DEFERRED waits for the write lock here.
const lockRowText = "UPDATE hookwell_subscription SET updated_at = updated_at WHERE id = ? RETURNING *";

/** @throws NotFoundError also when it belongs to somebody else */
export function* lockVisible(id: string, visibility: Visibility): Program<Row> {
  const [row] = yield statement(lockRowText, id);
  if (row && isVisible(toSubscriptionRecord(row), visibility)) return row;
  throw new NotFoundError("subscription", id);
}
