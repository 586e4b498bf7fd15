import { type BookingFacts, durationMinutes } from "./snapshot.ts";

/** The booking as the API shows it to those who may see it. */
export function bookingToJson(facts: BookingFacts) {
  const { booking, eventType, hosts, organizer, answers } = facts;
  return {
    id: booking.id,
    event_type_id: booking.event_type_id,
    event_type_slug: eventType.slug,
    event_type_name: eventType.name,
    host_id: booking.host_id,
    hosts: hosts.map(({ id, name, is_primary }) => ({ id, name, is_primary })),
    start_at: booking.start_at,
    end_at: booking.end_at,
    duration_minutes: durationMinutes(booking),
    status: booking.status,
    cancellation_reason: booking.cancellation_reason,
    location_type: booking.location_type,
    location_value: booking.location_value,
    revision: booking.revision,
    scheduling_invitation_id: booking.scheduling_invitation_id,
    attendee: { name: organizer.name, email: organizer.email, timezone: organizer.timezone },
    answers,
    created_at: booking.created_at,
    updated_at: booking.updated_at,
  };
}
