// npm run crash: see --help.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startReceiver } from "hookwell/testing";
import { runCommand } from "../../../../scripts/options.ts";
import { killPrograms } from "./life.ts";
import { killAt, killMigrations, prepare } from "./lives.ts";
import { loadUnder } from "./load.ts";
import { help, type Options, parseOptions } from "./options.ts";
import { failed, lineOf, machine, pageOf, type Result } from "./page.ts";
import { nameOf } from "./points.ts";
import { Progress } from "./progress.ts";
import { CrashServer } from "./server.ts";
import { postgresWorld, sqliteWorld, type World } from "./world.ts";

const pageFile = fileURLToPath(new URL("../../../../docs/reliability.md", import.meta.url));
/** What a trouble costs, in lives: each time, and until the last lease has ended. */
const cost = { trouble: 6, settling: 60 };

class Run {
  readonly results: Result[] = [];
  readonly #options: Options;
  readonly #progress: Progress;
  readonly #directory = mkdtempSync(join(tmpdir(), "hookwell-crash-"));
  #server: Promise<CrashServer> | undefined;
  #made = 0;

  constructor(options: Options) {
    this.#options = options;
    const { dialects, points, troubles, rounds, loadRounds } = options;
    this.#progress = new Progress(
      dialects.length * points.length * rounds +
        troubles.length * (loadRounds * cost.trouble + cost.settling),
    );
  }

  async all(): Promise<void> {
    const { dialects, points, troubles } = this.#options;
    if (points.length > 0) for (const dialect of dialects) await this.#kill(dialect);
    for (const trouble of troubles) {
      const { loadRounds } = this.#options;
      const onRound = () => this.#progress.add(cost.trouble, trouble);
      const tally = await loadUnder(trouble, loadRounds, { server: await this.#postgres(), onRound });
      this.#progress.add(cost.settling, trouble);
      this.#keep({ ...tally, where: "PostgreSQL", what: { trouble } });
    }
  }

  async #kill(dialect: Options["dialects"][number]): Promise<void> {
    const { points, rounds } = this.#options;
    const where = dialect === "sqlite" ? "SQLite" : "PostgreSQL";
    const database = dialect === "postgres" ? await (await this.#postgres()).database() : "";
    const makeWorld = (): World => {
      const name = `crash_${++this.#made}`;
      return dialect === "sqlite"
        ? sqliteWorld(join(this.#directory, `${name}.db`))
        : postgresWorld(database, name);
    };
    const receiver = await startReceiver();
    const world = makeWorld();
    await prepare({ world, receiver });
    for (const point of points) {
      const onRound = () => this.#progress.add(1, `${where}, ${nameOf(point)}`);
      const tally =
        point.step === "migrate"
          ? await killMigrations(point, rounds, { makeWorld, receiver, onRound })
          : await killAt(point, rounds, { world, receiver, onRound });
      this.#keep({ ...tally, where, what: { point } });
    }
    await world.close();
    await receiver.close();
  }

  #keep(result: Result): void {
    this.results.push(result);
    this.#progress.clear();
    process.stdout.write(`${failed(result) ? "FAILED  " : ""}${lineOf(result)}\n`);
    process.stderr.write(`  ${this.#progress.left()}\n`);
  }

  #postgres(): Promise<CrashServer> {
    this.#server ??= CrashServer.start();
    return this.#server;
  }

  /** Ends and removes everything, at any time. */
  async close(): Promise<void> {
    killPrograms();
    await (await this.#server?.catch(() => undefined))?.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Rejects at Ctrl-C and at SIGTERM, with the exit code that says so. */
const interrupted = new Promise<never>((_, reject) => {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => reject(new Interruption(code)));
});

class Interruption extends Error {
  readonly code: number;

  constructor(code: number) {
    super("Interrupted. Nothing was written.");
    this.code = code;
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
    await Promise.race([run.all(), interrupted]);
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
    writeFileSync(pageFile, pageOf(run.results, machine()));
    process.stdout.write("docs/reliability.md is written.\n");
  }
  return 0;
}

try {
  await runCommand("crash", main);
  process.exit();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof Interruption ? error.code : 2);
}
