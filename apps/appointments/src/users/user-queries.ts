import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import type { PageRequest } from "../http/paging.ts";
import { fromRow, type User } from "./user.ts";
import type { Caller } from "./user-access.ts";
import type { UserStatus } from "./user-status.ts";

export interface UserFilter {
  readonly status?: UserStatus;
  readonly emailKey?: string;
  readonly tenantId?: string;
}

export async function findUser(db: AppDatabase, id: string): Promise<User | undefined> {
  const row = await db.selectFrom("users").selectAll().where("id", "=", id).executeTakeFirst();
  return row && fromRow(row);
}

/**
 * The user as it is now, and nobody changes it before the transaction ends: a row lock on PostgreSQL; on SQLite
 * the transaction, begun IMMEDIATE, is the only writer already.
 */
export async function lockUser(
  trx: AppTransaction,
  dialect: "sqlite" | "postgres",
  id: string,
): Promise<User | undefined> {
  const query = trx.selectFrom("users").selectAll().where("id", "=", id);
  const row = await (dialect === "postgres" ? query.forUpdate() : query).executeTakeFirst();
  return row && fromRow(row);
}

/** Users the caller may see, newest first; one row more than the limit tells that there is a next page. */
export async function listUsers(
  db: AppDatabase,
  caller: Caller,
  filter: UserFilter,
  page: PageRequest,
): Promise<{ readonly items: User[]; readonly more: boolean }> {
  let query = db
    .selectFrom("users")
    .selectAll()
    .where("project_id", "=", caller.user.projectId)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(page.limit + 1);
  if (!caller.user.isAdmin) query = query.where("id", "=", caller.user.id);
  if (caller.user.tenantId !== undefined) query = query.where("tenant_id", "=", caller.user.tenantId);
  if (filter.tenantId !== undefined) query = query.where("tenant_id", "=", filter.tenantId);
  if (filter.status !== undefined) query = query.where("status", "=", filter.status);
  if (filter.emailKey !== undefined) query = query.where("email_key", "=", filter.emailKey);
  const after = page.after;
  if (after !== undefined)
    query = query.where((where) =>
      where.or([
        where("created_at", "<", after.at),
        where.and([where("created_at", "=", after.at), where("id", "<", after.id)]),
      ]),
    );
  const rows = await query.execute();
  return { items: rows.slice(0, page.limit).map(fromRow), more: rows.length > page.limit };
}

/** Which of these addresses are taken, as (tenant, key) pairs. At most a few hundred at a time. */
export async function takenEmails(
  trx: AppTransaction,
  projectId: string,
  emailKeys: readonly string[],
): Promise<{ readonly tenantId: string; readonly emailKey: string }[]> {
  const rows = await trx
    .selectFrom("users")
    .select(["tenant_id", "email_key"])
    .where("project_id", "=", projectId)
    .where("email_key", "in", emailKeys)
    .execute();
  return rows.map((row) => ({ tenantId: row.tenant_id, emailKey: row.email_key }));
}

/** Which of these ids are taken. At most a few hundred at a time. */
export async function takenIds(trx: AppTransaction, ids: readonly string[]): Promise<string[]> {
  const rows = await trx.selectFrom("users").select("id").where("id", "in", ids).execute();
  return rows.map((row) => row.id);
}
