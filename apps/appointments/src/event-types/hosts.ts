import { lockHosts } from "../bookings/booking-rows.ts";
import type { HostRole } from "../database/scheduling-tables.ts";
import type { AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { type FieldProblem, invalid, notFound, ProblemError } from "../http/problem.ts";
import type { Caller } from "../users/user-access.ts";
import type { EventType, EventTypeHost } from "./event-type.ts";
import type { EventTypeDeps } from "./event-type-changes.ts";
import { hostsOf, lockEventType, requireEventType } from "./event-type-queries.ts";
import type { NewHost } from "./event-type-schemas.ts";

/** Writes the hosts of an event type that has none yet, in the order given. @throws ProblemError 400 */
export async function writeHosts(
  trx: AppTransaction,
  eventType: EventType,
  hosts: readonly NewHost[],
): Promise<void> {
  if (hosts.length === 0) return;
  const seen = new Set<string>();
  const problems: FieldProblem[] = [];
  for (const [index, { user_id: userId }] of hosts.entries()) {
    const pointer = `/hosts/${index}/user_id`;
    if (seen.has(userId)) problems.push({ pointer, message: "is named twice" });
    else if (!(await canHost(trx, eventType, userId))) problems.push({ pointer, message: notAHost });
    seen.add(userId);
  }
  if (problems.length > 0) throw invalid(problems);
  await trx
    .insertInto("event_type_hosts")
    .values(hosts.map((host, position) => hostRow(eventType.id, host, position)))
    .execute();
}

/**
 * Makes a user a host, or gives one another role.
 * @returns whether it is new @throws ProblemError 400, 404
 */
export function putHost(
  deps: EventTypeDeps,
  caller: Caller,
  eventTypeId: string,
  host: NewHost,
): Promise<{ readonly host: EventTypeHost; readonly isNew: boolean }> {
  return inTransaction(deps.db, async (trx) => {
    const eventType = requireEventType(
      caller,
      await lockEventType(trx, deps.dialect, eventTypeId),
      eventTypeId,
    );
    // It is not deleted between being looked at and being written down.
    await lockHosts(trx, deps.dialect, [host.user_id]);
    if (!(await canHost(trx, eventType, host.user_id)))
      throw invalid([{ pointer: "/user_id", message: notAHost }]);
    const { last } = await trx
      .selectFrom("event_type_hosts")
      .select((select) => select.fn.max("position").as("last"))
      .where("event_type_id", "=", eventTypeId)
      .executeTakeFirstOrThrow();
    const hosts = await hostsOf(trx, eventTypeId);
    const before = hosts.find(({ userId }) => userId === host.user_id);
    if (before !== undefined) return { host: await change(trx, eventTypeId, before, host), isNew: false };
    const row = hostRow(eventTypeId, host, hosts.length === 0 ? 0 : Number(last) + 1);
    await trx.insertInto("event_type_hosts").values(row).execute();
    return { host: { userId: row.user_id, role: row.role, priority: row.priority }, isNew: true };
  });
}

/** @throws ProblemError 404 */
export function changeHost(
  deps: EventTypeDeps,
  caller: Caller,
  eventTypeId: string,
  userId: string,
  changes: { readonly role?: HostRole | undefined; readonly priority?: number | undefined },
): Promise<EventTypeHost> {
  return inTransaction(deps.db, async (trx) => {
    requireEventType(caller, await lockEventType(trx, deps.dialect, eventTypeId), eventTypeId);
    const before = (await hostsOf(trx, eventTypeId)).find((host) => host.userId === userId);
    if (before === undefined) throw notFound("host", userId);
    return change(trx, eventTypeId, before, changes);
  });
}

/**
 * Ends that a user hosts an event type.
 * @throws ProblemError 404, 409 while an active invitation or an upcoming booking of it counts on this host
 */
export function removeHost(
  deps: EventTypeDeps,
  caller: Caller,
  eventTypeId: string,
  userId: string,
): Promise<void> {
  return inTransaction(deps.db, async (trx) => {
    requireEventType(caller, await lockEventType(trx, deps.dialect, eventTypeId), eventTypeId);
    const hosts = await hostsOf(trx, eventTypeId);
    if (!hosts.some((host) => host.userId === userId)) throw notFound("host", userId);
    if (await isCountedOn(trx, eventTypeId, userId, deps.now().toISOString()))
      throw new ProblemError(
        "conflict",
        "An active invitation or an upcoming booking counts on this host; cancel it, or let it happen, first.",
      );
    await trx
      .deleteFrom("event_type_hosts")
      .where("event_type_id", "=", eventTypeId)
      .where("user_id", "=", userId)
      .execute();
  });
}

async function isCountedOn(
  trx: AppTransaction,
  eventTypeId: string,
  userId: string,
  now: string,
): Promise<boolean> {
  const invitation = await trx
    .selectFrom("scheduling_invitation_hosts as host")
    .innerJoin("scheduling_invitations as invitation", "invitation.id", "host.invitation_id")
    .select("invitation.id")
    .where("host.user_id", "=", userId)
    .where("invitation.event_type_id", "=", eventTypeId)
    .where("invitation.status", "=", "active")
    .where("invitation.expires_at", ">", now)
    .limit(1)
    .executeTakeFirst();
  if (invitation !== undefined) return true;
  const booking = await trx
    .selectFrom("booking_hosts as host")
    .innerJoin("bookings as booking", "booking.id", "host.booking_id")
    .select("booking.id")
    .where("host.user_id", "=", userId)
    .where("booking.event_type_id", "=", eventTypeId)
    .where("booking.status", "=", "confirmed")
    .where("booking.end_at", ">", now)
    .limit(1)
    .executeTakeFirst();
  return booking !== undefined;
}

const notAHost = "is no active user of this project and tenant";

async function canHost(trx: AppTransaction, eventType: EventType, userId: string): Promise<boolean> {
  const row = await trx
    .selectFrom("users")
    .select("id")
    .where("id", "=", userId)
    .where("project_id", "=", eventType.projectId)
    .where("tenant_id", "=", eventType.tenantId ?? "")
    .where("status", "=", "active")
    .executeTakeFirst();
  return row !== undefined;
}

async function change(
  trx: AppTransaction,
  eventTypeId: string,
  before: EventTypeHost,
  changes: { readonly role?: HostRole | undefined; readonly priority?: number | undefined },
): Promise<EventTypeHost> {
  const after: EventTypeHost = {
    userId: before.userId,
    role: changes.role ?? before.role,
    priority: changes.priority ?? before.priority,
  };
  await trx
    .updateTable("event_type_hosts")
    .set({ role: after.role, priority: after.priority })
    .where("event_type_id", "=", eventTypeId)
    .where("user_id", "=", before.userId)
    .execute();
  return after;
}

function hostRow(eventTypeId: string, host: NewHost, position: number) {
  return {
    event_type_id: eventTypeId,
    user_id: host.user_id,
    role: host.role,
    priority: host.priority ?? 0,
    position,
  };
}
