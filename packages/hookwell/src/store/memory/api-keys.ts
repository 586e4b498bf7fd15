import { DuplicateIdError } from "../../model/errors.ts";
import type { ApiKeyRecord } from "../contract.ts";
import { storable } from "../storable.ts";
import { withoutHash } from "./lists.ts";
import type { MemoryState } from "./state.ts";

export function createApiKey({ apiKeys }: MemoryState, key: ApiKeyRecord & { readonly hash: string }): void {
  for (const row of apiKeys.values())
    if (row.id === key.id || row.hash === key.hash) throw new DuplicateIdError("API key", key.id);
  apiKeys.set(key.id, { ...structuredClone(key), name: storable(key.name) });
}

export function findApiKey({ apiKeys }: MemoryState, hash: string): ApiKeyRecord | undefined {
  for (const row of apiKeys.values()) if (row.hash === hash) return withoutHash(row);
  return undefined;
}

export function touchApiKey({ apiKeys }: MemoryState, id: string, at: Date): void {
  const row = apiKeys.get(id);
  if (row) apiKeys.set(id, { ...row, lastUsedAt: new Date(at) });
}

export function deleteApiKey({ apiKeys }: MemoryState, id: string, projectId?: string): boolean {
  const row = apiKeys.get(id);
  if (!row || (projectId !== undefined && row.projectId !== projectId)) return false;
  apiKeys.delete(id);
  return true;
}
