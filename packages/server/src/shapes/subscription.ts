import { z } from "@hono/zod-openapi";
import { pageQuery } from "../http/paging.ts";
import { answeredTime, name, text } from "./common.ts";
import { subscriptionExample } from "./examples.ts";

export { subscriptionToJson } from "hookwell/environment";

const statuses = ["active", "paused", "disabled", "deleted"] as const;
const url = z.string().min(1).max(2048).openapi({ example: "https://example.com/webhooks" });
const eventTypes = z
  .array(z.string().min(1).max(130))
  .max(100)
  .openapi({ description: "Types, or prefixes such as `user.*`; empty = every type.", example: ["user.*"] });
const fields = z
  .array(z.string().min(1).max(255))
  .max(100)
  .openapi({ description: "Fields of the data to send; absent = the default set of each type." });
const headerName = z.string().max(128);
const headerValue = z.string().max(4096);
const headers = z.record(headerName, headerValue).openapi({
  maxProperties: 32,
  description: "Sent with every webhook; 8 KiB together. Values are stored sealed and never shown.",
});
const metadataName = z.string().min(1).max(100);
const metadata = z.record(metadataName, text(1000)).openapi({
  maxProperties: 50,
  description: "Your own texts about it.",
});
const rateLimit = z
  .strictObject({ limit: z.int().min(1).max(1_000_000), per_seconds: z.int().min(1).max(86_400) })
  .openapi({
    description: "At most `limit` sends in each `per_seconds`.",
  });
const maxInFlight = z.int().min(1).max(1000).openapi({ description: "Most sends at a time." });
const ordering = z.enum(["none", "subject"]).openapi({
  description:
    "`subject`: the deliveries of one subject go one at a time, by revision (by capture without revisions). A lower revision that comes after a higher one was sent is cancelled as `superseded`.",
});
const externalId = name.openapi({ description: "Your own name for it." });

export const newSubscription = z
  .strictObject({
    project_id: name.optional(),
    tenant_id: name.optional(),
    owner_id: name.optional(),
    url,
    event_types: eventTypes.optional(),
    fields: fields.optional(),
    headers: headers.optional(),
    description: text(1000).optional(),
    metadata: metadata.optional(),
    external_id: externalId.optional(),
    secret: z.string().min(1).max(256).optional().openapi({
      description: "`whsec_` and base64 of 24 to 64 bytes, or plain text. Absent = made for you.",
    }),
    rate_limit: rateLimit.optional(),
    max_in_flight: maxInFlight.optional(),
    ordering: ordering.optional(),
  })
  .openapi("NewSubscription");

export const subscriptionPatch = z
  .strictObject({
    url: url.optional(),
    event_types: eventTypes.nullable().optional(),
    fields: fields.nullable().optional(),
    headers: z
      .record(headerName, headerValue.nullable())
      .nullable()
      .optional()
      .openapi({ description: "Merged, names in any case; null removes one, or all." }),
    description: text(1000).nullable().optional(),
    metadata: z
      .record(metadataName, text(1000).nullable())
      .nullable()
      .optional()
      .openapi({ description: "Merged; null removes one entry, or all." }),
    external_id: externalId.nullable().optional(),
    rate_limit: z
      .strictObject({
        limit: z.int().min(1).max(1_000_000).optional(),
        per_seconds: z.int().min(1).max(86_400).optional(),
      })
      .nullable()
      .optional(),
    max_in_flight: maxInFlight.nullable().optional(),
    ordering: ordering.nullable().optional(),
  })
  .openapi("SubscriptionPatch");

const shape = {
  id: z.string(),
  project_id: z.string(),
  tenant_id: z.string().nullable(),
  owner_id: z.string().nullable(),
  url: z.string(),
  event_types: z.array(z.string()),
  fields: z.array(z.string()).nullable(),
  header_names: z.array(z.string()).openapi({ description: "Names of the custom headers." }),
  status: z.enum(statuses),
  status_reason: z.enum(["by_hand", "failing", "gone"]).nullable(),
  description: z.string().nullable(),
  metadata: z.record(z.string(), z.string()).nullable(),
  external_id: z.string().nullable(),
  rate_limit: z.strictObject({ limit: z.int(), per_seconds: z.int() }).nullable(),
  max_in_flight: z.int().nullable(),
  ordering: z.enum(["none", "subject"]),
  created_at: answeredTime,
  updated_at: answeredTime,
};

export const subscription = z.strictObject(shape).openapi("Subscription", { example: subscriptionExample });
export const createdSubscription = z
  .strictObject({
    ...shape,
    secret: z.string().openapi({ description: "Signs the webhooks. Shown here and never again." }),
  })
  .openapi("CreatedSubscription", {
    example: { ...subscriptionExample, secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" },
  });

export const subscriptionQuery = z.strictObject({
  project_id: name.optional(),
  tenant_id: name.optional(),
  owner_id: name.optional(),
  status: z.enum(statuses).optional().openapi({ description: "Absent = all but deleted." }),
  url_host: name.optional(),
  external_id: name.optional(),
  ...pageQuery,
});
