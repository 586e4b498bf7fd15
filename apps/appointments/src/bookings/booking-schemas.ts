import { z } from "zod";
import { email, lines, name, text, timeZone } from "../http/text.ts";
import { timestamp } from "./times.ts";

const answers = z
  .array(z.strictObject({ question_id: text({ max: 64 }), value: z.unknown() }))
  .max(200, "must have at most 200 answers")
  .default([]);

/** What a customer with an invitation chooses. */
export const bookSchema = z.strictObject({ start_at: timestamp(), timezone: timeZone(), answers });

/** What staff books for a customer. */
export const ordinaryBookingSchema = z.strictObject({
  event_type_slug: text({ max: 200 }),
  start_at: timestamp(),
  timezone: timeZone(),
  name: name(),
  email: email(),
  answers,
});

export const rescheduleSchema = z.strictObject({ start_at: timestamp(), end_at: timestamp().optional() });

/** "" and nothing are the same: no reason was given. */
export const cancelSchema = z.strictObject({ reason: lines({ max: 2000 }).nullable().optional() });

export const reassignSchema = z.strictObject({ host_id: text({ max: 64 }) });

/** What the column holds. */
const maxRevision = 2_147_483_647;

export const locationSchema = z.strictObject({
  location_value: text({ max: 2048 }),
  revision: z.int().min(0).max(maxRevision).optional(),
});

export const bookingListQuery = z.object({
  status: z.enum(["confirmed", "cancelled"]).optional(),
  event_type_id: text({ max: 64 }).optional(),
  scheduling_invitation_id: text({ max: 64 }).optional(),
});
