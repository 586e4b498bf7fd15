import { DatabaseSync } from "node:sqlite";

export type SqliteValue = string | number | null | Uint8Array;

/** What the store needs of a SQLite handle: node:sqlite and better-sqlite3 have it. */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

export interface SqliteStatement {
  /** better-sqlite3 says which statements answer rows, and refuses `all` on the others. */
  readonly reader?: boolean;
  all(...params: SqliteValue[]): unknown[];
  run(...params: SqliteValue[]): unknown;
}

/** Opens a connection to the file at `path`; read-only ones only look at the version of the tables. */
export type OpenSqlite = (path: string, options: { readonly readonly: boolean }) => SqliteHandle;

export const openNodeSqlite: OpenSqlite = (path, { readonly }) =>
  new DatabaseSync(path, { readOnly: readonly });

/** Runs a statement and answers its rows, if it has any. */
export function rowsOf(statement: SqliteStatement, params: readonly SqliteValue[]): unknown[] {
  if (statement.reader !== false) return statement.all(...params);
  statement.run(...params);
  return [];
}

/**
 * Which copy of the SQLite library this is. Different answers prove that two connections of one process use
 * different copies. Those do not see each other's locks (POSIX locks belong to the process): both can write at
 * once, and the first to close deletes the other's log.
 */
export const libraryText = `
SELECT sqlite_source_id() || ' ' || (SELECT group_concat(compile_options) FROM pragma_compile_options) AS library`;

/** The copy that `open` uses. */
export function libraryOf(open: OpenSqlite): unknown {
  const handle = open(":memory:", { readonly: false });
  try {
    const [row] = rowsOf(handle.prepare(libraryText), []) as { library: unknown }[];
    return row?.library;
  } finally {
    handle.close();
  }
}
