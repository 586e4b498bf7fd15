import type { Clock } from "../model/clock.ts";
import type { Delivery, Outcome } from "../model/delivery.ts";
import type { LanePolicy } from "../model/lane-policy.ts";
import type { Observer } from "../model/observe.ts";
import type { Random } from "../model/random.ts";
import type { RetryPolicyInput } from "../model/retry.ts";
import type { Timers } from "../model/timers.ts";
import type { Sender } from "../send/sender.ts";
import type { ClaimResult, OutboxStore, RecordResult } from "../store/contract.ts";
import { ClaimTurn } from "./claim-turn.ts";
import type { Claims, DispatchClaim } from "./claims.ts";
import { type Decision, decide, decideBeforeSend, type SendResult, withUsable } from "./decide.ts";
import { type FailureHook, reportFailed } from "./failure-hook.ts";
import { LaneRooms, type LaneSignal } from "./lane-rooms.ts";
import { type Entry, momentOf, OutcomeBuffer } from "./outcome-buffer.ts";
import { type DeliveryCounts, reportLane, reportRecorded } from "./report-recorded.ts";
import { StoreHealth } from "./store-health.ts";

export interface DeliveryLoopConfig {
  readonly store: Pick<OutboxStore, "claim" | "record">;
  readonly sender: Sender;
  /** For event types that have none of their own. */
  readonly policy: RetryPolicyInput;
  /** Policies by event type. */
  readonly policies?: ReadonlyMap<string, RetryPolicyInput>;
  readonly clock: Clock;
  /** True: the store is given the clock's time; false: it uses the database's. */
  readonly virtualTime?: boolean;
  readonly random: Random;
  readonly timers: Timers;
  readonly observe: Observer;
  readonly failureHook?: FailureHook;
  /** Sends in flight at most. Default 512. */
  readonly maxInFlight?: number;
  /** Sends in flight per lane: after the first success (4) and at most (32). */
  readonly laneStart?: number;
  readonly laneMax?: number;
  /** Default 30 s, or twice the exchange limit where that is more. */
  readonly leaseMs?: number;
  /** Limit of one exchange, default 15 s: a row whose lease does not cover it is given back unsent. */
  readonly exchangeLimitMs?: number;
  /** Circuit breaker and disabling of what only fails. Default: neither. */
  readonly lanes?: LanePolicy;
  /** A steady clock in ms, for what is left of a lease. */
  readonly monotonic?: () => number;
}

/** One claimed delivery between its claim and its outcome. */
interface Send {
  readonly delivery: Delivery;
  readonly policy: RetryPolicyInput;
  readonly leaseEnds: number;
  readonly startedAt: Date;
  readonly started: number;
  settled: boolean;
}

/** What one claim gave. */
export interface ClaimRound {
  readonly claimed: number;
  /** Slots are left and more is due. */
  readonly again: boolean;
  /** Milliseconds until a lane that was left at its rate limit may send again. */
  readonly againInMs?: number;
}

const largestClaim = 256;
/**
 * How long freed capacity is gathered before the next claim, so that a claim is worth its statement: four times what
 * the last claim took, so that a store under load is asked for more at a time instead of more often.
 */
const capacity = { leastMs: 5, mostMs: 50, claims: 4 };

/**
 * Claims what its free slots can send at once, sends it, and records the outcomes in batches. It decides nothing
 * about when to look for work: its owner calls `claimOnce`, and is told by `onWanted` when slots have become free
 * and more is probably due. A dispatcher beside it claims for it (`begin`) what it has room for.
 */
export class DeliveryLoop implements Claims {
  readonly counts: DeliveryCounts = { claimed: 0, delivered: 0, rescheduled: 0, failed: 0 };
  onWanted: () => void = () => {};
  /** A subscription went gone: its pending rows wait for maintenance. */
  onGone: () => void = () => {};

  readonly #config: Required<Omit<DeliveryLoopConfig, "failureHook" | "policies">> & DeliveryLoopConfig;
  readonly #turn: ClaimTurn;
  readonly #rooms: LaneRooms;
  readonly #outcomes: OutcomeBuffer;
  readonly #recordHealth: StoreHealth;
  readonly #sends = new Set<Send>();
  readonly #abort = new AbortController();
  readonly #onIdle: (() => void)[] = [];
  #cursor: string | undefined;
  #closing = false;
  /** The last claim ended at its limit, or rows were queued since. */
  #full = false;
  #onCaughtUp: (() => void) | undefined;
  #highWater = 0;
  #gathering = false;
  /** How long the last claim took. */
  #claimMs = 0;
  /** When the soonest lane that was left at its rate limit may send again, by the steady clock. */
  #rateFreeAt = Number.POSITIVE_INFINITY;

  constructor(config: DeliveryLoopConfig) {
    this.#config = {
      virtualTime: false,
      maxInFlight: 512,
      laneStart: 4,
      laneMax: 32,
      leaseMs: Math.max(30_000, 2 * (config.exchangeLimitMs ?? 0)),
      exchangeLimitMs: 15_000,
      lanes: {},
      monotonic: () => performance.now(),
      ...config,
    };
    this.#turn = new ClaimTurn(this.#config.monotonic);
    this.#rooms = new LaneRooms(this.#config.laneStart, this.#config.laneMax);
    this.#recordHealth = new StoreHealth("record", config.observe, config.random);
    this.#outcomes = new OutcomeBuffer({
      store: config.store,
      lanes: this.#config.lanes,
      now: () => (config.virtualTime ? config.clock() : null),
      timers: config.timers,
      monotonic: this.#config.monotonic,
      health: this.#recordHealth,
      observe: config.observe,
      idle: () => this.#sends.size === 0,
      onRecorded: (entries, result) => this.#recorded(entries, result),
      onDone: (entry) => {
        if (holdsLane(entry.outcome)) this.#rooms.closed(entry.delivery.subscriptionId);
      },
    });
  }

  get inFlight(): number {
    return this.#sends.size;
  }

  /** Nothing is in flight, and every outcome is recorded or given up: the next claim sees all that is due. */
  get idle(): boolean {
    return this.#sends.size === 0 && this.#outcomes.empty;
  }

  /**
   * Claims for the free slots, at most `max` rows, and begins to send. `again`: slots are left and more is due.
   * Rejects when the claim fails. One call at a time.
   */
  async claimOnce(max = largestClaim): Promise<ClaimRound> {
    const { store, clock, virtualTime, leaseMs, maxInFlight, monotonic } = this.#config;
    const limit = Math.min(this.#slots(maxInFlight), largestClaim, max);
    if (limit < 1 || this.#closing || !this.#turn.take()) return { claimed: 0, again: false };
    const rooms = this.#rooms.rooms();
    const leaseEnds = monotonic() + leaseMs;
    try {
      const { deliveries, failed, cursor, againInMs, again } = await store.claim({
        now: virtualTime ? clock() : null,
        limit,
        leaseMs,
        room: this.#rooms.unknown,
        rooms,
        ...(this.#cursor === undefined ? {} : { cursor: this.#cursor }),
      });
      this.#claimMs = monotonic() - (leaseEnds - leaseMs);
      this.#cursor = cursor || this.#cursor;
      this.#full = deliveries.length + failed.length >= limit;
      const unsent = this.#took({ deliveries, failed }, leaseEnds) + failed.length;
      this.#rooms.claimed(
        deliveries.map((delivery) => delivery.subscriptionId),
        rooms,
        this.#full,
      );
      const steady = monotonic();
      // Kept until it has passed: a claim that comes before finds nothing, and hears of nothing.
      if (this.#rateFreeAt <= steady) this.#rateFreeAt = Number.POSITIVE_INFINITY;
      if (againInMs !== undefined) this.#rateFreeAt = Math.min(this.#rateFreeAt, steady + againInMs);
      return {
        claimed: deliveries.length,
        // A row that ended without a send took its lane's room from the next one; so did held ones.
        again: (this.#full || unsent > 0 || again === true) && this.#sends.size < maxInFlight,
        ...(this.#rateFreeAt < Number.POSITIVE_INFINITY && { againInMs: this.#rateFreeAt - steady }),
      };
    } finally {
      this.#turn.end();
      this.#tellCaughtUp();
    }
  }

  get free(): number {
    return this.#behind ? 0 : Math.min(this.#slots(this.#config.maxInFlight), largestClaim);
  }

  /** See {@link Claims}; at most `max` rows. */
  async begin(max = largestClaim): Promise<DispatchClaim | undefined> {
    const { leaseMs, maxInFlight } = this.#config;
    while (this.#turn.taken) await this.#turn.freed();
    const limit = Math.min(this.#slots(maxInFlight), largestClaim, max);
    if (limit < 1 || this.#closing) return undefined;
    const rooms = this.#rooms.rooms();
    const turn = this.#turn.takeForDispatch();
    return {
      room: { limit, leaseMs, room: this.#rooms.unknown, rooms },
      took: (claimed) => {
        // What it was promised may be somebody else's by now: then its rows are given back unsent.
        this.#took(claimed, turn.kept() ? turn.since + leaseMs : turn.since);
        this.#rooms.claimed(
          claimed.deliveries.map((delivery) => delivery.subscriptionId),
          rooms,
          true,
        );
      },
      end: () => {
        if (turn.end()) this.onWanted();
      },
    };
  }

  /** Rows were queued that it was not given: they are worth a claim. */
  queued(): void {
    this.#full = true;
    this.onWanted();
  }

  /** Resolves, after others had their turn, when what was queued is claimed and slots are free; at most after `ms`. */
  async caughtUp(ms: number): Promise<void> {
    const { timers } = this.#config;
    if (!this.#behind) return await timers.sleep(0, this.#abort.signal);
    const end = new AbortController();
    this.#onCaughtUp = () => end.abort("caught up");
    await timers.sleep(ms, end.signal);
    this.#onCaughtUp = undefined;
  }

  get #behind(): boolean {
    const { maxInFlight } = this.#config;
    return (
      !this.#closing && (this.#full || this.#slots(maxInFlight) < Math.min(maxInFlight, largestClaim) / 2)
    );
  }

  #tellCaughtUp(): void {
    if (this.#onCaughtUp && !this.#behind) this.#onCaughtUp();
  }

  /** Begins to send what was claimed; answers how many rows ended without. */
  #took({ deliveries, failed }: Pick<ClaimResult, "deliveries" | "failed">, leaseEnds: number): number {
    for (const delivery of failed) {
      this.counts.failed++;
      reportFailed(delivery, "unreadable", this.#config);
    }
    const unsent = deliveries.filter((delivery) => !this.#begin(delivery, leaseEnds)).length;
    this.#highWater = this.#sends.size;
    this.counts.claimed += deliveries.length;
    if (deliveries.length > 0) this.#config.observe("claimed", { deliveries: deliveries.length });
    return unsent;
  }

  /** While outcomes cannot be recorded, more sends would only make more repeats: then one row at a time, as a probe. */
  #slots(maxInFlight: number): number {
    if (!this.#recordHealth.lost) return maxInFlight - this.#sends.size;
    return this.#sends.size === 0 && this.#outcomes.empty ? 1 : 0;
  }

  /** Resolves when no send is in flight and every outcome is recorded or given up. */
  async settled(): Promise<void> {
    while (this.#sends.size > 0 || !this.#outcomes.empty) {
      await this.#outcomes.settled();
      if (this.#sends.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    }
  }

  /** Claims nothing any more; rows of a claim under way are given back unsent. */
  close(): void {
    this.#closing = true;
    this.#tellCaughtUp();
  }

  /** Stops the sends that are left: what has not been answered is given back, its attempt with it. */
  abort(): void {
    this.close();
    this.#abort.abort();
  }

  /** Gives back the rows of senders that did not heed the abort, and does not wait for a store that fails. */
  abandon(): void {
    for (const send of this.#sends) this.#finish(send, { kind: "released" }, "other");
    this.#outcomes.giveUp();
  }

  /** False = the row is not sent, and fails. */
  #begin(delivery: Delivery, leaseEnds: number): boolean {
    const { clock, monotonic, exchangeLimitMs, sender } = this.#config;
    const started = monotonic();
    if (this.#closing || leaseEnds - started < exchangeLimitMs) {
      this.#add(delivery, { kind: "released" }, leaseEnds);
      return true;
    }
    const policy = this.#config.policies?.get(delivery.type ?? "") ?? this.#config.policy;
    const lost = withUsable(policy, this.#warn, (usable) => decideBeforeSend(delivery, usable));
    if (lost) {
      this.#add(delivery, lost, leaseEnds);
      return false;
    }
    const send: Send = { delivery, policy, leaseEnds, startedAt: clock(), started, settled: false };
    this.#sends.add(send);
    this.#rooms.began(delivery.subscriptionId);
    let sending: ReturnType<Sender["deliver"]>;
    try {
      sending = sender.deliver(delivery, { signal: this.#abort.signal });
    } catch (error) {
      sending = Promise.reject(error);
    }
    sending.then(
      (receipt) => this.#ended(send, { receipt }),
      (error: unknown) => this.#ended(send, { error, aborted: this.#abort.signal.aborted }),
    );
    return true;
  }

  #ended(send: Send, result: SendResult): void {
    if (send.settled) return;
    const { delivery, startedAt, started } = send;
    const times = { startedAt, durationMs: Math.round(this.#config.monotonic() - started) };
    const decision = withUsable(send.policy, this.#warn, (usable) =>
      decide(delivery, result, times, usable, this.#config.random),
    );
    const exchange = "exchange" in decision ? decision.exchange : undefined;
    if (exchange) this.#config.observe("attempted", { ...momentOf(delivery), exchange });
    this.#finish(send, decision, signalOf(decision));
  }

  #finish(send: Send, decision: Decision, signal: LaneSignal): void {
    send.settled = true;
    this.#sends.delete(send);
    if (holdsLane(decision)) this.#rooms.closing(send.delivery.subscriptionId);
    const more = this.#rooms.ended(send.delivery.subscriptionId, signal);
    this.#add(send.delivery, decision, send.leaseEnds);
    if (this.#sends.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    this.#tellCaughtUp();
    if ((more || this.#full) && !this.#closing) this.#want();
  }

  #add(delivery: Delivery, decision: Decision, leaseEnds: number): void {
    const outcome = { id: delivery.id, leaseToken: delivery.leaseToken ?? "", ...decision } as Outcome;
    this.#outcomes.add({ delivery, outcome, leaseEnds });
  }

  /** Freed slots are worth a claim at once when half of the sends are done, else a moment later. */
  #want(): void {
    if (this.#sends.size <= this.#highWater / 2) {
      this.onWanted();
      return;
    }
    if (this.#gathering) return;
    this.#gathering = true;
    const ms = Math.min(Math.max(this.#claimMs * capacity.claims, capacity.leastMs), capacity.mostMs);
    void this.#config.timers.sleep(ms, this.#abort.signal).then(() => {
      this.#gathering = false;
      if (!this.#closing) this.onWanted();
    });
  }

  readonly #warn = (message: string): void => this.#config.observe("warning", { message });

  #recorded(entries: readonly Entry[], result: RecordResult): void {
    if (reportRecorded(entries, result.recorded, this.counts, this.#config).gone) this.onGone();
    for (const { subscriptionId, change } of result.lanes) {
      if (change === "closed") this.#rooms.restart(subscriptionId);
      reportLane(subscriptionId, change, this.#config.observe);
    }
    if (result.readied && !this.#closing) this.onWanted();
  }
}

/** True when recording it holds the whole lane, so that nothing more of it may be sent until then. */
function holdsLane(decision: Decision): boolean {
  return decision.kind === "gone" || ("holdLaneMs" in decision && decision.holdLaneMs !== undefined);
}

function signalOf(decision: Decision): LaneSignal {
  if (decision.kind === "delivered") return "success";
  const exchange = "exchange" in decision ? decision.exchange : undefined;
  const code = exchange?.errorCode;
  return code === "timeout" || code === "connect_timeout" ? "timeout" : "other";
}
