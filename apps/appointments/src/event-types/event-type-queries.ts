import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import type { PageRequest } from "../http/paging.ts";
import { notFound } from "../http/problem.ts";
import type { Question } from "../scheduling/answers.ts";
import type { Caller } from "../users/user-access.ts";
import { type EventType, type EventTypeHost, eventTypeFromRow, questionFromRow } from "./event-type.ts";

type Reader = AppDatabase | AppTransaction;

export async function findEventType(db: Reader, id: string): Promise<EventType | undefined> {
  const row = await db.selectFrom("event_types").selectAll().where("id", "=", id).executeTakeFirst();
  return row && eventTypeFromRow(row);
}

/** The event type as it is now, and nobody changes or deletes it before the transaction ends. */
export async function lockEventType(
  trx: AppTransaction,
  dialect: "sqlite" | "postgres",
  id: string,
): Promise<EventType | undefined> {
  const query = trx.selectFrom("event_types").selectAll().where("id", "=", id);
  const row = await (dialect === "postgres" ? query.forUpdate() : query).executeTakeFirst();
  return row && eventTypeFromRow(row);
}

/**
 * The event type with this slug in the caller's own tenant. An admin without a tenant, who manages all of them, gets
 * the only one there is in any.
 */
export async function findEventTypeBySlug(
  db: Reader,
  caller: Caller,
  slug: string,
): Promise<EventType | undefined> {
  const { projectId, tenantId } = caller.user;
  let query = db
    .selectFrom("event_types")
    .selectAll()
    .where("project_id", "=", projectId)
    .where("slug", "=", slug);
  if (tenantId !== undefined) query = query.where("tenant_id", "=", tenantId);
  const found = (await query.limit(3).execute()).map(eventTypeFromRow);
  return (
    found.find((eventType) => eventType.tenantId === tenantId) ?? (found.length === 1 ? found[0] : undefined)
  );
}

/** Whether the caller may change it and invite to it: its owner, and the admins of its project and tenant. */
export function canManageEventType(
  caller: Caller,
  eventType: Pick<EventType, "projectId" | "tenantId" | "userId">,
): boolean {
  const { id, projectId, tenantId, isAdmin } = caller.user;
  if (projectId !== eventType.projectId) return false;
  if (id === eventType.userId) return true;
  return isAdmin && (tenantId === undefined || tenantId === eventType.tenantId);
}

/** @throws ProblemError 404, for what the caller may not see too */
export function requireEventType(
  caller: Caller,
  eventType: EventType | undefined,
  idOrSlug: string,
): EventType {
  if (eventType === undefined || !canManageEventType(caller, eventType))
    throw notFound("event type", idOrSlug);
  return eventType;
}

/** Those the caller may manage, newest first. */
export async function listEventTypes(
  db: Reader,
  caller: Caller,
  filter: { readonly slug?: string; readonly userId?: string },
  page: PageRequest,
): Promise<{ readonly items: EventType[]; readonly more: boolean }> {
  const { id, projectId, tenantId, isAdmin } = caller.user;
  let query = db
    .selectFrom("event_types")
    .selectAll()
    .where("project_id", "=", projectId)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(page.limit + 1);
  if (!isAdmin) query = query.where("user_id", "=", id);
  else if (tenantId !== undefined) query = query.where("tenant_id", "=", tenantId);
  if (filter.slug !== undefined) query = query.where("slug", "=", filter.slug);
  if (filter.userId !== undefined) query = query.where("user_id", "=", filter.userId);
  const after = page.after;
  if (after !== undefined)
    query = query.where((where) =>
      where.or([
        where("created_at", "<", after.at),
        where.and([where("created_at", "=", after.at), where("id", "<", after.id)]),
      ]),
    );
  const rows = await query.execute();
  return { items: rows.slice(0, page.limit).map(eventTypeFromRow), more: rows.length > page.limit };
}

/** The hosts of some event types, each list in its order. */
export async function hostsByEventType(
  db: Reader,
  ids: readonly string[],
): Promise<Map<string, EventTypeHost[]>> {
  const rows =
    ids.length === 0
      ? []
      : await db
          .selectFrom("event_type_hosts")
          .selectAll()
          .where("event_type_id", "in", ids)
          .orderBy("priority")
          .orderBy("position")
          .execute();
  return grouped(ids, rows, ({ user_id, role, priority }) => ({ userId: user_id, role, priority }));
}

/** The questions of some event types, each list in its order. */
export async function questionsByEventType(
  db: Reader,
  ids: readonly string[],
): Promise<Map<string, Question[]>> {
  const rows =
    ids.length === 0
      ? []
      : await db
          .selectFrom("questions")
          .selectAll()
          .where("event_type_id", "in", ids)
          .orderBy("position")
          .orderBy("id")
          .execute();
  return grouped(ids, rows, questionFromRow);
}

export async function hostsOf(db: Reader, eventTypeId: string): Promise<EventTypeHost[]> {
  return (await hostsByEventType(db, [eventTypeId])).get(eventTypeId) ?? [];
}

export async function questionsOf(db: Reader, eventTypeId: string): Promise<Question[]> {
  return (await questionsByEventType(db, [eventTypeId])).get(eventTypeId) ?? [];
}

function grouped<Row extends { readonly event_type_id: string }, Item>(
  ids: readonly string[],
  rows: readonly Row[],
  read: (row: Row) => Item,
): Map<string, Item[]> {
  const byId = new Map<string, Item[]>(ids.map((id) => [id, []]));
  for (const row of rows) byId.get(row.event_type_id)?.push(read(row));
  return byId;
}
