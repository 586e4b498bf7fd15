import { DatabaseSync } from "node:sqlite";
import { sqliteDialect } from "hookwell/kysely";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { databaseFailure } from "./database-failure.ts";
import type { AppDatabase, AppTables } from "./schema.ts";

/** Where the application keeps its rows, and Hookwell its own beside them. */
export type DatabaseLocation =
  | { readonly dialect: "sqlite"; readonly path: string }
  | { readonly dialect: "postgres"; readonly url: string };

export interface OpenDatabase {
  readonly db: AppDatabase;
  readonly dialect: "sqlite" | "postgres";
  close(): Promise<void>;
}

/** Opens the application's own connections. Hookwell opens others: neither waits for the other's. @throws StorageError */
export function openDatabase(location: DatabaseLocation): OpenDatabase {
  const dialect =
    location.dialect === "sqlite"
      ? openSqlite(location.path)
      : new PostgresDialect({ pool: openPool(location.url) });
  const db = new Kysely<AppTables>({ dialect });
  return { db, dialect: location.dialect, close: () => db.destroy() };
}

function openSqlite(path: string) {
  try {
    // Waiting is for other processes' writers; in this one no write transaction of Hookwell spans an await.
    const database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    return sqliteDialect({ database });
  } catch (error) {
    throw databaseFailure(`open ${path}`, error);
  }
}

function openPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 10, allowExitOnIdle: true });
  // A connection that dies, idle or inside a transaction, must not end the process; the next query reports it.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
