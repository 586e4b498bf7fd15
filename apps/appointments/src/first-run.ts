import { firstAdminKey } from "@hookwell/server";
import type { AppDatabase, AppTransaction } from "./database/schema.ts";
import { inTransaction } from "./database/transaction-guard.ts";
import { uniqueViolation } from "./database/unique-violation.ts";
import type { AppHooks } from "./hooks.ts";
import { ensureKey } from "./keys/api-keys.ts";
import { fromRow, toRow, type User } from "./users/user.ts";
import { userEventFor } from "./users/user-events.ts";
import type { UserOutlets } from "./users/user-outlets.ts";

export interface FirstRunDeps {
  readonly db: AppDatabase;
  readonly hooks: AppHooks;
  readonly outlets: Pick<UserOutlets, "emit">;
  readonly project: string;
  readonly now: () => Date;
  readonly newId: () => string;
  /** Makes what else a first run makes, in the same transaction. */
  readonly alsoMake: (trx: AppTransaction, admin: User) => Promise<void>;
}

export interface FirstRun {
  readonly admin: User;
  /** The admin key when it was made now: print it, it cannot be shown again. */
  readonly newKey?: string;
}

/**
 * Sees to it that there is an admin with a key that is valid for the application and for the Hookwell API: on
 * the first run both are made; a key that the operator gives becomes one on any run, so a lost key is no lock-out.
 */
export async function firstRun(deps: FirstRunDeps, given: string | undefined): Promise<FirstRun> {
  const { db, hooks } = deps;
  const hookwellKey = await firstAdminKey(hooks, given);
  let { key, made } = hookwellKey;
  if (key === undefined && (await firstAdmin(db)) === undefined) {
    // The Hookwell tables were here before the application, or its first start ended half-way.
    key = (await hooks.keys.create({ name: "first admin key of appointments", scopes: ["admin"] })).key;
    made = true;
  }
  const admin = await ensureAdmin(deps, key);
  return { admin, ...(made && given === undefined && key !== undefined ? { newKey: key } : {}) };
}

async function ensureAdmin(deps: FirstRunDeps, key: string | undefined): Promise<User> {
  const once = (): Promise<User> =>
    inTransaction(deps.db, async (trx) => {
      const admin = (await firstAdmin(trx)) ?? (await createAdmin(deps, trx));
      if (key !== undefined) await ensureKey(trx, deps, { userId: admin.id, name: "First admin key", key });
      return admin;
    });
  try {
    return await once();
  } catch (error) {
    // Two replicas that start together both find nobody; the second finds the first one's admin now.
    if (uniqueViolation(error) === undefined) throw error;
    return await once();
  }
}

async function createAdmin(deps: FirstRunDeps, trx: AppTransaction): Promise<User> {
  const time = deps.now().toISOString();
  const admin: User = {
    id: deps.newId(),
    projectId: deps.project,
    email: "admin@localhost",
    name: "First admin",
    status: "active",
    emailVerified: false,
    ianaTimezone: "UTC",
    isAdmin: true,
    revision: 1,
    createdAt: time,
    updatedAt: time,
  };
  await trx.insertInto("users").values(toRow(admin)).execute();
  await deps.alsoMake(trx, admin);
  const event = userEventFor(undefined, admin);
  // Nobody can have asked for the events of a project before its first user. An empty audience says so: the
  // event is in the list, unmatched.
  const actor = { type: "system", id: "first-run" };
  if (event) await deps.outlets.emit(trx, [{ event, user: admin, actor, audience: [] }]);
  return admin;
}

/** The oldest active admin, or undefined before the first run. */
async function firstAdmin(db: AppDatabase): Promise<User | undefined> {
  const row = await db
    .selectFrom("users")
    .selectAll()
    .where("is_admin", "=", 1)
    .where("status", "=", "active")
    .orderBy("created_at")
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  return row && fromRow(row);
}
