import { z } from "@hono/zod-openapi";
import type { DeliverySelection } from "hookwell";
import { pageQuery } from "../http/paging.ts";
import { answeredTime, eventType, moment, name, timeRange } from "./common.ts";
import { deliveryExample } from "./examples.ts";

export { deliveryDetailToJson, deliveryToJson } from "hookwell/environment";

const statuses = ["pending", "delivered", "failed", "cancelled"] as const;

const shape = {
  id: z.string(),
  event_id: z.string(),
  subscription_id: z.string(),
  type: z.string(),
  subject: z.string().nullable(),
  status: z.enum(statuses),
  reason: z.string().nullable().openapi({ description: "Why it is failed or cancelled." }),
  hold: z
    .enum(["paused", "disabled", "held", "circuit_open", "rate_limited", "ordering", "retry_after"])
    .nullable()
    .openapi({ description: "Why a pending one is not being sent." }),
  attempts: z.int().openapi({ description: "Sends begun in this round." }),
  error_code: z.string().nullable(),
  last_error: z.string().nullable(),
  next_attempt_at: answeredTime.nullable(),
  created_at: answeredTime,
  updated_at: answeredTime,
  delivered_at: answeredTime.nullable(),
};

export const delivery = z.strictObject(shape).openapi("Delivery", { example: deliveryExample });

/** One exchange, as it went. */
export const attempt = z
  .strictObject({
    number: z.int(),
    round: z.int(),
    started_at: answeredTime,
    duration_ms: z.number(),
    status_code: z.int().nullable(),
    error_code: z.string().nullable().openapi({ description: "Null when the endpoint answered 2xx." }),
    error: z.string().nullable(),
    response_excerpt: z.string().nullable(),
  })
  .openapi("Attempt");

export const deliveryDetail = z
  .strictObject({
    ...shape,
    url: z.string(),
    body: z.string().openapi({ description: "Exactly as sent." }),
    attempt_log: z.array(attempt),
  })
  .openapi("DeliveryDetail");

export const deliveryQuery = z.strictObject({
  status: z.enum(statuses).optional(),
  subscription_id: name.optional(),
  event_id: name.optional(),
  type: eventType.optional(),
  subject: name.optional(),
  project_id: name.optional(),
  tenant_id: name.optional(),
  url_host: name.optional(),
  error_code: name.optional(),
  replay_id: name.optional(),
  ...timeRange,
  ...pageQuery,
});

/** Which deliveries an operation on many is about. */
export const selection = {
  project_id: name.optional(),
  tenant_id: name.optional().openapi({ description: "Of the subscription." }),
  owner_id: name.optional().openapi({ description: "Of the subscription." }),
  subscription_id: name.optional(),
  event_id: name.optional(),
  type: eventType.optional(),
  subject: name.optional(),
  url_host: name.optional().openapi({ description: "Host of the endpoint, with its port or without." }),
  error_code: name.optional(),
  replay_id: name.optional().openapi({ description: "Those that this replay queued last." }),
};

const selectionSchema = z.strictObject(selection);

/** The same as the library takes it. */
export function toSelection(body: z.output<typeof selectionSchema>): DeliverySelection {
  return {
    projectId: body.project_id,
    tenantId: body.tenant_id,
    ownerId: body.owner_id,
    subscriptionId: body.subscription_id,
    eventId: body.event_id,
    type: body.type,
    subject: body.subject,
    urlHost: body.url_host,
    errorCode: body.error_code,
    replayId: body.replay_id,
  };
}

export const bulkCancel = z
  .strictObject({
    ...selection,
    since: moment.optional().openapi({ description: "Deliveries made from this moment on." }),
    until: moment.optional().openapi({ description: "Deliveries made before this moment." }),
    dry_run: z.boolean().optional().openapi({ description: "Count, and change nothing." }),
  })
  .openapi({ description: "At least one part besides `dry_run`." });

export const counted = z.strictObject({ count: z.int() });
