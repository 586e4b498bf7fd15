import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { importWithoutExit } from "../support/embedded-postgres.ts";
import { freePort } from "../support/free-port.ts";
import { makeProgramsReachable } from "../support/reachable-programs.ts";

interface Startable {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A PostgreSQL of its own, with the settings of production, that may be stopped, crashed and started again. */
export class CrashServer {
  readonly #server: Startable;
  readonly #directory: string;
  readonly #url: (database: string) => string;
  #made = 0;

  private constructor(server: Startable, directory: string, url: (database: string) => string) {
    this.#server = server;
    this.#directory = directory;
    this.#url = url;
  }

  static async start(): Promise<CrashServer> {
    const directory = await mkdtemp(join(tmpdir(), "hookwell-crash-"));
    // As root, the server runs as another user, who must be able to reach what is inside.
    await chmod(directory, 0o711);
    await makeProgramsReachable(directory);
    const EmbeddedPostgres = await importWithoutExit({ ownSignals: true });
    const port = await freePort();
    await mkdir(join(directory, "data"));
    const server = new EmbeddedPostgres({
      databaseDir: join(directory, "data"),
      user: "postgres",
      password: "test",
      port,
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ["--encoding=UTF8", "--locale=C", "--set=scram_iterations=1"],
      postgresFlags: ["-c", "max_connections=200"],
      onLog: () => {},
      onError: () => {},
    });
    const crashServer = new CrashServer(
      server,
      directory,
      (database) => `postgres://postgres:test@127.0.0.1:${port}/${database}`,
    );
    try {
      await server.initialise();
      await server.start();
    } catch (error) {
      await crashServer.stop();
      throw error;
    }
    return crashServer;
  }

  /** The url of a new, empty database. */
  async database(): Promise<string> {
    const name = `crash_${++this.#made}`;
    await this.run(`CREATE DATABASE ${name}`);
    return this.#url(name);
  }

  /** One statement of an administrator: its rows. */
  async run(sql: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.#url("postgres") });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** Stops as an administrator stops it, transactions under way rolled back, and starts again. */
  async restart(): Promise<void> {
    await this.#end("SIGINT");
    await this.#server.start();
  }

  /** All its processes die without a word, and it recovers from its log. */
  async crash(): Promise<void> {
    await this.#end("SIGQUIT");
    await this.#server.start();
  }

  /** Whatever state it is in. */
  async stop(): Promise<void> {
    await this.#end("SIGINT");
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Resolves when its process is gone. Not the package's way, which waits for ever when it is gone already. */
  async #end(signal: "SIGINT" | "SIGQUIT"): Promise<void> {
    const pid = this.#pid();
    if (pid === undefined || !isAlive(pid)) return;
    process.kill(pid, signal);
    while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** Undefined = it is not running. */
  #pid(): number | undefined {
    const file = join(this.#directory, "data", "postmaster.pid");
    return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
