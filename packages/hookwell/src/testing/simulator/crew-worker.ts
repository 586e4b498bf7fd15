// One thread of a crew: runs the seeds it is given, and ends when it is given none.
import { parentPort, workerData } from "node:worker_threads";
import type { Chunk, ChunkResult, Failure } from "./crew.ts";
import { Tally } from "./journal.ts";
import { plantNamed } from "./plants.ts";
import { Simulator } from "./simulator.ts";

const { plant } = workerData as { readonly plant: string | undefined };
const port = parentPort!;
const simulator = await Simulator.make(plant === undefined ? undefined : plantNamed(plant));

async function run({ from, count }: Chunk): Promise<ChunkResult> {
  const tally = new Tally();
  const failures: Failure[] = [];
  const had = { events: Infinity, subscriptions: Infinity, workers: Infinity, faults: Infinity };
  let onSqlite = 0;
  let virtualMs = 0;
  for (let seed = from; seed < from + count; seed++) {
    const result = await simulator.run(seed);
    tally.merge(result.tally.counts);
    if (result.violations.length > 0) failures.push({ seed, violations: result.violations });
    if (result.store === "sqlite") onSqlite++;
    virtualMs += result.virtualMs;
    for (const part of Object.keys(had) as (keyof typeof had)[])
      had[part] = Math.min(had[part], result.had[part]);
  }
  return { counts: [...tally.counts], failures, had, onSqlite, virtualMs };
}

port.on("message", (chunk: Chunk | undefined) => {
  if (chunk) void run(chunk).then((result) => port.postMessage(result));
  else {
    simulator.close();
    port.close();
  }
});
