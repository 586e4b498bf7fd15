import { mkdir, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { runCommand } from "../../scripts/options.ts";
import { steadyMs } from "./measuring.ts";
import { help, type Options, parseOptions } from "./options.ts";
import { Postgres } from "./postgres.ts";
import { Receiver } from "./receiver-process.ts";
import { Redis } from "./redis.ts";
import { describeMachine } from "./report/machine.ts";
import { writePage } from "./report/page.ts";
import { ratiosOf, tableText } from "./report/ratios.ts";
import { runSections } from "./run.ts";

const tmpfs = 0x01021994;
const begun = steadyMs();

function report(line: string): void {
  const seconds = Math.round((steadyMs() - begun) / 1_000);
  process.stderr.write(`[${String(seconds).padStart(3)} s] ${line}\n`);
}

async function main(options: Options): Promise<void> {
  const home = resolve(options.directory ?? tmpdir());
  const { type } = await statfs(home);
  if (type === tmpfs)
    throw new Error(`${home} is in memory, where fsync costs nothing; give --dir a directory on a disk.`);
  if (options.profile) await mkdir(options.profile, { recursive: true });
  const directory = await mkdtemp(join(home, "hookwell-bench-"));
  const closing: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })];
  try {
    const postgres = await Postgres.start(directory);
    closing.unshift(() => postgres.stop());
    const redis = await Redis.start(directory);
    if (redis) closing.unshift(() => redis.stop());
    const receiver = await Receiver.start();
    closing.unshift(() => receiver.close());
    const world = { postgres, redis, origin: receiver.origin, directory };
    const results = await runSections(options, world, receiver, report);
    const machine = await describeMachine(postgres);
    const ratios = ratiosOf(results);
    process.stdout.write(`\n${tableText(ratios)}\n`);
    if (options.json)
      await writeFile(options.json, `${JSON.stringify({ machine, results, ratios }, null, 2)}\n`);
    if (options.whole) report(`written: ${await writePage({ machine, results, ratios })}`);
  } finally {
    for (const close of closing) await close();
  }
}

try {
  await runCommand("bench", async () => {
    const options = parseOptions(process.argv.slice(2));
    if (options) await main(options);
    else process.stdout.write(help);
    return 0;
  });
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
}
