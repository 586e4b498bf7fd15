import type { Row } from "../../adapters/seam.ts";
import { DuplicateIdError } from "../../model/errors.ts";
import type { ApiKeyRecord, Page, PageOf } from "../contract.ts";
import { storable } from "../storable.ts";
import type { Database } from "./database.ts";
import { Conditions, pageOf } from "./lists.ts";
import { date, defined, json, optionalDate, optionalText, text } from "./rows.ts";

export async function createApiKey(
  db: Database,
  key: ApiKeyRecord & { readonly hash: string },
): Promise<void> {
  const rows = await db.run({
    text: `INSERT INTO ${db.schema}.api_key (id, hash, name, scopes, project_id, created_at, expires_at, last_used_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text::bigint, $7::text::bigint, $8::text::bigint)
ON CONFLICT DO NOTHING
RETURNING 1 AS written`,
    params: [
      key.id,
      key.hash,
      storable(key.name),
      JSON.stringify(key.scopes),
      key.projectId ?? null,
      String(key.createdAt.getTime()),
      key.expiresAt ? String(key.expiresAt.getTime()) : null,
      key.lastUsedAt ? String(key.lastUsedAt.getTime()) : null,
    ],
  });
  if (rows.length === 0) throw new DuplicateIdError("API key", key.id);
}

export async function findApiKey(db: Database, hash: string): Promise<ApiKeyRecord | undefined> {
  const [row] = await db.run({
    text: `SELECT k.* FROM ${db.schema}.api_key k WHERE k.hash = $1::text`,
    params: [hash],
  });
  return row && toApiKey(row);
}

export async function touchApiKey(db: Database, id: string, at: Date): Promise<void> {
  await db.run({
    text: `UPDATE ${db.schema}.api_key SET last_used_at = $1::text::bigint WHERE id = $2::text`,
    params: [String(at.getTime()), id],
  });
}

export async function listApiKeys(
  db: Database,
  page: Page,
  projectId: string | undefined,
): Promise<PageOf<ApiKeyRecord>> {
  const where = new Conditions();
  where.equal("k.project_id", projectId);
  const sql = `SELECT k.*, k.created_at AS at FROM ${db.schema}.api_key k`;
  return await pageOf(db, where, sql, "k.created_at", "k.id", page, toApiKey);
}

export async function deleteApiKey(
  db: Database,
  id: string,
  projectId: string | undefined,
): Promise<boolean> {
  const rows = await db.run({
    text: `DELETE FROM ${db.schema}.api_key k
WHERE k.id = $1::text AND k.project_id IS NOT DISTINCT FROM coalesce($2::text, k.project_id)
RETURNING 1 AS gone`,
    params: [id, projectId ?? null],
  });
  return rows.length > 0;
}

function toApiKey(row: Row): ApiKeyRecord {
  return defined<ApiKeyRecord>({
    id: text(row, "id"),
    name: text(row, "name"),
    scopes: json<string[]>(row, "scopes"),
    projectId: optionalText(row, "project_id"),
    createdAt: date(row, "created_at"),
    expiresAt: optionalDate(row, "expires_at"),
    lastUsedAt: optionalDate(row, "last_used_at"),
  });
}
