const sqliteConstraintUnique = 2067;
const sqliteConstraintPrimaryKey = 1555;

/** The columns (SQLite) or the constraint (PostgreSQL) that a write violated, or undefined for any other error. */
export function uniqueViolation(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if ("code" in error && error.code === "23505")
    return "constraint" in error && typeof error.constraint === "string" ? error.constraint : "";
  if (!("errcode" in error) || !(error instanceof Error)) return undefined;
  const unique = error.errcode === sqliteConstraintUnique || error.errcode === sqliteConstraintPrimaryKey;
  return unique ? error.message : undefined;
}
