import { z } from "@hono/zod-openapi";
import type { Stats } from "hookwell";
import { answeredTime, name, orNull } from "./common.ts";

const count = z.number().min(0);
const counts = {
  dispatched: count.openapi({ description: "Events taken on by the dispatcher." }),
  delivered: count.openapi({ description: "Deliveries that got a 2xx." }),
  failed_attempts: count.openapi({ description: "Exchanges that did not." }),
  failed: count.openapi({ description: "Deliveries given up." }),
};
const counted = z
  .strictObject({
    count: z.int().min(0),
    capped: z.boolean().openapi({ description: "There are more: counting stops at 10,000." }),
  })
  .openapi("Counted");
const reasons = ["circuit_open", "failing", "rate_limited", "disabled"] as const;

export const stats = z
  .strictObject({
    at: answeredTime.openapi({ description: "The clock that everything here is told by." }),
    project_id: z.string().nullable().openapi({ description: "Null = every project." }),
    rates: z
      .array(z.strictObject({ over_minutes: z.int(), ...counts }))
      .openapi({ description: "Per minute, over the last 1, 5 and 60 minutes that are over." }),
    minutes: z.array(z.strictObject({ minute: answeredTime, ...counts })).openapi({
      description:
        "The running minute and the 60 before it, those in which something happened, oldest first.",
    }),
    backlog: z.strictObject({ pending_deliveries: counted, undispatched_events: counted }),
    holds: z.int().min(0).openapi({
      description: "Holds in force (those that may cover the project): the backlog may wait for them.",
    }),
    oldest_due_at: answeredTime.nullable().openapi({
      description: "Since when the oldest due delivery could have been sent; of lanes that nothing holds.",
    }),
    oldest_due_age_seconds: count.nullable(),
    oldest_undispatched_at: answeredTime.nullable(),
    oldest_undispatched_age_seconds: count.nullable(),
    lanes: z
      .strictObject({
        needing_attention: z.array(
          z.strictObject({
            subscription_id: z.string(),
            project_id: z.string(),
            reason: z.enum(reasons),
            since: answeredTime,
            failures: z.int().nullable().openapi({ description: "Failed attempts in a row." }),
          }),
        ),
        counts: z.strictObject(
          Object.fromEntries(reasons.map((reason) => [reason, z.int().min(0)])) as Record<
            (typeof reasons)[number],
            z.ZodInt
          >,
        ),
        more: z.boolean().openapi({ description: "There are more than are counted or named." }),
      })
      .openapi({
        description:
          "Subscriptions with an open circuit, at least 3 failed attempts in a row, a rate limit that has kept a due delivery for a minute, or disabled. The newest trouble first, disabled ones last, 100 at most.",
      }),
  })
  .openapi("Stats");

export const statsQuery = z.strictObject({ project_id: name.optional() });

export function statsToJson(read: Stats, projectId: string | undefined): z.input<typeof stats> {
  const { at, rates, minutes, pending, newEvents, holds, oldestDueAt, oldestNewAt, lanes } = read;
  const age = (since: Date | undefined): number | null =>
    since ? Math.max(0, at.getTime() - since.getTime()) / 1_000 : null;
  return {
    at: at.toISOString(),
    project_id: projectId ?? null,
    rates: rates.map((rate) => ({ over_minutes: rate.overMinutes, ...countsToJson(rate) })),
    minutes: minutes.map((each) => ({ minute: each.minute.toISOString(), ...countsToJson(each) })),
    backlog: { pending_deliveries: pending, undispatched_events: newEvents },
    holds,
    oldest_due_at: orNull(oldestDueAt),
    oldest_due_age_seconds: age(oldestDueAt),
    oldest_undispatched_at: orNull(oldestNewAt),
    oldest_undispatched_age_seconds: age(oldestNewAt),
    lanes: {
      needing_attention: lanes.items.map((lane) => ({
        subscription_id: lane.subscriptionId,
        project_id: lane.projectId,
        reason: lane.reason,
        since: lane.since.toISOString(),
        failures: lane.failures ?? null,
      })),
      counts: lanes.counts,
      more: lanes.more,
    },
  };
}

function countsToJson({
  dispatched,
  delivered,
  failedAttempts,
  failed,
}: Stats["rates"][number] | Stats["minutes"][number]) {
  return { dispatched, delivered, failed_attempts: failedAttempts, failed };
}
