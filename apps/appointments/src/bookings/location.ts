import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import { invalid } from "../http/problem.ts";

/** Where a booking takes place, as it is now. "" = unknown: a link that was made for an older revision is none of it. */
export function currentLocation(
  booking: Pick<BookingsTable, "location_value" | "location_revision" | "revision">,
): string {
  return booking.location_revision === booking.revision ? booking.location_value : "";
}

/**
 * Stores where a booking takes place: the meeting link that arrives, "" = unknown. It makes no event and raises no
 * revision: whoever asks later, or is told of this revision for the first time, gets it. A link made for an older
 * revision is kept with that revision, but never in place of a newer one.
 * @throws ProblemError 400 for a revision that the booking has not reached
 */
export async function saveLocation(
  db: AppDatabase,
  bookingId: string,
  location: { readonly value: string; readonly revision: number },
): Promise<void> {
  const { value, revision } = location;
  const { numUpdatedRows } = await db
    .updateTable("bookings")
    .set({ location_value: value, location_revision: revision })
    .where("id", "=", bookingId)
    .where("revision", ">=", revision)
    .where((where) =>
      where.or([where("location_value", "=", ""), where("location_revision", "<=", revision)]),
    )
    .executeTakeFirst();
  if (numUpdatedRows > 0n) return;
  const row = await db
    .selectFrom("bookings")
    .select("revision")
    .where("id", "=", bookingId)
    .executeTakeFirst();
  if (row !== undefined && row.revision < revision)
    throw invalid([{ pointer: "/revision", message: `must be at most ${row.revision}, the booking's own` }]);
}
