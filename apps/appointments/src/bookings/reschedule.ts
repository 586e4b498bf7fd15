import type { Actor } from "hookwell";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { notFound, ProblemError } from "../http/problem.ts";
import { instantOf, type Period, timestampOf } from "../scheduling/calendar.ts";
import { slotAt } from "../scheduling/slots.ts";
import type { Caller } from "../users/user-access.ts";
import { canManageBooking, visibleBooking } from "./booking-access.ts";
import { lockBooking, lockHosts, raised } from "./booking-rows.ts";
import { calendarBusy, withoutTime } from "./calendar-busy.ts";
import { notRecorded, type Transition } from "./capture.ts";
import type { BookingDeps } from "./deps.ts";
import { assignedHosts, moveSlotsInput, periodOf } from "./move-slots.ts";
import { durationMinutes } from "./snapshot.ts";
import { refusePast, slotUnavailable } from "./times.ts";

/** Where a booking is to go. An end is only checked: the duration stays. */
export interface NewTime {
  readonly start_at: string;
  readonly end_at?: string | undefined;
}

/** Every way to move a booking. Each keeps its hosts, and moves to a slot that could be booked. */
export interface RescheduleCalls {
  /** @throws ProblemError 404, 409, 500 when the event could not be captured, 503 without a calendar */
  byCustomer(bookingId: string, time: NewTime): Promise<BookingsTable>;
  /** By an assigned host or an admin. @throws ProblemError 400 for a start that is over, 404, 409, 500, 503 */
  byStaff(caller: Caller, bookingId: string, time: NewTime): Promise<BookingsTable>;
}

export function bookingMoves(deps: BookingDeps): RescheduleCalls {
  return {
    byCustomer: (bookingId, time) =>
      reschedule(deps, { bookingId, time, by: "customer", actor: { type: "customer", id: bookingId } }),
    byStaff: (caller, bookingId, time) =>
      reschedule(deps, {
        bookingId,
        time,
        by: "staff",
        actor: { type: "api_key", id: caller.keyId },
        async allow(db) {
          await visibleBooking(db, bookingId, (facts) => canManageBooking(caller, facts));
        },
      }),
  };
}

interface Move {
  readonly bookingId: string;
  readonly time: NewTime;
  readonly by: "customer" | "staff";
  readonly actor: Actor;
  /** Throws for a caller who may not. */
  readonly allow?: (db: AppDatabase) => Promise<void>;
}

async function reschedule(deps: BookingDeps, move: Move): Promise<BookingsTable> {
  const { db, dialect, transitions } = deps;
  const { bookingId, time, by, actor, allow } = move;
  await allow?.(db);
  const seen = await db.selectFrom("bookings").selectAll().where("id", "=", bookingId).executeTakeFirst();
  const asked = movable(bookingId, seen, time);
  if (asked === "same") return seen as BookingsTable;
  refusePast(time.start_at, deps.now(), by);
  const hostIds = await assignedHosts(db, bookingId);
  const busy = await calendarBusy(deps.calendars, hostIds, asked);

  const done = await inTransaction(db, async (trx): Promise<Transition | BookingsTable> => {
    const before = await lockBooking(trx, dialect, bookingId);
    if (movable(bookingId, before, time) === "same") return before as BookingsTable;
    const own = before as BookingsTable;
    await lockHosts(trx, dialect, hostIds);
    // Given to somebody else since we asked the calendars: theirs was not asked.
    if ((await assignedHosts(trx, bookingId)).join() !== hostIds.join()) throw slotUnavailable();
    const input = await moveSlotsInput(trx, own, hostIds, {
      now: deps.now().getTime(),
      range: { start: asked.start, end: asked.start + 1 },
      calendarBusy: withoutTime(busy, periodOf(own)),
    });
    const slot = input && slotAt(input, time.start_at);
    if (slot === undefined) throw slotUnavailable();
    const booking = await trx
      .updateTable("bookings")
      .set((column) => ({
        start_at: slot.startAt,
        end_at: slot.endAt,
        ...raised(column, transitions.isCaptured(own), deps.now().toISOString()),
      }))
      .where("id", "=", bookingId)
      .where("status", "=", "confirmed")
      .returningAll()
      .executeTakeFirstOrThrow();
    const previous = { start_at: own.start_at, end_at: own.end_at };
    const made: Transition = { type: "booking.rescheduled", booking, actor, previous };
    await transitions.record(trx, made);
    return made;
  }).catch(notRecorded("change_not_recorded"));
  if (!("booking" in done)) return done;
  await transitions.committed(done);
  return done.booking;
}

/** The interval that is asked for, or "same" as the booking has. @throws ProblemError 404, 409 */
function movable(id: string, booking: BookingsTable | undefined, time: NewTime): Period | "same" {
  if (booking === undefined) throw notFound("booking", id);
  if (booking.status === "cancelled")
    throw new ProblemError("conflict", `Booking ${id} is cancelled and cannot move.`);
  const own = periodOf(booking);
  const start = instantOf(time.start_at);
  const end = start + (own.end - own.start);
  if (time.end_at !== undefined && timestampOf(instantOf(time.end_at)) !== timestampOf(end))
    throw new ProblemError(
      "conflict",
      `Booking ${id} has ${durationMinutes(booking)} minutes, which a move does not change.`,
    );
  return instantOf(time.start_at, "ceil") === own.start && start === own.start ? "same" : { start, end };
}
