import { z } from "@hono/zod-openapi";
import { pageQuery } from "../http/paging.ts";
import { answeredTime, eventType, name, timeRange } from "./common.ts";

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
    .enum(["paused", "disabled", "circuit_open", "rate_limited", "ordering", "retry_after"])
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

export const delivery = z.strictObject(shape).openapi("Delivery");

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
  ...timeRange,
  ...pageQuery,
});
