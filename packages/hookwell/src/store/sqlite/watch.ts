import type { Connection } from "./connection.ts";

/** How often the file is looked at, in ms: one call into SQLite, which reads a counter in shared memory. */
const everyMs = 30;

/** Calls `onWake` when another connection has committed to the file, in this process or another. */
export function watchCommits(connection: Connection, onWake: () => void): () => void {
  let seen = version(connection);
  const timer = setInterval(() => {
    const current = version(connection);
    // While the store is closed there is nothing to see.
    if (current === undefined || current === seen) return;
    seen = current;
    onWake();
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

function version(connection: Connection): unknown {
  if (!connection.connected) return undefined;
  try {
    return connection.all("PRAGMA data_version")[0]?.data_version;
  } catch {
    // A file that cannot be read now shows itself in the next claim; this is only a hint.
    return undefined;
  }
}
