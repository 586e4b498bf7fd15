import { HookwellError, SchemaVersionError, StorageError } from "../../model/errors.ts";

const busy = 5;
const locked = 6;
/** Primary result codes of SQLite that mean the database cannot be used now, and what to do about each. */
const meanings: Readonly<Record<number, string>> = {
  [busy]: "is busy: another connection held its write lock for too long. Keep write transactions short",
  [locked]: "is locked by another statement of this process",
  8: "is read-only: give this process write access to the file and its directory",
  10: "cannot be read or written (I/O error): check the disk",
  11: "is damaged: restore it from a backup",
  13: "or its disk is full: make room, then work goes on by itself",
  14: "cannot be opened: check that the directory exists and may be written",
  26: "is not a SQLite database",
};

/** Names that better-sqlite3 gives to the codes of {@link meanings}; extended ones begin with them. */
const names: readonly (readonly [string, number])[] = [
  ["SQLITE_BUSY", busy],
  ["SQLITE_LOCKED", locked],
  ["SQLITE_READONLY", 8],
  ["SQLITE_IOERR", 10],
  ["SQLITE_CORRUPT", 11],
  ["SQLITE_FULL", 13],
  ["SQLITE_CANTOPEN", 14],
  ["SQLITE_NOTADB", 26],
];

/** The primary result code of an error of node:sqlite or better-sqlite3; 0 when it is none. */
function resultCode(error: unknown): number {
  if (typeof error !== "object" || error === null) return 0;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode & 0xff;
  const code = "code" in error ? String(error.code) : "";
  return names.find(([name]) => code.startsWith(name))?.[1] ?? 0;
}

/** True when another connection holds the lock that was needed. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error instanceof StorageError ? error.cause : error);
  return code === busy || code === locked;
}

/** An error of our own connection as the error to show; others pass as they are. */
export function storageError(error: unknown, path: string): unknown {
  if (error instanceof HookwellError) return error;
  const missing = schemaError(error, `The database ${path}`);
  if (missing) return missing;
  const meaning = meanings[resultCode(error)];
  if (!meaning) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new StorageError(`The database ${path} ${meaning}. (SQLite: ${message})`, { cause: error });
}

/**
 * An error of a statement in the application's transaction. A busy one passes as it is: what retries the
 * application's transactions knows it.
 */
export function hostError(error: unknown): unknown {
  if (error instanceof HookwellError || isBusy(error)) return error;
  return schemaError(error, "The database of the transaction") ?? storageError(error, "of the transaction");
}

/** A statement that failed because our tables are missing, or are of another version. */
function schemaError(error: unknown, database: string): SchemaVersionError | undefined {
  if (!(error instanceof Error)) return undefined;
  if (/no such table: (main\.)?hookwell_/.test(error.message))
    return new SchemaVersionError(
      `${database} has no Hookwell tables (${error.message}); run \`hookwell migrate\` on this file, and check that the application and Hookwell use the same one.`,
    );
  if (
    /(no such column: |no such index: |has no column named )/.test(error.message) &&
    /hookwell_/.test(error.message)
  )
    return new SchemaVersionError(
      `${database} has Hookwell tables of another version (${error.message}); run \`hookwell migrate\`.`,
    );
  return undefined;
}
