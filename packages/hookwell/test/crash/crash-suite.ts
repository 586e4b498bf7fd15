import { type Receiver, startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshPostgres, freshSqlite } from "../support/databases.ts";
import { killAt, killMigrations, prepare } from "./lives.ts";
import { crashPoints, nameOf } from "./points.ts";
import { postgresWorld, sqliteWorld, type World } from "./world.ts";

// npm test shows that each point is survived: one process is killed there, and another one takes on what it left.
// npm run test:long (.ci/run) kills twenty at each, and npm run crash as many as one likes.
const rounds = process.env.HOOKWELL_LONG ? 20 : 1;

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
    let world: World;
    beforeAll(async () => {
      receiver = await startReceiver();
      if (store === "postgres") postgres = await freshPostgres();
      world = makeWorld();
      await prepare({ world, receiver });
    });
    afterAll(async () => {
      await receiver.close();
      await world.close();
      await postgres?.drop();
      for (const file of files) file.drop();
    });

    test.each(crashPoints)(
      "field-faults A1, C5, C6, D1: killed at $step, $moment: $means: nothing lost, nothing invented",
      async (point) => {
        const { committed, lost, invented, changed, duplicates } =
          point.step === "migrate"
            ? await killMigrations(point, rounds, { makeWorld, receiver })
            : await killAt(point, rounds, { world, receiver });
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
