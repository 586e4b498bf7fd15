import type { UserTies } from "../bookings/user-ties.ts";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { uniqueViolation } from "../database/unique-violation.ts";
import { notFound, ProblemError } from "../http/problem.ts";
import { refuseTaken } from "./taken.ts";
import { fromRow, toRow, type User, type UserChanges } from "./user.ts";
import { type Caller, canManage, canSee } from "./user-access.ts";
import { userEventFor } from "./user-events.ts";
import type { UserOutlets } from "./user-outlets.ts";
import { lockUser } from "./user-queries.ts";
import type { NewUser } from "./user-schemas.ts";
import { canChangeStatus } from "./user-status.ts";

export interface UserChangesDeps {
  readonly db: AppDatabase;
  readonly dialect: "sqlite" | "postgres";
  readonly outlets: UserOutlets;
  readonly ties: UserTies;
  readonly now: () => Date;
  readonly newId: () => string;
}

/** Every path that changes a user is one of these calls, and each is one transaction. */
export interface UserChangeCalls {
  /** All of them or none. @throws ProblemError 400, 409 naming the rows */
  create(caller: Caller, users: readonly NewUser[], at: (index: number) => string): Promise<User[]>;
  /**
   * Applies what `plan` makes of the user as it is now, for those who may see it.
   * @throws ProblemError 404, 409, 503 when the event could not be captured
   */
  change(caller: Caller, id: string, plan: (before: User) => UserChanges): Promise<User>;
  /** @throws ProblemError 404, 409, 503 */
  remove(caller: Caller, id: string): Promise<void>;
}

export function userChanges(deps: UserChangesDeps): UserChangeCalls {
  const { db, dialect, outlets, ties } = deps;

  async function emit(trx: AppTransaction, caller: Caller, changes: readonly Change[]): Promise<void> {
    const actor = { type: "api_key", id: caller.keyId };
    const emissions = changes.flatMap(({ before, after }) => {
      const event = userEventFor(before, after);
      const user = after ?? (before && { ...before, revision: before.revision + 1, updatedAt: nowText() });
      return event && user ? [{ event, user, actor }] : [];
    });
    if (emissions.length > 0) await outlets.emit(trx, emissions);
  }

  const nowText = (): string => deps.now().toISOString();

  async function insert(
    caller: Caller,
    users: readonly NewUser[],
    at: (index: number) => string,
  ): Promise<User[]> {
    const created = users.map((user, index) => newUser(caller, user, at(index)));
    return inTransaction(db, async (trx) => {
      await refuseTaken(trx, created, at);
      await trx.insertInto("users").values(created.map(toRow)).execute();
      await emit(
        trx,
        caller,
        created.map((after) => ({ after })),
      );
      return created;
    });
  }

  function newUser(caller: Caller, input: NewUser, at: string): User {
    const { projectId, tenantId: ownTenant } = caller.user;
    const tenantId = input.tenant_id ?? ownTenant;
    if (ownTenant !== undefined && tenantId !== ownTenant)
      throw new ProblemError("validation_failed", "An admin of a tenant creates users of that tenant only.", {
        errors: [{ pointer: `${at}/tenant_id`, message: "must be your own tenant, or absent" }],
      });
    const time = nowText();
    return {
      id: input.id ?? deps.newId(),
      projectId,
      ...(tenantId === undefined ? {} : { tenantId }),
      email: input.email,
      name: input.name,
      status: "active",
      emailVerified: false,
      ianaTimezone: input.iana_timezone ?? "UTC",
      isAdmin: input.is_admin ?? false,
      revision: 1,
      createdAt: time,
      updatedAt: time,
    };
  }

  return {
    async create(caller, users, at) {
      try {
        return await insert(caller, users, at);
      } catch (error) {
        if (uniqueViolation(error) === undefined) throw error;
        // Another writer came between our look and our insert. Now its row can be seen, so it can be named.
        return await insert(caller, users, at).catch(conflict);
      }
    },

    change(caller, id, plan) {
      return inTransaction(db, async (trx) => {
        const before = await lockUser(trx, dialect, id);
        if (before === undefined || !canSee(caller, before)) throw notFound("user", id);
        const planned = { ...before, ...plan(before) };
        refuse(caller, before, planned);
        if (sameRecord(before, planned)) return before;
        const isArchived = planned.status === "archived" && before.status !== "archived";
        if (isArchived) await ties.refuseArchive(trx, id);
        const raised = userEventFor(before, planned) === undefined ? 0 : 1;
        const row = toRow({ ...planned, updatedAt: nowText() });
        const { id: _, revision: __, created_at: ___, ...set } = row;
        const after = await trx
          .updateTable("users")
          .set((column) => ({ ...set, revision: column("revision", "+", raised) }))
          .where("id", "=", id)
          .returningAll()
          .executeTakeFirstOrThrow()
          .then(fromRow);
        if (isArchived) await outlets.disableSubscriptions(trx, after);
        await emit(trx, caller, [{ before, after }]);
        return after;
      }).catch(conflict);
    },

    remove(caller, id) {
      return inTransaction(db, async (trx) => {
        const before = await lockUser(trx, dialect, id);
        if (before === undefined || !canManage(caller, before)) throw notFound("user", id);
        if (before.id === caller.user.id) throw ownAccount("delete");
        await ties.refuseRemoval(trx, id);
        await ties.removeWith(trx, id);
        await outlets.deleteSubscriptions(trx, before);
        await trx.deleteFrom("api_keys").where("user_id", "=", id).execute();
        await trx.deleteFrom("users").where("id", "=", id).execute();
        await emit(trx, caller, [{ before }]);
      });
    },
  };
}

interface Change {
  readonly before?: User;
  readonly after?: User;
}

function refuse(caller: Caller, before: User, planned: User): void {
  if (!canChangeStatus(before.status, planned.status))
    throw new ProblemError("conflict", `A user that is ${before.status} cannot become ${planned.status}.`);
  if (before.id !== caller.user.id) return;
  if (planned.status !== "active") throw ownAccount("deactivate");
  if (before.isAdmin && !planned.isAdmin) throw ownAccount("demote");
}

/** So that a project never loses its last admin by mistake. */
function ownAccount(action: string): ProblemError {
  return new ProblemError("conflict", `You cannot ${action} your own account; another admin can.`);
}

function sameRecord(left: User, right: User): boolean {
  const [a, b] = [toRow(left), toRow(right)];
  return (Object.keys(a) as (keyof typeof a)[]).every((column) => a[column] === b[column]);
}

/** A unique constraint speaks in the database's words; the caller gets the field. */
function conflict(error: unknown): never {
  const violated = uniqueViolation(error);
  if (violated === undefined) throw error;
  if (violated.includes("email"))
    throw new ProblemError(
      "email_taken",
      "Another user of this project and tenant has this e-mail address.",
      {
        errors: [{ pointer: "/email", message: "is taken" }],
        cause: error,
      },
    );
  throw new ProblemError("conflict", "A user with this id exists already.", {
    errors: [{ pointer: "/id", message: "is taken" }],
    cause: error,
  });
}
