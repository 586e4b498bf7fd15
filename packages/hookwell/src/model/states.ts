/** `new -> dispatched | parked`; a parked event can be released to `new`. */
export type EventState = "new" | "dispatched" | "parked";
export type DeliveryStatus = "pending" | "delivered" | "failed" | "cancelled";
export type SubscriptionStatus = "active" | "paused" | "disabled" | "deleted";
/** `done`: everything was queued; what became of it is counted on. */
export type ReplayStatus = "running" | "done" | "stopped" | "failed";
/** Why a subscription is disabled. */
export type DisabledReason = "by_hand" | "failing" | "gone";
/** Why a pending delivery is not sent although it may be due. */
export type Hold =
  | "paused"
  | "disabled"
  | "held"
  | "circuit_open"
  | "rate_limited"
  | "ordering"
  | "retry_after";

type Table<State extends string> = Readonly<Record<State, readonly State[]>>;

/** Each machine as its table; every transition that is not listed is refused. */
export const eventTransitions: Table<EventState> = {
  new: ["dispatched", "parked"],
  dispatched: [],
  parked: ["new"],
};

export const deliveryTransitions: Table<DeliveryStatus> = {
  pending: ["pending", "delivered", "failed", "cancelled"],
  // A retry by hand opens a new round.
  delivered: ["pending"],
  failed: ["pending"],
  cancelled: ["pending"],
};

export const subscriptionTransitions: Table<SubscriptionStatus> = {
  active: ["paused", "disabled", "deleted"],
  paused: ["active", "disabled", "deleted"],
  disabled: ["active", "deleted"],
  deleted: [],
};

export const replayTransitions: Table<ReplayStatus> = {
  running: ["done", "stopped", "failed"],
  done: [],
  stopped: [],
  failed: [],
};

export function canMove<State extends string>(table: Table<State>, from: State, to: State): boolean {
  return table[from].includes(to);
}
