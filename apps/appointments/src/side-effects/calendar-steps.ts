import { currentLocation, saveLocation } from "../bookings/location.ts";
import { type BookingFacts, readFacts } from "../bookings/snapshot.ts";
import type { AppDatabase } from "../database/schema.ts";
import type { CalendarClient, CalendarEvent, CalendarHost, SavedEvent } from "./calendar-client.ts";
import { bookingUid } from "./icalendar.ts";
import type { CalendarStep, StepResult } from "./step.ts";

export interface CalendarStepDeps {
  readonly db: AppDatabase;
  readonly calendar: CalendarClient;
}

/**
 * Brings the calendar of one host in line with the booking as it is now, whatever the step was planned for: late and
 * repeated steps do no harm. The meeting link in the answer is stored with the revision that was sent.
 */
export async function doCalendarStep(
  { db, calendar }: CalendarStepDeps,
  { bookingId, target }: CalendarStep,
): Promise<StepResult> {
  // Before the booking: one that changes in between is sent with an older number, and once more by its own step.
  const sequence = await newestSequence(db, bookingId);
  const facts = await readFacts(db, bookingId);
  if (facts === undefined) return { skipped: "the booking is gone" };
  const host = facts.hosts.find(({ id }) => id === target);
  const key = eventKey(bookingId, target);
  if (host === undefined || facts.booking.status === "cancelled") {
    await calendar.remove(key, sequence);
    await noteInLine(db, bookingId, target, null);
    return { done: true };
  }
  const saved = await calendar.put(key, calendarEvent(facts, host, sequence));
  if (saved === undefined) return { skipped: "the calendar has a later change" };
  await noteInLine(db, bookingId, target, saved.id);
  await saveLink(db, facts, target, saved);
  return { done: true };
}

/** From now on, the reconciler looks after this calendar. */
export async function noteOutOfLine(db: AppDatabase, { bookingId, target }: CalendarStep): Promise<void> {
  await db
    .updateTable("booking_hosts")
    .set({ needs_sync: 1 })
    .where("booking_id", "=", bookingId)
    .where("user_id", "=", target)
    .execute();
}

/** The provider's name for the entry of a booking in the calendar of a host: made here, so that nothing can be lost. */
function eventKey(bookingId: string, hostId: string): string {
  return `${bookingId}.${hostId}`;
}

function calendarEvent(
  { booking, eventType, organizer }: BookingFacts,
  { id, email, name }: CalendarHost,
  sequence: number,
): CalendarEvent {
  return {
    host: { id, email, name },
    uid: bookingUid(booking.id),
    sequence,
    title: `${eventType.name}: ${organizer.name}`,
    startAt: booking.start_at,
    endAt: booking.end_at,
    location: currentLocation(booking),
    attendee: { name: organizer.name, email: organizer.email },
    wantsMeetingLink: booking.location_type === "meeting" && id === booking.host_id,
  };
}

async function newestSequence(db: AppDatabase, bookingId: string): Promise<number> {
  const { newest } = await db
    .selectFrom("side_effects")
    .select(({ fn }) => fn.max("sequence").as("newest"))
    .where("booking_id", "=", bookingId)
    .executeTakeFirstOrThrow();
  return Number(newest ?? 0);
}

async function noteInLine(
  db: AppDatabase,
  bookingId: string,
  hostId: string,
  externalEventId: string | null,
): Promise<void> {
  await db
    .updateTable("booking_hosts")
    .set({ external_event_id: externalEventId, needs_sync: 0 })
    .where("booking_id", "=", bookingId)
    .where("user_id", "=", hostId)
    .execute();
}

/** A link is only for bookings that meet at one, and the primary host's calendar makes it. */
async function saveLink(
  db: AppDatabase,
  { booking }: BookingFacts,
  hostId: string,
  { meetingUrl }: SavedEvent,
): Promise<void> {
  if (meetingUrl === undefined || booking.location_type !== "meeting" || hostId !== booking.host_id) return;
  await saveLocation(db, booking.id, { value: meetingUrl, revision: booking.revision });
}
