import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestDialect } from "../support/world.ts";
import { newTally, runSeed } from "./seed-run.ts";
import { openStage, type Stage } from "./stage.ts";

const only = process.env.HOOKWELL_SEED;
const runs = process.env.HOOKWELL_RUNS;

/**
 * Random bookings through every entry point, with receivers that fail, captures and commits that fail, people who act
 * at once and processes that die. One seed alone: HOOKWELL_SEED=17 vitest run apps/appointments/test/random; more or
 * fewer of them: HOOKWELL_RUNS=1000. npm run test:long (.ci/run) runs `long` of them, npm test `usual`.
 */
export function transitionsSuite(dialect: TestDialect, seedCounts: { usual: number; long: number }): void {
  const count = Number(runs ?? (process.env.HOOKWELL_LONG ? seedCounts.long : seedCounts.usual));
  const seeds = only === undefined ? Array.from({ length: count }, (_, index) => index + 1) : [Number(only)];
  describe(`random bookings on ${dialect}`, { timeout: 600_000 }, () => {
    let stage: Stage;
    const tally = newTally();
    beforeAll(async () => {
      stage = await openStage(dialect);
    });
    afterAll(() => stage.close());

    test(`a receiver that deduplicates by id and orders by revision ends with the bookings table, for ${seeds.length} seeds`, async () => {
      for (const seed of seeds) await runSeed(stage, seed, tally);
      expect(tally.bookings).toBeGreaterThan(0);
    });

    test("every entry point made transitions", () => {
      console.log(report(dialect, seeds.length, stage.deaths));
      if (only !== undefined) return;
      for (const [name, made] of Object.entries(tally.transitions))
        expect(made, `transitions made through: ${name}`).toBeGreaterThan(0);
      expect(tally.repeats, "requests that were repeated").toBeGreaterThan(0);
    });

    const report = (name: string, ran: number, died: number): string => {
      const rows = Object.entries(tally.transitions).map(
        ([entry, made]) => `  ${entry.padEnd(38)}${String(made).padStart(6)}`,
      );
      return [
        `${name}: transitions by entry point, ${ran} seeds`,
        ...rows,
        `  ${tally.bookings} bookings, ${tally.faults} faults, ${died} deaths, ${tally.requests} requests,`,
        `  ${tally.repeats} of them repeats, ${tally.retriedByOperator} failed deliveries retried by the operator`,
      ].join("\n");
    };
  });
}
