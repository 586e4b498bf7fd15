import { type CalendarBusy, loadSlotHosts } from "../availability/slot-hosts.ts";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import { findEventType } from "../event-types/event-type-queries.ts";
import { notFound, ProblemError } from "../http/problem.ts";
import { type Invitation, invitationFromRow } from "../invitations/invitation.ts";
import { instantOf, type Period } from "../scheduling/calendar.ts";
import { computeSlots, type Slot, type SlotsInput } from "../scheduling/slots.ts";
import { stricterReach } from "../scheduling/window.ts";
import { calendarBusy, withoutTime } from "./calendar-busy.ts";
import type { BookingDeps } from "./deps.ts";
import { durationMinutes } from "./snapshot.ts";

export function periodOf(booking: Pick<BookingsTable, "start_at" | "end_at">): Period {
  return { start: instantOf(booking.start_at), end: instantOf(booking.end_at) };
}

/** Ids of every assigned host, the primary first. */
export async function assignedHosts(db: AppDatabase, bookingId: string): Promise<string[]> {
  const rows = await db
    .selectFrom("booking_hosts")
    .select("user_id")
    .where("booking_id", "=", bookingId)
    .orderBy("is_primary", "desc")
    .orderBy("user_id")
    .execute();
  return rows.map((row) => row.user_id);
}

/**
 * Where a booking may move: the slots that all these hosts are free for. It keeps its duration and buffers, and what
 * its invitation retained still holds. Undefined when it can go nowhere.
 */
export async function moveSlotsInput(
  db: AppDatabase,
  booking: BookingsTable,
  hostIds: readonly string[],
  at: { readonly now: number; readonly range: Period; readonly calendarBusy?: CalendarBusy },
): Promise<SlotsInput | undefined> {
  const eventType = await findEventType(db, booking.event_type_id);
  if (eventType === undefined) return undefined;
  const invitation = await invitationOf(db, booking);
  const hosts = await loadSlotHosts(db, {
    ...at,
    hosts: hostIds.map((userId) => ({ userId, role: "required" })),
    exceptBookingId: booking.id,
  });
  // One who is suspended takes part in nothing, and the hosts of a booking stay.
  if (hosts.length < hostIds.length) return undefined;
  const reach = invitation === undefined ? eventType : stricterReach(invitation, eventType);
  return {
    now: at.now,
    range: at.range,
    eventTypeId: eventType.id,
    durationMinutes: durationMinutes(booking),
    slotIntervalMinutes: (invitation ?? eventType).slotIntervalMinutes,
    routingMode: "collective",
    bufferBeforeMinutes: booking.buffer_before_minutes,
    bufferAfterMinutes: booking.buffer_after_minutes,
    minNoticeMinutes: reach.minNoticeMinutes,
    maxFutureDays: reach.maxFutureDays,
    ...(invitation === undefined ? {} : { window: invitation.window }),
    hosts,
  };
}

async function invitationOf(db: AppDatabase, booking: BookingsTable): Promise<Invitation | undefined> {
  if (booking.scheduling_invitation_id === null) return undefined;
  const row = await db
    .selectFrom("scheduling_invitations")
    .selectAll()
    .where("id", "=", booking.scheduling_invitation_id)
    .executeTakeFirstOrThrow();
  return invitationFromRow(row, []);
}

/** The slots that a booking may move to. A calendar that cannot be asked hides nothing: the move asks again. */
export async function movableSlots(
  { db, now, calendars, hooks }: Pick<BookingDeps, "db" | "now" | "calendars" | "hooks">,
  bookingId: string,
  range: (now: Date) => Period,
): Promise<readonly Slot[]> {
  const booking = await db.selectFrom("bookings").selectAll().where("id", "=", bookingId).executeTakeFirst();
  if (booking === undefined) throw notFound("booking", bookingId);
  if (booking.status === "cancelled")
    throw new ProblemError("conflict", `Booking ${bookingId} is cancelled and cannot move.`);
  const at = now();
  const asked = range(at);
  const hostIds = await assignedHosts(db, bookingId);
  const busy = await calendarBusy(calendars, hostIds, asked).catch((error: ProblemError) => {
    hooks.logger.warn(`Slots of booking ${bookingId} are shown without calendars: ${error.message}`);
    return new Map<string, Period[]>();
  });
  const input = await moveSlotsInput(db, booking, hostIds, {
    now: at.getTime(),
    range: asked,
    calendarBusy: withoutTime(busy, periodOf(booking)),
  });
  return input === undefined ? [] : computeSlots(input);
}
