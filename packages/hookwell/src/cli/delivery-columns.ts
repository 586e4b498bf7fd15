import type { DeliveryRecord } from "../model/delivery.ts";
import type { Column } from "./terminal/table.ts";
import { shortTime } from "./times.ts";

export const deliveryColumns: readonly Column<DeliveryRecord>[] = [
  { name: "DELIVERY", value: ({ id }) => id },
  { name: "STATUS", value: deliveryState },
  { name: "TYPE", value: ({ type }) => type },
  { name: "TRIES", value: ({ attempts }) => attempts },
  { name: "CREATED", value: ({ createdAt }) => shortTime(createdAt) },
  { name: "NEXT", value: ({ nextAttemptAt }) => shortTime(nextAttemptAt) },
  { name: "ERROR", value: ({ errorCode }) => errorCode },
  { name: "SUBSCRIPTION", value: ({ subscriptionId }) => subscriptionId },
  { name: "EVENT", value: ({ eventId }) => eventId },
];

/** `pending (paused)`, `failed (attempts_exhausted)`. */
export function deliveryState({ status, hold, reason }: DeliveryRecord): string {
  const why = status === "pending" ? hold : reason;
  return why === undefined ? status : `${status} (${why})`;
}
