import { drain } from "../deliver/drain.ts";
import { Loops, type LoopsConfig } from "../deliver/loops.ts";
import { maintainOnce } from "../deliver/maintenance.ts";
import { ReplayRounds } from "../deliver/replay-rounds.ts";
import { dayLongRetryPolicy } from "../deliver/retry-policy.ts";
import { StoreHealth } from "../deliver/store-health.ts";
import { Dispatcher } from "../dispatch/dispatcher.ts";
import { MissingFiller } from "../dispatch/missing-filler.ts";
import type { Clock } from "../model/clock.ts";
import type { Catalogue } from "../model/definition.ts";
import { ConfigurationError } from "../model/errors.ts";
import { describeHold } from "../model/hold.ts";
import { defaultBreaker, defaultDisable, type LanePolicy } from "../model/lane-policy.ts";
import type { Observer } from "../model/observe.ts";
import { systemRandomNumber } from "../model/random.ts";
import type { RetryPolicyInput } from "../model/retry.ts";
import { systemTimers } from "../model/timers.ts";
import { AddressGuard } from "../send/address-guard.ts";
import { defaultLimits, HttpSender } from "../send/http-sender.ts";
import { type Resolver, systemResolver } from "../send/resolver.ts";
import type { Sender } from "../send/sender.ts";
import { type ConnectionTrial, tryConnection } from "../send/try-connection.ts";
import type { OutboxStore, RetentionPolicy } from "../store/contract.ts";
import { checkWhole } from "./checks.ts";
import type { AnyAdapter } from "./hookwell.ts";
import type { HookwellOptions, LaneOptions } from "./options.ts";
import type { TenantMode } from "./prepare-event.ts";
import { StartedRun } from "./run.ts";
import type { DrainResult, Retention, Run, StartOptions, UpkeepResult } from "./surface.ts";

const dayMs = 86_400_000;
const defaultRetention: RetentionPolicy = {
  deliveredMs: 30 * dayMs,
  failedMs: 90 * dayMs,
  eventsMs: 30 * dayMs,
  heldMs: 30 * dayMs,
};

export interface EngineParts {
  readonly options: Omit<HookwellOptions<AnyAdapter, never, TenantMode>, "events">;
  readonly catalogue: Catalogue | undefined;
  readonly clock: Clock;
  readonly observe: Observer;
}

/** The working half of an instance: what it dispatches and sends with, and what runs at the moment. */
export class Engine {
  readonly #parts: EngineParts;
  readonly #store: OutboxStore;
  readonly #runs = new Set<StartedRun>();
  #sender: Sender | undefined;
  #resolver: Resolver | undefined;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#store = parts.options.store;
  }

  /** What sends: the given sender, or one that is made when it is first needed. */
  get sender(): Sender {
    const { options, clock } = this.#parts;
    this.#sender ??= options.sender ?? httpSender(options, clock);
    return this.#sender;
  }

  /** A commit with work in it is coming: whoever runs here looks again soon. */
  wake(): void {
    for (const run of this.#runs) run.wake();
  }

  /** An event was emitted: its commit is coming. */
  emitted(): void {
    for (const run of this.#runs) run.emitted();
  }

  /** A subscription was deleted: its pending rows are for maintenance. */
  maintainSoon(): void {
    for (const run of this.#runs) run.maintainSoon();
  }

  /** A replay was made. */
  replaySoon(): void {
    for (const run of this.#runs) run.replaySoon();
  }

  start(options: StartOptions = {}): Run {
    const { dispatcher = true, worker = true, failureHook } = options;
    const config: LoopsConfig = {
      ...this.#deliveryConfig(),
      ...(dispatcher && { dispatcher: this.#dispatcher() }),
      ...((dispatcher || worker) && { replays: this.#replays(dispatcher) }),
      worker,
      retention: this.retention ?? null,
      ...(failureHook && { failureHook }),
    };
    const run = new StartedRun({
      // Only what sends needs the keys of the secrets.
      open: async () => {
        await this.#store.open({ withKeys: worker });
        if (worker) await this.#tellHolds();
      },
      begin: () => new Loops(config),
      timers: config.timers,
      health: new StoreHealth("start", config.observe, config.random),
      onStopped: () => this.#runs.delete(run),
    });
    this.#runs.add(run);
    return run;
  }

  async drain(options: { readonly deadlineMs: number; readonly max?: number }): Promise<DrainResult> {
    await this.#store.open({ withKeys: true });
    const config = { dispatcher: this.#dispatcher(), replays: this.#replays(true, 0) };
    return drain({ ...this.#deliveryConfig(), ...config }, options);
  }

  /** Undefined = nothing is pruned. */
  get retention(): RetentionPolicy | undefined {
    return retentionPolicy(this.#parts.options.retention) ?? undefined;
  }

  async maintain({ limit = 1_000 }: { readonly limit?: number } = {}): Promise<UpkeepResult> {
    checkWhole(limit, "limit", 1, 10_000);
    const { clock, observe, options } = this.#parts;
    const virtualTime = options.clock !== undefined;
    const retention = this.retention ?? null;
    const done = await maintainOnce({ store: this.#store, retention, clock, virtualTime, observe }, limit);
    return { ...done, failed: done.failed.length };
  }

  async tryConnection(url: string): Promise<ConnectionTrial | undefined> {
    const { sender, network, limits } = this.#parts.options;
    if (sender) return undefined;
    const { connectMs, nextAddressMs } = { ...defaultLimits, ...limits };
    this.#resolver ??= systemResolver();
    const guard = new AddressGuard(network);
    return tryConnection(url, { guard, resolver: this.#resolver, connectMs, nextAddressMs });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#runs].map((run) => run.stop()));
    // A sender that was passed in belongs to the caller.
    if (!this.#parts.options.sender) await this.#sender?.close?.();
    await this.#store.close();
  }

  /** Whoever wonders why nothing leaves finds it in the log. */
  async #tellHolds(): Promise<void> {
    const holds = await this.#store.listHolds();
    if (holds.length === 0) return;
    const message = `what an operator holds is not sent until it is released: ${holds.map(describeHold).join("; ")}.`;
    this.#parts.observe("warning", { message });
  }

  #dispatcher(): Dispatcher {
    const { catalogue } = this.#parts;
    return new Dispatcher({ ...this.#base(), ...(catalogue && { catalogue }) });
  }

  #replays(renders: boolean, waitMs?: number): ReplayRounds {
    const { catalogue } = this.#parts;
    return new ReplayRounds({
      ...this.#base(),
      retention: this.retention ?? null,
      ...(renders && { filler: new MissingFiller({ ...this.#base(), ...(catalogue && { catalogue }) }) }),
      ...(waitMs !== undefined && { waitMs }),
    });
  }

  #base() {
    const { clock, observe, options } = this.#parts;
    const virtualTime = options.clock !== undefined;
    return { store: this.#store, clock, virtualTime, observe, timers: options.timers ?? systemTimers };
  }

  #deliveryConfig() {
    const { options, catalogue, clock, observe } = this.#parts;
    return {
      store: this.#store,
      sender: this.sender,
      policy: options.retry ?? dayLongRetryPolicy(),
      policies: policiesOf(catalogue),
      clock,
      virtualTime: options.clock !== undefined,
      random: options.randomNumber ?? systemRandomNumber,
      timers: options.timers ?? systemTimers,
      ...(options.monotonic && { monotonic: options.monotonic }),
      observe,
      lanes: lanePolicy(options.lanes),
      ...(options.limits?.exchangeMs !== undefined && { exchangeLimitMs: options.limits.exchangeMs }),
    };
  }
}

function httpSender({ network, wire, limits }: EngineParts["options"], clock: Clock): HttpSender {
  return new HttpSender({
    clock,
    ...(network && { network }),
    ...(wire && { wire }),
    ...(limits && { limits }),
  });
}

/** @throws ConfigurationError */
function lanePolicy({ breaker, disable }: LaneOptions = {}): LanePolicy {
  const policy = {
    ...(breaker !== false && { breaker: { ...defaultBreaker, ...breaker } }),
    ...(disable !== false && { disable: { ...defaultDisable, ...disable } }),
  };
  for (const [part, fields] of Object.entries(policy))
    for (const [name, value] of Object.entries(fields))
      if (!Number.isSafeInteger(value) || value < 1)
        throw new ConfigurationError(`lanes.${part}.${name} must be a whole number, 1 or more.`);
  return { ...policy, report: true };
}

function policiesOf(catalogue: Catalogue | undefined): ReadonlyMap<string, RetryPolicyInput> {
  return new Map(
    [...(catalogue?.values() ?? [])].flatMap(({ type, retry }) =>
      retry === undefined ? [] : [[type, retry]],
    ),
  );
}

function retentionPolicy(retention: Retention | undefined): RetentionPolicy | null {
  return retention === false ? null : { ...defaultRetention, ...retention };
}
