import { afterAll, beforeAll, expect, test } from "vitest";
import { findPgBouncer, type PgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { TestDatabase } from "./database.ts";
import { wholeLife } from "./whole-life.ts";

const program = findPgBouncer();
const poolSize = 3;

if (program === undefined) {
  const missing =
    "PgBouncer was not found: install it (Debian: apt-get install pgbouncer) to prove that Hookwell works through it.";
  // In CI it must be there; elsewhere the test is skipped, and says so.
  test.skipIf(!process.env.CI)(missing, () => expect.fail(missing));
  if (!process.env.CI)
    console.warn(`\nSKIPPED, packages/hookwell/test/postgres/pgbouncer.test.ts: ${missing}\n`);
}

test.runIf(program !== undefined)(
  `through PgBouncer in transaction mode with ${poolSize} connections: migrate, emit, dispatch, deliver, rotate, hold, replay and upkeep, by four workers that listen past it`,
  async () => {
    const pooler = bouncer!;
    const pooled = (max: number) => database.pool({ connectionString: pooler.through(database.url), max });
    const listen = { connectionString: database.url };
    const operator = database.unopened({ pool: pooled(4), listen });
    expect((await operator.migrations.migrate()).length).toBeGreaterThan(0);
    const pool = pooled(10);
    await wholeLife({
      operator,
      capture: { pool, store: database.unopened({ pool, listen, migrate: false }) },
      workers: Array.from({ length: 4 }, () =>
        database.unopened({ pool: pooled(4), listen, migrate: false }),
      ),
    });
    // 30 connections of ours were 3 of the server's.
    const { rows } = await database
      .pool({ max: 1 })
      .query(
        "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'hookwell listen' AND pid <> pg_backend_pid()",
      );
    expect(rows[0].count).toBeGreaterThan(0);
    expect(rows[0].count).toBeLessThanOrEqual(poolSize);
  },
);

let database: TestDatabase;
let bouncer: PgBouncer | undefined;
beforeAll(async () => {
  if (program === undefined) return;
  database = await TestDatabase.make({ empty: true });
  bouncer = await startPgBouncer(program, database.url, poolSize);
});
afterAll(async () => {
  await database?.drop();
  await bouncer?.stop();
});
