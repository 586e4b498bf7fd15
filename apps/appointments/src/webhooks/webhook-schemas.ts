import { z } from "zod";
import { ownedEventTypes } from "../bookings/event-definitions.ts";
import { text } from "../http/text.ts";

/** Types and `prefix.*` of types that have an audience. Others (`user.*`) go to nobody's own webhook. */
const allowed = new Set<string>(
  ownedEventTypes.flatMap((type) => [type, `${type.slice(0, type.indexOf("."))}.*`]),
);

const url = text({ max: 2048 });
const events = z
  .array(z.string().refine((event) => allowed.has(event), `must be one of ${[...allowed].join(", ")}`))
  .min(1, "must have at least one event")
  .max(allowed.size, `must have at most ${allowed.size} events`);
/** Unknown names are allowed and select nothing. */
const fields = z
  .array(text({ max: 255 }).min(1, "must not be empty"))
  .max(100)
  .nullable();

export const newWebhookSchema = z.strictObject({ url, events, fields: fields.optional() });

export const webhookChangesSchema = z.strictObject({
  url: url.optional(),
  events: events.optional(),
  fields: fields.optional(),
  is_active: z.boolean().optional(),
});
