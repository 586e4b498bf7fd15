// npm run mutate: plants one-line faults in a copy of the code, and sees whether the tests of the named item fail.
import { rmSync } from "node:fs";
import { copyOfCode, plant } from "./mutate/copy.ts";
import { filesOf } from "./mutate/items.ts";
import type { Mutation } from "./mutate/mutation.ts";
import { mutations } from "./mutate/mutations.ts";
import { runTests } from "./mutate/run-tests.ts";
import { startServer } from "./mutate/server.ts";
import { optionsOf, runCommand, UsageError, wholeNumber } from "./options.ts";

const help = `npm run mutate -- [options]

Plants ${mutations.length} one-line faults, one at a time, in a copy of the code. The tests of the acceptance item that each
of them names must then fail; without a fault all of them must pass, which is seen first.

  --only TEXT   those whose fault, file or item has this in it
  --workers N   copies that are tested side by side (2)
  --list        prints the faults and runs nothing
  --help

Exit code 0: every fault was found. 1: one survived, or a test fails without a fault. 2: an option is wrong.
130: stopped.`;

const readOptions = () =>
  optionsOf(process.argv.slice(2), {
    only: { type: "string", default: "" },
    workers: { type: "string", default: "2" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  });

function chosenBy(only: string): readonly Mutation[] {
  const chosen = mutations.filter(({ name, file, item }) =>
    [name, file, item].some((text) => text.toLowerCase().includes(only.toLowerCase())),
  );
  if (chosen.length > 0) return chosen;
  throw new UsageError(`No fault, file or item has ${JSON.stringify(only)} in it; --list prints them.`);
}

interface Verdict {
  readonly mutation: Mutation;
  /** The first test of the item that failed; absent = the fault survived. */
  readonly killedBy?: string;
  /** What the run said when no test of the item came to its end: then nothing was shown. */
  readonly nothingRan?: string;
}

/** What all runs share. */
interface World {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

async function judge(cwd: string, mutation: Mutation, world: World): Promise<Verdict> {
  const { item, file } = mutation;
  const mend = plant(cwd, mutation);
  try {
    const run = { ...world, cwd, files: filesOf(item, file), items: [item], workers: 1, longestMs: 300_000 };
    const { failed, passed, output } = await runTests(run);
    const [killedBy] = failed;
    if (killedBy !== undefined) return { mutation, killedBy };
    return passed === 0 ? { mutation, nothingRan: output } : { mutation };
  } finally {
    mend();
  }
}

/** The tests of all items without a fault. @throws Error when one fails */
async function runClean(
  cwd: string,
  chosen: readonly Mutation[],
  workers: number,
  world: World,
): Promise<void> {
  const items = [...new Set(chosen.map(({ item }) => item))];
  const files = [...new Set(chosen.flatMap(({ item, file }) => filesOf(item, file)))];
  console.log(`Without a fault: the tests of ${items.length} items in ${files.length} files`);
  let done = 0;
  const show = progress((left) => `${done} of ${files.length} files${left}`);
  const onFile = (): void => show(++done / files.length);
  const { failed, passed, output } = await runTests({
    ...world,
    cwd,
    files,
    items,
    workers,
    all: true,
    onFile,
  });
  if (failed.length > 0 || passed === 0)
    throw new Error(`Before a fault is planted, these must pass:\n${failed.join("\n")}\n\n${output}`);
  console.log(`${passed} tests passed.`);
}

async function runAll(
  copies: readonly string[],
  chosen: readonly Mutation[],
  world: World,
): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const waiting = [...chosen];
  const show = progress((left) => left);
  const work = async (copy: string): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const started = performance.now();
      const verdict = await judge(copy, next, world);
      verdicts.push(verdict);
      const seconds = ((performance.now() - started) / 1_000).toFixed(0).padStart(3);
      const missed = verdict.nothingRan === undefined ? "SURVIVED" : "NO TEST ";
      const word = verdict.killedBy === undefined ? missed : "found   ";
      const place = `${String(verdicts.length).padStart(2)} of ${chosen.length}`;
      console.log(`${place}  ${seconds} s  ${word}  ${next.item.slice(0, 24).padEnd(24)} ${next.name}`);
      if (verdict.nothingRan !== undefined) console.log(verdict.nothingRan);
      show(verdicts.length / chosen.length);
    }
  };
  await Promise.all(copies.map(work));
  return verdicts;
}

/** Says on stderr how much is left: over and over on one line where somebody looks, else each tenth. */
function progress(line: (left: string) => string): (part: number) => void {
  const started = performance.now();
  let tenth = 0;
  return (part) => {
    const seconds = ((performance.now() - started) * (1 / part - 1)) / 1_000;
    const left =
      part >= 1
        ? ""
        : `, about ${seconds < 100 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`} left`;
    if (process.stderr.isTTY)
      process.stderr.write(`\r${line(left).replace(/^, /, "")}\x1b[K${part >= 1 ? "\n" : "\r"}`);
    else if (Math.floor(part * 10) > tenth && part < 1)
      process.stderr.write(`${line(left).replace(/^, /, "")}\n`);
    tenth = Math.floor(part * 10);
  };
}

/** The table. */
function report(verdicts: readonly Verdict[]): number {
  const sorted = verdicts.toSorted((a, b) => mutations.indexOf(a.mutation) - mutations.indexOf(b.mutation));
  console.log("\n| fault | file | item | found by |\n| --- | --- | --- | --- |");
  for (const { mutation, killedBy } of sorted) {
    const file = mutation.file.replace(/^packages\/hookwell\/src\//, "");
    console.log(
      `| ${mutation.name} | ${file} | ${mutation.item} | ${killedBy?.replaceAll("|", "\\|") ?? "**nothing**"} |`,
    );
  }
  const survivors = sorted.filter(({ killedBy }) => killedBy === undefined);
  console.log(`\n${sorted.length - survivors.length} of ${sorted.length} faults were found.`);
  return survivors.length > 0 ? 1 : 0;
}

async function run(chosen: readonly Mutation[], workers: number, stopped: AbortSignal): Promise<number> {
  for (const { item, file, name } of chosen)
    if (filesOf(item, file).length === 0) throw new Error(`No test carries ${item} ("${name}").`);
  const { NODE_OPTIONS: _options, FORCE_COLOR: _color, CI: _ci, ...inherited } = process.env;
  const server = await startServer();
  const copies: string[] = [];
  try {
    const world = {
      env: { ...inherited, HOOKWELL_TEST_POSTGRES: server.url, NO_COLOR: "1" },
      signal: stopped,
    };
    for (let left = Math.min(workers, chosen.length); left > 0; left--) {
      stopped.throwIfAborted();
      copies.push(copyOfCode());
    }
    await runClean(copies[0]!, chosen, copies.length, world);
    return report(await runAll(copies, chosen, world));
  } finally {
    await server.stop();
    for (const copy of copies) rmSync(copy, { recursive: true, force: true });
  }
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options.help) {
    console.log(help);
    return 0;
  }
  const chosen = chosenBy(options.only);
  const workers = wholeNumber("workers", options.workers);
  if (options.list) {
    for (const { name, file, item } of chosen) console.log(`${item.padEnd(16)}  ${name} (${file})`);
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
  try {
    return await run(chosen, workers, stop.signal);
  } catch (error) {
    if (stop.signal.aborted) {
      console.error("\nStopped; copies and server are gone.");
      return 130;
    }
    throw error;
  }
}

try {
  await runCommand("mutate", main);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
