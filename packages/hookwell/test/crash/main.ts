// npm run crash: see --help.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startReceiver } from "hookwell/testing";
import { killAt, killMigrations } from "./lives.ts";
import { loadUnder } from "./load.ts";
import { help, type Options, parseOptions } from "./options.ts";
import { failed, lineOf, machine, type Result, withTable } from "./page.ts";
import { type CrashPoint, nameOf } from "./points.ts";
import { CrashServer } from "./server.ts";
import type { Tally } from "./tally.ts";
import { postgresWorld, sqliteWorld, type World } from "./world.ts";

const pageFile = fileURLToPath(new URL("../../../../docs/reliability.md", import.meta.url));

/** A line on standard error that is written over, in a terminal. */
function progress(what: string, rounds: number): () => void {
  let done = 0;
  return () => {
    done++;
    if (process.stderr.isTTY)
      process.stderr.write(`\r\x1b[K${done === rounds ? "" : `${what}: ${done} of ${rounds}`}`);
  };
}

class Run {
  readonly results: Result[] = [];
  readonly #options: Options;
  readonly #directory = mkdtempSync(join(tmpdir(), "hookwell-crash-sqlite-"));
  #server: CrashServer | undefined;
  #made = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  async all(): Promise<void> {
    const { stores, points, troubles } = this.#options;
    for (const store of points.length > 0 ? stores : [])
      for (const point of points) await this.#kill(store, point);
    for (const trouble of troubles) {
      const onRound = progress(trouble, this.#options.loadRounds);
      const server = await this.#postgres();
      const tally = await loadUnder(trouble, this.#options.loadRounds, { server, onRound });
      this.#keep({ ...tally, where: "PostgreSQL", what: { trouble } });
    }
  }

  async #kill(store: "sqlite" | "postgres", point: CrashPoint): Promise<void> {
    const { rounds } = this.#options;
    const where = store === "sqlite" ? "SQLite" : "PostgreSQL";
    const onRound = progress(`${where}, ${nameOf(point)}`, rounds);
    const database = store === "postgres" ? await (await this.#postgres()).database() : "";
    const makeWorld = (): World => {
      const name = `crash_${++this.#made}`;
      return store === "sqlite"
        ? sqliteWorld(join(this.#directory, `${name}.db`))
        : postgresWorld(database, name);
    };
    const receiver = await startReceiver();
    let tally: Tally;
    if (point.step === "migrate")
      tally = await killMigrations(point, rounds, { makeWorld, receiver, onRound });
    else {
      const world = makeWorld();
      tally = await killAt(point, rounds, { world, receiver, onRound });
      await world.close();
    }
    await receiver.close();
    this.#keep({ ...tally, where, what: { point } });
  }

  #keep(result: Result): void {
    this.results.push(result);
    process.stdout.write(`${failed(result) ? "FAILED  " : ""}${lineOf(result)}\n`);
  }

  async #postgres(): Promise<CrashServer> {
    this.#server ??= await CrashServer.start();
    return this.#server;
  }

  async close(): Promise<void> {
    await this.#server?.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (!options) {
    process.stdout.write(help);
    return 0;
  }
  const run = new Run(options);
  try {
    await run.all();
  } finally {
    await run.close();
  }
  if (run.results.some(failed)) {
    process.stderr.write(
      "Something was lost, invented or changed: see above. docs/reliability.md was not written.\n",
    );
    return 1;
  }
  if (options.whole) {
    const page = existsSync(pageFile) ? readFileSync(pageFile, "utf8") : undefined;
    writeFileSync(pageFile, withTable(page, run.results, machine()));
    process.stdout.write("docs/reliability.md has the table.\n");
  }
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
