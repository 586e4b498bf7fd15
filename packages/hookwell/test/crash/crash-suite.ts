import { type Receiver, startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshPostgres, freshSqlite } from "../support/databases.ts";
import { killAt, killMigrations } from "./lives.ts";
import { type CrashPoint, crashPoints, nameOf } from "./points.ts";
import { postgresWorld, sqliteWorld, type World } from "./world.ts";

// npm test shows that each point is survived; npm run test:long (.ci/run) kills twenty processes at each, and
// npm run crash hundreds.
const rounds = process.env.HOOKWELL_LONG ? 20 : 2;

/** The promise of the crash tests, on one store. */
export function crashSuite(store: "sqlite" | "postgres"): void {
  describe(`processes killed with SIGKILL on ${store}`, () => {
    let receiver: Receiver;
    let postgres: Awaited<ReturnType<typeof freshPostgres>> | undefined;
    const files: ReturnType<typeof freshSqlite>[] = [];
    let made = 0;
    const makeWorld = (): World => {
      if (postgres) return postgresWorld(postgres.url, `crash_${++made}`);
      const file = freshSqlite();
      files.push(file);
      return sqliteWorld(file.path);
    };
    beforeAll(async () => {
      receiver = await startReceiver();
      if (store === "postgres") postgres = await freshPostgres();
    });
    afterAll(async () => {
      await receiver.close();
      await postgres?.drop();
      for (const file of files) file.drop();
    });

    const kill = async (point: CrashPoint) => {
      if (point.step === "migrate") return await killMigrations(point, rounds, { makeWorld, receiver });
      const world = makeWorld();
      const result = await killAt(point, rounds, { world, receiver });
      await world.close();
      return result;
    };

    test.each(crashPoints)(
      `field-faults A1, C5, C6, D1: ${rounds} processes killed at $step, $moment: $means: nothing lost, nothing invented`,
      async (point) => {
        const { committed, lost, invented, changed, duplicates } = await kill(point);
        expect({ lost, invented, changed }).toEqual({ lost: 0, invented: 0, changed: 0 });
        if (nameOf(point) === "capture, before") expect(committed).toBe(0);
        else expect(committed).toBeGreaterThanOrEqual(rounds);
        if (point.repeats) expect(duplicates).toBeGreaterThanOrEqual(0);
        else expect(duplicates).toBe(0);
        if (nameOf(point) === "send, after") expect(duplicates).toBeGreaterThan(0);
      },
    );
  });
}
