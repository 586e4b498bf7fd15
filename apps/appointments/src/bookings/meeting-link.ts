import type { EnrichEvent } from "hookwell";
import type { AppDatabase } from "../database/schema.ts";
import type { BookingEventData } from "./events.ts";

/** What the dispatcher asks for events that go out for the first time. */
export type LinkReader = (
  events: readonly (EnrichEvent & { readonly data: BookingEventData })[],
) => Promise<Map<string, { readonly location_value: string }>>;

/**
 * The meeting link that was not there yet at the transition: the booking's present one, if the booking is still at
 * the revision that the event tells of and the link was made for that revision. Otherwise what was captured stands.
 */
export function meetingLink(db: AppDatabase): LinkReader {
  return async (events) => {
    const revisions = new Map<string, { readonly bookingId: string; readonly revision: number }>();
    for (const { id, data } of events)
      if ("revision" in data) revisions.set(id, { bookingId: data.booking_id, revision: data.revision });
    const patches = new Map<string, { readonly location_value: string }>();
    if (revisions.size === 0) return patches;
    const rows = await db
      .selectFrom("bookings")
      .select(["id", "revision", "location_value", "location_revision"])
      .where(
        "id",
        "in",
        [...revisions.values()].map(({ bookingId }) => bookingId),
      )
      .execute();
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const [eventId, { bookingId, revision }] of revisions) {
      const row = byId.get(bookingId);
      if (row === undefined || row.location_value === "") continue;
      if (row.revision === revision && row.location_revision === revision)
        patches.set(eventId, { location_value: row.location_value });
    }
    return patches;
  };
}
