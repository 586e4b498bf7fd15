// One thread of a crew: does what it is given, and ends when it is given nothing.
import { parentPort } from "node:worker_threads";
import type { Failure, RunResult, Task, Traced } from "./crew.ts";
import { Tally } from "./journal.ts";
import { plantNamed } from "./plants.ts";
import { Simulator } from "./simulator.ts";

const port = parentPort!;
const simulator = new Simulator();

async function run({ from, count, plant, mostFailures }: Extract<Task, { kind: "run" }>): Promise<RunResult> {
  const tally = new Tally();
  const failures: Failure[] = [];
  const had = { events: Infinity, subscriptions: Infinity, workers: Infinity, faults: Infinity };
  const options = plant === undefined ? {} : { plant: plantNamed(plant) };
  let seed = from;
  let onSqlite = 0;
  let virtualMs = 0;
  for (; seed < from + count && failures.length < mostFailures; seed++) {
    const result = await simulator.run(seed, options);
    tally.merge(result.tally.counts);
    if (result.violations.length > 0) failures.push({ seed, violations: result.violations });
    if (result.store === "sqlite") onSqlite++;
    virtualMs += result.virtualMs;
    for (const part of Object.keys(had) as (keyof typeof had)[])
      had[part] = Math.min(had[part], result.had[part]);
  }
  return { seeds: seed - from, counts: [...tally.counts], failures, had, onSqlite, virtualMs };
}

async function trace(seeds: readonly number[]): Promise<Traced[]> {
  const traced: Traced[] = [];
  for (const seed of seeds) {
    const { trace, violations, tally } = await simulator.run(seed, { traced: true });
    traced.push({ seed, trace, violations, counts: [...tally.counts] });
  }
  return traced;
}

port.on("message", (task: Task | undefined) => {
  if (task) {
    const answer = task.kind === "run" ? run(task) : trace(task.seeds);
    void answer.then((result) => port.postMessage(result));
    return;
  }
  simulator.close();
  port.close();
});
