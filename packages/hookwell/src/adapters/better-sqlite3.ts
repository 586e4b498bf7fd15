import type { Row, SyncTxAdapter } from "./seam.ts";
import { immediately } from "./sync-transaction.ts";

/** What Hookwell needs of a better-sqlite3 `Database`. */
export interface BetterSqlite3Database {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  prepare(sql: string): BetterSqlite3Statement;
}

export interface BetterSqlite3Statement {
  readonly reader: boolean;
  safeIntegers(enabled: boolean): unknown;
  all(...params: (string | null)[]): unknown[];
  run(...params: (string | null)[]): unknown;
}

/** For applications on better-sqlite3: `tx` is the `Database` inside `db.transaction()` or after BEGIN. */
export function betterSqlite3(): SyncTxAdapter<BetterSqlite3Database> {
  return {
    kind: "sync",
    name: "better-sqlite3",
    dialect: () => "sqlite",
    isInTransaction: (tx): tx is BetterSqlite3Database =>
      typeof tx === "object" && tx !== null && "inTransaction" in tx && tx.inTransaction === true,
    run(tx, { text, params }) {
      const statement = tx.prepare(text);
      if (!statement.reader) {
        statement.run(...params);
        return [];
      }
      // The application may have made big integers its default.
      statement.safeIntegers(false);
      return statement.all(...params) as Row[];
    },
    transaction: (database, fn) => immediately(database, () => database.inTransaction, fn),
  };
}
