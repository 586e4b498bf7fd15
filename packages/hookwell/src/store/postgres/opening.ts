import { ConfigurationError } from "../../model/errors.ts";
import type { KeyRing } from "../sealing.ts";
import type { Database } from "./database.ts";
import { integer, text } from "./rows.ts";

const oldestServer = 140_000;

/** @throws ConfigurationError for a server that the statements of this store do not run on */
export async function checkServer(db: Database): Promise<void> {
  const [row] = await db.run({
    text: "SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding",
    params: [],
  });
  if (integer(row!, "version") < oldestServer)
    throw new ConfigurationError(
      `PostgreSQL ${Math.floor(integer(row!, "version") / 10_000)} is too old; Hookwell needs 14 or newer.`,
    );
  if (text(row!, "encoding") !== "UTF8")
    throw new ConfigurationError(
      `The database has the encoding ${text(row!, "encoding")}; Hookwell needs one created with ENCODING 'UTF8'.`,
    );
}

/**
 * Proves that the keys open what is stored, and leaves a check value for the newest one. Two processes that start
 * at once with different keys of one id cannot both pass: the second reads what the first wrote.
 * @throws EncryptionKeyError
 */
export async function checkKeys(db: Database, keys: KeyRing): Promise<void> {
  const missing = await verifyKeys(db, keys);
  if (missing.size === 0) return;
  for (const [key, value] of missing)
    await db.run({
      text: `INSERT INTO ${db.schema}.meta (key, value) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING`,
      params: [key, value],
    });
  await verifyKeys(db, keys);
}

/** Proves it without a trace; answers the check values that are missing. @throws EncryptionKeyError */
export async function verifyKeys(db: Database, keys: KeyRing): Promise<ReadonlyMap<string, string>> {
  const rows = await db.run({ text: `SELECT m.key, m.value FROM ${db.schema}.meta m`, params: [] });
  return keys.verify(new Map(rows.map((row) => [text(row, "key"), text(row, "value")])));
}
