import { z } from "zod";
import { name, text } from "../http/text.ts";
import { isTimestamp } from "../scheduling/calendar.ts";

const minutes = (least: number, most: number) =>
  z.int().min(least, `must be at least ${least}`).max(most, `must be at most ${most}`);

const dayMinutes = 1440;
const yearMinutes = 525_600;

export const priority = z.int().min(-1_000_000).max(1_000_000);
export const hostRole = z.enum(["required", "rotation", "optional"]);

const slug = text({ max: 100 }).regex(
  /^[a-z0-9]+(?:-[a-z0-9]+)*$/,
  "must be lower-case letters, digits and single hyphens, such as first-talk",
);

/** A host of an event type, with the role that it has there. */
export const newHostSchema = z.strictObject({
  user_id: text({ max: 128 }),
  role: hostRole,
  priority: priority.optional(),
});
export type NewHost = z.output<typeof newHostSchema>;

export const hostChangesSchema = z.strictObject({ role: hostRole.optional(), priority: priority.optional() });

const questionFields = {
  label: text({ max: 500 }).refine((value) => value.trim() !== "", "must not be empty"),
  options: z.array(name()).max(100, "must have at most 100 options").optional(),
  required: z.boolean().optional(),
  position: z.int().min(0).max(1_000_000).optional(),
};

export const newQuestionSchema = z.strictObject({
  ...questionFields,
  type: z.enum(["text", "select", "checkbox"]),
});
export type NewQuestion = z.output<typeof newQuestionSchema>;

export const questionChangesSchema = z.strictObject({
  ...questionFields,
  label: questionFields.label.optional(),
});
export type QuestionChanges = z.output<typeof questionChangesSchema>;

const optionalFields = z.strictObject({
  duration_minutes: minutes(1, dayMinutes),
  duration_min_minutes: minutes(1, dayMinutes).nullable(),
  duration_max_minutes: minutes(1, dayMinutes).nullable(),
  duration_increment_minutes: minutes(1, dayMinutes).nullable(),
  slot_interval_minutes: minutes(1, dayMinutes),
  location_type: z.enum(["in_person", "phone", "link", "meeting"]),
  location_value: text({ max: 1000 }),
  routing_mode: z.enum(["fixed", "round_robin", "collective", "priority"]),
  buffer_before_minutes: minutes(0, dayMinutes),
  buffer_after_minutes: minutes(0, dayMinutes),
  min_notice_minutes: minutes(0, yearMinutes),
  max_future_days: minutes(0, 365),
  max_active_bookings: minutes(0, 1_000_000),
  is_active: z.boolean(),
});

export const newEventTypeSchema = optionalFields.partial().extend({
  slug,
  name: name(),
  /** The owner; absent = whoever asks. */
  user_id: text({ max: 128 }).optional(),
  hosts: z.array(newHostSchema).max(50, "must have at most 50 hosts").optional(),
  questions: z.array(newQuestionSchema).max(50, "must have at most 50 questions").optional(),
});
export type NewEventType = z.output<typeof newEventTypeSchema>;

export const eventTypeChangesSchema = optionalFields.partial().extend({
  slug: slug.optional(),
  name: name().optional(),
  archived: z.boolean().optional(),
  /** The same said with its time; null = not archived. */
  archived_at: text({ max: 40 }).refine(isTimestamp, "must be an RFC 3339 timestamp").nullable().optional(),
});
export type EventTypeChanges = z.output<typeof eventTypeChangesSchema>;
