/**
 * How often and when a delivery is tried. Delays are milliseconds from the end of the failed attempt.
 * - An object: exponential, baseDelay x 2^(attempt-1), never above maxDelay; missing fields take the default's
 *   (6 attempts, 2 s, 5 min); `jitter` 0 to 1 spreads a delay by that part of it to either side (default 0).
 * - A list: the delay after each failed attempt; attempts = length + 1. `{ delays, jitter }` is a list whose
 *   delays are spread.
 * - A function of the failed attempt's number (from 1); undefined = give up.
 */
export type RetryPolicyInput =
  | Partial<RetryPolicy>
  | readonly number[]
  | RetrySchedule
  | ((attempt: number) => number | undefined);

export interface RetryPolicy {
  /** Sends in one round, 1 or more. */
  readonly maxAttempts: number;
  /** Milliseconds. */
  readonly baseDelay: number;
  /** Milliseconds. */
  readonly maxDelay: number;
  readonly jitter?: number;
}

/** A list of delays, each spread by `jitter` (0 to 1) of itself to either side. */
export interface RetrySchedule {
  /** Milliseconds after each failed attempt. */
  readonly delays: readonly number[];
  readonly jitter?: number;
}
