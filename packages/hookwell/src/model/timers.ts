/** Waits. Everything that needs to is given one, so that tests run on virtual time. */
export interface Timers {
  /**
   * Resolves after `ms` milliseconds, or as soon as `signal` is aborted; it never rejects. 0 = after I/O and timers
   * that are ready had their turn: between batches of work that never leaves the thread, as SQLite's.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** setTimeout holds a signed 32-bit number and fires at once above it. */
const longestTimer = 2 ** 31 - 1;

/** The runtime's timers; waits of any length. */
export const systemTimers: Timers = {
  async sleep(ms, signal) {
    if (!(ms > 0)) return new Promise((resolve) => setImmediate(resolve));
    for (let left = ms; left > 0 && !signal?.aborted; left -= longestTimer)
      await sleepOnce(Math.min(left, longestTimer), signal);
  },
};

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
