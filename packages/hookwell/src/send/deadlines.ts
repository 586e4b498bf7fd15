/** Something that must end in time. */
export interface Expiring {
  /** Called once when the limit has passed, unless it was removed before. */
  expire(): void;
}

interface Entry {
  readonly what: Expiring;
  readonly at: number;
}

/**
 * One limit for many exchanges with a single timer. All wait equally long, so they expire in the order in which
 * they came, and the insertion order of a map is all the bookkeeping there is.
 */
export class Deadlines {
  readonly #limitMs: number;
  readonly #entries = new Map<Expiring, Entry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  add(what: Expiring): void {
    this.#entries.set(what, { what, at: performance.now() + this.#limitMs });
    if (this.#timer === undefined) this.#arm(this.#limitMs);
  }

  remove(what: Expiring): void {
    this.#entries.delete(what);
  }

  /** Drops the timer when nothing waits. */
  close(): void {
    if (this.#entries.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => this.#fire(), Math.max(1, Math.ceil(ms)));
    // The sockets of what waits keep the process alive; an idle sender must not.
    this.#timer.unref();
  }

  #fire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const entry of this.#entries.values()) {
      if (entry.at > now) {
        this.#arm(entry.at - now);
        return;
      }
      this.#entries.delete(entry.what);
      entry.what.expire();
    }
  }
}
