import type { AsyncTxAdapter, Row } from "../../adapters/seam.ts";
import { ConfigurationError, NotInTransactionError } from "../../model/errors.ts";
import { MemoryState } from "./state.ts";

/** A change of the state; run on a layer, so that one that throws changes nothing. */
export type Write<T> = (state: MemoryState) => T;

/**
 * A transaction of a MemoryOutbox. Its writes are seen by itself only, until it commits; then they are made
 * once more on the state as it is by then, so that one which conflicts with what was committed meanwhile
 * rejects the commit, and nothing of it stays.
 */
export class MemoryTransaction {
  /** The store it belongs to. */
  readonly owner: object;
  readonly #state: MemoryState;
  readonly #writes: Write<unknown>[] = [];
  #open = true;
  #nested = false;

  constructor(owner: object, state: MemoryState) {
    this.owner = owner;
    this.#state = new MemoryState(state);
  }

  get open(): boolean {
    return this.#open;
  }

  /** Runs a write inside the transaction. One that throws leaves the transaction as it was. */
  write<T>(write: Write<T>): T {
    if (!this.#open) throw new NotInTransactionError("This memory transaction has ended.");
    if (this.#nested) throw new NotInTransactionError("This memory transaction has an open savepoint.");
    const result = writeTo(this.#state, write);
    this.#writes.push(write);
    return result;
  }

  /** Runs `fn` in a transaction inside this one: its writes stay with this one's, or vanish when it throws. */
  async savepoint<T>(fn: (tx: MemoryTransaction) => Promise<T>): Promise<T> {
    const inner = new MemoryTransaction(this.owner, this.#state);
    this.#nested = true;
    try {
      const result = await fn(inner);
      this.#nested = false;
      for (const write of inner.#writes) this.write(write);
      return result;
    } finally {
      this.#nested = false;
      inner.#open = false;
    }
  }

  /** @internal For the store: makes the writes on the committed state. */
  commit(committed: MemoryState): void {
    this.#open = false;
    writeTo(committed, (state) => {
      for (const write of this.#writes) write(state);
    });
  }

  /** @internal For the store: forgets the writes. */
  rollback(): void {
    this.#open = false;
  }
}

/** Makes a write whole or not at all. */
export function writeTo<T>(state: MemoryState, write: Write<T>): T {
  const layer = new MemoryState(state);
  const result = write(layer);
  layer.merge();
  return result;
}

/** How `createHookwell` joins a transaction of a MemoryOutbox. */
export function memoryTx(): AsyncTxAdapter<MemoryTransaction> {
  return {
    kind: "async",
    name: "memory",
    dialect: () => "memory",
    isInTransaction: (tx): tx is MemoryTransaction => tx instanceof MemoryTransaction && tx.open,
    run: (): Promise<readonly Row[]> =>
      Promise.reject(new ConfigurationError("A memory transaction runs no SQL; use it with a MemoryOutbox.")),
  };
}
