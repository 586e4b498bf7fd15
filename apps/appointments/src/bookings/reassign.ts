import { loadSlotHosts } from "../availability/slot-hosts.ts";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { hostsOf } from "../event-types/event-type-queries.ts";
import { invalid, ProblemError } from "../http/problem.ts";
import { blockedStarts } from "../scheduling/busy.ts";
import type { Caller } from "../users/user-access.ts";
import { canReadBooking, canReassignBooking, visibleBooking } from "./booking-access.ts";
import { lockBooking, lockHosts, raised } from "./booking-rows.ts";
import { calendarBusy } from "./calendar-busy.ts";
import { notRecorded, type Transition } from "./capture.ts";
import type { BookingDeps } from "./deps.ts";
import { periodOf } from "./move-slots.ts";
import { slotUnavailable } from "./times.ts";

/**
 * Gives an ordinary booking to another host, at the same time. The other assigned hosts stay.
 * @throws ProblemError 404 for who may not see it, 403 for who may not give it away, 400 for a user who does not host
 * its event type, 409 for an invitation booking, a cancelled one, and a host who is busy
 */
export async function reassign(
  deps: BookingDeps,
  caller: Caller,
  bookingId: string,
  hostId: string,
): Promise<BookingsTable> {
  const { db, dialect, transitions } = deps;
  const facts = await visibleBooking(db, bookingId, (seen) => canReadBooking(caller, seen));
  if (!canReassignBooking(caller, facts))
    throw new ProblemError("forbidden", "Only the primary host and admins give a booking to another host.");
  refuse(facts.booking);
  if (facts.booking.host_id === hostId) return facts.booking;
  const busy = await calendarBusy(deps.calendars, [hostId], periodOf(facts.booking));

  const transition = await inTransaction(db, async (trx): Promise<Transition | undefined> => {
    const before = await lockBooking(trx, dialect, bookingId);
    if (before === undefined) throw slotUnavailable();
    refuse(before);
    if (before.host_id === hostId) return undefined;
    await lockHosts(trx, dialect, [hostId]);
    const pool = await hostsOf(trx, before.event_type_id);
    if (!pool.some((host) => host.userId === hostId)) throw notInPool();
    const period = periodOf(before);
    const [host] = await loadSlotHosts(trx, {
      hosts: [{ userId: hostId, role: "required" }],
      range: period,
      now: deps.now().getTime(),
      exceptBookingId: bookingId,
      calendarBusy: busy,
    });
    if (host === undefined) throw notInPool();
    const buffers = {
      bufferBeforeMinutes: before.buffer_before_minutes,
      bufferAfterMinutes: before.buffer_after_minutes,
    };
    const isBlocked = host.busy.some((taken) => {
      const blocked = blockedStarts(taken, buffers, period.end - period.start);
      return blocked.start <= period.start && period.start < blocked.end;
    });
    if (isBlocked) throw slotUnavailable();
    // The new host may have been one of the others.
    await trx
      .deleteFrom("booking_hosts")
      .where("booking_id", "=", bookingId)
      .where("user_id", "in", [before.host_id, hostId])
      .execute();
    await trx
      .insertInto("booking_hosts")
      .values({
        booking_id: bookingId,
        user_id: hostId,
        is_primary: 1,
        external_event_id: null,
        needs_sync: 0,
      })
      .execute();
    const booking = await trx
      .updateTable("bookings")
      .set((column) => ({
        host_id: hostId,
        ...raised(column, transitions.isCaptured(before), deps.now().toISOString()),
      }))
      .where("id", "=", bookingId)
      .where("status", "=", "confirmed")
      .returningAll()
      .executeTakeFirstOrThrow();
    const actor = { type: "api_key", id: caller.keyId };
    const made: Transition = { type: "booking.rescheduled", booking, actor };
    await transitions.record(trx, made);
    return made;
  }).catch(notRecorded("change_not_recorded"));
  if (transition === undefined) return facts.booking;
  await transitions.committed(transition);
  return transition.booking;
}

function refuse(booking: BookingsTable): void {
  if (booking.scheduling_invitation_id !== null)
    throw new ProblemError("conflict", "The hosts of a booking from an invitation stay.");
  if (booking.status === "cancelled")
    throw new ProblemError("conflict", `Booking ${booking.id} is cancelled.`);
}

function notInPool(): ProblemError {
  return invalid([{ pointer: "/host_id", message: "must be an active host of the event type" }]);
}
