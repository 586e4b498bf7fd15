import type { AppDatabase } from "../database/schema.ts";

/**
 * Gives the calendars that are out of line another try: those marked `needs_sync`, and those whose last step failed,
 * of appointments that are not over. One UPDATE, so any number of processes may do it. `restMs`: how long they have
 * been left alone at least.
 * @returns how many were taken up
 */
export async function reconcileCalendars(db: AppDatabase, now: Date, restMs: number): Promise<number> {
  const at = now.toISOString();
  const reopened = await db
    .updateTable("side_effects")
    .set({ status: "waiting", run_at: at, lease_until: null, updated_at: at })
    .where("lane", "=", "calendar")
    .where("status", "<>", "waiting")
    .where("updated_at", "<=", new Date(now.getTime() - restMs).toISOString())
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom("bookings")
          .select("bookings.id")
          .whereRef("bookings.id", "=", "side_effects.booking_id")
          .where("bookings.end_at", ">", at),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("side_effects as later")
            .select("later.id")
            .whereRef("later.booking_id", "=", "side_effects.booking_id")
            .where("later.lane", "=", "calendar")
            .whereRef("later.target", "=", "side_effects.target")
            .whereRef("later.sequence", ">", "side_effects.sequence"),
        ),
      ),
    )
    .where(({ or, eb, exists, selectFrom }) =>
      or([
        eb("status", "=", "failed"),
        exists(
          selectFrom("booking_hosts")
            .select("booking_hosts.user_id")
            .whereRef("booking_hosts.booking_id", "=", "side_effects.booking_id")
            .whereRef("booking_hosts.user_id", "=", "side_effects.target")
            .where("booking_hosts.needs_sync", "=", 1),
        ),
      ]),
    )
    .executeTakeFirst();
  return Number(reopened.numUpdatedRows) + (await planMissing(db, at));
}

/** Bookings of an older version have no steps that could be tried again. */
async function planMissing(db: AppDatabase, at: string): Promise<number> {
  const hosts = await db
    .selectFrom("booking_hosts")
    .innerJoin("bookings", "bookings.id", "booking_hosts.booking_id")
    .select(["booking_hosts.booking_id", "booking_hosts.user_id", "bookings.revision"])
    .where("booking_hosts.needs_sync", "=", 1)
    .where("bookings.end_at", ">", at)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("side_effects")
            .select("side_effects.id")
            .whereRef("side_effects.booking_id", "=", "booking_hosts.booking_id")
            .whereRef("side_effects.target", "=", "booking_hosts.user_id")
            .where("side_effects.lane", "=", "calendar"),
        ),
      ),
    )
    .limit(100)
    .execute();
  for (const host of hosts)
    await db
      .insertInto("side_effects")
      .values({
        // The same from every process: the second insert does nothing.
        id: `sync:${host.booking_id}:${host.user_id}`,
        booking_id: host.booking_id,
        revision: host.revision,
        sequence: host.revision,
        lane: "calendar",
        kind: "calendar_create",
        target: host.user_id,
        status: "waiting",
        attempts: 0,
        run_at: at,
        lease_until: null,
        last_error: null,
        detail: "{}",
        created_at: at,
        updated_at: at,
      })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  return hosts.length;
}
