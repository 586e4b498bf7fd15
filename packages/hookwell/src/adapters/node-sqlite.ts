import type { Row, SyncTxAdapter } from "./seam.ts";
import { immediately } from "./sync-transaction.ts";

/** What Hookwell needs of a `DatabaseSync` of node:sqlite. */
export interface NodeSqliteDatabase {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): {
    setReadBigInts(enabled: boolean): void;
    setReturnArrays(enabled: boolean): void;
    all(...params: (string | null)[]): unknown[];
  };
}

/** For applications on node:sqlite: `tx` is the `DatabaseSync` on which BEGIN was run. */
export function nodeSqlite(): SyncTxAdapter<NodeSqliteDatabase> {
  return {
    kind: "sync",
    name: "node:sqlite",
    dialect: () => "sqlite",
    isInTransaction: (tx): tx is NodeSqliteDatabase =>
      typeof tx === "object" &&
      tx !== null &&
      "isTransaction" in tx &&
      "exec" in tx &&
      tx.isTransaction === true,
    run(tx, { text, params }) {
      const statement = tx.prepare(text);
      // The application may have opened its database with other result shapes.
      statement.setReadBigInts(false);
      statement.setReturnArrays(false);
      return statement.all(...params) as Row[];
    },
    transaction: (database, fn) => immediately(database, () => database.isTransaction, fn),
  };
}
