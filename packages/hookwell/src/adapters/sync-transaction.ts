/** BEGIN IMMEDIATE, `fn`, COMMIT; ROLLBACK and rethrow when either of the last two throws. */
export function immediately<Database extends { exec(sql: string): unknown }, T>(
  database: Database,
  isOpen: () => boolean,
  fn: (tx: Database) => T,
): T {
  // A deferred BEGIN would take the write lock in the middle, where a busy database cannot be waited for.
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = fn(database);
    database.exec("COMMIT");
    return result;
  } catch (error) {
    // SQLite itself rolls back on some errors (a full disk, for one).
    if (isOpen()) database.exec("ROLLBACK");
    throw error;
  }
}
