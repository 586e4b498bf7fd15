// npm run simulate: runs the library in simulated worlds that fail, and checks what it promises.
import { availableParallelism } from "node:os";
import { Crew } from "../packages/hookwell/src/testing/simulator/crew.ts";
import { least } from "../packages/hookwell/src/testing/simulator/least.ts";
import { plantNamed, plants } from "../packages/hookwell/src/testing/simulator/plants.ts";
import { excerpt, table, unexercised } from "../packages/hookwell/src/testing/simulator/report.ts";
import { Simulator } from "../packages/hookwell/src/testing/simulator/simulator.ts";
import { optionsOf, runCommand, UsageError, wholeNumber } from "./options.ts";

const help = `npm run simulate -- [options]

  --seeds N    runs so many seeds (2000)
  --from N     beginning with this one (0); even seeds are in memory, odd ones on SQLite
  --seed N     runs this one alone and prints every step of it
  --plant NAME plants a fault, which must be found: exit code 0 when it is
               ${plants.map(({ name }) => name).join("\n               ")}
  --workers N  threads (all cores)

Exit code 0: every promise was kept. 1: one was broken; its seed and what led to it are printed. 2: something was
never exercised, as in a run of few seeds, or an option is wrong.`;

const values = () =>
  optionsOf(process.argv.slice(2), {
    seeds: { type: "string", default: "2000" },
    from: { type: "string", default: "0" },
    seed: { type: "string" },
    plant: { type: "string" },
    workers: { type: "string", default: String(availableParallelism()) },
    help: { type: "boolean", default: false },
  });

/** One seed, traced; the trace is the answer to a failure. */
async function retrace(seed: number, plant: string | undefined) {
  const simulator = new Simulator();
  try {
    return await simulator.run(seed, {
      traced: true,
      ...(plant !== undefined && { plant: plantNamed(plant) }),
    });
  } finally {
    simulator.close();
  }
}

async function one(seed: number, plant: string | undefined): Promise<number> {
  const { trace, violations, store, had, virtualMs } = await retrace(seed, plant);
  console.log(trace.join("\n"));
  console.log(`\nseed ${seed}, ${store}, ${virtualMs / 1_000} s of virtual time: ${JSON.stringify(had)}`);
  for (const violation of violations) console.log(`BROKEN  ${violation}`);
  if (violations.length === 0) console.log("Every promise was kept.");
  return violations.length > 0 ? 1 : 0;
}

interface Many {
  readonly seeds: number;
  readonly from: number;
  readonly workers: number;
  readonly plant: string | undefined;
}

async function many({ seeds, from, workers, plant }: Many): Promise<number> {
  const started = performance.now();
  const bar = progressBar(seeds);
  const crew = new Crew(workers);
  const summary = await crew.run({
    from,
    seeds,
    ...(plant !== undefined && { plant, mostFailures: 1 }),
    onProgress: bar,
  });
  await crew.close();
  const seconds = (performance.now() - started) / 1_000;
  const { tally, failures, onSqlite, virtualMs, had } = summary;
  console.log(table(tally));
  console.log(
    `\n${summary.seeds} seeds, ${onSqlite} of them on SQLite, ${(virtualMs / 3_600_000).toFixed(1)} hours of virtual time, in ${seconds.toFixed(1)} s. Each had at least ${had.events} events, ${had.subscriptions} subscriptions, ${had.workers} workers and ${had.faults} faults.`,
  );
  const [first] = failures;
  if (first) {
    const { seed, violations } = first;
    const { trace } = await retrace(seed, plant);
    console.log(`\n${excerpt(trace, violations.slice(0, 1)).join("\n")}`);
    for (const failure of failures)
      console.log(`\nseed ${failure.seed}\n  ${failure.violations.join("\n  ")}`);
    const planted = plant === undefined ? "" : ` --plant "${plant}"`;
    console.log(`\nEvery step of it: npm run simulate -- --seed ${seed}${planted}`);
    return plant === undefined ? 1 : 0;
  }
  if (plant !== undefined) {
    console.log(`\nThe planted fault was not found: ${plant}`);
    return 1;
  }
  console.log("Every promise was kept.");
  const short = (Object.keys(least) as (keyof typeof least)[]).filter((part) => had[part] < least[part]);
  const missing = [...unexercised(tally), ...short.map((part) => `a seed had only ${had[part]} ${part}`)];
  for (const name of missing) console.log(`NEVER EXERCISED  ${name}`);
  return missing.length > 0 ? 2 : 0;
}

/** A line that is written over where somebody looks, and a line every tenth where nobody does. */
function progressBar(all: number): (done: number, failures: number) => void {
  const started = performance.now();
  const width = 40;
  let tenth = 0;
  return (done, failures) => {
    const part = done / all;
    const left = ((performance.now() - started) / part - (performance.now() - started)) / 1_000;
    const broken = failures > 0 ? `, ${failures} broken` : "";
    if (process.stderr.isTTY) {
      const filled = "#".repeat(Math.round(part * width)).padEnd(width, ".");
      process.stderr.write(`\r${filled} ${done} of ${all}, ${Math.round(left)} s left${broken}   `);
      if (done === all) process.stderr.write("\n");
    } else if (Math.floor(part * 10) > tenth) {
      tenth = Math.floor(part * 10);
      process.stderr.write(`${done} of ${all} seeds${broken}\n`);
    }
  };
}

await runCommand("simulate", async () => {
  const { seed, seeds, from, workers, plant, help: wantsHelp } = values();
  if (wantsHelp) {
    console.log(help);
    return 0;
  }
  if (plant !== undefined && !plants.some(({ name }) => name === plant))
    throw new UsageError(`--plant knows no fault ${JSON.stringify(plant)}.`);
  if (seed !== undefined) return await one(wholeNumber("seed", seed, 0), plant);
  return await many({
    seeds: wholeNumber("seeds", seeds),
    from: wholeNumber("from", from, 0),
    workers: wholeNumber("workers", workers),
    plant,
  });
});
