import type { Row } from "../../adapters/seam.ts";
import type { DisabledReason, SubscriptionStatus } from "../../model/states.ts";
import { type RateLimit, type SubscriptionRecord, subscriptionVersion } from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { date, optionalInteger, optionalJson, optionalName, optionalText, present, text } from "./rows.ts";

export function toSubscriptionRecord(row: Row): SubscriptionRecord {
  const record = present<Omit<SubscriptionRecord, "version">>({
    id: text(row.id),
    projectId: text(row.project_id),
    tenantId: optionalName(row.tenant_id),
    ownerId: optionalName(row.owner_id),
    url: text(row.url),
    eventTypes: JSON.parse(text(row.event_types)) as string[],
    fields: optionalJson<string[]>(row.fields),
    headerNames: JSON.parse(text(row.header_names)) as string[],
    status: text(row.status) as SubscriptionStatus,
    statusReason: optionalText(row.status_reason) as DisabledReason | undefined,
    description: optionalText(row.description),
    metadata: optionalJson<Record<string, string>>(row.metadata),
    externalId: optionalText(row.external_id),
    rateLimit: optionalJson<RateLimit>(row.rate_limit),
    maxInFlight: optionalInteger(row.max_in_flight),
    ordering: text(row.ordering) as SubscriptionRecord["ordering"],
    createdAt: date(row.created_at),
    updatedAt: date(row.updated_at),
  });
  return { ...record, version: subscriptionVersion(record, text(row.endpoint_id)) };
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
