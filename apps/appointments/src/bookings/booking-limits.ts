import type { AppTransaction } from "../database/schema.ts";
import type { EventType } from "../event-types/event-type.ts";
import { ProblemError } from "../http/problem.ts";
import { emailKey } from "../users/user.ts";

const hourMs = 3_600_000;
/** Bookings that one e-mail address may make in an hour through invitations. */
const mostAnHour = 10;

/**
 * The cap on upcoming bookings of one attendee, and the limit on bookings of one address, both counted in the
 * database, so they hold over all processes. The event type is locked: the cap is kept by bookings made at once too,
 * the limit only by those of one event type.
 * @throws ProblemError 409 at the cap, 429 at the limit (of a customer; staff has none)
 */
export async function refuseTooManyBookings(
  trx: AppTransaction,
  eventType: EventType,
  email: string,
  now: Date,
  by: "customer" | "staff",
): Promise<void> {
  const ofAddress = trx
    .selectFrom("booking_attendees")
    .innerJoin("bookings", "bookings.id", "booking_attendees.booking_id")
    .where("booking_attendees.email_key", "=", emailKey(email))
    .where("bookings.project_id", "=", eventType.projectId)
    .where("bookings.tenant_id", "=", eventType.tenantId ?? "");
  if (eventType.maxActiveBookings > 0) {
    const upcoming = await ofAddress
      .select((select) => select.fn.countAll().as("count"))
      .where("bookings.event_type_id", "=", eventType.id)
      .where("bookings.status", "=", "confirmed")
      .where("bookings.end_at", ">", now.toISOString())
      .executeTakeFirstOrThrow();
    if (Number(upcoming.count) >= eventType.maxActiveBookings)
      throw new ProblemError(
        "conflict",
        "This address has as many upcoming bookings of this kind as it may have. Cancel one first.",
      );
  }
  if (by === "staff") return;
  const lately = await ofAddress
    .select((select) => select.fn.countAll().as("count"))
    .where("bookings.scheduling_invitation_id", "is not", null)
    .where("bookings.created_at", ">", new Date(now.getTime() - hourMs).toISOString())
    .executeTakeFirstOrThrow();
  if (Number(lately.count) >= mostAnHour)
    throw new ProblemError("too_many_requests", "This address has made many bookings; try again in an hour.");
}
