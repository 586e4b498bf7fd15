import type { AppDatabase } from "../database/schema.ts";
import { notFound } from "../http/problem.ts";
import type { Caller } from "../users/user-access.ts";
import { type BookingFacts, readFacts } from "./snapshot.ts";

/**
 * Who may do what with a booking: admins of its project and tenant and the hosts assigned to it manage it, the
 * creator of its invitation reads it. For everybody else it does not exist.
 */
export function canManageBooking(caller: Caller, facts: BookingFacts): boolean {
  return isAdminOf(caller, facts) || facts.hosts.some((host) => host.id === caller.user.id);
}

export function canReadBooking(caller: Caller, facts: BookingFacts): boolean {
  return canManageBooking(caller, facts) || facts.invitation?.creatorId === caller.user.id;
}

/** Admins, and the primary host. */
export function canReassignBooking(caller: Caller, facts: BookingFacts): boolean {
  return isAdminOf(caller, facts) || facts.booking.host_id === caller.user.id;
}

function isAdminOf({ user }: Caller, { booking }: BookingFacts): boolean {
  const { isAdmin, projectId, tenantId } = user;
  return (
    isAdmin && projectId === booking.project_id && (tenantId === undefined || tenantId === booking.tenant_id)
  );
}

/** @throws ProblemError 404 */
export async function visibleBooking(
  db: AppDatabase,
  id: string,
  isVisible: (facts: BookingFacts) => boolean,
): Promise<BookingFacts> {
  const facts = await readFacts(db, id);
  if (facts === undefined || !isVisible(facts)) throw notFound("booking", id);
  return facts;
}
