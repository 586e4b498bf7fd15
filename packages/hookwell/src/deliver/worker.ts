import { type Clock, systemClock } from "../model/clock.ts";
import type { Delivery } from "../model/delivery.ts";
import { ConfigurationError } from "../model/errors.ts";
import type { Logger, ObservedEvents, Observer } from "../model/observe.ts";
import { type Random, systemRandomNumber } from "../model/random.ts";
import type { RetryPolicyInput } from "../model/retry.ts";
import { systemTimers, type Timers } from "../model/timers.ts";
import { SendAbortedError, type Sender } from "../send/sender.ts";
import type { ReferenceStore } from "../store/contract.ts";
import { type Decision, decide, decideBeforeSend, errorText, type SendResult, withUsable } from "./decide.ts";
import { callFailureHook, type FailureHook } from "./failure-hook.ts";
import { defaultRetryPolicy } from "./retry-policy.ts";

export interface WorkerConfig {
  readonly store: ReferenceStore;
  readonly sender: Sender;
  /** Default {@link defaultRetryPolicy}; fields left out take its values. */
  readonly policy?: RetryPolicyInput;
  /** Policies by event type, before `policy`. */
  readonly policies?: ReadonlyMap<string, RetryPolicyInput>;
  readonly now?: Clock;
  readonly logger?: Logger;
  /** Deliveries per round. Default, and for 0 or less: 50. */
  readonly batch?: number;
  /** Milliseconds from the end of a round to the next. Default, and for 0 or less: 1,000. */
  readonly interval?: number;
  /** Called once per round of attempts, when a delivery has been recorded as failed. */
  readonly failureHook?: FailureHook;
  /** How long sends may go on after `run` was aborted, in ms. Default 0: they are stopped at once. */
  readonly graceMs?: number;
  /** Limit of one exchange in ms, default 15,000: a row whose lease does not cover it is given back unsent. */
  readonly exchangeLimitMs?: number;
  readonly timers?: Timers;
  readonly random?: Random;
  /** A steady clock in ms, for what is left of a lease. */
  readonly monotonic?: () => number;
}

/** How long a sender gets to heed an abort before its row is given back without it. */
const abandonMs = 1_000;

/**
 * The reference worker: claims due deliveries through the six reference methods, sends them and marks each with
 * its outcome. Several may share one store. For throughput use `createHookwell`, whose loop records in batches.
 */
export class Worker {
  readonly #config: Required<Omit<WorkerConfig, "logger" | "policies" | "failureHook">> & WorkerConfig;
  #wake: AbortController | undefined;
  #woken = false;

  /** @throws ConfigurationError without a store or a sender */
  constructor(config: WorkerConfig) {
    if (!config.store || !config.sender)
      throw new ConfigurationError("new Worker needs a store and a sender.");
    const { batch, interval, ...rest } = config;
    this.#config = {
      policy: defaultRetryPolicy(),
      now: systemClock,
      graceMs: 0,
      exchangeLimitMs: 15_000,
      timers: systemTimers,
      random: systemRandomNumber,
      monotonic: () => performance.now(),
      ...withoutAbsent(rest),
      store: config.store,
      sender: config.sender,
      batch: batch !== undefined && batch > 0 ? Math.ceil(batch) : 50,
      interval: interval !== undefined && interval > 0 ? interval : 1_000,
    };
  }

  /**
   * One round: claims up to `batch` due deliveries, sends them side by side and marks them. Rejects only when the
   * claim fails; a mark that fails is logged and its row is due again when its lease ends. Aborting `signal` stops
   * the sends, which then do not count as attempts.
   */
  async processOnce(signal?: AbortSignal): Promise<void> {
    await this.#round(signal);
  }

  /** Works at once, then at the interval, when woken, or at once after a full batch. Resolves when aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const stopSends = new AbortController();
    const ended = new AbortController();
    const stop = (): void => {
      this.#wake?.abort();
      void this.#config.timers.sleep(this.#config.graceMs, ended.signal).then(() => stopSends.abort());
    };
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        let full = false;
        try {
          full = (await this.#round(stopSends.signal, signal)) >= this.#config.batch;
        } catch (error) {
          this.#log(`Claiming due deliveries failed, trying again: ${errorText(error)}`);
        }
        if (!full) await this.#pause(signal);
      }
    } finally {
      signal.removeEventListener("abort", stop);
      ended.abort();
    }
  }

  /** Has a running worker look for work now. */
  wake(): void {
    this.#woken = true;
    this.#wake?.abort();
  }

  async #pause(signal: AbortSignal): Promise<void> {
    if (!this.#woken && !signal.aborted) {
      this.#wake = new AbortController();
      await this.#config.timers.sleep(this.#config.interval, this.#wake.signal);
      this.#wake = undefined;
    }
    this.#woken = false;
  }

  /** Answers how many rows were claimed. Rows claimed after `closing` was aborted are given back unsent. */
  async #round(signal: AbortSignal | undefined, closing = signal): Promise<number> {
    const { store, now, batch, monotonic } = this.#config;
    const claimedAt = now();
    const started = monotonic();
    const deliveries = await store.claimDue(claimedAt, batch);
    await Promise.all(
      deliveries.map(async (delivery) => {
        const passed = monotonic() - started;
        const decision =
          closing?.aborted || !this.#covers(delivery, claimedAt, passed)
            ? ({ kind: "released" } as const)
            : await this.#send(delivery, signal);
        try {
          await this.#mark(delivery, decision);
        } catch (error) {
          this.#log(
            `Recording delivery ${delivery.id} as ${decision.kind} failed, it is due again when its lease ends: ${errorText(error)}`,
          );
        }
      }),
    );
    return deliveries.length;
  }

  /** True when what is left of the lease covers a whole exchange. */
  #covers({ leaseUntil }: Delivery, claimedAt: Date, passedMs: number): boolean {
    if (leaseUntil === undefined) return true;
    return leaseUntil.getTime() - claimedAt.getTime() - passedMs >= this.#config.exchangeLimitMs;
  }

  async #send(delivery: Delivery, signal: AbortSignal | undefined): Promise<Decision> {
    const { now, monotonic, random } = this.#config;
    const policy = this.#config.policies?.get(delivery.type ?? "") ?? this.#config.policy;
    const report = (message: string): void => this.#log(message);
    const lost = withUsable(policy, report, (usable) => decideBeforeSend(delivery, usable));
    if (lost) return lost;
    const startedAt = now();
    const started = monotonic();
    const result = await this.#exchange(delivery, signal);
    const times = { startedAt, durationMs: Math.round(monotonic() - started) };
    return withUsable(policy, report, (usable) => decide(delivery, result, times, usable, random));
  }

  /** Never rejects. A sender that does not heed the abort is left behind after a second. */
  async #exchange(delivery: Delivery, signal: AbortSignal | undefined): Promise<SendResult> {
    const ended = new AbortController();
    const sending = (async (): Promise<SendResult> => {
      try {
        return { receipt: await this.#config.sender.deliver(delivery, signal ? { signal } : {}) };
      } catch (error) {
        return { error, aborted: signal?.aborted ?? false };
      } finally {
        ended.abort();
      }
    })();
    if (!signal) return sending;
    const abandoned = aborted(signal, ended.signal).then(async (): Promise<SendResult> => {
      await this.#config.timers.sleep(abandonMs, ended.signal);
      return { error: new SendAbortedError(delivery.id), aborted: true };
    });
    return Promise.race([sending, abandoned]);
  }

  async #mark(delivery: Delivery, decision: Decision): Promise<void> {
    const { store, now, failureHook } = this.#config;
    const { id, attempts, leaseToken } = delivery;
    switch (decision.kind) {
      case "delivered":
        return store.markDelivered(id, now(), leaseToken);
      case "retry": {
        const next = new Date(now().getTime() + decision.delayMs);
        return store.reschedule(id, attempts, decision.exchange.error ?? "", next, leaseToken);
      }
      case "released":
        return store.reschedule(
          id,
          attempts - 1,
          delivery.lastError ?? "",
          delivery.nextAttemptAt,
          leaseToken,
        );
      case "failed":
      case "gone": {
        const error = (decision.kind === "gone" ? decision.exchange.error : decision.error) ?? "";
        // What was claimed beyond the limit was not sent.
        const sent = decision.exchange ? attempts : attempts - 1;
        await store.markFailed(id, sent, error, leaseToken);
        const { leaseToken: _token, leaseUntil: _until, ...row } = delivery;
        const abandoned: Delivery = {
          ...row,
          status: "failed",
          attempts: sent,
          lastError: error,
          updatedAt: now(),
        };
        callFailureHook(failureHook, abandoned, this.#observe);
      }
    }
  }

  #log(message: string): void {
    this.#config.logger?.error(message);
  }

  /** The hook reports to observers; here the log is the only one. */
  readonly #observe: Observer = (name, event) => {
    if (name !== "hookFailed") return;
    const { deliveryId, error } = event as ObservedEvents["hookFailed"];
    this.#log(`The failure hook threw for delivery ${deliveryId}: ${error}`);
  };
}

/** Resolves when `signal` is aborted; never when `unless` is aborted first. */
function aborted(signal: AbortSignal, unless: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true, signal: unless });
  });
}

/** Without the keys whose value is undefined, which would hide a default. */
function withoutAbsent<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as T;
}
