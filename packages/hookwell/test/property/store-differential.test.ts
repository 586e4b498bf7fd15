import assert from "node:assert/strict";
import fc from "fast-check";
import type { StoreHarness } from "hookwell/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { start } from "../../src/testing/contract/store-world.ts";
import { memoryHarness, PostgresHarness, sqliteHarness } from "../contract/harnesses.ts";
import { type Command, commands } from "./store-commands.ts";
import { StoreSystem } from "./store-system.ts";

// npm run test:long makes ten times the runs. Another seed or more runs: HOOKWELL_SEED=7 HOOKWELL_RUNS=5000 vitest run …/store-differential.test.ts
const seed = Number(process.env.HOOKWELL_SEED ?? 20_260_105);
const numRuns = Number(process.env.HOOKWELL_RUNS ?? (process.env.HOOKWELL_LONG ? 400 : 40));
const longest = 600_000;

const postgres = new PostgresHarness();
beforeAll(() => postgres.start());
afterAll(() => postgres.stop());

/** Runs the commands on both stores and compares each answer, and at the end all that can be read. */
async function compare(sequence: readonly Command[], other: StoreHarness, name: string): Promise<void> {
  let time = start;
  const now = (): Date => new Date(time);
  const memory = await StoreSystem.make("memory", memoryHarness, now);
  const system = await StoreSystem.make(name, other, now);
  try {
    for (const [index, command] of sequence.entries()) {
      // Time passes with every call, so that order by time is seen too.
      time += command.do === "step" ? command.ms : 1;
      const wanted = await memory.run(command);
      const found = await system.run(command);
      assert.deepEqual(found, wanted, `${name} answers call ${index}, ${JSON.stringify(command)}, otherwise`);
    }
    assert.deepEqual(await system.everything(), await memory.everything(), `${name} holds something else`);
  } finally {
    await system.close();
    await memory.close();
  }
}

const stores: readonly (readonly [string, StoreHarness])[] = [
  ["SQLite", sqliteHarness],
  ["PostgreSQL", postgres],
];

for (const [name, harness] of stores)
  test(
    `events 40: random sequences give equal results, order and errors on memory and ${name} (seed ${seed})`,
    async () => {
      let calls = 0;
      await fc.assert(
        fc.asyncProperty(commands, async (sequence) => {
          calls += sequence.length;
          await compare(sequence, harness, name);
        }),
        { seed, numRuns, endOnFailure: process.env.HOOKWELL_SHRINK === "off" },
      );
      expect(calls).toBeGreaterThan(numRuns * 5);
    },
    longest,
  );
