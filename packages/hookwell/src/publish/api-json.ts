import type { AttemptRecord, DeliveryDetail, DeliveryRecord } from "../model/delivery.ts";
import type { EventOutcome, EventRecord } from "../model/event.ts";
import { type HoldRecord, storedSelector } from "../model/hold.ts";
import { parseJson } from "../model/json.ts";
import type { DeliverySelection, ReplayRecord } from "../model/replay.ts";
import type { SubscriptionRecord } from "../model/subscription.ts";
import type { ApiKeyRecord, PageOf, PagePosition } from "../store/contract.ts";
import type { Explanation } from "./explain.ts";
import type { TestSend } from "./surface.ts";

/*
 * How records look in JSON: snake_case, null for what is absent, times in UTC with milliseconds. The REST API and the
 * command line both write them with these functions, so that a script can read either.
 */

const orNull = (value: Date | undefined): string | null => value?.toISOString() ?? null;

export function subscriptionToJson(record: SubscriptionRecord) {
  return {
    id: record.id,
    project_id: record.projectId,
    tenant_id: record.tenantId ?? null,
    owner_id: record.ownerId ?? null,
    url: record.url,
    event_types: [...record.eventTypes],
    fields: record.fields ? [...record.fields] : null,
    header_names: [...record.headerNames],
    status: record.status,
    status_reason: record.statusReason ?? null,
    description: record.description ?? null,
    metadata: record.metadata ? { ...record.metadata } : null,
    external_id: record.externalId ?? null,
    rate_limit: record.rateLimit
      ? { limit: record.rateLimit.limit, per_seconds: record.rateLimit.perSeconds }
      : null,
    max_in_flight: record.maxInFlight ?? null,
    ordering: record.ordering,
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
  };
}

export function eventToJson(record: EventRecord & { readonly outcome: EventOutcome }) {
  return {
    id: record.id,
    type: record.type,
    project_id: record.projectId,
    tenant_id: record.tenantId ?? null,
    subject: record.subject ?? null,
    revision: record.revision ?? null,
    actor: record.actor ?? null,
    audience: record.audience ? [...record.audience] : null,
    occurred_at: record.occurredAt.toISOString(),
    captured_at: record.capturedAt.toISOString(),
    state: record.state,
    outcome: record.outcome,
    error: record.error ?? record.damage ?? null,
    data: dataOf(record),
  };
}

/** A row that was damaged in the database must still be seen, whatever of it can be read: then its text. */
function dataOf({ data }: EventRecord): unknown {
  try {
    return parseJson(data);
  } catch {
    return data;
  }
}

export function holdToJson({ id, selector, reason, heldBy, createdAt }: HoldRecord) {
  const { kind, value } = storedSelector(selector);
  return {
    id,
    kind,
    project_id: kind === "project" ? value : null,
    type: kind === "type" ? value : null,
    reason: reason ?? null,
    held_by: heldBy ?? null,
    created_at: createdAt.toISOString(),
  };
}

export function deliveryToJson(record: DeliveryRecord) {
  return {
    id: record.id,
    event_id: record.eventId,
    subscription_id: record.subscriptionId,
    type: record.type,
    subject: record.subject ?? null,
    status: record.status,
    reason: record.reason ?? null,
    hold: record.hold ?? null,
    attempts: record.attempts,
    error_code: record.errorCode ?? null,
    last_error: record.lastError ?? null,
    next_attempt_at: orNull(record.nextAttemptAt),
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
    delivered_at: orNull(record.deliveredAt),
  };
}

export function deliveryDetailToJson(record: DeliveryDetail) {
  return {
    ...deliveryToJson(record),
    url: record.url,
    body: Buffer.from(record.body.buffer, record.body.byteOffset, record.body.byteLength).toString("utf8"),
    attempt_log: record.attemptLog.map(attemptToJson),
  };
}

export function attemptToJson(record: AttemptRecord) {
  return {
    number: record.number,
    round: record.round,
    started_at: record.startedAt.toISOString(),
    duration_ms: record.durationMs,
    status_code: record.statusCode ?? null,
    error_code: record.errorCode ?? null,
    error: record.error ?? null,
    response_excerpt: record.excerpt ?? null,
  };
}

export function testSendToJson(sent: TestSend) {
  return { event_id: sent.eventId, event_type: sent.eventType, attempt: attemptToJson(sent.attempt) };
}

export function replayToJson(record: ReplayRecord) {
  const { selection } = record;
  return {
    id: record.id,
    status: record.status,
    count: record.count,
    queued: record.queued,
    delivered: record.delivered,
    failed: record.failed,
    cancelled: record.cancelled,
    skipped: record.skipped,
    error: record.error ?? null,
    filter: selectionToJson(selection),
    statuses: [...record.statuses],
    since: record.since.toISOString(),
    until: record.until.toISOString(),
    created_at: record.createdAt.toISOString(),
    finished_at: orNull(record.finishedAt),
  };
}

function selectionToJson(selection: DeliverySelection) {
  return {
    project_id: selection.projectId ?? null,
    tenant_id: selection.tenantId ?? null,
    owner_id: selection.ownerId ?? null,
    subscription_id: selection.subscriptionId ?? null,
    event_id: selection.eventId ?? null,
    type: selection.type ?? null,
    subject: selection.subject ?? null,
    url_host: selection.urlHost ?? null,
    error_code: selection.errorCode ?? null,
    replay_id: selection.replayId ?? null,
  };
}

export function keyToJson(record: ApiKeyRecord) {
  return {
    id: record.id,
    name: record.name,
    scopes: [...record.scopes],
    project_id: record.projectId ?? null,
    created_at: record.createdAt.toISOString(),
    expires_at: orNull(record.expiresAt),
    last_used_at: orNull(record.lastUsedAt),
  };
}

export function pageToJson<T, Json>(page: PageOf<T>, toJson: (item: T) => Json) {
  return { items: page.items.map(toJson), next_cursor: page.next ? encodeCursor(page.next) : null };
}

/** Time and id together: rows of equal time are neither skipped nor repeated. */
export function encodeCursor(position: PagePosition): string {
  return Buffer.from(JSON.stringify([position.at.getTime(), position.id])).toString("base64url");
}

/** Undefined for text that no page gave. */
export function decodeCursor(cursor: string): PagePosition | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(value) || value.length !== 2) return undefined;
    const [at, id] = value as unknown[];
    const time = typeof at === "number" && Number.isSafeInteger(at) ? new Date(at) : undefined;
    // A NUL never comes from a page of ours, and PostgreSQL could not compare with it.
    const usable = time && !Number.isNaN(time.getTime()) && typeof id === "string" && !id.includes("\0");
    return usable ? { at: time, id } : undefined;
  } catch {
    // Not base64 of JSON.
    return undefined;
  }
}

export function explanationToJson({ subscriptionId, matched, rule, detail, delivery }: Explanation) {
  return {
    subscription_id: subscriptionId,
    matched,
    rule: rule ?? null,
    detail,
    delivery_id: delivery?.id ?? null,
    delivery_status: delivery?.status ?? null,
  };
}
