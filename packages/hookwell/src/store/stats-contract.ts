import type { Now } from "./contract.ts";

/** What happened in one minute. */
export interface MinuteCounts {
  /** Events that the dispatcher took on. */
  readonly dispatched: number;
  /** Deliveries recorded as delivered. */
  readonly delivered: number;
  /** Exchanges recorded that ended in no 2xx. */
  readonly failedAttempts: number;
  /** Deliveries given up: attempts used up, 410, held too long, not readable. */
  readonly failed: number;
}

/** A count that stops: `capped` means that there are more. */
export interface Counted {
  readonly count: number;
  readonly capped: boolean;
}

export const troubles = ["circuit_open", "failing", "rate_limited", "disabled"] as const;

/**
 * Why a lane needs somebody: its circuit is open; at least 3 attempts in a row failed; its rate limit has kept a
 * due delivery for a minute or more; its subscription is disabled.
 */
export type Trouble = (typeof troubles)[number];

export interface LaneTrouble {
  readonly subscriptionId: string;
  readonly projectId: string;
  readonly reason: Trouble;
  /** Since when: the circuit opened, the first failure in a row, the oldest delivery that waits, the disabling. */
  readonly since: Date;
  /** Failed attempts in a row; absent when it is disabled. */
  readonly failures?: number;
}

export interface StoreStats {
  /** The store's clock: ages are counted from here. */
  readonly at: Date;
  /** The running minute and the 60 before it, those in which something happened, oldest first. */
  readonly minutes: readonly (MinuteCounts & { readonly minute: Date })[];
  /** Deliveries that are pending, due or not. */
  readonly pending: Counted;
  /** Events that are not dispatched yet. */
  readonly newEvents: Counted;
  /** Since when the oldest due delivery on a runnable lane could have been sent. */
  readonly oldestDueAt?: Date;
  /** When the oldest undispatched event was captured. */
  readonly oldestNewAt?: Date;
  readonly lanes: {
    /** The newest trouble first, disabled ones last; 100 at most. */
    readonly items: readonly LaneTrouble[];
    readonly counts: Readonly<Record<Trouble, number>>;
    /** There are more than were looked at or are shown. */
    readonly more: boolean;
  };
}

/** Rows, lanes and subscriptions that one question looks at: what is beyond is said to be more. */
export const mostCounted = 10_000;

/** How a store answers what happens in it. */
export interface StatsStore {
  /**
   * Counts per minute, written by `dispatch`, `record`, the marks and `maintain` in their own transaction, so that
   * they are exact; and the backlog as it is now. Every part looks at a bounded number of rows
   * ({@link mostCounted}). With a project: of its events and subscriptions.
   */
  stats(projectId: string | undefined, now: Now): Promise<StoreStats>;
}
