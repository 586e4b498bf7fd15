import type { AsyncTxAdapter, SyncTxAdapter, TxAdapter } from "../adapters/seam.ts";
import { ConfigurationError, NotInTransactionError } from "../model/errors.ts";
import type { OutboxStore, Scope } from "../store/contract.ts";

export type AsyncScope = Exclude<Scope, { kind: "sync" }>;
export type SyncScope = Extract<Scope, { kind: "sync" }>;

/** Decides whose transaction a write joins. */
export class Scopes {
  readonly #adapter: TxAdapter<unknown> | undefined;
  readonly #dialect: OutboxStore["dialect"];

  constructor(adapter: TxAdapter<unknown> | undefined, dialect: OutboxStore["dialect"]) {
    this.#adapter = adapter;
    this.#dialect = dialect;
  }

  /** @throws NotInTransactionError, ConfigurationError */
  forAsync(tx: unknown): AsyncScope {
    if (tx === "own") return { kind: "own" };
    const adapter = this.#checked(tx);
    if (adapter.kind === "async") return { kind: "async", adapter, tx };
    throw new ConfigurationError(
      `This call is asynchronous and a ${adapter.name} transaction is not: during an await, statements of other requests would join it. Use emitSync() inside the transaction, or tx: "own".`,
      "async_in_sync_transaction",
    );
  }

  /** @throws NotInTransactionError, ConfigurationError */
  forSync(tx: unknown): SyncScope {
    if (tx === "own")
      throw new ConfigurationError(
        'emitSync() writes into your transaction; for one of its own use await emit(…, { tx: "own" }).',
      );
    const adapter = this.#checked(tx);
    if (adapter.kind === "sync") return { kind: "sync", adapter, tx };
    throw new ConfigurationError(
      `emitSync() needs a synchronous SQLite handle and ${adapter.name} is asynchronous; use await emit().`,
    );
  }

  /** The adapter of a synchronous client. @throws ConfigurationError */
  sync(): SyncTxAdapter<unknown> {
    if (this.#adapter?.kind === "sync") return this.#adapter;
    throw new ConfigurationError(
      "transaction() begins a synchronous SQLite transaction; createHookwell needs tx: nodeSqlite() or betterSqlite3() for it.",
    );
  }

  #checked(tx: unknown): AsyncTxAdapter<unknown> | SyncTxAdapter<unknown> {
    if (tx === undefined || tx === null)
      throw new NotInTransactionError('No "tx" was given, so the event could commit without its change.');
    const adapter = this.#adapter;
    if (!adapter)
      throw new ConfigurationError(
        'createHookwell was made without "tx", so it does not know your transactions; give it the adapter of your client, such as tx: kysely().',
      );
    if (!adapter.isInTransaction(tx))
      throw new NotInTransactionError(
        `The value given as tx is not an open ${adapter.name} transaction: it is a pool, a database or a client outside of a transaction, or one whose transaction failed or is over.`,
      );
    const dialect = adapter.dialect(tx);
    if (dialect !== this.#dialect)
      throw new ConfigurationError(
        `The transaction speaks ${dialect} and the store is ${this.#dialect}: an event can commit together with its change only in the same database.`,
      );
    return adapter;
  }
}
