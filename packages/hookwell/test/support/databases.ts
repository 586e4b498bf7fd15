import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { inject } from "vitest";

let made = 0;

/** A new empty database on the shared server: its url, and a function that drops it. */
export async function freshPostgres(): Promise<{ url: string; drop: () => Promise<void> }> {
  const admin = inject("postgresUrl");
  const name = `t_${process.pid}_${++made}_${process.hrtime.bigint()}`;
  const run = async (sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: admin });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  await run(`CREATE DATABASE ${name}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return { url: url.toString(), drop: () => run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

/** A path for a new SQLite file in a directory of its own, and a function that removes it. */
export function freshSqlite(): { path: string; drop: () => void } {
  const directory = mkdtempSync(join(tmpdir(), "hookwell-sqlite-"));
  return { path: join(directory, "app.db"), drop: () => rmSync(directory, { recursive: true, force: true }) };
}
