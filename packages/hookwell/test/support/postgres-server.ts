import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { TestProject } from "vitest/node";
import { importWithoutExit } from "./embedded-postgres.ts";
import { freePort } from "./free-port.ts";
import { memoryHome } from "./memory-home.ts";
import { makeProgramsReachable } from "./reachable-programs.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** postgres:// address of the shared test server, database "postgres". */
    postgresUrl: string;
  }
}

/**
 * One real PostgreSQL for the whole run; each test file makes its own databases on it. HOOKWELL_TEST_POSTGRES names one
 * that is there already, for who starts many runs, and HOOKWELL_TEST_POSTGRES_HOME a folder in which an older
 * embedded-postgres is installed (scripts/test-oldest-postgres.mjs).
 */
export default async function setup(project: Pick<TestProject, "provide">): Promise<() => Promise<void>> {
  const given = process.env.HOOKWELL_TEST_POSTGRES;
  if (given) {
    project.provide("postgresUrl", given);
    return async () => {};
  }
  const directory = await mkdtemp(join(tmpdir(), "hookwell-pg-"));
  const data = await mkdtemp(join(memoryHome(2 ** 32), "hookwell-pg-data-"));
  // As root, the server runs as another user, who must be able to reach what is inside these private directories.
  for (const each of [directory, data]) await chmod(each, 0o711);
  const home = process.env.HOOKWELL_TEST_POSTGRES_HOME;
  const from = home === undefined ? import.meta.url : pathToFileURL(join(home, "package.json")).href;
  await makeProgramsReachable(directory, from);
  const EmbeddedPostgres = await importWithoutExit({ from });
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(data, "data"),
    user: "postgres",
    password: "test",
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    // UTF-8 whatever the machine's locale is, for Hookwell needs it; and a password that costs little to prove,
    // for tests make thousands of connections. Old servers do not know how.
    initdbFlags: [
      "--no-sync",
      "--encoding=UTF8",
      "--locale=C",
      ...(home === undefined ? ["--set=scram_iterations=1"] : []),
    ],
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
