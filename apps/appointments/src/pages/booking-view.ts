import { managedBookingId } from "../bookings/manage-token.ts";
import { assignedHosts, moveSlotsInput } from "../bookings/move-slots.ts";
import { type BookingFacts, durationMinutes, readFacts } from "../bookings/snapshot.ts";
import type { AppDatabase } from "../database/schema.ts";
import { instantOf } from "../scheduling/calendar.ts";
import { type StartBounds, startBounds } from "./picker-fields.ts";

/** What the page of a booking shows to the one who booked it. */
export interface BookingView {
  readonly facts: BookingFacts;
  readonly durationMinutes: number;
  /** What may still be done: nothing once it has begun. */
  readonly state: "coming" | "begun" | "cancelled";
  /** Where it may move; absent when it may not. */
  readonly moves?: StartBounds;
}

/** Undefined for a token that is malformed, unknown or too old. */
export async function readBookingView(
  db: AppDatabase,
  token: string,
  now: Date,
): Promise<BookingView | undefined> {
  const id = await managedBookingId(db, token, now);
  const facts = id === undefined ? undefined : await readFacts(db, id);
  if (facts === undefined) return undefined;
  const { booking } = facts;
  const view = { facts, durationMinutes: durationMinutes(booking) };
  if (booking.status === "cancelled") return { ...view, state: "cancelled" };
  if (instantOf(booking.start_at) <= now.getTime()) return { ...view, state: "begun" };
  const moves = await boundsOfMove(db, facts, now.getTime());
  return { ...view, state: "coming", ...(moves === undefined ? {} : { moves }) };
}

async function boundsOfMove(
  db: AppDatabase,
  { booking }: BookingFacts,
  now: number,
): Promise<StartBounds | undefined> {
  const hostIds = await assignedHosts(db, booking.id);
  const input = await moveSlotsInput(db, booking, hostIds, { now, range: { start: now, end: now } });
  const bounds = input && startBounds(now, input);
  return bounds && bounds.earliest <= bounds.latest ? bounds : undefined;
}
