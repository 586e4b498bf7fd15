import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allowsDuration, durationProblems } from "../../src/scheduling/duration.ts";

const policy = (durationMinutes: number, range: readonly (number | null)[]) => ({
  durationMinutes,
  durationMinMinutes: range[0] ?? null,
  durationMaxMinutes: range[1] ?? null,
  durationIncrementMinutes: range[2] ?? null,
});
const pointers = (given: ReturnType<typeof policy>) =>
  durationProblems(given).map((problem) => problem.pointer);

describe("durations", () => {
  test("a fixed one allows itself only", () => {
    expect([29, 30, 31].filter((minutes) => allowsDuration(policy(30, []), minutes))).toEqual([30]);
    expect(durationProblems(policy(30, []))).toEqual([]);
  });

  test("a range allows its steps from the minimum, and the maximum only if it is one of them", () => {
    const allowed = (range: readonly number[]) =>
      Array.from({ length: 121 }, (_, minutes) => minutes).filter((minutes) =>
        allowsDuration(policy(20, range), minutes),
      );
    expect(allowed([20, 60, 20])).toEqual([20, 40, 60]);
    expect(allowed([15, 50, 10])).toEqual([15, 25, 35, 45]);
  });

  test.each([
    [
      "only a minimum",
      policy(30, [15, null, null]),
      ["/duration_max_minutes", "/duration_increment_minutes"],
    ],
    ["only no increment", policy(30, [15, 60, null]), ["/duration_increment_minutes"]],
    ["a maximum below the minimum", policy(30, [60, 15, 15]), ["/duration_max_minutes"]],
    ["a default that is off the steps", policy(40, [15, 60, 15]), ["/duration_minutes"]],
    ["a default that is out of the range", policy(90, [15, 60, 15]), ["/duration_minutes"]],
  ])("%s is refused by name", (_, given, expected) => {
    expect(pointers(given)).toEqual(expected);
  });

  test("what a range allows is what counting from the minimum reaches", () => {
    const number = fc.integer({ min: 1, max: 200 });
    fc.assert(
      fc.property(number, number, number, number, (min, max, increment, minutes) => {
        let reached = false;
        for (let step = min; step <= max; step += increment) if (step === minutes) reached = true;
        expect(allowsDuration(policy(min, [min, max, increment]), minutes)).toBe(reached);
      }),
    );
  });
});
