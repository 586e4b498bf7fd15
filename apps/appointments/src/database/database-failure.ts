import { StorageError } from "hookwell";

/** What could not be done and the database's own words for why. */
export function databaseFailure(what: string, cause: unknown): StorageError {
  return new StorageError(`Cannot ${what}: ${words(cause)}`, { cause });
}

/** A refused connection to a name with two addresses is an AggregateError without a message. */
function words(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(words).join(", ");
  if (!(error instanceof Error)) return String(error);
  return error.message || ("code" in error && String(error.code)) || error.name;
}
