import type { BookingStatus } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import type { PageRequest } from "../http/paging.ts";
import type { Caller } from "../users/user-access.ts";
import { type BookingFacts, readFacts } from "./snapshot.ts";

export interface BookingFilter {
  readonly status?: BookingStatus | undefined;
  readonly event_type_id?: string | undefined;
  readonly scheduling_invitation_id?: string | undefined;
}

/** Bookings the caller may read, newest first. */
export async function listBookings(
  db: AppDatabase,
  caller: Caller,
  filter: BookingFilter,
  page: PageRequest,
): Promise<{ readonly items: BookingFacts[]; readonly more: boolean }> {
  const { id: userId, projectId, tenantId, isAdmin } = caller.user;
  let query = db
    .selectFrom("bookings")
    .select("bookings.id")
    .where("bookings.project_id", "=", projectId)
    .orderBy("bookings.created_at", "desc")
    .orderBy("bookings.id", "desc")
    .limit(page.limit + 1);
  if (tenantId !== undefined) query = query.where("bookings.tenant_id", "=", tenantId);
  if (!isAdmin)
    query = query.where((where) =>
      where.or([
        where.exists(
          where
            .selectFrom("booking_hosts")
            .select("user_id")
            .whereRef("booking_hosts.booking_id", "=", "bookings.id")
            .where("booking_hosts.user_id", "=", userId),
        ),
        where.exists(
          where
            .selectFrom("scheduling_invitations")
            .select("scheduling_invitations.id")
            .whereRef("scheduling_invitations.id", "=", "bookings.scheduling_invitation_id")
            .where("scheduling_invitations.creator_id", "=", userId),
        ),
      ]),
    );
  for (const name of ["status", "event_type_id", "scheduling_invitation_id"] as const) {
    const value = filter[name];
    if (value !== undefined) query = query.where(`bookings.${name}`, "=", value);
  }
  const after = page.after;
  if (after !== undefined)
    query = query.where((where) =>
      where.or([
        where("bookings.created_at", "<", after.at),
        where.and([where("bookings.created_at", "=", after.at), where("bookings.id", "<", after.id)]),
      ]),
    );
  const rows = await query.execute();
  const items: BookingFacts[] = [];
  for (const { id } of rows.slice(0, page.limit)) {
    const facts = await readFacts(db, id);
    if (facts !== undefined) items.push(facts);
  }
  return { items, more: rows.length > page.limit };
}
