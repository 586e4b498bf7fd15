import type { BookingCancelled, BookingCreated, BookingRescheduled, InvitationEventData } from "./events.ts";

const bookingId = "0b0e3f4e-6a51-4c52-9d7b-52a1d8a1c001";
const hostId = "6f1c2b1e-8a43-4d0e-9d57-0b8f3c1f6a10";
const invitationId = "b2a7c1de-93d1-4f5e-a0f4-2f9b6a7d4e02";
const eventTypeId = "3c9d7a52-1f20-4b0e-8c61-7e5a9d2b8f03";
const external = { system: "crm", reference: "CASE-1042", url: "https://crm.example.com/cases/1042" };
const first = { start_at: "2031-03-10T09:00:00.000Z", end_at: "2031-03-10T09:30:00.000Z" };
const second = { start_at: "2031-03-11T13:00:00.000Z", end_at: "2031-03-11T13:30:00.000Z" };

const booking = {
  id: bookingId,
  booking_id: bookingId,
  scheduling_invitation_id: invitationId,
  event_type_id: eventTypeId,
  event_type_slug: "intake",
  event_type_name: "Intake",
  host_id: hostId,
  host_name: "Ada Lovelace",
  host_email: "ada@example.com",
  hosts: [{ id: hostId, name: "Ada Lovelace", is_primary: true }],
  duration_minutes: 30,
  location_type: "meeting" as const,
  location_value: "",
  created_at: "2031-03-01T08:00:00.000Z",
  attendee_name: "Grace Hopper",
  attendee_email: "grace@example.com",
  attendee_timezone: "America/New_York",
  answers: [{ question: "What is it about?", answer: "A compiler" }],
  external,
};

/** For test sends and the catalogue: one booking that was made, moved and cancelled. */
export const bookingExamples: {
  readonly created: BookingCreated;
  readonly rescheduled: BookingRescheduled;
  readonly cancelled: BookingCancelled;
} = {
  created: { ...booking, ...first, status: "confirmed", revision: 1 },
  rescheduled: {
    ...booking,
    ...second,
    status: "confirmed",
    revision: 2,
    previous_start_at: first.start_at,
    previous_end_at: first.end_at,
  },
  cancelled: {
    ...booking,
    ...second,
    status: "cancelled",
    revision: 3,
    cancellation_reason: "No longer needed",
  },
};

const invitation = {
  scheduling_invitation_id: invitationId,
  event_type_id: eventTypeId,
  duration_minutes: 30,
  expires_at: "2031-03-31T00:00:00.000Z",
  external,
};

export const invitationExamples = {
  created: { ...invitation, status: "active" },
  booked: { ...invitation, status: "booked", booking_id: bookingId, ...first, host_id: hostId },
  cancelled: { ...invitation, status: "cancelled" },
  expired: { ...invitation, status: "expired" },
} as const satisfies Record<string, InvitationEventData>;
