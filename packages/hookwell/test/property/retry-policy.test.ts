import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allowsAttempt,
  backoff,
  dayLongRetryPolicy,
  defaultRetryPolicy,
  delayAfter,
  longestDelay,
  maxAttempts,
  parseRetrySchedule,
} from "../../src/deliver/retry-policy.ts";
import { ConfigurationError } from "../../src/model/errors.ts";
import type { RetryPolicy, RetryPolicyInput } from "../../src/model/retry.ts";

const middle = () => 0.5;
const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const policies: fc.Arbitrary<RetryPolicy> = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 20_000 }),
  baseDelay: fc.double({ min: 0.001, max: 1e12, noNaN: true }),
  maxDelay: fc.integer({ min: 1, max: 365 * 86_400_000 }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
});

describe("events 28: backoff", () => {
  test.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [50, 8_000],
    [0, 1_000],
    [-7, 1_000],
    [10_000, 8_000],
    [Number.MAX_SAFE_INTEGER, 8_000],
  ])("events 28: base 1 s, cap 8 s, attempt %i waits %i ms", (attempt, expected) => {
    expect(backoff({ baseDelay: 1_000, maxDelay: 8_000 }, attempt)).toBe(expected);
  });

  test("events 28: never above the cap, never NaN, never negative, whole, for attempts to 10,000", () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: -5, max: 10_000 }), unit, (policy, attempt, random) => {
        const delay = backoff(policy, attempt, () => random);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(policy.maxDelay);
      }),
    );
  });

  test("events 28: a next attempt is always a date", () => {
    const monsters: RetryPolicyInput[] = [
      { baseDelay: Number.MAX_VALUE, maxDelay: Number.POSITIVE_INFINITY },
      { baseDelay: Number.NaN, maxDelay: Number.NaN, maxAttempts: Number.NaN },
      [Number.POSITIVE_INFINITY, Number.NaN, -1],
      (attempt) => (attempt === 1 ? Number.NaN : attempt === 2 ? -5 : attempt === 3 ? 1e300 : undefined),
    ];
    for (const policy of monsters)
      for (let attempt = 1; attempt < maxAttempts(policy); attempt++) {
        const delay = delayAfter(policy, attempt, middle)!;
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(Number.isNaN(new Date(Date.UTC(2026, 0) + delay).getTime())).toBe(false);
      }
  });
});

describe("field-faults D8: delays grow to a cap and stay", () => {
  test("field-faults D8: without jitter a delay never falls, over 1,500 attempts of any policy", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        let last = 0;
        for (let attempt = 1; attempt <= 1_500; attempt++) {
          const delay = backoff({ ...policy, jitter: 0 }, attempt);
          expect(delay).toBeGreaterThanOrEqual(last);
          last = delay;
        }
        expect(last).toBeLessThanOrEqual(policy.maxDelay);
      }),
      { numRuns: 30 },
    );
  });

  test("field-faults D8: a base above the cap waits the cap from the first attempt on", () => {
    expect(
      [1, 2, 900].map((attempt) => backoff({ baseDelay: 7_200_000, maxDelay: 3_600_000 }, attempt)),
    ).toEqual([3_600_000, 3_600_000, 3_600_000]);
  });
});

describe("events 42: what is left out of a policy", () => {
  test("events 42: a policy with only some fields set takes the rest from the default", () => {
    expect(maxAttempts({ baseDelay: 500 })).toBe(6);
    expect(delayAfter({ maxAttempts: 2 }, 1, middle)).toBe(2_000);
    expect(longestDelay({ baseDelay: 500 })).toBe(300_000);
    expect(delayAfter({ maxAttempts: 40, maxDelay: 3_000 }, 30, middle)).toBe(3_000);
  });

  test.each([{}, { maxAttempts: 0, baseDelay: 0, maxDelay: 0 }, { maxAttempts: undefined }])(
    "events 31: %j is the default policy",
    (policy) => {
      const delays = [1, 2, 3, 4, 5, 6].map((attempt) =>
        delayAfter(policy as Partial<RetryPolicy>, attempt, middle),
      );
      expect(delays).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, undefined]);
      expect(defaultRetryPolicy()).toEqual({ maxAttempts: 6, baseDelay: 2_000, maxDelay: 300_000 });
    },
  );
});

describe("schedules", () => {
  test("a list gives its delays in order, then gives up", () => {
    const policy = [60_000, 300_000];
    expect(maxAttempts(policy)).toBe(3);
    expect(longestDelay(policy)).toBe(300_000);
    expect([1, 2, 3, 4].map((attempt) => delayAfter(policy, attempt, middle))).toEqual([
      60_000,
      300_000,
      undefined,
      undefined,
    ]);
    expect([1, 3, 4].map((attempt) => allowsAttempt(policy, attempt))).toEqual([true, true, false]);
  });

  test("a function is asked until it gives up", () => {
    const policy = (attempt: number) => (attempt < 4 ? attempt * 1_000 : undefined);
    expect(maxAttempts(policy)).toBe(4);
    expect(longestDelay(policy)).toBe(3_000);
    expect([4, 5].map((attempt) => allowsAttempt(policy, attempt))).toEqual([true, false]);
    expect(maxAttempts(() => 1_000)).toBe(Number.POSITIVE_INFINITY);
  });

  test("the day-long schedule has 8 attempts over about a day, each spread by 20 %", () => {
    const policy = dayLongRetryPolicy();
    expect(maxAttempts(policy)).toBe(8);
    const hours = [1, 2, 3, 4, 5, 6, 7].map((attempt) => delayAfter(policy, attempt, middle)! / 3_600_000);
    expect(hours.reduce((a, b) => a + b)).toBeCloseTo(27.6, 1);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), unit, (attempt, random) => {
        const base = policy.delays[attempt - 1]!;
        const delay = delayAfter(policy, attempt, () => random)!;
        expect(delay).toBeGreaterThanOrEqual(base * 0.8 - 1);
        expect(delay).toBeLessThanOrEqual(base * 1.2 + 1);
      }),
    );
  });

  test("a jittered exponential still spreads at its cap, and stays under it", () => {
    const policy = { maxAttempts: 99, baseDelay: 1_000, maxDelay: 8_000, jitter: 0.25 };
    expect(backoff(policy, 50, () => 0)).toBe(6_000);
    expect(backoff(policy, 50, () => 0.999_999)).toBe(8_000);
  });

  test("HOOKWELL_RETRY_SCHEDULE is a list of delays with units", () => {
    expect(parseRetrySchedule("5s,5m, 30m ,2h,1.5h,1d,250ms")).toEqual({
      delays: [5_000, 300_000, 1_800_000, 7_200_000, 5_400_000, 86_400_000, 250],
      jitter: 0.2,
    });
  });

  test.each(["", "5", "5s,", "5s;5m", "-5s", "5 parsecs", "1e3s", "366d", "Infinitys"])(
    "%j is refused, and the message names the setting",
    (text) => {
      expect(() => parseRetrySchedule(text)).toThrow(ConfigurationError);
      expect(() => parseRetrySchedule(text)).toThrow(/HOOKWELL_RETRY_SCHEDULE/);
    },
  );
});
