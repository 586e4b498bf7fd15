import type { Clock } from "../../src/model/clock.ts";
import type { Timers } from "../../src/model/timers.ts";

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** A clock and timers that stand still until `advance`. */
export class VirtualTime implements Timers {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();
  /** How many sleeps are under way: 0 = nobody holds a timer. */
  get sleeping(): number {
    return this.#sleepers.size;
  }
  /** Every sleep asked for, in ms. */
  readonly asked: number[] = [];

  constructor(start = "2026-03-01T09:00:00.000Z") {
    this.#now = Date.parse(start);
  }

  readonly clock: Clock = () => new Date(this.#now);
  readonly monotonic = (): number => this.#now;

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.asked.push(ms);
    if (!(ms > 0) || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper: Sleeper = { at: this.#now + ms, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** Moves on, waking sleepers in order; `settle` runs after each, until the work they began has come to rest. */
  async advance(ms: number, settle: () => Promise<void> = turns): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const next = [...this.#sleepers].sort((a, b) => a.at - b.at)[0];
      if (!next || next.at > end) break;
      this.#now = Math.max(this.#now, next.at);
      next.wake();
      await settle();
    }
    this.#now = Math.max(this.#now, end);
    await settle();
  }

  /** Moves the clock without waking anybody: a stalled process. */
  skip(ms: number): void {
    this.#now += ms;
  }
}

/** Lets promises and immediates that are ready run. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
