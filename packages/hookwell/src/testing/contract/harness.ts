import type { Clock } from "../../model/clock.ts";
import type { IdFunc } from "../../model/ids.ts";
import type { OutboxStore, Scope } from "../../store/contract.ts";

/** The two functions of a test runner that the suite needs: vitest and node:test have them. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: () => Promise<void>): unknown;
}

/** A store under test, empty and open. */
export interface StoreUnderTest {
  readonly store: OutboxStore;
  /**
   * Runs `fn` in a transaction of an application's own client on the same database: commits when it resolves,
   * rolls back and rethrows when it rejects.
   */
  transaction<T>(fn: (scope: AsyncScope) => Promise<T>): Promise<T>;
  /** Another store object on the same database, as another process would have; absent for memory. */
  reopen?(): Promise<OutboxStore>;
  /** Closes every store object made here. */
  close(): Promise<void>;
}

/** A transaction that is joined with await. */
export type AsyncScope = Extract<Scope, { kind: "async" }>;

/** How the suite gets a store. */
export interface StoreHarness {
  /** Makes an empty store whose own clock is `now`. */
  make(options: { readonly now: Clock; readonly idFunc: IdFunc }): Promise<StoreUnderTest>;
}
