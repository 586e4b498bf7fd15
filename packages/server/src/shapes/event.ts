import { z } from "@hono/zod-openapi";
import { pageQuery } from "../http/paging.ts";
import { answeredTime, anyJson, eventType, name, timeRange, timestamp } from "./common.ts";
import { delivery } from "./delivery.ts";
import { eventExample, explanationExample } from "./examples.ts";

export { eventToJson, explanationToJson } from "hookwell/environment";

const actor = z.strictObject({ type: name, id: name });
const revision = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const outcomes = ["unmatched", "held", "pending", "delivered", "failed", "cancelled", "parked"] as const;

export const newEvent = z
  .strictObject({
    id: z
      .string()
      .regex(/^[A-Za-z0-9_:-]{1,128}$/, "must be 1 to 128 characters of A-Z a-z 0-9 _ : -")
      .optional()
      .openapi({ description: "Names the fact: sent again with the same content it changes nothing." }),
    type: eventType,
    project_id: name.optional(),
    tenant_id: name.optional(),
    occurred_at: timestamp.optional().openapi({ description: "Absent = now." }),
    subject: name.optional().openapi({ example: "user:42" }),
    revision: revision.optional(),
    actor: actor.optional(),
    audience: z
      .array(name)
      .max(1000)
      .optional()
      .openapi({ description: "Owners whose subscriptions may get it." }),
    data: anyJson,
  })
  .openapi("NewEvent");

export const newEvents = z.union([newEvent, z.array(newEvent).min(1).max(100)]);

export const emitted = z
  .strictObject({ id: z.string(), duplicate: z.boolean() })
  .openapi("Emitted", { example: { id: eventExample.id, duplicate: false } });
export const emittedOneOrMany = z.union([emitted, z.array(emitted)]);

const shape = {
  id: z.string(),
  type: z.string(),
  project_id: z.string(),
  tenant_id: z.string().nullable(),
  subject: z.string().nullable(),
  revision: z.int().nullable(),
  actor: z.strictObject({ type: z.string(), id: z.string() }).nullable(),
  audience: z.array(z.string()).nullable(),
  occurred_at: answeredTime,
  captured_at: answeredTime,
  state: z.enum(["new", "dispatched", "parked"]),
  outcome: z.enum(outcomes),
  error: z.string().nullable().openapi({ description: "Why it could not be dispatched." }),
  data: anyJson,
};

export const event = z.strictObject(shape).openapi("Event", { example: eventExample });
export const eventDetail = z
  .strictObject({
    ...shape,
    deliveries: z.array(delivery).openapi({ description: "The newest 100." }),
    deliveries_cursor: z
      .string()
      .nullable()
      .openapi({ description: "The cursor for `GET /v1/deliveries?event_id=…` when there are more." }),
  })
  .openapi("EventDetail");

export const eventQuery = z.strictObject({
  id: name.optional(),
  type: eventType.optional(),
  subject: name.optional(),
  project_id: name.optional(),
  tenant_id: name.optional(),
  outcome: z.enum(outcomes).optional(),
  ...timeRange,
  ...pageQuery,
});

/** An event id is unique inside its project; a key without a project may have to say which. */
export const oneEventQuery = z.strictObject({ project_id: name.optional() });

const rules = [
  "type",
  "operational",
  "tenant",
  "owner",
  "status",
  "created_after",
  "changed_after",
  "pruned",
] as const;

/** What one event is to one subscription. */
export const explanation = z
  .strictObject({
    subscription_id: z.string(),
    matched: z.boolean().openapi({ description: "It has a delivery, or gets one when it is dispatched." }),
    rule: z.enum(rules).nullable().openapi({
      description: "The first one that kept the subscription from matching; null where it matched.",
    }),
    detail: z.string().openapi({ description: "A sentence for people; not stable." }),
    delivery_id: z.string().nullable(),
    delivery_status: z.enum(["pending", "delivered", "failed", "cancelled"]).nullable(),
  })
  .openapi("Explanation", { example: explanationExample });

export const explainQuery = z.strictObject({
  project_id: name.optional(),
  subscription_id: name.optional().openapi({ description: "This one only; it may be deleted." }),
  ...pageQuery,
});
