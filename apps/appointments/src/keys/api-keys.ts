import { createHash, randomBytes } from "node:crypto";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { notFound } from "../http/problem.ts";
import { fromRow } from "../users/user.ts";
import { type Caller, canSee } from "../users/user-access.ts";
import { findUser } from "../users/user-queries.ts";

/** What is stored of a key. */
export function hashKey(key: string): string {
  return createHash("sha256").update(key, "utf8").digest("hex");
}

export interface ApiKeyDeps {
  readonly db: AppDatabase;
  readonly now: () => Date;
  readonly newId: () => string;
}

export interface ApiKeyCalls {
  /** The user whose key this is. Keys of users that are not active do not count. */
  authenticate(key: string): Promise<Caller | undefined>;
  /** A new key; the answer is the only time it is seen. @throws ProblemError 404 */
  create(
    caller: Caller,
    userId: string,
    name: string,
  ): Promise<{ readonly id: string; readonly key: string }>;
}

export function apiKeys(deps: ApiKeyDeps): ApiKeyCalls {
  return {
    async authenticate(key) {
      const row = await deps.db
        .selectFrom("api_keys")
        .innerJoin("users", "users.id", "api_keys.user_id")
        .selectAll("users")
        .select("api_keys.id as key_id")
        .where("api_keys.hash", "=", hashKey(key))
        .where("users.status", "=", "active")
        .executeTakeFirst();
      return row && { user: fromRow(row), keyId: row.key_id };
    },
    async create(caller, userId, name) {
      const user = await findUser(deps.db, userId);
      if (user === undefined || !canSee(caller, user)) throw notFound("user", userId);
      const key = `apk_${randomBytes(32).toString("base64url")}`;
      const id = await storeKey(deps.db, deps, { userId, name, key });
      return { id, key };
    },
  };
}

/** Stores the hash of a key for a user; answers the key's id. */
export async function storeKey(
  db: AppDatabase | AppTransaction,
  deps: Pick<ApiKeyDeps, "now" | "newId">,
  key: { readonly userId: string; readonly name: string; readonly key: string },
): Promise<string> {
  const id = `key_${deps.newId()}`;
  await db
    .insertInto("api_keys")
    .values({
      id,
      user_id: key.userId,
      name: key.name,
      hash: hashKey(key.key),
      created_at: deps.now().toISOString(),
    })
    .execute();
  return id;
}

/** Makes a key valid for a user unless it is somebody's already. */
export async function ensureKey(
  db: AppDatabase | AppTransaction,
  deps: Pick<ApiKeyDeps, "now" | "newId">,
  key: { readonly userId: string; readonly name: string; readonly key: string },
): Promise<void> {
  const known = await db
    .selectFrom("api_keys")
    .select("id")
    .where("hash", "=", hashKey(key.key))
    .executeTakeFirst();
  if (known === undefined) await storeKey(db, deps, key);
}
