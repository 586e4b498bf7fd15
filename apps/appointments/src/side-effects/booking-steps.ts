import type { SideEffectsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";

/** What follows from a booking outside of the database, and how far it is. */
export interface BookingStep {
  readonly kind: string;
  /** User id of the host (calendar), or the address (mail). */
  readonly target: string;
  readonly revision: number;
  readonly status: SideEffectsTable["status"];
  readonly attempts: number;
  /** When it is tried next; null when it is over. */
  readonly next_attempt_at: string | null;
  /** What went wrong last, or why it was skipped. */
  readonly error: string | null;
  readonly updated_at: string;
}

/** In the order of the transitions: for `side_effects` of GET /v1/bookings/{id}. */
export async function bookingSteps(db: AppDatabase, bookingId: string): Promise<BookingStep[]> {
  const rows = await db
    .selectFrom("side_effects")
    .selectAll()
    .where("booking_id", "=", bookingId)
    .orderBy("sequence")
    .orderBy("lane")
    .orderBy("run_at")
    .orderBy("kind")
    .orderBy("target")
    .execute();
  return rows.map((row) => ({
    kind: row.kind,
    target: row.target,
    revision: row.revision,
    status: row.status,
    attempts: row.attempts,
    next_attempt_at: row.status === "waiting" ? row.run_at : null,
    error: row.last_error,
    updated_at: row.updated_at,
  }));
}
