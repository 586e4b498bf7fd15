import type { Row } from "../../adapters/seam.ts";
import type { AttemptRecord, Delivery, DeliveryRecord } from "../../model/delivery.ts";
import type { DeliveryStatus, Hold } from "../../model/states.ts";
import type { RateLimit } from "../../model/subscription.ts";
import { asideAt } from "../hold-contract.ts";
import { rateFreeAt } from "../lane-state.ts";
import { blockedAt, dueTime } from "../ordering.ts";
import { type Endpoint, secretsAt } from "./endpoints.ts";
import { coveredSql } from "./holds.ts";
import {
  date,
  integer,
  optionalDate,
  optionalInteger,
  optionalJson,
  optionalName,
  optionalText,
  present,
  text,
} from "./rows.ts";

/** The columns {@link toDelivery} reads, of `d` with its body `b`, event `e` and endpoint version `o`. */
export const deliveryColumns = `d.id, d.project_id, d.event_id, d.subscription_id, d.endpoint_id, d.variant,
  d.type, d.status, d.attempts, d.round, d.last_error, d.next_attempt_at, d.lease_token, d.lease_until,
  d.created_at, d.updated_at, b.bytes, e.tenant_id, e.subject, o.superseded_by`;

export const deliveryJoins = `
LEFT JOIN hookwell_body b INDEXED BY hookwell_body_key ON b.event_id = d.event_id AND b.project_id = d.project_id AND b.variant = d.variant
LEFT JOIN hookwell_event e INDEXED BY hookwell_event_key ON e.id = d.event_id AND e.project_id = d.project_id
LEFT JOIN hookwell_endpoint o ON o.id = d.endpoint_id`;

/** A row as the engine works on it: url, headers and valid secrets of the version that counts. */
export function toDelivery(row: Row, own: Endpoint, current: Endpoint, now: number): Delivery {
  const { secret, secrets } = secretsAt(own, current, now);
  return present<Delivery>({
    id: text(row.id),
    eventId: text(row.event_id),
    subscriptionId: text(row.subscription_id),
    url: current.url,
    secret,
    payload: row.bytes as Uint8Array,
    status: text(row.status) as DeliveryStatus,
    attempts: integer(row.attempts),
    lastError: optionalText(row.last_error),
    nextAttemptAt: date(row.next_attempt_at),
    createdAt: date(row.created_at),
    updatedAt: date(row.updated_at),
    type: optionalName(row.type),
    projectId: optionalName(row.project_id),
    tenantId: optionalName(row.tenant_id),
    subject: optionalText(row.subject),
    secrets,
    headers: Object.keys(current.headers).length > 0 ? { ...current.headers } : undefined,
    round: integer(row.round),
    leaseToken: optionalText(row.lease_token),
    leaseUntil: optionalDate(row.lease_until),
  });
}

const nowhere: Endpoint = { url: "", headers: {}, secrets: [{ secret: "" }] };

/** A row whose body or endpoint version is missing or damaged: what it would send, and where, is empty. */
export function toUnreadable(row: Row, now: number): Delivery {
  return { ...toDelivery({ ...row, bytes: new Uint8Array() }, nowhere, nowhere, now), secrets: [] };
}

/** The columns {@link toDeliveryRecord} reads. */
export const recordColumns = `d.id, d.project_id, d.event_id, d.subscription_id, d.endpoint_id, d.type, d.status,
  d.reason, d.attempts, d.round, d.error_code, d.last_error, d.next_attempt_at, d.created_at, d.updated_at,
  d.delivered_at, e.tenant_id, e.subject, s.status AS subscription_status, d.due_at, l.hold_until,
  l.opened_at, l.rate_limit, l.rate_tat,
  (d.status = 'pending' AND ${coveredSql}) AS covered`;

export const recordJoins = `
LEFT JOIN hookwell_event e INDEXED BY hookwell_event_key ON e.id = d.event_id AND e.project_id = d.project_id
LEFT JOIN hookwell_subscription s ON s.id = d.subscription_id
LEFT JOIN hookwell_lane l ON l.subscription_id = d.subscription_id`;

/** A row as management shows it. */
export function toDeliveryRecord(row: Row, now: number): DeliveryRecord {
  const status = text(row.status) as DeliveryStatus;
  return present<DeliveryRecord>({
    id: text(row.id),
    eventId: text(row.event_id),
    subscriptionId: text(row.subscription_id),
    projectId: text(row.project_id),
    tenantId: optionalName(row.tenant_id),
    type: text(row.type),
    subject: optionalText(row.subject),
    status,
    reason: optionalText(row.reason),
    hold: status === "pending" ? holdOf(row, now) : undefined,
    attempts: integer(row.attempts),
    round: integer(row.round),
    errorCode: optionalText(row.error_code),
    lastError: optionalText(row.last_error),
    nextAttemptAt: status === "pending" ? date(row.next_attempt_at) : undefined,
    createdAt: date(row.created_at),
    updatedAt: date(row.updated_at),
    deliveredAt: optionalDate(row.delivered_at),
  });
}

function holdOf(row: Row, now: number): Hold | undefined {
  const status = optionalText(row.subscription_status);
  if (status === "paused") return "paused";
  if (status === "disabled" || status === "deleted") return "disabled";
  const dueAt = integer(row.due_at);
  // What is set aside is held until it was given back.
  if (integer(row.covered) === 1 || (dueAt >= asideAt.live && dueAt < blockedAt)) return "held";
  if (dueAt === blockedAt) return "ordering";
  if (optionalInteger(row.opened_at) !== undefined) return "circuit_open";
  if ((optionalInteger(row.hold_until) ?? 0) > now) return "retry_after";
  const rateLimit = optionalJson<RateLimit>(row.rate_limit);
  if (!rateLimit || dueTime(dueAt) > now) return undefined;
  const free = rateFreeAt({ rateTat: integer(row.rate_tat) }, { rateLimit });
  return free > now ? "rate_limited" : undefined;
}

export function toAttempt(row: Row): AttemptRecord {
  return present<AttemptRecord>({
    number: integer(row.number),
    round: integer(row.round),
    startedAt: date(row.started_at),
    durationMs: integer(row.duration_ms),
    statusCode: optionalInteger(row.status_code),
    errorCode: optionalText(row.error_code),
    error: optionalText(row.error),
    excerpt: optionalText(row.response_excerpt),
  });
}
