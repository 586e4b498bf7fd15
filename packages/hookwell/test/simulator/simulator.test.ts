import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { simulateMany } from "../../src/testing/simulator/crew.ts";
import { plants } from "../../src/testing/simulator/plants.ts";
import { excerpt, unexercised } from "../../src/testing/simulator/report.ts";
import { least, type SimulationResult, Simulator } from "../../src/testing/simulator/simulator.ts";

// More of them: HOOKWELL_SEEDS=100000 vitest run …, or npm run simulate.
const seeds = Number(process.env.HOOKWELL_SEEDS ?? 2_000);
const workers = 2;
const longest = 3_600_000;

async function traced(simulator: Simulator, seed: number): Promise<SimulationResult> {
  return simulator.run(seed, { traced: true });
}

function hashOf({ trace, tally, violations }: SimulationResult): string {
  const everything = JSON.stringify([trace, [...tally.counts], violations]);
  return createHash("sha256").update(everything).digest("hex");
}

test("a run is a pure function of its seed, whatever ran before it", async () => {
  const one = await Simulator.make();
  const other = await Simulator.make();
  const first = new Map<number, string>();
  for (const seed of [20, 21, 22, 23]) first.set(seed, hashOf(await traced(one, seed)));
  for (const seed of [23, 20, 22, 21]) expect(hashOf(await traced(other, seed))).toBe(first.get(seed));
  expect(new Set(first.values()).size).toBe(4);
  one.close();
  other.close();
});

test(
  `the promises hold in ${seeds} worlds that fail, and every crash point, fault and promise is exercised`,
  async () => {
    const { failures, tally, had, onSqlite } = await simulateMany({ from: 0, seeds, workers });
    expect(await story(failures)).toBe("");
    expect(unexercised(tally)).toEqual([]);
    expect(onSqlite).toBe(seeds / 2);
    for (const part of Object.keys(least) as (keyof typeof least)[])
      expect(had[part], part).toBeGreaterThanOrEqual(least[part]);
  },
  longest,
);

/** What went wrong, in words: the seed, the broken promises, and what led to the first of them. */
async function story(failures: readonly { seed: number; violations: readonly string[] }[]): Promise<string> {
  const [first] = failures;
  if (!first) return "";
  const simulator = await Simulator.make();
  const { trace, violations } = await traced(simulator, first.seed);
  simulator.close();
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
        const { failures } = await simulateMany({
          from: 0,
          seeds: 500,
          workers,
          plant: name,
          mostFailures: 1,
        });
        expect(failures.length).toBeGreaterThan(0);
      },
      longest,
    );
});
