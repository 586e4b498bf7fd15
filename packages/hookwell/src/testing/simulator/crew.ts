import { Worker } from "node:worker_threads";
import { Tally } from "./journal.ts";
import type { least } from "./least.ts";
import type { SimulationResult } from "./simulator.ts";

/** A seed whose run broke a promise. */
export interface Failure {
  readonly seed: number;
  readonly violations: readonly string[];
}

/** What a thread may be told: to run these seeds until some failed, or to tell every step of those. */
export type Task =
  | {
      readonly kind: "run";
      readonly from: number;
      readonly count: number;
      readonly plant: string | undefined;
      readonly mostFailures: number;
    }
  | { readonly kind: "trace"; readonly seeds: readonly number[] };

/** What became of the seeds that were run. */
export interface RunResult {
  readonly seeds: number;
  readonly counts: readonly (readonly [string, number])[];
  readonly failures: readonly Failure[];
  /** The least of each that one of the seeds had. */
  readonly had: typeof least;
  readonly onSqlite: number;
  readonly virtualMs: number;
}

/** Every step of a run, and what was counted. */
export interface Traced extends Pick<SimulationResult, "seed" | "trace" | "violations"> {
  readonly counts: readonly (readonly [string, number])[];
}

export interface RunOptions {
  readonly from: number;
  readonly seeds: number;
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

/** Short enough that the threads end together, and that a failure is soon known. */
const chunkSeeds = 5;

/** Threads that run seeds. They cost more to start than many a run, so they are kept until the crew is closed. */
export class Crew {
  readonly #threads: readonly Thread[];
  readonly #free: Thread[];
  readonly #waiting: ((thread: Thread) => void)[] = [];

  /** @param threads how many, 1 or more */
  constructor(threads: number) {
    this.#threads = Array.from({ length: threads }, () => new Thread());
    this.#free = [...this.#threads];
  }

  /** Runs many seeds on all threads. What it answers does not depend on how they are shared out. */
  async run(options: RunOptions): Promise<Summary> {
    const { from, seeds, plant, mostFailures = 5, onProgress } = options;
    const tally = new Tally();
    const failures: Failure[] = [];
    const had = { events: Infinity, subscriptions: Infinity, workers: Infinity, faults: Infinity };
    let next = from;
    let done = 0;
    let onSqlite = 0;
    let virtualMs = 0;
    const work = async (): Promise<void> => {
      while (next < from + seeds && failures.length < mostFailures) {
        const count = Math.min(chunkSeeds, from + seeds - next);
        const task: Task = { kind: "run", from: next, count, plant, mostFailures };
        next += count;
        const result = (await this.#give(task)) as RunResult;
        done += result.seeds;
        tally.merge(result.counts);
        failures.push(...result.failures);
        onSqlite += result.onSqlite;
        virtualMs += result.virtualMs;
        for (const part of Object.keys(had) as (keyof typeof had)[])
          had[part] = Math.min(had[part], result.had[part]);
        onProgress?.(done, failures.length);
      }
    };
    await Promise.all(this.#threads.map(work));
    failures.sort((a, b) => a.seed - b.seed);
    return { seeds: done, onSqlite, virtualMs, tally, failures, had };
  }

  /** Runs seeds in this order, on one thread. */
  async trace(seeds: readonly number[]): Promise<readonly Traced[]> {
    return (await this.#give({ kind: "trace", seeds })) as readonly Traced[];
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async #give(task: Task): Promise<unknown> {
    const thread = this.#free.pop() ?? (await new Promise<Thread>((resolve) => this.#waiting.push(resolve)));
    try {
      return await thread.give(task);
    } finally {
      const next = this.#waiting.shift();
      if (next) next(thread);
      else this.#free.push(thread);
    }
  }
}

/** One thread: a task at a time. */
class Thread {
  readonly #worker = new Worker(new URL("./crew-worker.ts", import.meta.url));
  readonly #ended: Promise<void>;
  #answer: { resolve: (result: unknown) => void; reject: (error: Error) => void } | undefined;
  #error: Error | undefined;

  constructor() {
    this.#worker.on("message", (result: unknown) => this.#answer?.resolve(result));
    this.#worker.on("error", (error) => {
      this.#error = new Error("A thread of the simulator ended with an error.", { cause: error });
      this.#answer?.reject(this.#error);
    });
    this.#ended = new Promise((resolve) => this.#worker.on("exit", () => resolve()));
  }

  async give(task: Task): Promise<unknown> {
    if (this.#error) throw this.#error;
    try {
      return await new Promise((resolve, reject) => {
        this.#answer = { resolve, reject };
        this.#worker.postMessage(task);
      });
    } catch (error) {
      const seeds =
        task.kind === "trace" ? task.seeds.join(", ") : `${task.from} to ${task.from + task.count - 1}`;
      throw new Error(`It was one of the seeds ${seeds}.`, { cause: error });
    }
  }

  /** Without a task it ends by itself. */
  async close(): Promise<void> {
    this.#worker.postMessage(undefined);
    await this.#ended;
  }
}
