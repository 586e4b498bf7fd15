import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { inject } from "vitest";
import { memoryHome } from "./memory-home.ts";

let made = 0;

/** What a new database already has, and how that is made once for the whole run. */
export interface Template {
  /** A name of its own among templates: lower case letters and underscores. */
  readonly name: string;
  /** Fills the empty database at `url`, and leaves no connection to it. */
  fill(url: string): Promise<void>;
}

/** A new database on the shared server, empty or as the template is: its url, and a function that drops it. */
export async function freshPostgres(
  template?: Template,
): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `t_${process.pid}_${++made}_${process.hrtime.bigint()}`;
  if (template) await onServer((run) => copyOf(template, name, run));
  else await onServer((run) => run(`CREATE DATABASE ${name}`));
  const drop = (): Promise<void> =>
    onServer(async (run) => {
      await run(leaving(name));
      await run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    });
  return { url: urlOf(name), drop };
}

type Run = (sql: string) => Promise<{ rows: unknown[] }>;

async function onServer(work: (run: Run) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  try {
    await work((sql) => client.query(sql));
  } finally {
    await client.end();
  }
}

function urlOf(database: string): string {
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${database}`;
  return url.toString();
}

/** Copying is a fraction of the work of migrating. The first file that needs the template makes it. */
async function copyOf(template: Template, name: string, run: Run): Promise<void> {
  const source = `template_${template.name}`;
  const exists = async () =>
    (await run(`SELECT FROM pg_database WHERE datname = '${source}'`)).rows.length > 0;
  if (!(await exists())) {
    // Held until this connection ends, by one file at a time.
    await run(`SELECT pg_advisory_lock(hashtext('${source}'))`);
    if (!(await exists())) {
      await run(`DROP DATABASE IF EXISTS half_${source}`);
      await run(`CREATE DATABASE half_${source}`);
      await template.fill(urlOf(`half_${source}`));
      await run(leaving(`half_${source}`));
      await run(`ALTER DATABASE half_${source} RENAME TO ${source}`);
    }
  }
  await run(`CREATE DATABASE ${name} TEMPLATE ${source}`);
}

/** Hookwell's tables. */
export const migrated: Template = {
  name: "hookwell",
  async fill(url) {
    const { postgresStore } = await import("hookwell/postgres");
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    const store = postgresStore({ pool });
    await store.migrations.migrate();
    await store.close();
    await pool.end();
  },
};

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
