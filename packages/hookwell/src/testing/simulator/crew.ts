import { Worker } from "node:worker_threads";
import { Tally } from "./journal.ts";
import type { least } from "./simulator.ts";

/** A seed whose run broke a promise. */
export interface Failure {
  readonly seed: number;
  readonly violations: readonly string[];
}

/** What a worker is told: to run these seeds. */
export interface Chunk {
  readonly from: number;
  readonly count: number;
}

/** What it answers. */
export interface ChunkResult {
  readonly counts: readonly (readonly [string, number])[];
  readonly failures: readonly Failure[];
  /** The least of each that a seed of the chunk had. */
  readonly had: typeof least;
  readonly onSqlite: number;
  readonly virtualMs: number;
}

export interface CrewOptions {
  readonly from: number;
  readonly seeds: number;
  /** Threads. */
  readonly workers: number;
  /** Name of a planted fault. */
  readonly plant?: string;
  /** Stops after so many failures. Default 5. */
  readonly mostFailures?: number;
  readonly onProgress?: (done: number, failures: number) => void;
}

export interface Summary {
  readonly seeds: number;
  readonly onSqlite: number;
  readonly virtualMs: number;
  readonly tally: Tally;
  readonly failures: readonly Failure[];
  readonly had: typeof least;
}

const chunkSeeds = 20;

/** Runs many seeds on several threads. The result does not depend on how they are shared out. */
export async function simulateMany(options: CrewOptions): Promise<Summary> {
  const { from, seeds, workers, plant, mostFailures = 5, onProgress } = options;
  const tally = new Tally();
  const failures: Failure[] = [];
  const had = { events: Infinity, subscriptions: Infinity, workers: Infinity, faults: Infinity };
  let next = from;
  let done = 0;
  let onSqlite = 0;
  let virtualMs = 0;
  const take = (): Chunk | undefined => {
    const count = Math.min(chunkSeeds, from + seeds - next);
    if (count === 0 || failures.length >= mostFailures) return undefined;
    next += count;
    return { from: next - count, count };
  };
  const add = (result: ChunkResult, { count }: Chunk): void => {
    done += count;
    tally.merge(result.counts);
    failures.push(...result.failures);
    onSqlite += result.onSqlite;
    virtualMs += result.virtualMs;
    for (const part of Object.keys(had) as (keyof typeof had)[])
      had[part] = Math.min(had[part], result.had[part]);
    onProgress?.(done, failures.length);
  };
  await Promise.all(Array.from({ length: workers }, () => work(plant, take, add)));
  failures.sort((a, b) => a.seed - b.seed);
  return { seeds: done, onSqlite, virtualMs, tally, failures, had };
}

/** One thread, given chunk after chunk until there are no more. */
function work(
  plant: string | undefined,
  take: () => Chunk | undefined,
  add: (result: ChunkResult, chunk: Chunk) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./crew-worker.ts", import.meta.url), { workerData: { plant } });
    let chunk: Chunk | undefined;
    const give = (): void => {
      chunk = take();
      // Without one it ends by itself.
      worker.postMessage(chunk);
    };
    worker.on("message", (result: ChunkResult) => {
      add(result, chunk!);
      give();
    });
    worker.on("error", (error) => {
      const where = chunk ? `One of the seeds ${chunk.from} to ${chunk.from + chunk.count - 1}` : "A worker";
      reject(new Error(`${where} ended with an error.`, { cause: error }));
    });
    worker.on("exit", () => resolve());
    give();
  });
}
