import type { AsyncTxAdapter, Row } from "./seam.ts";

/** What Hookwell needs of a `pg` client (8.23 or newer), so that the driver is no dependency. */
export interface PgTransaction {
  query(text: string, values: string[]): Promise<{ rows: Row[] }>;
  /** "T" inside a transaction, "E" inside a failed one, "I" outside. */
  getTransactionStatus(): string | null;
}

/** The part that both the call below and the driver's own, much overloaded `query` satisfy. */
interface PgQuery {
  query(text: string, values: (string | null)[]): Promise<{ rows: Row[] }>;
}

/**
 * For applications whose transactions are `pg` clients: `tx` is the client on which `BEGIN` was awaited. A Pool,
 * an idle client and a client whose transaction failed are refused.
 */
export function pgTx(): AsyncTxAdapter<PgTransaction> {
  return {
    kind: "async",
    name: "pg",
    dialect: () => "postgres",
    isInTransaction: (tx): tx is PgTransaction =>
      typeof tx === "object" &&
      tx !== null &&
      "getTransactionStatus" in tx &&
      typeof tx.getTransactionStatus === "function" &&
      tx.getTransactionStatus() === "T",
    async run(tx, { text, params }) {
      const { rows } = await (tx as PgQuery).query(text, [...params]);
      // A COMMIT that was sent but not awaited ran first: the event is then outside of what it belongs to.
      if (tx.getTransactionStatus() === "I")
        throw new Error(
          "pg: the transaction ended before the statement ran; await hooks.emit() before you commit, and never commit meanwhile.",
        );
      return rows;
    },
  };
}
