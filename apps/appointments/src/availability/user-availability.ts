import type { AvailabilityOverridesTable, AvailabilityRulesTable } from "../database/scheduling-tables.ts";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { type FieldProblem, invalid, notFound } from "../http/problem.ts";
import type { User } from "../users/user.ts";
import { type Caller, canSee } from "../users/user-access.ts";
import { findUser, lockUser } from "../users/user-queries.ts";
import type { AvailabilityInput } from "./availability-schemas.ts";

export interface AvailabilityDeps {
  readonly db: AppDatabase;
  readonly dialect: "sqlite" | "postgres";
  readonly newId: () => string;
}

/** The user whose hours these are, for itself and its admins. @throws ProblemError 404 */
export async function visibleHost(db: AppDatabase, caller: Caller, userId: string): Promise<User> {
  const user = await findUser(db, userId);
  if (user === undefined || !canSee(caller, user)) throw notFound("user", userId);
  return user;
}

/** Replaces all hours of a user. @throws ProblemError 400, 404 */
export function replaceAvailability(
  deps: AvailabilityDeps,
  caller: Caller,
  userId: string,
  input: AvailabilityInput,
): Promise<void> {
  return inTransaction(deps.db, async (trx) => {
    // The lock makes one writer of two that replace at once; else both would insert.
    const user = await lockUser(trx, deps.dialect, userId);
    if (user === undefined || !canSee(caller, user)) throw notFound("user", userId);
    await refuseUnknownEventTypes(trx, user, input);
    await trx.deleteFrom("availability_rules").where("user_id", "=", userId).execute();
    await trx.deleteFrom("availability_overrides").where("user_id", "=", userId).execute();
    for (const part of parts(input.rules.map((rule) => ruleRow(deps.newId(), userId, rule))))
      await trx.insertInto("availability_rules").values(part).execute();
    for (const part of parts(input.overrides.map((given) => overrideRow(deps.newId(), userId, given))))
      await trx.insertInto("availability_overrides").values(part).execute();
  });
}

/** The hours of a user as the API shows them, in the order of the week and of the calendar. */
export async function readAvailability(db: AppDatabase, userId: string) {
  const rules = await db
    .selectFrom("availability_rules")
    .select(["day_of_week", "start_time", "end_time", "event_type_id"])
    .where("user_id", "=", userId)
    .orderBy("day_of_week")
    .orderBy("start_time")
    .orderBy("id")
    .execute();
  const overrides = await db
    .selectFrom("availability_overrides")
    .select(["date", "is_available", "start_time", "end_time"])
    .where("user_id", "=", userId)
    .orderBy("date")
    .orderBy("start_time")
    .execute();
  return {
    rules,
    overrides: overrides.map((row) => ({ ...row, is_available: row.is_available === 1 })),
  };
}

async function refuseUnknownEventTypes(
  trx: AppTransaction,
  user: User,
  { rules }: AvailabilityInput,
): Promise<void> {
  const named = [...new Set(rules.flatMap((rule) => rule.event_type_id ?? []))];
  if (named.length === 0) return;
  const rows = await trx
    .selectFrom("event_types")
    .select("id")
    .where("id", "in", named)
    .where("project_id", "=", user.projectId)
    .where("tenant_id", "=", user.tenantId ?? "")
    .execute();
  const known = new Set(rows.map((row) => row.id));
  const problems: FieldProblem[] = rules.flatMap(({ event_type_id: id }, index) =>
    id === undefined || id === null || known.has(id)
      ? []
      : [
          {
            pointer: `/rules/${index}/event_type_id`,
            message: "is no event type of this project and tenant",
          },
        ],
  );
  if (problems.length > 0) throw invalid(problems);
}

// Well below the number of parameters that a statement of either database may have.
const chunk = 100;

function parts<Row>(rows: readonly Row[]): Row[][] {
  return Array.from({ length: Math.ceil(rows.length / chunk) }, (_, index) =>
    rows.slice(index * chunk, (index + 1) * chunk),
  );
}

function ruleRow(
  id: string,
  userId: string,
  rule: AvailabilityInput["rules"][number],
): AvailabilityRulesTable {
  return {
    id,
    user_id: userId,
    event_type_id: rule.event_type_id ?? null,
    day_of_week: rule.day_of_week,
    start_time: rule.start_time,
    end_time: rule.end_time,
  };
}

function overrideRow(
  id: string,
  userId: string,
  given: AvailabilityInput["overrides"][number],
): AvailabilityOverridesTable {
  return {
    id,
    user_id: userId,
    date: given.date,
    is_available: given.is_available ? 1 : 0,
    start_time: given.start_time ?? null,
    end_time: given.end_time ?? null,
  };
}
