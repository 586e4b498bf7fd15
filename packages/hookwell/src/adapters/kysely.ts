import { CompiledQuery, type Transaction } from "kysely";
import type { AsyncTxAdapter, Dialect, Row } from "./seam.ts";

export { type SqliteDialectOptions, sqliteDialect } from "./kysely-sqlite-dialect.ts";

/**
 * For applications on Kysely, over PostgreSQL or SQLite: `tx` is the Transaction of `db.transaction().execute()`
 * or of `db.startTransaction()`. On SQLite make `db` with {@link sqliteDialect}, which begins IMMEDIATE.
 */
export function kysely<DB>(): AsyncTxAdapter<Transaction<DB>> {
  return { kind: "async", name: "kysely", dialect, isInTransaction, run };
}

function isInTransaction<DB>(tx: unknown): tx is Transaction<DB> {
  if (typeof tx !== "object" || tx === null || !("isTransaction" in tx) || !("getExecutor" in tx))
    return false;
  if (tx.isTransaction !== true) return false;
  // A finished transaction says so only when it is used. A stream that nobody reads runs no statement, but is
  // refused at once.
  try {
    (tx as Transaction<DB>).getExecutor().stream(CompiledQuery.raw("select 1"), 1);
    return true;
  } catch {
    return false;
  }
}

/** Kysely does not name its dialect; these two facts tell the four built-in ones, and what extends them, apart. */
function dialect<DB>(tx: Transaction<DB>): Dialect {
  const { supportsReturning, supportsTransactionalDdl } = tx.getExecutor().adapter;
  if (!supportsReturning) throw new TypeError("kysely: Hookwell speaks PostgreSQL and SQLite only.");
  return supportsTransactionalDdl ? "postgres" : "sqlite";
}

async function run<DB>(
  tx: Transaction<DB>,
  { text, params }: { readonly text: string; readonly params: readonly (string | null)[] },
): Promise<readonly Row[]> {
  // Plugins (camel case names, parsed JSON) would change the rows.
  const { rows } = await tx.withoutPlugins().executeQuery<Row>(CompiledQuery.raw(text, [...params]));
  return rows.map(withoutBigInts);
}

/** A SQLite driver set to big integers answers every integer as one. */
function withoutBigInts(row: Row): Row {
  if (!Object.values(row).some((value) => typeof value === "bigint")) return row;
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]),
  );
}
