/** When a lane is cut off after failures in a row, and how it is asked again. Milliseconds. */
export interface BreakerPolicy {
  /** Breakable failures in a row (network, time-out, 429, 5xx) that open it. */
  readonly failures: number;
  /** From the opening to the first probe; doubled by each probe that fails. */
  readonly probeMs: number;
  /** Longest time between two probes. */
  readonly probeMaxMs: number;
}

/** When a subscription that only fails is disabled. Both must be reached. */
export interface DisablePolicy {
  /** Failed attempts in a row. */
  readonly failures: number;
  /** Milliseconds since the first of them; time in which the subscription was paused does not count. */
  readonly overMs: number;
}

/** What the engine does about lanes that fail. An absent part is switched off. */
export interface LanePolicy {
  readonly breaker?: BreakerPolicy;
  readonly disable?: DisablePolicy;
  /** Write operational events (`hookwell.*`) of what happens to subscriptions and deliveries. */
  readonly report?: boolean;
}

const dayMs = 86_400_000;

/** Ten failures in a row; one probe after 5 s, then doubling to 5 min. */
export const defaultBreaker: BreakerPolicy = { failures: 10, probeMs: 5_000, probeMaxMs: 300_000 };
/** Twenty failed attempts in a row over five days. */
export const defaultDisable: DisablePolicy = { failures: 20, overMs: 5 * dayMs };
