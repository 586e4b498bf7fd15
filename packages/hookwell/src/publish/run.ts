import type { Loops } from "../deliver/loops.ts";
import type { StoreHealth } from "../deliver/store-health.ts";
import type { Timers } from "../model/timers.ts";
import type { Run } from "./surface.ts";

interface RunParts {
  /** Checks database, schema and keys. */
  readonly open: () => Promise<void>;
  readonly begin: () => Loops;
  readonly timers: Timers;
  readonly health: StoreHealth;
  readonly onStopped: () => void;
}

/**
 * One `start()`: opens the store, again and again while it cannot be used (that is reported once), then runs
 * the loops. A wrong encryption key or schema is thus found before a single attempt is spent.
 */
export class StartedRun implements Run {
  readonly #parts: RunParts;
  readonly #stopped = new AbortController();
  readonly #opening: Promise<void>;
  #loops: Loops | undefined;

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.#opening = this.#open();
  }

  wake(): void {
    this.#loops?.wake();
  }

  emitted(): void {
    this.#loops?.emitted();
  }

  maintainSoon(): void {
    this.#loops?.maintainSoon();
  }

  replaySoon(): void {
    this.#loops?.replaySoon();
  }

  async stop(options: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopped.abort();
    await this.#opening;
    await this.#loops?.stop(options);
    this.#parts.onStopped();
  }

  /** Never rejects. */
  async #open(): Promise<void> {
    const { open, begin, timers, health } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      try {
        await open();
        health.reached();
        if (!this.#stopped.signal.aborted) this.#loops = begin();
        return;
      } catch (error) {
        await timers.sleep(health.failed(error), this.#stopped.signal);
      }
    }
  }
}
