import type { OutboxStore, RetentionPolicy } from "../store/contract.ts";
import type { Claims, DispatchRound } from "./claims.ts";
import { DeliveryLoop, type DeliveryLoopConfig } from "./delivery-loop.ts";
import { maintainOnce } from "./maintenance.ts";
import { Pacer } from "./pacer.ts";
import type { ReplayRounds } from "./replay-rounds.ts";
import { StoreHealth } from "./store-health.ts";

/** The dispatcher, as the loops see it. */
export interface DispatchRounds {
  /** Dispatches one batch; its rows go to `claims` where that has room. Rejects when the store fails. */
  dispatchOnce(claims?: Claims): Promise<DispatchRound>;
}

export interface LoopsConfig extends DeliveryLoopConfig {
  readonly store: Pick<OutboxStore, "claim" | "record" | "maintain" | "watch">;
  /** Absent = this process dispatches nothing. */
  readonly dispatcher?: DispatchRounds;
  /** Absent = this process takes no replay on. */
  readonly replays?: Pick<ReplayRounds, "once">;
  /** False = this process sends nothing. Default true. */
  readonly worker?: boolean;
  /** Null = nothing is pruned. */
  readonly retention: RetentionPolicy | null;
}

const maintenanceMs = 60_000;
/** How long new events wait at most for a worker that has not claimed yet what is queued. */
const catchUpMs = 250;
const moreMs = 100;
const cancelledMs = 2_000;
const maintenanceBatch = 1_000;
/** How often a process looks whether another one has made a replay. */
const replayIdleMs = 5_000;
const replayBusyMs = 250;
/** How long senders get to heed an abort, and a store that fails to take the last outcomes. */
const abandonMs = 1_000;

/**
 * Runs the dispatcher, the delivery loop and maintenance until stopped. Rounds of one loop never overlap; an error
 * of the store is reported once, waited out and reported as regained; nothing ends a loop but `stop`.
 */
export class Loops {
  readonly #config: LoopsConfig;
  readonly #delivery: DeliveryLoop;
  readonly #pacers: { readonly dispatch: Pacer; readonly deliver: Pacer };
  readonly #stopWatching: () => void;
  readonly #running: Promise<unknown>;
  #stopping: Promise<void> | undefined;
  #maintenance = new AbortController();
  #replays = new AbortController();
  readonly #stopped = new AbortController();

  /** Begins at once. */
  constructor(config: LoopsConfig) {
    this.#config = config;
    const { timers, random, dispatcher, replays, worker = true } = config;
    this.#pacers = { dispatch: new Pacer(timers, random), deliver: new Pacer(timers, random) };
    this.#delivery = new DeliveryLoop(config);
    this.#delivery.onWanted = () => this.#pacers.deliver.poke();
    this.#delivery.onGone = () => this.maintainSoon();
    this.#stopWatching = config.store.watch(() => this.#noticed());
    this.#running = Promise.all([
      ...(dispatcher ? [this.#dispatch(dispatcher)] : []),
      ...(worker ? [this.#deliver(), this.#maintain()] : []),
      ...(replays ? [this.#replay(replays)] : []),
    ]);
  }

  /** Looks for work now, and again after 1, 2, 4 … 64 ms: the commit that was announced may be still to come. */
  wake(): void {
    this.#pacers.dispatch.wake();
    this.#pacers.deliver.wake();
  }

  /**
   * An event was emitted here. Where this process dispatches, its deliveries come to be by that, and are looked for
   * then: claims before would find nothing, and cost more than all the rest of an event's way.
   */
  emitted(): void {
    this.#pacers.dispatch.wake();
    if (!this.#config.dispatcher) this.#pacers.deliver.wake();
  }

  /** Somebody else has committed something, or is about to. */
  #noticed(): void {
    this.emitted();
    this.#pacers.deliver.poke();
  }

  /** Runs maintenance now instead of within the minute: after a deletion. */
  maintainSoon(): void {
    this.#maintenance.abort();
  }

  /** Looks for replays now: one was made. */
  replaySoon(): void {
    this.#replays.abort();
  }

  /**
   * Claims stop at once, sends finish within `graceMs` (5,000); then those that are left are stopped and given back
   * with their attempt. Resolves when everything is recorded, or given up because the store does not answer.
   */
  stop(options: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(options.graceMs ?? 5_000);
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    this.#stopWatching();
    this.#delivery.close();
    this.#pacers.dispatch.stop();
    this.#pacers.deliver.stop();
    this.#stopped.abort();
    this.maintainSoon();
    this.replaySoon();
    const finished = this.#running.then(() => this.#delivery.settled());
    if (await this.#within(graceMs, finished)) return;
    this.#delivery.abort();
    if (await this.#within(abandonMs, finished)) return;
    this.#delivery.abandon();
    // A store that does not even reject must not hold the process: the leases give the rows back.
    await this.#within(abandonMs, finished);
  }

  /** True when `work` ends within `ms`; leaves no timer behind. */
  async #within(ms: number, work: Promise<unknown>): Promise<boolean> {
    const end = new AbortController();
    const done = work.then(() => true);
    const late = this.#config.timers.sleep(ms, end.signal).then(() => false);
    const inTime = await Promise.race([done, late]);
    end.abort();
    return inTime;
  }

  async #dispatch(dispatcher: DispatchRounds): Promise<void> {
    const { observe, random, worker = true } = this.#config;
    const health = new StoreHealth("dispatch", observe, random);
    const pacer = this.#pacers.dispatch;
    while (!this.#stopped.signal.aborted) {
      try {
        const { taken, again, queued } = await dispatcher.dispatchOnce(worker ? this.#delivery : undefined);
        health.reached();
        if (queued) this.#delivery.queued();
        if (!again) await pacer.next(taken > 0);
        else if (worker) await this.#delivery.caughtUp(catchUpMs);
        else await pacer.giveWay();
      } catch (error) {
        await pacer.pause(health.failed(error));
      }
    }
  }

  async #deliver(): Promise<void> {
    const health = new StoreHealth("deliver", this.#config.observe, this.#config.random);
    const pacer = this.#pacers.deliver;
    while (!this.#stopped.signal.aborted) {
      try {
        const { claimed, again, againInMs } = await this.#delivery.claimOnce();
        health.reached();
        await (again ? pacer.giveWay() : pacer.next(claimed > 0, againInMs));
      } catch (error) {
        await pacer.pause(health.failed(error));
      }
    }
  }

  async #replay(replays: Pick<ReplayRounds, "once">): Promise<void> {
    const { timers, random, observe } = this.#config;
    const health = new StoreHealth("replay", observe, random);
    while (!this.#stopped.signal.aborted) {
      let pause = replayIdleMs * (0.8 + 0.4 * random());
      try {
        const { queued, again, running } = await replays.once();
        health.reached();
        if (queued > 0) this.#pacers.deliver.poke();
        if (again || running) pause = again ? 0 : replayBusyMs;
      } catch (error) {
        pause = health.failed(error);
      }
      await timers.sleep(pause, this.#replays.signal);
      if (!this.#stopped.signal.aborted) this.#replays = new AbortController();
    }
  }

  async #maintain(): Promise<void> {
    const { timers, random, observe } = this.#config;
    const health = new StoreHealth("maintenance", observe, random);
    // Replicas that start together must not prune together.
    let pause = random() * maintenanceMs;
    while (!this.#stopped.signal.aborted) {
      await timers.sleep(pause, this.#maintenance.signal);
      if (this.#stopped.signal.aborted) return;
      this.#maintenance = new AbortController();
      try {
        const done = await maintainOnce(this.#config, maintenanceBatch);
        health.reached();
        // Rows in a worker's hands were left alone, and may be given back any moment: another look soon.
        const again = done.more ? moreMs : done.cancelled > 0 ? cancelledMs : maintenanceMs;
        pause = again * (0.8 + 0.4 * random());
      } catch (error) {
        pause = Math.max(health.failed(error), 1_000);
      }
    }
  }
}
