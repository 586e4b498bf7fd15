import { z } from "zod";

/**
 * The data of the booking events and of the lifecycle events of scheduling invitations: exactly what may be
 * published. A field that is not listed here is refused at the emit. Wire names are append-only.
 */

const time = z.iso.datetime();
const minutes = z.int().min(1);

const external = z
  .strictObject({
    system: z.string().nullable(),
    reference: z.string().nullable(),
    url: z.string().nullable(),
  })
  .nullable()
  .describe("what the invitation is about in the creator's own system; null when it said nothing");

const host = z.strictObject({ id: z.string(), name: z.string(), is_primary: z.boolean() });

/** Of every booking event. */
const common = {
  id: z.string().describe("the same as booking_id"),
  booking_id: z.string(),
  event_type_id: z.string(),
  event_type_slug: z.string(),
  event_type_name: z.string(),
  host_id: z.string().describe("the primary host"),
  host_name: z.string(),
  host_email: z.string(),
  hosts: z.array(host).min(1).describe("every assigned host: the primary first, then by id"),
  start_at: time,
  end_at: time,
  duration_minutes: minutes,
  location_type: z.enum(["in_person", "phone", "link", "meeting"]),
  location_value: z.string().describe('"" while unknown'),
  created_at: time.describe("when the booking was made"),
  cancellation_reason: z.string().min(1).optional(),
  attendee_name: z.string(),
  attendee_email: z.string(),
  attendee_timezone: z.string(),
  answers: z.array(z.strictObject({ question: z.string(), answer: z.string() })),
};

const revision = z.int().min(1).describe("rises by one with every captured transition of the booking");

/** Of a booking that was made from an invitation. */
const invited = { ...common, scheduling_invitation_id: z.string(), external, revision };
/** Of an ordinary booking, with ORDINARY_BOOKINGS=captured. */
const captured = { ...common, scheduling_invitation_id: z.null(), external: z.null(), revision };

const confirmed = { status: z.literal("confirmed") };
const cancelled = { status: z.literal("cancelled") };
const previous = { previous_start_at: time, previous_end_at: time };
/** Absent when an ordinary booking went to another host and kept its time. */
const perhapsPrevious = { previous_start_at: time.optional(), previous_end_at: time.optional() };

export const bookingCreatedSchema = z.union([
  z.strictObject({ ...invited, ...confirmed }),
  z.strictObject({ ...captured, ...confirmed }),
  z.strictObject({ ...common, ...confirmed }),
]);
export const bookingRescheduledSchema = z.union([
  z.strictObject({ ...invited, ...confirmed, ...previous }),
  z.strictObject({ ...captured, ...confirmed, ...perhapsPrevious }),
  z.strictObject({ ...common, ...confirmed, ...perhapsPrevious }),
]);
export const bookingCancelledSchema = z.union([
  z.strictObject({ ...invited, ...cancelled }),
  z.strictObject({ ...captured, ...cancelled }),
  z.strictObject({ ...common, ...cancelled }),
]);

export type BookingCreated = z.output<typeof bookingCreatedSchema>;
export type BookingRescheduled = z.output<typeof bookingRescheduledSchema>;
export type BookingCancelled = z.output<typeof bookingCancelledSchema>;
export type BookingEventData = BookingCreated | BookingRescheduled | BookingCancelled;
export type BookingEventType = "booking.created" | "booking.rescheduled" | "booking.cancelled";

/** Fixed fields of the lifecycle of an invitation: what only a booked one has is absent elsewhere. */
const invitation = {
  scheduling_invitation_id: z.string(),
  event_type_id: z.string(),
  duration_minutes: minutes,
  expires_at: time,
  external,
};

export const invitationCreatedSchema = z.strictObject({ ...invitation, status: z.literal("active") });
export const invitationBookedSchema = z.strictObject({
  ...invitation,
  status: z.literal("booked"),
  booking_id: z.string(),
  start_at: time,
  end_at: time,
  host_id: z.string().describe("the primary host"),
});
export const invitationCancelledSchema = z.strictObject({ ...invitation, status: z.literal("cancelled") });
export const invitationExpiredSchema = z.strictObject({ ...invitation, status: z.literal("expired") });

export type InvitationEventData =
  | z.output<typeof invitationCreatedSchema>
  | z.output<typeof invitationBookedSchema>
  | z.output<typeof invitationCancelledSchema>
  | z.output<typeof invitationExpiredSchema>;
