import type { EnvelopeEvent } from "hookwell";
import { bookingExamples, invitationExamples } from "./event-examples.ts";
import {
  type BookingEventData,
  bookingCancelledSchema,
  bookingCreatedSchema,
  bookingRescheduledSchema,
  type InvitationEventData,
  invitationBookedSchema,
  invitationCancelledSchema,
  invitationCreatedSchema,
  invitationExpiredSchema,
} from "./events.ts";
import type { LinkReader } from "./meeting-link.ts";

/** Three attempts: a minute after the first, five minutes after the second, in ms. */
const retry = [60_000, 300_000];

/** In every body, whatever a subscription selects: what a receiver needs to keep its picture right. */
const mandatory = [
  "booking_id",
  "scheduling_invitation_id",
  "event_type_id",
  "duration_minutes",
  "start_at",
  "end_at",
  "status",
  "hosts",
  "location_type",
  "location_value",
  "external",
  "revision",
] as const;

const selectable = {
  default: ["id", "event_type_slug", "host_id", "created_at", "cancellation_reason"],
  optional: {
    event_type_name: {},
    host_name: {},
    host_email: { personal: true },
    attendee_name: { personal: true },
    attendee_email: { personal: true },
    attendee_timezone: { personal: true },
    answers: { personal: true },
  },
} as const;

/** The event types whose subscriptions people own: their events have an audience. */
export const ownedEventTypes = [
  "booking.created",
  "booking.rescheduled",
  "booking.cancelled",
  "scheduling_invitation.created",
  "scheduling_invitation.booked",
  "scheduling_invitation.cancelled",
  "scheduling_invitation.expired",
] as const;

/** `{id, event, created_at, data}`; an ordinary booking that was published after commit has no id. */
function bookingEnvelope(event: EnvelopeEvent, data: BookingEventData): Record<string, unknown> {
  return { ...("revision" in data ? { id: event.id } : {}), ...rest(event, data) };
}

function invitationEnvelope(event: EnvelopeEvent, data: InvitationEventData): Record<string, unknown> {
  return { id: event.id, ...rest(event, data) };
}

function rest(event: EnvelopeEvent, data: unknown) {
  return { event: event.type, created_at: event.occurredAt.toISOString(), data };
}

const ofBooking = (data: BookingEventData): string => `booking:${data.booking_id}`;
const ofInvitation = (data: InvitationEventData): string =>
  `scheduling_invitation:${data.scheduling_invitation_id}`;

/** Definitions of every event of bookings and scheduling invitations. `enrich` finds a booking's meeting link. */
export function bookingEvents(enrich: LinkReader) {
  const booking = { subject: ofBooking, envelope: bookingEnvelope, retry, enrich };
  const invitation = { subject: ofInvitation, envelope: invitationEnvelope, retry };
  return {
    "booking.created": {
      ...booking,
      schema: bookingCreatedSchema,
      fields: { always: mandatory, ...selectable },
      description: "An appointment was booked.",
      example: bookingExamples.created,
    },
    "booking.rescheduled": {
      ...booking,
      schema: bookingRescheduledSchema,
      fields: { always: [...mandatory, "previous_start_at", "previous_end_at"], ...selectable },
      description: "An appointment moved to another time, or an ordinary one to another host.",
      example: bookingExamples.rescheduled,
    },
    "booking.cancelled": {
      ...booking,
      schema: bookingCancelledSchema,
      fields: { always: mandatory, ...selectable },
      description: "An appointment was cancelled; start and end are those it had last.",
      example: bookingExamples.cancelled,
    },
    "scheduling_invitation.created": {
      ...invitation,
      schema: invitationCreatedSchema,
      description: "Somebody was invited to choose a time.",
      example: invitationExamples.created,
    },
    "scheduling_invitation.booked": {
      ...invitation,
      schema: invitationBookedSchema,
      description: "The invited person chose a time; booking.created says more.",
      example: invitationExamples.booked,
    },
    "scheduling_invitation.cancelled": {
      ...invitation,
      schema: invitationCancelledSchema,
      description: "The invitation was taken back before anybody used it.",
      example: invitationExamples.cancelled,
    },
    "scheduling_invitation.expired": {
      ...invitation,
      schema: invitationExpiredSchema,
      description: "Nobody used the invitation in time.",
      example: invitationExamples.expired,
    },
  } as const;
}
