import { hash } from "node:crypto";
import type { Clock } from "../model/clock.ts";
import { NotFoundError, ValidationError } from "../model/errors.ts";
import { checkName } from "../model/identifiers.ts";
import type { IdFunc, RandomBytes } from "../model/ids.ts";
import type { Observer } from "../model/observe.ts";
import type { ApiKeyRecord, OutboxStore } from "../store/contract.ts";
import { checkAll, checkedPage } from "./checks.ts";
import type { ApiKeys } from "./surface.ts";

/** What a key of the server may allow; `admin` contains the others. */
export const apiScopes = ["emit", "read", "operate", "manage", "admin"] as const;
export type ApiScope = (typeof apiScopes)[number];

/** How exactly "last used" is kept: a busy key must not cost a write for each request. */
const touchEveryMs = 60_000;

export function manageKeys(parts: {
  readonly store: OutboxStore;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly keyId: IdFunc;
  readonly observe: Observer;
}): ApiKeys {
  const { store, clock, random, keyId, observe } = parts;

  async function touch(record: ApiKeyRecord, at: Date): Promise<void> {
    if (record.lastUsedAt && at.getTime() - record.lastUsedAt.getTime() < touchEveryMs) return;
    try {
      await store.touchApiKey(record.id, at);
    } catch (error) {
      // A full or read-only database must not lock its operator out.
      const message = error instanceof Error ? error.message : String(error);
      observe("warning", { message: `The last use of key ${record.id} was not recorded: ${message}` });
    }
  }

  return {
    async create({ name, scopes, projectId, expiresAt, key: chosen }) {
      checkAll([
        () => checkName(name, "name"),
        () => checkScopes(scopes),
        () => projectId === undefined || checkName(projectId, "projectId"),
        () => expiresAt === undefined || checkExpiry(expiresAt),
        () => chosen === undefined || checkChosenKey(chosen),
      ]);
      const key = chosen ?? `hwk_${Buffer.from(random(32)).toString("base64url")}`;
      const record: ApiKeyRecord = {
        id: keyId(),
        name,
        scopes: [...new Set(scopes)],
        ...(projectId !== undefined && { projectId }),
        createdAt: clock(),
        ...(expiresAt && { expiresAt }),
      };
      await store.createApiKey({ ...record, hash: hashOf(key) });
      return { ...record, key };
    },
    async authenticate(key) {
      const record = await store.findApiKey(hashOf(key));
      const now = clock();
      if (!record || (record.expiresAt && record.expiresAt <= now)) return undefined;
      await touch(record, now);
      return record;
    },
    list: async (page) => store.listApiKeys(checkedPage(page), page?.projectId),
    async delete(id, { projectId } = {}) {
      if (!(await store.deleteApiKey(id, projectId))) throw new NotFoundError("key", id);
    },
  };
}

/** 256 random bits need no slow hash; the store keeps only this. */
function hashOf(key: string): string {
  return hash("sha256", key, "hex");
}

function refuse(field: string, message: string): never {
  throw new ValidationError([{ pointer: `/${field}`, message }]);
}

function checkScopes(scopes: readonly string[]): void {
  const known: readonly string[] = apiScopes;
  if (!Array.isArray(scopes) || scopes.length === 0 || scopes.some((scope) => !known.includes(scope)))
    refuse("scopes", `must be a list of ${apiScopes.join(", ")}, at least one`);
}

function checkExpiry(expiresAt: Date): void {
  if (!(expiresAt instanceof Date) || Number.isNaN(expiresAt.getTime()))
    refuse("expiresAt", "must be a time");
}

function checkChosenKey(key: string): void {
  if (typeof key !== "string" || !/^[\x21-\x7e]{16,256}$/.test(key))
    refuse("key", "must be 16 to 256 visible ASCII characters, such as 32 random bytes in hex");
}
