import { ConfigurationError } from "../model/errors.ts";
import type { Random } from "../model/random.ts";
import type { RetryPolicy, RetryPolicyInput, RetrySchedule } from "../model/retry.ts";

/** A year: far beyond any schedule, and far inside what a Date can hold. */
const longestWait = 365 * 24 * 3_600_000;
/** How far a policy that is a function is asked ahead. */
const longestFunction = 1_000;

/** 6 attempts, 2 s doubling, at most 5 min, no jitter: what a bare Worker uses. */
export function defaultRetryPolicy(): RetryPolicy {
  return { maxAttempts: 6, baseDelay: 2_000, maxDelay: 300_000 };
}

/** 8 attempts over about a day, each delay spread by 20 %: what createHookwell and the server use. */
export function dayLongRetryPolicy(): RetrySchedule {
  return { delays: [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map((s) => s * 1_000), jitter: 0.2 };
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads `5s,5m,30m,2h`: the delay after each failed attempt, in ms, s, m, h or d; each spread by 20 %.
 * @throws ConfigurationError naming the setting
 */
export function parseRetrySchedule(text: string, setting = "HOOKWELL_RETRY_SCHEDULE"): RetrySchedule {
  const delays = text.split(",").map((part) => {
    const [, digits, unit] = /^\s*(\d+(?:\.\d+)?)(ms|s|m|h|d)\s*$/.exec(part) ?? [];
    const delay = Number(digits) * (units[unit ?? ""] ?? Number.NaN);
    if (!(delay <= longestWait))
      throw new ConfigurationError(
        `${setting}: ${JSON.stringify(part.trim())} is not a delay; write a list such as 5s,5m,30m,2h, each at most 365d.`,
      );
    return Math.round(delay);
  });
  return { delays, jitter: 0.2 };
}

/** A policy, ready to be asked. `attempt` counts from 1; less counts as 1. */
interface Resolved {
  /** Infinity for a function that never gives up within its first 1,000 attempts. */
  readonly maxAttempts: number;
  readonly longestDelay: number;
  delayAfter(attempt: number, random: Random): number | undefined;
  allows(attempt: number): boolean;
}

/** A usable wait: whole, not negative, never NaN. */
function wait(ms: number): number {
  return Number.isNaN(ms) ? longestWait : Math.round(Math.min(Math.max(ms, 0), longestWait));
}

function spread(ms: number, jitter: number | undefined, cap: number, random: Random): number {
  if (!jitter || !(jitter > 0)) return wait(Math.min(ms, cap));
  const part = Math.min(jitter, 1);
  // Below the cap the spread is to both sides; at the cap only downwards, so that it stays a cap and a spread.
  const low = Math.min(ms, cap) * (1 - part);
  const high = Math.min(ms * (1 + part), cap);
  return wait(low + (high - low) * random());
}

/** A policy with every field set. Absent or senseless fields take the default's. */
function completePolicy(input: Partial<RetryPolicy>): RetryPolicy {
  const base = defaultRetryPolicy();
  // The reference's zero value means "not set"; a zero delay beside a field that is set is meant.
  if (!input.maxAttempts && !input.baseDelay && !input.maxDelay) return { ...input, ...base };
  const atLeast = (least: number, value: number | undefined, or: number): number =>
    value !== undefined && value >= least ? value : or;
  return {
    ...input,
    maxAttempts: Math.floor(atLeast(1, input.maxAttempts, base.maxAttempts)),
    baseDelay: atLeast(0, input.baseDelay, base.baseDelay),
    maxDelay: wait(atLeast(0, input.maxDelay, base.maxDelay)),
  };
}

/**
 * The wait after failed attempt number `attempt` in milliseconds, whether or not the policy allows another:
 * baseDelay x 2^(attempt-1), never above maxDelay. An attempt below 1 counts as 1.
 */
export function backoff(policy: Partial<RetryPolicy>, attempt: number, random: Random = () => 0.5): number {
  const { baseDelay, maxDelay, jitter } = completePolicy(policy);
  // 0 x Infinity is NaN: a base of 0 stays 0.
  const delay = baseDelay === 0 ? 0 : baseDelay * 2 ** (Math.max(attempt, 1) - 1);
  return spread(delay, jitter, maxDelay, random);
}

function resolveExponential(input: Partial<RetryPolicy>): Resolved {
  const policy = completePolicy(input);
  return {
    maxAttempts: policy.maxAttempts,
    longestDelay: policy.maxDelay,
    allows: (attempt) => attempt <= policy.maxAttempts,
    delayAfter: (attempt, random) =>
      attempt >= policy.maxAttempts ? undefined : backoff(policy, attempt, random),
  };
}

function resolveSchedule({ delays, jitter }: RetrySchedule): Resolved {
  const waits = delays.map(wait);
  return {
    maxAttempts: waits.length + 1,
    longestDelay: waits.length === 0 ? 0 : Math.max(...waits),
    allows: (attempt) => attempt <= waits.length + 1,
    delayAfter: (attempt, random) => {
      const delay = waits[Math.max(attempt, 1) - 1];
      return delay === undefined ? undefined : spread(delay, jitter, longestWait, random);
    },
  };
}

function resolveFunction(policy: (attempt: number) => number | undefined): Resolved {
  let attempts = 1;
  let longestDelay = 0;
  for (let delay = policy(attempts); delay !== undefined; delay = policy(attempts)) {
    longestDelay = Math.max(longestDelay, wait(delay));
    if (++attempts > longestFunction) break;
  }
  return {
    maxAttempts: attempts > longestFunction ? Number.POSITIVE_INFINITY : attempts,
    longestDelay,
    allows: (attempt) => attempt <= 1 || policy(attempt - 1) !== undefined,
    delayAfter: (attempt) => {
      const delay = policy(Math.max(attempt, 1));
      return delay === undefined ? undefined : wait(delay);
    },
  };
}

const resolvedPolicies = new WeakMap<object, Resolved>();

function resolve(policy: RetryPolicyInput): Resolved {
  const known = resolvedPolicies.get(policy);
  if (known) return known;
  const resolved =
    typeof policy === "function"
      ? resolveFunction(policy)
      : Array.isArray(policy)
        ? resolveSchedule({ delays: policy as readonly number[] })
        : "delays" in policy
          ? resolveSchedule(policy)
          : resolveExponential(policy as Partial<RetryPolicy>);
  resolvedPolicies.set(policy, resolved);
  return resolved;
}

/** Milliseconds from the end of failed attempt number `attempt` to the next one; undefined = it was the last. */
export function delayAfter(policy: RetryPolicyInput, attempt: number, random: Random): number | undefined {
  return resolve(policy).delayAfter(attempt, random);
}

/** Sends in one round; Infinity for a function that has not given up within 1,000 attempts. */
export function maxAttempts(policy: RetryPolicyInput): number {
  return resolve(policy).maxAttempts;
}

/** True when a round may have a send with this number. */
export function allowsAttempt(policy: RetryPolicyInput, attempt: number): boolean {
  return resolve(policy).allows(attempt);
}

/** The longest delay the policy gives, in ms, its cap where it has one: what bounds a Retry-After. */
export function longestDelay(policy: RetryPolicyInput): number {
  return resolve(policy).longestDelay;
}
