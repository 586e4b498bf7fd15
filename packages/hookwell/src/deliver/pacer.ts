import type { Random } from "../model/random.ts";
import type { Timers } from "../model/timers.ts";

const leastIdleMs = 200;
const mostIdleMs = 1_000;
/** A commit follows the emit that woke us: look after 1, 2, 4 … 64 ms. */
const lastStep = 6;
/** Where a series goes on when it is woken again: emits without pause must not make a look every millisecond. */
const busyStep = 3;
/** How long a series has to have lasted before a wake begins it anew. */
const restartMs = 30;

/** A reason at hand: without one each abort makes an error with its stack, which costs more than the wait. */
const woken = "woken";

/** Decides when a loop looks again: polling from 200 ms rising to 1 s, a series after a wake, at once when poked. */
export class Pacer {
  readonly #timers: Timers;
  readonly #random: Random;
  #idleMs = leastIdleMs;
  #step: number | undefined;
  /** What was waited since the series began. */
  #seriesMs = 0;
  #poked = false;
  readonly #stopped = new AbortController();
  /** Ends the wait under way. Made anew only when it has: it costs more than the timer of a wait. */
  #end = new AbortController();
  /** How long the wait under way is. */
  #waitingMs: number | undefined;

  constructor(timers: Timers, random: Random) {
    this.#timers = timers;
    this.#random = random;
  }

  /** Work is there: look now. */
  poke(): void {
    this.#poked = true;
    this.#endWait();
  }

  /** Work has been, or is about to be, committed: begin the series. */
  wake(): void {
    if (this.#step === undefined || this.#seriesMs >= restartMs) {
      this.#step = 0;
      this.#seriesMs = 0;
    } else this.#step = Math.min(this.#step, busyStep);
    // A wait that is short anyway is left alone, or wakes without pause would put it off for ever.
    if ((this.#waitingMs ?? 0) > 2 ** busyStep) this.#endWait();
  }

  /** Ends the wait under way and every later one. */
  stop(): void {
    this.#stopped.abort();
    this.#endWait();
  }

  /** Waits until it is time for the next look, at most `mostMs`. `found`: the last one found work. */
  async next(found: boolean, mostMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (found) this.#idleMs = leastIdleMs;
    while (!this.#poked && !this.#stopped.signal.aborted) {
      const series = this.#step !== undefined;
      await this.#wait(Math.min(this.#nextMs(), mostMs));
      // Cut short by a wake, not by a poke: the series has only begun.
      if (series || this.#step === undefined) break;
    }
    this.#poked = false;
  }

  /** More work is there: the rest of the process gets its turn, then on. */
  async giveWay(): Promise<void> {
    await this.#timers.sleep(0, this.#stopped.signal);
  }

  /** Leaves the store alone for `ms`; only a stop ends it early. */
  async pause(ms: number): Promise<void> {
    await this.#timers.sleep(ms, this.#stopped.signal);
  }

  #nextMs(): number {
    if (this.#step !== undefined) {
      const ms = 2 ** this.#step;
      this.#seriesMs += ms;
      this.#step = this.#step < lastStep ? this.#step + 1 : undefined;
      return ms;
    }
    const ms = this.#idleMs;
    this.#idleMs = Math.min(ms * 1.5, mostIdleMs);
    return ms * (0.8 + 0.4 * this.#random());
  }

  async #wait(ms: number): Promise<void> {
    this.#waitingMs = ms;
    await this.#timers.sleep(ms, this.#end.signal);
    this.#waitingMs = undefined;
    if (this.#end.signal.aborted) this.#end = new AbortController();
  }

  #endWait(): void {
    if (this.#waitingMs !== undefined) this.#end.abort(woken);
  }
}
