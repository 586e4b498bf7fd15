import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addDays, timestampOf } from "../../src/scheduling/calendar.ts";
import { startLimits, stricterReach, windowBounds } from "../../src/scheduling/window.ts";
import { minutesAround, transitions } from "./wall-clock.ts";

const texts = (from: string | null, until: string | null, timeZone: string | null) => {
  const { start, end } = windowBounds({ from, until, timeZone });
  return [start, end].map((bound) => (Number.isFinite(bound) ? timestampOf(bound) : bound));
};

describe("windows", () => {
  test("date-only bounds are inclusive local dates over a change of the clocks", () => {
    expect(texts("2026-03-29", "2026-03-29", "Europe/Vienna")).toEqual([
      "2026-03-28T23:00:00.000Z",
      "2026-03-29T22:00:00.000Z",
    ]);
    expect(texts("2026-10-25", "2026-10-25", "Europe/Vienna")).toEqual([
      "2026-10-24T22:00:00.000Z",
      "2026-10-25T23:00:00.000Z",
    ]);
    expect(texts("2018-11-04", "2018-11-04", "America/Sao_Paulo")).toEqual([
      "2018-11-04T03:00:00.000Z",
      "2018-11-05T02:00:00.000Z",
    ]);
  });

  test("RFC 3339 bounds are exact, whatever the zone; the kinds mix", () => {
    expect(texts("2026-03-29T02:30:00.0004+01:00", "2026-03-29", "Asia/Kathmandu")).toEqual([
      "2026-03-29T01:30:00.001Z",
      "2026-03-29T18:15:00.000Z",
    ]);
    expect(texts("2026-03-29", "2026-03-29T12:00:00.0009Z", "Europe/Vienna")).toEqual([
      "2026-03-28T23:00:00.000Z",
      "2026-03-29T12:00:00.000Z",
    ]);
  });

  test("a side without a bound is open", () => {
    expect(texts(null, null, null)).toEqual([-Infinity, Infinity]);
    expect(texts(null, "2026-01-31", "UTC")).toEqual([-Infinity, "2026-02-01T00:00:00.000Z"]);
  });

  test("a window of dates holds exactly the minutes whose local date is one of them", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...transitions),
        fc.integer({ min: -1, max: 0 }),
        fc.integer({ min: 0, max: 1 }),
        ([timeZone, around], shift, length) => {
          const from = addDays(around, shift);
          const until = addDays(from, length);
          const { start, end } = windowBounds({ from, until, timeZone });
          const wrong = minutesAround(around, timeZone).find(([instant, wall]) => {
            const date = wall.slice(0, 10);
            return (date >= from && date <= until) !== (instant >= start && instant < end);
          });
          expect(wrong).toBeUndefined();
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("notice and future limit", () => {
  const reach = (minNoticeMinutes: number, maxFutureDays: number) => ({ minNoticeMinutes, maxFutureDays });

  test("the stricter of both counts, each for itself; 0 days are 365", () => {
    expect(stricterReach(reach(30, 60), reach(120, 90))).toEqual(reach(120, 60));
    expect(stricterReach(reach(120, 0), reach(30, 90))).toEqual(reach(120, 90));
    expect(stricterReach(reach(0, 0), reach(0, 0))).toEqual(reach(0, 365));
  });

  test("no start that either side refuses is left, and each that both allow is", () => {
    const any = fc.record({
      minNoticeMinutes: fc.integer({ min: 0, max: 3000 }),
      maxFutureDays: fc.integer({ min: 0, max: 4 }),
    });
    fc.assert(
      fc.property(any, any, fc.integer({ min: 0, max: 8000 }), (left, right, minutes) => {
        const start = minutes * 60_000;
        const allowed = (given: typeof left) => {
          const { earliest, latest } = startLimits(0, given);
          return start >= earliest && start <= latest;
        };
        expect(allowed(stricterReach(left, right))).toBe(allowed(left) && allowed(right));
      }),
    );
  });
});
