import type { Row } from "../../adapters/seam.ts";
import { DuplicateIdError } from "../../model/errors.ts";
import type { ApiKeyRecord, Page, PageOf } from "../contract.ts";
import { storable } from "../storable.ts";
import type { Connection } from "./connection.ts";
import { condition, type Listing, readPage } from "./pages.ts";
import { date, optionalDate, optionalText, present, text } from "./rows.ts";

const columns = "k.id, k.name, k.scopes, k.project_id, k.created_at, k.expires_at, k.last_used_at";
const createText = `
INSERT INTO hookwell_api_key (id, hash, name, scopes, project_id, created_at, expires_at, last_used_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
RETURNING id`;
const findKeyText = `SELECT ${columns} FROM hookwell_api_key k WHERE k.hash = ?`;

/** Inside a write. @throws DuplicateIdError */
export function createApiKey(connection: Connection, key: ApiKeyRecord & { readonly hash: string }): void {
  const { id, hash, name, scopes, projectId, createdAt, expiresAt, lastUsedAt } = key;
  const rows = connection.all(createText, [
    id,
    hash,
    storable(name),
    JSON.stringify(scopes),
    projectId ?? null,
    createdAt.getTime(),
    expiresAt?.getTime() ?? null,
    lastUsedAt?.getTime() ?? null,
  ]);
  if (rows.length === 0) throw new DuplicateIdError("API key", id);
}

export function findApiKey(connection: Connection, hash: string): ApiKeyRecord | undefined {
  const [row] = connection.all(findKeyText, [hash]);
  return row && toApiKey(row);
}

/** Inside a write. */
export function touchApiKey(connection: Connection, id: string, at: Date): void {
  connection.all("UPDATE hookwell_api_key SET last_used_at = ? WHERE id = ?", [at.getTime(), id]);
}

/** Inside a write: true when there was one. */
export function deleteApiKey(connection: Connection, id: string, projectId: string | undefined): boolean {
  return connection.all(deleteText, [id, projectId ?? null]).length > 0;
}

const deleteText =
  "DELETE FROM hookwell_api_key WHERE id = ? AND project_id IS coalesce(?, project_id) RETURNING id";

function keyListing(projectId: string | undefined): Listing {
  const index = projectId === undefined ? "hookwell_api_key_list" : "hookwell_api_key_project";
  return {
    columns,
    from: `hookwell_api_key k INDEXED BY ${index}`,
    joins: "",
    time: "k.created_at",
    id: "k.id",
    served: projectId === undefined ? [] : [condition("k.project_id = ?", projectId)],
    filters: [],
  };
}

export function listApiKeys(
  connection: Connection,
  page: Page,
  projectId: string | undefined,
): Promise<PageOf<ApiKeyRecord>> {
  return readPage(connection, keyListing(projectId), {}, page, toApiKey);
}

function toApiKey(row: Row): ApiKeyRecord {
  return present<ApiKeyRecord>({
    id: text(row.id),
    name: text(row.name),
    scopes: JSON.parse(text(row.scopes)) as string[],
    projectId: optionalText(row.project_id),
    createdAt: date(row.created_at),
    expiresAt: optionalDate(row.expires_at),
    lastUsedAt: optionalDate(row.last_used_at),
  });
}
