import type { Row } from "../../adapters/seam.ts";
import type { DisabledReason, SubscriptionStatus } from "../../model/states.ts";
import { type RateLimit, type SubscriptionRecord, subscriptionVersion } from "../../model/subscription.ts";
import { urlHost } from "../url-host.ts";
import { date, defined, json, nonEmpty, optionalInteger, optionalJson, optionalText, text } from "./rows.ts";

export function toSubscription(row: Row): SubscriptionRecord {
  const record = defined<Omit<SubscriptionRecord, "version">>({
    id: text(row, "id"),
    projectId: text(row, "project_id"),
    tenantId: nonEmpty(row, "tenant_id"),
    ownerId: nonEmpty(row, "owner_id"),
    url: text(row, "url"),
    eventTypes: json<string[]>(row, "event_types"),
    fields: optionalJson<string[]>(row, "fields"),
    headerNames: json<string[]>(row, "header_names"),
    status: text(row, "status") as SubscriptionStatus,
    statusReason: optionalText(row, "status_reason") as DisabledReason | undefined,
    description: optionalText(row, "description"),
    metadata: optionalJson<Record<string, string>>(row, "metadata"),
    externalId: optionalText(row, "external_id"),
    rateLimit: optionalJson<RateLimit>(row, "rate_limit"),
    maxInFlight: optionalInteger(row, "max_in_flight"),
    ordering: text(row, "ordering") as SubscriptionRecord["ordering"],
    createdAt: date(row, "created_at"),
    updatedAt: date(row, "updated_at"),
  });
  return { ...record, version: subscriptionVersion(record, text(row, "endpoint_id")) };
}

/** The columns that a caller decides, as the statements take them: one JSON object. */
export function subscriptionJson(
  record: Omit<SubscriptionRecord, "status" | "statusReason" | "createdAt" | "updatedAt" | "version">,
) {
  const optionalJsonText = (value: unknown): string | null =>
    value === undefined ? null : JSON.stringify(value);
  return {
    id: record.id,
    project_id: record.projectId,
    tenant_id: record.tenantId ?? "",
    owner_id: record.ownerId ?? "",
    url: record.url,
    url_host: urlHost(record.url),
    event_types: JSON.stringify(record.eventTypes),
    fields: optionalJsonText(record.fields),
    header_names: JSON.stringify(record.headerNames),
    description: record.description ?? null,
    metadata: optionalJsonText(record.metadata),
    external_id: record.externalId ?? null,
    rate_limit: optionalJsonText(record.rateLimit),
    max_in_flight: record.maxInFlight ?? null,
    ordering: record.ordering,
  };
}
