import { z } from "zod";
import { hostRole, priority } from "../event-types/event-type-schemas.ts";
import { email, name, text, timeZone } from "../http/text.ts";
import { isDate, isTimestamp } from "../scheduling/calendar.ts";

const timestamp = text({ max: 40 }).refine(isTimestamp, "must be an RFC 3339 timestamp");
const bound = text({ max: 40 })
  .refine(
    (value) => isDate(value) || isTimestamp(value),
    "must be a date, YYYY-MM-DD, or an RFC 3339 timestamp",
  )
  .nullable()
  .optional();

const url = text({ max: 2000 }).refine(isWebAddress, "must be an http or https address without credentials");

const host = z.strictObject({
  user_id: text({ max: 128 }),
  /** Absent = the role that it has in the event type. */
  role: hostRole.optional(),
  priority: priority.optional(),
});

/** A new scheduling invitation. Either form of the recipient is taken. */
export const newInvitationSchema = z
  .strictObject({
    event_type_id: text({ max: 128 }).optional(),
    event_type_slug: text({ max: 100 }).optional(),
    recipient: z.strictObject({ name: name(), email: email() }).optional(),
    recipient_name: name().optional(),
    recipient_email: email().optional(),
    expires_at: timestamp,
    external: z
      .strictObject({
        system: text({ max: 200 }).nullable().default(null),
        reference: text({ max: 500 }).nullable().default(null),
        url: url.nullable().default(null),
      })
      .nullable()
      .optional(),
    duration_minutes: z.int().min(1, "must be at least 1").optional(),
    hosts: z
      .array(host)
      .min(1, "must have at least one host")
      .max(50, "must have at most 50 hosts")
      .optional(),
    /** One required host, and nobody else. */
    host_id: text({ max: 128 }).optional(),
    available_from: bound,
    available_until: bound,
    availability_timezone: timeZone().nullable().optional(),
  })
  .superRefine((input, context) => {
    const refuse = (path: string, message: string): void =>
      context.addIssue({ code: "custom", path: [path], message });
    if ((input.event_type_id === undefined) === (input.event_type_slug === undefined))
      refuse("event_type_id", "must be given, or event_type_slug, but not both");
    if (input.hosts !== undefined && input.host_id !== undefined)
      refuse("host_id", "must not be given together with hosts");
    const flat = input.recipient_name !== undefined || input.recipient_email !== undefined;
    if (input.recipient === undefined) {
      if (!flat) refuse("recipient", "must be given");
      else if (input.recipient_name === undefined) refuse("recipient_name", "must be given");
      else if (input.recipient_email === undefined) refuse("recipient_email", "must be given");
    } else if (flat) refuse("recipient", "must not be given together with recipient_name or recipient_email");
  });
export type NewInvitation = z.output<typeof newInvitationSchema>;

/** `limit` (1 to 100, default 50), `offset`, and what to look for. */
export const invitationListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(50),
  offset: z.coerce.number().int().min(0).max(1_000_000_000).default(0),
  status: z.enum(["active", "booked", "cancelled", "expired"]).optional(),
  event_type_id: text({ max: 128 }).optional(),
});

function isWebAddress(value: string): boolean {
  const parsed = URL.parse(value);
  return (
    parsed !== null &&
    (parsed.protocol === "https:" || parsed.protocol === "http:") &&
    parsed.username === "" &&
    parsed.password === ""
  );
}
