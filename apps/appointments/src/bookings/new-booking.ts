import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppTransaction } from "../database/schema.ts";
import type { EventType } from "../event-types/event-type.ts";
import type { Answer } from "../scheduling/answers.ts";
import type { Buffers } from "../scheduling/busy.ts";
import type { Slot } from "../scheduling/slots.ts";
import { emailKey } from "../users/user.ts";

export interface NewBooking {
  readonly id: string;
  readonly attendeeId: string;
  readonly eventType: EventType;
  readonly slot: Slot;
  readonly buffers: Buffers;
  readonly attendee: { readonly name: string; readonly email: string; readonly timezone: string };
  readonly answers: readonly Answer[];
  readonly revision: 0 | 1;
  readonly location: Pick<EventType, "locationType" | "locationValue">;
  readonly invitationId: string | null;
  readonly now: Date;
}

/** Writes a booking with its hosts, its organizer and the answers. */
export async function insertBooking(trx: AppTransaction, made: NewBooking): Promise<BookingsTable> {
  const { id, eventType, slot, buffers, attendee, location, now } = made;
  const [primary = ""] = slot.hostIds;
  const time = now.toISOString();
  const booking: BookingsTable = {
    id,
    project_id: eventType.projectId,
    tenant_id: eventType.tenantId ?? "",
    event_type_id: eventType.id,
    host_id: primary,
    start_at: slot.startAt,
    end_at: slot.endAt,
    status: "confirmed",
    cancellation_reason: null,
    location_type: location.locationType,
    location_value: location.locationValue,
    location_revision: made.revision,
    revision: made.revision,
    scheduling_invitation_id: made.invitationId,
    buffer_before_minutes: buffers.bufferBeforeMinutes,
    buffer_after_minutes: buffers.bufferAfterMinutes,
    created_at: time,
    updated_at: time,
  };
  await trx.insertInto("bookings").values(booking).execute();
  await trx
    .insertInto("booking_hosts")
    .values(
      slot.hostIds.map((hostId) => ({
        booking_id: id,
        user_id: hostId,
        is_primary: hostId === primary ? 1 : 0,
        external_event_id: null,
        needs_sync: 0,
      })),
    )
    .execute();
  await trx
    .insertInto("booking_attendees")
    .values({
      ...attendee,
      id: made.attendeeId,
      booking_id: id,
      email_key: emailKey(attendee.email),
      is_organizer: 1,
    })
    .execute();
  if (made.answers.length > 0)
    await trx
      .insertInto("booking_answers")
      .values(
        made.answers.map(({ questionId, value }) => ({ booking_id: id, question_id: questionId, value })),
      )
      .execute();
  return booking;
}
