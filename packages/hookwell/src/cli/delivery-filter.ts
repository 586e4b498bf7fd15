import type { DeliveryStatus } from "../model/states.ts";
import type { DeliveryFilter } from "../store/contract.ts";
import { readChoice } from "./arguments.ts";
import { type Options, placeOptions, timeOptions } from "./options.ts";
import { readRange } from "./times.ts";

export const deliveryStatuses = [
  "pending",
  "delivered",
  "failed",
  "cancelled",
] as const satisfies readonly DeliveryStatus[];

/** What deliveries are chosen by, but their status. */
export const deliveryFilterOptions = {
  subscription: { type: "string", value: "<id>", help: "to this subscription" },
  event: { type: "string", value: "<id>", help: "of this event" },
  type: { type: "string", value: "<type>", help: "of this event type" },
  subject: { type: "string", value: "<text>", help: "about this subject" },
  ...placeOptions,
  "url-host": { type: "string", value: "<host>", help: "to this host" },
  "error-code": { type: "string", value: "<code>", help: "whose last attempt ended so, such as timeout" },
  ...timeOptions,
} as const satisfies Options;

export type DeliveryFilterFlags = {
  readonly [Name in keyof typeof deliveryFilterOptions]?: string;
} & { readonly status?: string };

/** @throws UsageError */
export function readDeliveryFilter(flags: DeliveryFilterFlags, now: Date): DeliveryFilter {
  return {
    status: readChoice(flags.status, "--status", deliveryStatuses),
    subscriptionId: flags.subscription,
    eventId: flags.event,
    type: flags.type,
    subject: flags.subject,
    projectId: flags.project,
    tenantId: flags.tenant,
    urlHost: flags["url-host"]?.toLowerCase(),
    errorCode: flags["error-code"],
    ...readRange(flags, now),
  };
}
