import { z } from "@hono/zod-openapi";
import { pageQuery } from "../http/paging.ts";
import { answeredTime, moment, name } from "./common.ts";
import { selection } from "./delivery.ts";

export { replayToJson } from "hookwell/environment";

const statuses = ["running", "done", "stopped", "failed"] as const;
const replayed = ["failed", "delivered", "cancelled", "missing"] as const;

export const newReplay = z.strictObject({
  subscription_id: name.optional().openapi({ description: "This one, or `filter`." }),
  filter: z.strictObject(selection).optional().openapi({ description: "At least one part." }),
  since: moment.openapi({
    description:
      "Deliveries made, and for `missing` events captured, from this moment on; not before retention.",
  }),
  until: moment.optional().openapi({ description: "Before this moment. Absent: until now." }),
  status: z.array(z.enum(replayed)).min(1).max(4).openapi({
    description:
      "What is sent again. `missing`: events that match the subscription as it is now and have no delivery to it.",
  }),
  dry_run: z.boolean().optional().openapi({ description: "Count, and make nothing." }),
});

export const madeReplay = z.strictObject({ id: z.string(), count: z.int() }).openapi("MadeReplay");

export const replay = z
  .strictObject({
    id: z.string(),
    status: z
      .enum(statuses)
      .openapi({ description: "done: all was queued; what became of it is counted on." }),
    count: z.int().openapi({ description: "What it found when it was made." }),
    queued: z.int(),
    delivered: z.int(),
    failed: z.int(),
    cancelled: z.int(),
    skipped: z.int().openapi({ description: "Superseded, sent by hand meanwhile, or no longer to be sent." }),
    error: z.string().nullable(),
    filter: z.strictObject(
      Object.fromEntries(Object.keys(selection).map((part) => [part, z.string().nullable()])) as {
        [Part in keyof typeof selection]: z.ZodNullable<z.ZodString>;
      },
    ),
    statuses: z.array(z.enum(replayed)),
    since: answeredTime,
    until: answeredTime,
    created_at: answeredTime,
    finished_at: answeredTime.nullable(),
  })
  .openapi("Replay");

export const replayQuery = z.strictObject({
  status: z.enum(statuses).optional(),
  subscription_id: name.optional(),
  project_id: name.optional(),
  tenant_id: name.optional(),
  owner_id: name.optional(),
  ...pageQuery,
});
