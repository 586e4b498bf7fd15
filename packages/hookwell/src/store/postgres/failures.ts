import { SchemaVersionError, StorageError } from "../../model/errors.ts";

/** The SQLSTATE of an error of the driver. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" && /^[0-9A-Z]{5}$/.test(error.code) ? error.code : undefined;
}

/** True when the same statement may well succeed if it is run again: it was rolled back for somebody else's sake. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === "40001" || state === "40P01" || state === "55P03";
}

/** True when a value is at fault, not the database: halving a batch finds the bad row. */
export function isBadValue(error: unknown): boolean {
  const state = sqlState(error) ?? "";
  return state.startsWith("22") || state.startsWith("23") || state.startsWith("54");
}

/** True when tables or columns are not there. */
export function isMissingSchema(error: unknown): boolean {
  return ["42P01", "42703", "3F000", "42883"].includes(sqlState(error) ?? "");
}

/** The error for a statement that names what the database does not have. */
export function missingSchema(schema: string, error: unknown): SchemaVersionError {
  const failure = new SchemaVersionError(
    `PostgreSQL schema ${schema} lacks tables or columns that this build needs (${messageOf(error)}); run \`hookwell migrate\` (or \`store.migrations.migrate()\`).`,
  );
  failure.cause = error;
  return failure;
}

/** What the database said, as an error of Hookwell with the cause attached. */
export function storageFailure(schema: string, error: unknown): Error {
  if (isMissingSchema(error)) return missingSchema(schema, error);
  const hint =
    sqlState(error) === "42501"
      ? `; \`hookwell migrate --grant <role>\` prints what a role needs`
      : sqlState(error) === "25006"
        ? "; this is a read-only server or transaction, so connect to the primary"
        : "";
  return new StorageError(`PostgreSQL: ${messageOf(error)}${hint}.`, { cause: error });
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.map(messageOf).join(", ");
  return error instanceof Error ? error.message || error.name : String(error);
}
