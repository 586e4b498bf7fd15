import { ConfigurationError } from "../model/errors.ts";
import type { Scopes } from "./scope.ts";

/** `hooks.transaction`: runs a function in a synchronous transaction, and refuses one that returns a promise. */
export function transactionOf(scopes: Scopes): <T>(database: unknown, fn: (tx: unknown) => T) => T {
  return (database, fn) =>
    scopes.sync().transaction(database, (tx) => {
      const result = fn(tx);
      if (isPromise(result)) {
        // What it does after the rollback fails on its own; the caller gets the error below.
        result.then(undefined, () => {});
        throw new ConfigurationError(
          "The function given to transaction() returned a promise, so it was rolled back: during an await, statements of other requests would join the transaction. Do asynchronous work before or after it.",
          "async_transaction",
        );
      }
      return result;
    });
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
