import type { Exchange } from "./delivery.ts";
import type { DisabledReason, ReplayStatus } from "./states.ts";

/**
 * Everything Hookwell reports while it works: a contract that logs and metrics are built on from outside
 * (docs/reference/observability.md). No entry carries a secret, a webhook's body, or a header value.
 */
export interface ObservedEvents {
  /**
   * An event was written into a transaction, which may still roll back. `duplicate`: the same event was there
   * already, and nothing new was written.
   */
  readonly captured: { readonly eventId: string; readonly type: string; readonly duplicate: boolean };
  /** The dispatcher matched a committed event and froze its bodies; `deliveries` it made, 0 when nothing matched. */
  readonly dispatched: { readonly eventId: string; readonly type: string; readonly deliveries: number };
  /** An event could not be dispatched, the `tries`th time. It is tried again after 1, 2, 4, 8 and 16 s; then `parked`. */
  readonly dispatchFailed: { readonly eventId: string; readonly error: string; readonly tries: number };
  /** `enrich` of a type was late, threw or answered nonsense: this many events go out as they were captured. */
  readonly enrichFailed: { readonly type: string; readonly events: number; readonly error: string };
  /** An event was given up by the dispatcher. It waits until somebody releases it. */
  readonly parked: { readonly eventId: string; readonly type: string; readonly error: string };
  /** The worker took this many due deliveries in one claim. */
  readonly claimed: { readonly deliveries: number };
  /**
   * One HTTP exchange ended, whatever came of it: `exchange` has its start, duration, status code and, when it
   * failed, `errorCode` and `error`. `exchange.excerpt` is the beginning of the receiver's answer. It is not
   * recorded yet.
   */
  readonly attempted: DeliveryMoment & { readonly exchange: Exchange };
  /** A 2xx answer was recorded. */
  readonly delivered: DeliveryMoment;
  /** A failed attempt was recorded; the next one is due after `delayMs`. */
  readonly rescheduled: DeliveryMoment & { readonly delayMs: number; readonly error: string };
  /** A delivery was given up, and that is recorded: attempts used up, 410, held too long, or not readable. */
  readonly failed: DeliveryMoment & { readonly errorCode: string; readonly error: string };
  /** Upkeep cancelled this many pending deliveries of deleted and gone subscriptions. */
  readonly cancelled: { readonly deliveries: number };
  /** A claimed delivery was given back unsent, because the worker stops or its lease was too short for a send. */
  readonly released: DeliveryMoment;
  /**
   * What became of a claimed delivery was not recorded: the lease had ended, it was cancelled meanwhile, or the
   * store could not be reached in time. If it is still pending it is sent again, with the same ids and bytes.
   */
  readonly leaseLost: DeliveryMoment;
  /** The circuit of a lane opened: nothing but single probes is sent until one succeeds. */
  readonly laneOpened: { readonly subscriptionId: string };
  /** A send to it succeeded again: the circuit of the lane closed. */
  readonly laneClosed: { readonly subscriptionId: string };
  /** Hookwell itself disabled a subscription. What people do is not reported here. */
  readonly subscriptionDisabled: { readonly subscriptionId: string; readonly reason: DisabledReason };
  /** The failure hook threw, or its promise was rejected. */
  readonly hookFailed: { readonly deliveryId: string; readonly error: string };
  /** A loop could not reach its store; once until it is regained. */
  readonly storeLost: { readonly loop: string; readonly error: string };
  /** A loop that had lost its store reaches it again. */
  readonly storeRegained: { readonly loop: string };
  /** Upkeep deleted this many deliveries and events that were older than their retention. */
  readonly pruned: { readonly deliveries: number; readonly events: number };
  /** A replay came to its end: everything was queued, or it failed because its subscription takes nothing any more. */
  readonly replayEnded: { readonly replayId: string; readonly status: ReplayStatus };
  /** Something works, but not as it should; the message says what to do. */
  readonly warning: { readonly message: string };
}

/** One delivery at one attempt; `attempt` counts the sends of its round, from 1. */
export interface DeliveryMoment {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly subscriptionId: string;
  readonly attempt: number;
}

/** Told of everything; must not throw or block. */
export type Observer = <Name extends keyof ObservedEvents>(name: Name, event: ObservedEvents[Name]) => void;

/** Hears nothing. */
export const silent: Observer = () => {};

/** The few calls that Hookwell makes on a logger: console, pino and winston all have them. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  /** A log of records instead of sentences: each observable event and request is given to it whole. */
  readonly structured?: StructuredLog;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** One line of a log. */
export interface LogEntry {
  readonly level: LogLevel;
  /** Name of the observable event, or `request`. */
  readonly event: string;
  /** The same in words, where an operator should read it. */
  readonly message?: string | undefined;
  /** Ids, durations and codes, by names as in the API. No secret, no header, no body. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface StructuredLog {
  entry(entry: LogEntry): void;
  /** Runs `work`; what is logged until its end, also in what it awaits, has these fields too. */
  within<T>(fields: Readonly<Record<string, string>>, work: () => T): T;
}
