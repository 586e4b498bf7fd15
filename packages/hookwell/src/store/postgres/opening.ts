import { runProgram } from "../../adapters/seam.ts";
import { ConfigurationError } from "../../model/errors.ts";
import type { KeyRing } from "../sealing.ts";
import type { Database } from "./database.ts";
import { keyRecordTexts, recordKeys, toRecords } from "./key-records.ts";
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

/** Proves that the keys open what is stored, and makes the newest one known. @throws EncryptionKeyError */
export async function checkKeys(db: Database, keys: KeyRing): Promise<void> {
  if ((await verifyKeys(db, keys)).size > 0)
    await db.transaction((run) => runProgram(recordKeys(db.schema, keys), run));
}

/** Proves it without a trace; answers the records that are missing. @throws EncryptionKeyError */
export async function verifyKeys(db: Database, keys: KeyRing): Promise<ReadonlyMap<string, string>> {
  return keys.verify(toRecords(await db.run({ text: keyRecordTexts(db.schema).read, params: [] })));
}
