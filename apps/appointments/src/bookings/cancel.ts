import type { Actor } from "hookwell";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { notFound, ProblemError } from "../http/problem.ts";
import type { Caller } from "../users/user-access.ts";
import { canManageBooking, visibleBooking } from "./booking-access.ts";
import { lockBooking, raised } from "./booking-rows.ts";
import { notRecorded, type Transition } from "./capture.ts";
import type { BookingDeps } from "./deps.ts";

/** Every way to cancel a booking. */
export interface CancelCalls {
  /** @throws ProblemError 404, 409 when it is cancelled already, 500 when the event could not be captured */
  byCustomer(bookingId: string, reason: string): Promise<BookingsTable>;
  /** By an assigned host or an admin. @throws ProblemError 404, 409, 500 */
  byStaff(caller: Caller, bookingId: string, reason: string): Promise<BookingsTable>;
}

export function bookingCancels(deps: BookingDeps): CancelCalls {
  return {
    byCustomer: (bookingId, reason) =>
      cancel(deps, { bookingId, reason, actor: { type: "customer", id: bookingId } }),
    byStaff: (caller, bookingId, reason) =>
      cancel(deps, {
        bookingId,
        reason,
        actor: { type: "api_key", id: caller.keyId },
        async allow(trx) {
          await visibleBooking(trx, bookingId, (facts) => canManageBooking(caller, facts));
        },
      }),
  };
}

interface Cancellation {
  readonly bookingId: string;
  readonly reason: string;
  readonly actor: Actor;
  /** Throws for a caller who may not. */
  readonly allow?: (trx: AppTransaction) => Promise<void>;
}

/** One row changed from confirmed = one event; none = no event. */
async function cancel(deps: BookingDeps, cancellation: Cancellation): Promise<BookingsTable> {
  const { db, dialect, transitions } = deps;
  const { bookingId, reason, actor, allow } = cancellation;
  const transition = await inTransaction(db, async (trx): Promise<Transition> => {
    await allow?.(trx);
    const before = await lockBooking(trx, dialect, bookingId);
    if (before === undefined) throw notFound("booking", bookingId);
    const captured = transitions.isCaptured(before);
    const booking = await trx
      .updateTable("bookings")
      .set((column) => ({
        status: "cancelled" as const,
        cancellation_reason: reason === "" ? null : reason,
        ...raised(column, captured, deps.now().toISOString()),
      }))
      .where("id", "=", bookingId)
      .where("status", "=", "confirmed")
      .returningAll()
      .executeTakeFirst();
    if (booking === undefined)
      throw new ProblemError("conflict", `Booking ${bookingId} is cancelled already.`);
    const made: Transition = { type: "booking.cancelled", booking, actor };
    await transitions.record(trx, made);
    return made;
  }).catch(notRecorded("change_not_recorded"));
  await transitions.committed(transition);
  return transition.booking;
}
