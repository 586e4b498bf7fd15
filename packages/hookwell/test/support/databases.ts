import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { inject } from "vitest";
import { memoryHome } from "./memory-home.ts";

let made = 0;

/** A new empty database on the shared server: its url, and a function that drops it. */
export async function freshPostgres(): Promise<{ url: string; drop: () => Promise<void> }> {
  const admin = inject("postgresUrl");
  const name = `t_${process.pid}_${++made}_${process.hrtime.bigint()}`;
  const run = async (...statements: readonly string[]): Promise<void> => {
    const client = new pg.Client({ connectionString: admin });
    await client.connect();
    for (const sql of statements) await client.query(sql);
    await client.end();
  };
  await run(`CREATE DATABASE ${name}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  const drop = (): Promise<void> => run(leaving(name), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  return { url: url.toString(), drop };
}

/**
 * Waits until nobody is connected: `pool.end()` resolves before its connections are closed, and one that is killed
 * on its way out would tell of it when nobody listens any more. At most a second, for children that were killed.
 */
function leaving(name: string): string {
  return `DO $$ BEGIN
    FOR look IN 1..200 LOOP
      EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '${name}');
      PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
    END LOOP;
  END $$`;
}

/** A path for a new SQLite file in a directory of its own, and a function that removes it. */
export function freshSqlite(): { path: string; drop: () => void } {
  const directory = mkdtempSync(join(memoryHome(2 ** 30), "hookwell-sqlite-"));
  return { path: join(directory, "app.db"), drop: () => rmSync(directory, { recursive: true, force: true }) };
}
