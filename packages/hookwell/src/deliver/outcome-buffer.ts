import type { Delivery, Outcome } from "../model/delivery.ts";
import type { LanePolicy } from "../model/lane-policy.ts";
import type { DeliveryMoment, Observer } from "../model/observe.ts";
import type { Timers } from "../model/timers.ts";
import type { Now, OutboxStore, RecordResult } from "../store/contract.ts";
import type { StoreHealth } from "./store-health.ts";

/** An outcome with the delivery it belongs to, and when its lease ends by the worker's own steady clock (ms). */
export interface Entry {
  readonly delivery: Delivery;
  readonly outcome: Outcome;
  readonly leaseEnds: number;
}

interface OutcomeBufferConfig {
  readonly store: Pick<OutboxStore, "record">;
  readonly lanes: LanePolicy;
  readonly now: () => Now;
  readonly timers: Timers;
  readonly monotonic: () => number;
  readonly health: StoreHealth;
  readonly observe: Observer;
  /** True when no send is under way, so that waiting for company is pointless. */
  readonly idle: () => boolean;
  readonly onRecorded: (entries: readonly Entry[], result: RecordResult) => void;
  /** Called once for every entry added: recorded, stale or given up. */
  readonly onDone: (entry: Entry) => void;
}

/** Twice what the last record took: long enough to fill a batch under load, and inside the 50 ms that an outcome may wait. */
const gather = { leastMs: 10, mostMs: 30, records: 2 };
const fullBatch = 256;

/**
 * Collects outcomes and records them in batches: at once when nothing else is under way or a batch is full,
 * else after 10 to 30 ms. One record runs at a time; what comes meanwhile is the next batch. A store that fails is
 * asked again with backoff until the leases have ended, when the rows are due again anyway.
 */
export class OutcomeBuffer {
  readonly #config: OutcomeBufferConfig;
  #entries: Entry[] = [];
  #recording: Promise<void> | undefined;
  #gathering: AbortController | undefined;
  /** How long the last record took. */
  #recordMs = 0;
  /** Set at the end of a stop: a failing store is not asked again. */
  readonly #giveUp = new AbortController();

  constructor(config: OutcomeBufferConfig) {
    this.#config = config;
  }

  /** True when nothing waits to be recorded or is being recorded. */
  get empty(): boolean {
    return this.#entries.length === 0 && this.#recording === undefined;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    if (this.#recording !== undefined) return;
    if (this.#entries.length >= fullBatch || this.#config.idle()) this.#flush();
    else if (!this.#gathering) this.#gather();
  }

  /** Resolves when everything added so far has been recorded or given up. */
  async settled(): Promise<void> {
    while (!this.empty) {
      this.#flush();
      await this.#recording;
    }
  }

  /** Gives up on a store that fails: what it does not take now is left to the end of its lease. */
  giveUp(): void {
    this.#giveUp.abort();
  }

  #gather(): void {
    const gathering = new AbortController();
    this.#gathering = gathering;
    const ms = Math.min(Math.max(this.#recordMs * gather.records, gather.leastMs), gather.mostMs);
    void this.#config.timers.sleep(ms, gathering.signal).then(() => {
      if (!gathering.signal.aborted) this.#flush();
    });
  }

  #flush(): void {
    this.#gathering?.abort("flushed");
    this.#gathering = undefined;
    if (this.#recording !== undefined || this.#entries.length === 0) return;
    const batch = this.#entries;
    this.#entries = [];
    this.#recording = this.#record(batch).finally(() => {
      this.#recording = undefined;
      if (this.#entries.length >= fullBatch || this.#config.idle()) this.#flush();
      else if (this.#entries.length > 0) this.#gather();
    });
  }

  /** Never rejects. */
  async #record(batch: readonly Entry[]): Promise<void> {
    const { store, lanes, now, timers, monotonic, health, onRecorded, onDone } = this.#config;
    for (let entries = batch; entries.length > 0; ) {
      let result: RecordResult;
      const begun = monotonic();
      try {
        const outcomes = entries.map((entry) => entry.outcome);
        result = await store.record(outcomes, now(), lanes);
        this.#recordMs = monotonic() - begun;
      } catch (error) {
        await timers.sleep(health.failed(error), this.#giveUp.signal);
        entries = this.#stillLeased(entries);
        continue;
      }
      health.reached();
      onRecorded(entries, result);
      entries.forEach(onDone);
      return;
    }
  }

  /** The entries that are worth another try; the others are reported. */
  #stillLeased(entries: readonly Entry[]): readonly Entry[] {
    const steady = this.#config.monotonic();
    const leased = (entry: Entry): boolean => !this.#giveUp.signal.aborted && entry.leaseEnds > steady;
    for (const entry of entries.filter((each) => !leased(each))) {
      this.#config.observe("leaseLost", momentOf(entry.delivery));
      this.#config.onDone(entry);
    }
    return entries.filter(leased);
  }
}

export function momentOf(delivery: Delivery): DeliveryMoment {
  return {
    deliveryId: delivery.id,
    eventId: delivery.eventId,
    subscriptionId: delivery.subscriptionId,
    attempt: delivery.attempts,
  };
}
