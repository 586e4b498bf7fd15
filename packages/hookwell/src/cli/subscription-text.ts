import type { SubscriptionRecord } from "../model/subscription.ts";
import type { Terminal } from "./command.ts";
import { type Column, printRecord } from "./terminal/table.ts";
import { shortTime } from "./times.ts";

/** `disabled (gone)`. */
export function subscriptionState({ status, statusReason }: SubscriptionRecord): string {
  return statusReason === undefined ? status : `${status} (${statusReason})`;
}

export const subscriptionColumns: readonly Column<SubscriptionRecord>[] = [
  { name: "SUBSCRIPTION", value: ({ id }) => id },
  { name: "STATUS", value: subscriptionState },
  { name: "URL", value: ({ url }) => url },
  { name: "TYPES", value: ({ eventTypes }) => eventTypes.join(",") || "every type" },
  { name: "PROJECT", value: ({ projectId }) => projectId },
  { name: "TENANT", value: ({ tenantId }) => tenantId },
  { name: "OWNER", value: ({ ownerId }) => ownerId },
  { name: "EXTERNAL ID", value: ({ externalId }) => externalId },
];

export function printSubscription(
  terminal: Terminal,
  record: SubscriptionRecord,
  more: readonly (readonly [string, string])[] = [],
): void {
  const { rateLimit, metadata } = record;
  printRecord(terminal, [
    ["subscription", record.id],
    ["status", subscriptionState(record)],
    ["url", record.url],
    ["types", record.eventTypes.join(", ") || "every type"],
    ["fields", record.fields?.join(", ")],
    ["headers", record.headerNames.join(", ")],
    ["project", record.projectId],
    ["tenant", record.tenantId],
    ["owner", record.ownerId],
    ["description", record.description],
    ["external id", record.externalId],
    [
      "metadata",
      metadata &&
        Object.entries(metadata)
          .map(([name, value]) => `${name}=${value}`)
          .join("\n"),
    ],
    ["rate limit", rateLimit && `${rateLimit.limit} in ${rateLimit.perSeconds} s`],
    ["max in flight", record.maxInFlight],
    ["ordering", record.ordering],
    ["created", shortTime(record.createdAt)],
    ["updated", shortTime(record.updatedAt)],
    ...more,
  ]);
}
