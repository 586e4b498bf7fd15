import { afterAll, describe, expect, test } from "vitest";
import { Crew, type Failure, type Traced } from "../../src/testing/simulator/crew.ts";
import { least } from "../../src/testing/simulator/least.ts";
import { plants } from "../../src/testing/simulator/plants.ts";
import { excerpt, unexercised } from "../../src/testing/simulator/report.ts";

// More of them: HOOKWELL_SEEDS=100000 vitest run …, or npm run simulate.
const seeds = Number(process.env.HOOKWELL_SEEDS ?? 2_000);
const longest = 3_600_000;
const crew = new Crew(2);
afterAll(() => crew.close());

test("a run is a pure function of its seed, whatever ran before it", async () => {
  const [first, other] = await Promise.all([crew.trace([20, 21, 22, 101]), crew.trace([101, 20, 22, 21])]);
  const inOrder = [...other].sort((a, b) => a.seed - b.seed);
  expect(inOrder).toEqual(first);
  expect(new Set(first.map(({ trace }) => trace.join("\n"))).size).toBe(4);
});

test(
  `the promises hold in ${seeds} worlds that fail, and every crash point, fault and promise is exercised`,
  async () => {
    const { failures, tally, had, onSqlite } = await crew.run({ from: 0, seeds });
    expect(await story(failures)).toBe("");
    expect(unexercised(tally)).toEqual([]);
    expect(onSqlite).toBe(seeds / 2);
    for (const part of Object.keys(least) as (keyof typeof least)[])
      expect(had[part], part).toBeGreaterThanOrEqual(least[part]);
  },
  longest,
);

/** What went wrong, in words: the seed, the broken promises, and what led to the first of them. */
async function story(failures: readonly Failure[]): Promise<string> {
  const [first] = failures;
  if (!first) return "";
  const [{ trace, violations }] = (await crew.trace([first.seed])) as [Traced];
  return `Seeds ${failures.map(({ seed }) => seed).join(", ")} break promises. Seed ${first.seed}:
${violations.join("\n")}
${excerpt(trace, violations.slice(0, 1)).join("\n")}
Every step of it: npm run simulate -- --seed ${first.seed}`;
}

describe("the simulator has teeth: it finds within 500 seeds, by the promises alone,", () => {
  for (const { name } of plants)
    test(
      `the planted fault: ${name}`,
      async () => {
        const { failures } = await crew.run({ from: 0, seeds: 500, plant: name, mostFailures: 1 });
        expect(failures.length).toBeGreaterThan(0);
      },
      longest,
    );
});
