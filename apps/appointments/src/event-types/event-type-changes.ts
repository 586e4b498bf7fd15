import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { uniqueViolation } from "../database/unique-violation.ts";
import { invalid, ProblemError } from "../http/problem.ts";
import { instantOf, timestampOf } from "../scheduling/calendar.ts";
import { durationProblems } from "../scheduling/duration.ts";
import type { User } from "../users/user.ts";
import { type Caller, canManage } from "../users/user-access.ts";
import { findUser } from "../users/user-queries.ts";
import { type EventType, eventTypeFromRow, eventTypeToRow } from "./event-type.ts";
import { lockEventType, requireEventType } from "./event-type-queries.ts";
import type { EventTypeChanges, NewEventType } from "./event-type-schemas.ts";
import { writeHosts } from "./hosts.ts";
import { writeQuestions } from "./questions.ts";

export interface EventTypeDeps {
  readonly db: AppDatabase;
  readonly dialect: "sqlite" | "postgres";
  readonly now: () => Date;
  readonly newId: () => string;
}

/** What an event type has that does not say it. */
const defaults = {
  duration_minutes: 30,
  duration_min_minutes: null,
  duration_max_minutes: null,
  duration_increment_minutes: null,
  slot_interval_minutes: 30,
  location_type: "meeting",
  location_value: "",
  routing_mode: "fixed",
  buffer_before_minutes: 0,
  buffer_after_minutes: 0,
  min_notice_minutes: 0,
  max_future_days: 60,
  max_active_bookings: 1,
} as const;

/** Makes an event type with its hosts and questions, all or nothing. @throws ProblemError 400, 409 */
export async function createEventType(
  deps: EventTypeDeps,
  caller: Caller,
  input: NewEventType,
): Promise<EventType> {
  const { hosts, questions, is_active: isActive, user_id: ownerId, ...fields } = input;
  const owner = await ownerOf(deps, caller, ownerId);
  const time = deps.now().toISOString();
  const eventType = eventTypeFromRow({
    ...defaults,
    ...given(fields),
    slug: fields.slug,
    name: fields.name,
    id: deps.newId(),
    project_id: owner.projectId,
    tenant_id: owner.tenantId ?? "",
    user_id: owner.id,
    is_active: isActive === false ? 0 : 1,
    archived_at: null,
    created_at: time,
    updated_at: time,
  });
  refuseDurations(eventType);
  return inTransaction(deps.db, async (trx) => {
    await trx.insertInto("event_types").values(eventTypeToRow(eventType)).execute();
    await writeHosts(trx, eventType, hosts ?? []);
    await writeQuestions(trx, deps.newId, eventType, questions ?? []);
    return eventType;
  }).catch(slugTaken);
}

/** @throws ProblemError 400, 404, 409 */
export function changeEventType(
  deps: EventTypeDeps,
  caller: Caller,
  id: string,
  changes: EventTypeChanges,
): Promise<EventType> {
  const { archived, archived_at: archivedAt, is_active: isActive, ...fields } = changes;
  return inTransaction(deps.db, async (trx) => {
    const before = requireEventType(caller, await lockEventType(trx, deps.dialect, id), id);
    const row = eventTypeToRow(before);
    const now = deps.now().toISOString();
    const after = eventTypeFromRow({
      ...row,
      ...given(fields),
      is_active: isActive === undefined ? row.is_active : isActive ? 1 : 0,
      archived_at: archiveTime(row.archived_at, archived, archivedAt, now),
      updated_at: now,
    });
    refuseDurations(after);
    await trx.updateTable("event_types").set(eventTypeToRow(after)).where("id", "=", id).execute();
    return after;
  }).catch(slugTaken);
}

/** With its hosts, questions and hours. @throws ProblemError 404, 409 when an invitation or a booking refers to it */
export function deleteEventType(deps: EventTypeDeps, caller: Caller, id: string): Promise<void> {
  return inTransaction(deps.db, async (trx) => {
    requireEventType(caller, await lockEventType(trx, deps.dialect, id), id);
    if (await isReferredTo(trx, id))
      throw new ProblemError(
        "conflict",
        "Invitations or bookings refer to this event type, so it cannot be deleted. Archive it instead.",
      );
    for (const table of ["event_type_hosts", "questions", "availability_rules"] as const)
      await trx.deleteFrom(table).where("event_type_id", "=", id).execute();
    await trx.deleteFrom("event_types").where("id", "=", id).execute();
  });
}

async function isReferredTo(trx: AppTransaction, id: string): Promise<boolean> {
  for (const table of ["scheduling_invitations", "bookings"] as const) {
    const row = await trx
      .selectFrom(table)
      .select("id")
      .where("event_type_id", "=", id)
      .limit(1)
      .executeTakeFirst();
    if (row !== undefined) return true;
  }
  return false;
}

/** @throws ProblemError 400 for somebody the caller does not manage */
async function ownerOf(deps: EventTypeDeps, caller: Caller, id: string | undefined): Promise<User> {
  if (id === undefined || id === caller.user.id) return caller.user;
  const owner = await findUser(deps.db, id);
  if (owner === undefined || !canManage(caller, owner) || owner.status !== "active")
    throw invalid([{ pointer: "/user_id", message: "is no active user whom you manage" }]);
  return owner;
}

function refuseDurations(eventType: EventType): void {
  const problems = durationProblems(eventType);
  if (problems.length > 0) throw invalid(problems);
}

function archiveTime(
  before: string | null,
  archived: boolean | undefined,
  archivedAt: string | null | undefined,
  now: string,
): string | null {
  if (archivedAt !== undefined) return archivedAt === null ? null : timestampOf(instantOf(archivedAt));
  if (archived === undefined) return before;
  return archived ? (before ?? now) : null;
}

/** The fields that were said. */
function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]-?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]-?: Exclude<Fields[Name], undefined>;
  };
}

function slugTaken(error: unknown): never {
  if (uniqueViolation(error) === undefined) throw error;
  throw new ProblemError("conflict", "Another event type of this project and tenant has this slug.", {
    errors: [{ pointer: "/slug", message: "is taken" }],
    cause: error,
  });
}
