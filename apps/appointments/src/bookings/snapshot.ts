import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import { instantOf, minuteMs } from "../scheduling/calendar.ts";
import type { BookingEventData, BookingEventType } from "./events.ts";
import { currentLocation } from "./location.ts";

/** An interval as a booking had it. */
export interface Interval {
  readonly start_at: string;
  readonly end_at: string;
}

/** A booking with what belongs to it, as one transaction sees it. */
export interface BookingFacts {
  readonly booking: BookingsTable;
  readonly eventType: { readonly slug: string; readonly name: string };
  /** The primary first, then by id. */
  readonly hosts: readonly BookingHost[];
  readonly organizer: { readonly name: string; readonly email: string; readonly timezone: string };
  /** By label, in the order of the questions. */
  readonly answers: readonly { readonly question: string; readonly answer: string }[];
  readonly invitation?: BookingInvitation;
}

export interface BookingHost {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly is_primary: boolean;
}

interface BookingInvitation {
  readonly creatorId: string;
  readonly external: {
    readonly system: string | null;
    readonly reference: string | null;
    readonly url: string | null;
  } | null;
}

/** Everything about a booking that is there; undefined when there is no such booking. */
export async function readFacts(db: AppDatabase, bookingId: string): Promise<BookingFacts | undefined> {
  const booking = await db.selectFrom("bookings").selectAll().where("id", "=", bookingId).executeTakeFirst();
  if (booking === undefined) return undefined;
  const eventType = await db
    .selectFrom("event_types")
    .select(["slug", "name"])
    .where("id", "=", booking.event_type_id)
    .executeTakeFirstOrThrow();
  const hosts = await db
    .selectFrom("booking_hosts")
    .innerJoin("users", "users.id", "booking_hosts.user_id")
    .select(["users.id", "users.name", "users.email", "booking_hosts.is_primary"])
    .where("booking_hosts.booking_id", "=", bookingId)
    .orderBy("booking_hosts.is_primary", "desc")
    .orderBy("users.id")
    .execute();
  const organizer = await db
    .selectFrom("booking_attendees")
    .select(["name", "email", "timezone"])
    .where("booking_id", "=", bookingId)
    .where("is_organizer", "=", 1)
    .executeTakeFirstOrThrow();
  const answers = await db
    .selectFrom("booking_answers")
    .innerJoin("questions", "questions.id", "booking_answers.question_id")
    .select(["questions.label as question", "booking_answers.value as answer"])
    .where("booking_answers.booking_id", "=", bookingId)
    .orderBy("questions.position")
    .orderBy("questions.id")
    .execute();
  const invitation =
    booking.scheduling_invitation_id === null
      ? undefined
      : await readInvitation(db, booking.scheduling_invitation_id);
  return {
    booking,
    eventType,
    hosts: hosts.map((host) => ({ ...host, is_primary: host.is_primary === 1 })),
    organizer,
    answers,
    ...(invitation === undefined ? {} : { invitation }),
  };
}

async function readInvitation(db: AppDatabase, id: string): Promise<BookingInvitation> {
  const row = await db
    .selectFrom("scheduling_invitations")
    .select(["creator_id", "external_system", "external_reference", "external_url"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const external = {
    system: row.external_system,
    reference: row.external_reference,
    url: row.external_url,
  };
  const isGiven = Object.values(external).some((value) => value !== null);
  return { creatorId: row.creator_id, external: isGiven ? external : null };
}

export function durationMinutes({ start_at, end_at }: Interval): number {
  return (instantOf(end_at) - instantOf(start_at)) / minuteMs;
}

/**
 * What an event says of a booking, from the facts at its transition. `captured`: with revision and invitation. The
 * location is left out of it when it was made for an older revision: that link belongs to another appointment.
 */
export function bookingData(
  type: BookingEventType,
  facts: BookingFacts,
  options: { readonly captured: boolean; readonly previous?: Interval },
): BookingEventData {
  const { booking, eventType, hosts, organizer, answers, invitation } = facts;
  const primary = hosts.find((host) => host.is_primary) ?? hosts[0];
  const { previous } = options;
  const data = {
    id: booking.id,
    booking_id: booking.id,
    ...(options.captured
      ? {
          scheduling_invitation_id: booking.scheduling_invitation_id,
          external: invitation?.external ?? null,
          revision: booking.revision,
        }
      : {}),
    event_type_id: booking.event_type_id,
    event_type_slug: eventType.slug,
    event_type_name: eventType.name,
    host_id: booking.host_id,
    host_name: primary?.name ?? "",
    host_email: primary?.email ?? "",
    hosts: hosts.map(({ id, name, is_primary }) => ({ id, name, is_primary })),
    status: booking.status,
    start_at: booking.start_at,
    end_at: booking.end_at,
    ...(type === "booking.rescheduled" && previous !== undefined
      ? { previous_start_at: previous.start_at, previous_end_at: previous.end_at }
      : {}),
    duration_minutes: durationMinutes(booking),
    location_type: booking.location_type,
    location_value: currentLocation(booking),
    created_at: booking.created_at,
    ...(booking.cancellation_reason ? { cancellation_reason: booking.cancellation_reason } : {}),
    attendee_name: organizer.name,
    attendee_email: organizer.email,
    attendee_timezone: organizer.timezone,
    answers: answers.map(({ question, answer }) => ({ question, answer })),
  };
  // The schema of the event type, which the emit checks, knows which of these go together.
  return data as BookingEventData;
}
