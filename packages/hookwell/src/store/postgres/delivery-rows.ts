import type { Row } from "../../adapters/seam.ts";
import type { AttemptRecord, DeliveryRecord } from "../../model/delivery.ts";
import type { DeliveryStatus, Hold } from "../../model/states.ts";
import { behindLive, blockedAt } from "../ordering.ts";
import { coveredSql, isAsideSql } from "./holds-sql.ts";
import { rateFreeSql } from "./lanes.ts";
import {
  date,
  defined,
  integer,
  nonEmpty,
  optionalDate,
  optionalInteger,
  optionalText,
  text,
} from "./rows.ts";

/** The columns that {@link toDeliveryRecord} reads, with `t.now` in scope. What is set aside is held until given back. */
export const recordColumnsSql = (
  s: string,
): string => `d.id, d.event_id, d.subscription_id, d.project_id, d.type, d.status, d.reason, d.attempts,
  d.round, d.error_code, d.last_error, d.next_attempt_at, d.created_at, d.updated_at, d.delivered_at,
  e.tenant_id, e.subject, CASE
    WHEN d.status <> 'pending' THEN NULL
    WHEN s.status = 'paused' THEN 'paused'
    WHEN s.status IN ('disabled', 'deleted') THEN 'disabled'
    WHEN ${coveredSql(`${s}.hold`)} OR (${isAsideSql("d")}) THEN 'held'
    WHEN d.due_at = ${blockedAt} THEN 'ordering'
    WHEN l.opened_at IS NOT NULL THEN 'circuit_open'
    WHEN l.hold_until > (SELECT now FROM t) THEN 'retry_after'
    WHEN d.due_at % ${behindLive} <= (SELECT now FROM t) AND ${rateFreeSql("l.rate_tat")} > (SELECT now FROM t)
      THEN 'rate_limited' END AS hold`;

/** What those columns come from, for `d`. */
export function recordJoinsSql(s: string): string {
  return `LEFT JOIN ${s}.event e ON e.id = d.event_id AND e.project_id = d.project_id
LEFT JOIN ${s}.subscription s ON s.id = d.subscription_id
LEFT JOIN ${s}.lane l ON l.subscription_id = d.subscription_id`;
}

export function toDeliveryRecord(row: Row): DeliveryRecord {
  const status = text(row, "status") as DeliveryStatus;
  return defined<DeliveryRecord>({
    id: text(row, "id"),
    eventId: text(row, "event_id"),
    subscriptionId: text(row, "subscription_id"),
    projectId: text(row, "project_id"),
    tenantId: nonEmpty(row, "tenant_id"),
    type: text(row, "type"),
    subject: optionalText(row, "subject"),
    status,
    reason: optionalText(row, "reason"),
    hold: optionalText(row, "hold") as Hold | undefined,
    attempts: integer(row, "attempts"),
    round: integer(row, "round"),
    errorCode: optionalText(row, "error_code"),
    lastError: optionalText(row, "last_error"),
    nextAttemptAt: status === "pending" ? date(row, "next_attempt_at") : undefined,
    createdAt: date(row, "created_at"),
    updatedAt: date(row, "updated_at"),
    deliveredAt: optionalDate(row, "delivered_at"),
  });
}

export function toAttempt(row: Row): AttemptRecord {
  return defined<AttemptRecord>({
    number: integer(row, "number"),
    round: integer(row, "round"),
    startedAt: date(row, "started_at"),
    durationMs: integer(row, "duration_ms"),
    statusCode: optionalInteger(row, "status_code"),
    errorCode: optionalText(row, "error_code"),
    error: optionalText(row, "error"),
    excerpt: optionalText(row, "response_excerpt"),
  });
}
