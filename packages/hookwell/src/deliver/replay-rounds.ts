import type { Clock } from "../model/clock.ts";
import type { Observer } from "../model/observe.ts";
import type { OutboxStore, RetentionPolicy } from "../store/contract.ts";
import type { ReplayLimits } from "../store/replay-contract.ts";

/** Who renders what replays found missing, as the rounds see it. */
export interface MissingRounds {
  fillOnce(): Promise<{ readonly queued: number; readonly again: boolean }>;
}

export interface ReplayRoundsConfig {
  readonly store: Pick<OutboxStore, "replays">;
  /** Absent = this process renders nothing, and leaves that to others. */
  readonly filler?: MissingRounds;
  readonly clock: Clock;
  /** True: the store is given the clock's time; false: it uses the database's. */
  readonly virtualTime: boolean;
  readonly observe: Observer;
  readonly retention: RetentionPolicy | null;
  /** See {@link ReplayLimits}. Default 250 ms. */
  readonly waitMs?: number;
}

/** Pending rows of one replay at most. */
export const mostPending = 10_000;
const lookPerStep = 1_000;
const queuedPerStep = 200;

/** Takes replays on, a small step at a time. Any number of processes may: each step is one transaction. */
export class ReplayRounds {
  readonly #config: ReplayRoundsConfig;
  readonly #limits: ReplayLimits;

  constructor(config: ReplayRoundsConfig) {
    this.#config = config;
    const { retention, waitMs = 250 } = config;
    this.#limits = {
      look: lookPerStep,
      most: queuedPerStep,
      pending: mostPending,
      waitMs,
      missingMs: retention?.eventsMs ?? null,
      keepMs: retention?.failedMs ?? null,
    };
  }

  /** One step. `again`: more can be done now; `running`: soon. Rejects when the store fails. */
  async once(): Promise<{ readonly queued: number; readonly again: boolean; readonly running: boolean }> {
    const { store, clock, virtualTime, observe, filler } = this.#config;
    const step = await store.replays.advance(this.#limits, virtualTime ? clock() : null);
    for (const { id, status } of step.ended) observe("replayEnded", { replayId: id, status });
    const filled = step.running ? await filler?.fillOnce() : undefined;
    return {
      queued: step.queued + (filled?.queued ?? 0),
      again: step.again || filled?.again === true,
      running: step.running,
    };
  }
}
