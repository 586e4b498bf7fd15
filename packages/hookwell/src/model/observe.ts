import type { Exchange } from "./delivery.ts";
import type { DisabledReason } from "./states.ts";

/**
 * Everything Hookwell reports while it works: a contract that logs and metrics are built on from outside
 * (docs/reference/observability.md). No entry carries a secret, a body, or a header value.
 */
export interface ObservedEvents {
  readonly captured: { readonly eventId: string; readonly type: string; readonly duplicate: boolean };
  readonly dispatched: { readonly eventId: string; readonly type: string; readonly deliveries: number };
  readonly dispatchFailed: { readonly eventId: string; readonly error: string; readonly tries: number };
  readonly enrichFailed: { readonly type: string; readonly events: number; readonly error: string };
  readonly parked: { readonly eventId: string; readonly type: string; readonly error: string };
  readonly claimed: { readonly deliveries: number };
  readonly attempted: {
    readonly deliveryId: string;
    readonly eventId: string;
    readonly subscriptionId: string;
    readonly attempt: number;
    readonly exchange: Exchange;
  };
  readonly delivered: DeliveryMoment;
  readonly rescheduled: DeliveryMoment & { readonly delayMs: number; readonly error: string };
  readonly failed: DeliveryMoment & { readonly errorCode: string; readonly error: string };
  readonly cancelled: { readonly deliveries: number };
  readonly released: DeliveryMoment;
  readonly leaseLost: DeliveryMoment;
  /** The circuit of a lane opened: nothing but single probes is sent until one succeeds. */
  readonly laneOpened: { readonly subscriptionId: string };
  readonly laneClosed: { readonly subscriptionId: string };
  readonly subscriptionDisabled: { readonly subscriptionId: string; readonly reason: DisabledReason };
  readonly hookFailed: { readonly deliveryId: string; readonly error: string };
  /** A loop could not reach its store; once until it is regained. */
  readonly storeLost: { readonly loop: string; readonly error: string };
  readonly storeRegained: { readonly loop: string };
  readonly pruned: { readonly deliveries: number; readonly events: number };
  readonly warning: { readonly message: string };
}

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
}
