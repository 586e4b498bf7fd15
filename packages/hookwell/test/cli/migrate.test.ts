import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshPostgres, freshSqlite } from "../support/databases.ts";
import { run } from "./in-process.ts";
import { run as spawnAndWait } from "./processes.ts";

describe("hookwell migrate on SQLite", () => {
  const directory = mkdtempSync(join(tmpdir(), "hookwell-cli-"));
  const environment = { HOOKWELL_DATA_DIR: join(directory, "data") };
  const migrate = (...args: string[]) => run(["migrate", ...args], environment);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test("check, apply, apply again, check: each says what is, and check changes nothing", async () => {
    const before = await migrate("--check");
    expect(before.code).toBe(1);
    expect(before.stdout).toContain("hookwell migrate");
    expect(readdirSync(directory)).toEqual([]);
    const applied = await migrate();
    expect(applied).toMatchObject({ code: 0, stderr: "" });
    expect(applied.stdout).toMatch(/^applied 0001_/);
    const again = await migrate();
    expect(again.code).toBe(0);
    expect(again.stdout).toContain("nothing changed");
    expect((await migrate("--check")).code).toBe(0);
  });

  test("--sql is what a database can be made with by hand", async () => {
    const { code, stdout } = await migrate("--sql");
    expect(code).toBe(0);
    const byHand = freshSqlite();
    const database = new DatabaseSync(byHand.path);
    database.exec(stdout);
    database.close();
    const config = fileURLToPath(new URL("./fixtures/hookwell.config.ts", import.meta.url));
    const checked = await spawnAndWait(["migrate", "--check", "--config", config], {
      environment: { TEST_DATABASE: byHand.path },
    });
    byHand.drop();
    expect(checked).toMatchObject({ code: 0 });
  });

  test("--grant is PostgreSQL's: exit 2", async () => {
    const { code, stderr } = await migrate("--grant", "app");
    expect(code).toBe(2);
    expect(stderr).toContain("PostgreSQL");
  });

  test("a config without an instance is named: exit 2", async () => {
    const config = fileURLToPath(new URL("./fixtures/empty.config.ts", import.meta.url));
    const { code, stderr } = await run(["migrate", "--config", config]);
    expect(code).toBe(2);
    expect(stderr).toContain("export const hooks");
  });

  test("a directory that cannot be made is named", async () => {
    const file = join(directory, "a-file");
    writeFileSync(file, "");
    const { code, stderr } = await run(["migrate"], { HOOKWELL_DATA_DIR: join(file, "data") });
    expect(code).toBe(2);
    expect(stderr).toContain("HOOKWELL_DATA_DIR");
  });
});

describe("hookwell migrate on PostgreSQL", () => {
  let database: Awaited<ReturnType<typeof freshPostgres>>;
  let byHand: Awaited<ReturnType<typeof freshPostgres>>;
  beforeAll(async () => {
    database = await freshPostgres();
    byHand = await freshPostgres();
  });
  afterAll(async () => {
    await database.drop();
    await byHand.drop();
  });
  const migrate = (url: string, ...args: string[]) =>
    run(["migrate", ...args], { HOOKWELL_DATABASE_URL: url });
  const query = async (url: string, sql: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };

  test("two at the same time take turns: both end well, the steps run once", async () => {
    expect((await migrate(database.url, "--check")).code).toBe(1);
    const environment = { HOOKWELL_DATABASE_URL: database.url };
    const both = await Promise.all([1, 2].map(() => spawnAndWait(["migrate"], { environment })));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.filter(({ stdout }) => stdout.includes("applied 0001_"))).toHaveLength(1);
    const check = await migrate(database.url, "--check");
    expect(check.code).toBe(0);
    expect(check.stdout).not.toContain("test@");
  });

  test("--grant lets a role work that owns nothing", async () => {
    const { code, stdout } = await migrate(database.url, "--grant", "hookwell_app");
    expect(code).toBe(0);
    await query(database.url, "DROP ROLE IF EXISTS hookwell_app");
    await query(database.url, "CREATE ROLE hookwell_app");
    await query(database.url, stdout);
    const [row] = await query(
      database.url,
      `SELECT bool_and(has_table_privilege('hookwell_app', c.oid, 'SELECT')) AS all_readable, count(*)::int AS tables,
              has_table_privilege('hookwell_app', 'hookwell.event', 'INSERT') AS may_emit,
              has_schema_privilege('hookwell_app', 'hookwell', 'CREATE') AS may_change
       FROM pg_class c WHERE c.relnamespace = 'hookwell'::regnamespace AND c.relkind = 'r'`,
    );
    expect(row).toMatchObject({ all_readable: true, may_emit: true, may_change: false });
    expect(row!.tables).toBeGreaterThan(5);
    await query(database.url, "DROP OWNED BY hookwell_app");
    await query(database.url, "DROP ROLE hookwell_app");
  });

  test("--grant --for prints what the role is for, and refuses what it does not know", async () => {
    const { code, stdout } = await migrate(database.url, "--grant", "app_only_emits", "--for", "capture");
    expect(code).toBe(0);
    expect(stdout).toContain('GRANT INSERT ON "hookwell".lane_wake TO "app_only_emits"');
    expect(stdout).not.toContain("UPDATE");
    const wrong = await migrate(database.url, "--grant", "app", "--for", "reader");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("app, capture, worker, migrator");
    expect((await migrate(database.url, "--for", "worker")).code).toBe(2);
  });

  test("--sql is what a database can be made with by hand", async () => {
    await query(byHand.url, (await migrate(byHand.url, "--sql")).stdout);
    expect((await migrate(byHand.url, "--check")).code).toBe(0);
    expect((await migrate(byHand.url)).stdout).toContain("nothing changed");
  });

  test("field-faults I6: a database of a release that this build cannot use is refused by migrate, check and serve", async () => {
    // Whatever the tests before it have done with the database.
    await migrate(byHand.url);
    await query(
      byHand.url,
      "INSERT INTO hookwell.migration (version, name, applied_at, compatible_from) VALUES (900, 'of_the_future', 0, 900)",
    );
    const environment = {
      HOOKWELL_DATABASE_URL: byHand.url,
      HOOKWELL_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString("base64")}`,
      PORT: "0",
    };
    for (const args of [["migrate"], ["migrate", "--check"], ["serve"], ["worker", "--port", "0"]]) {
      const { code, stdout, stderr } = await run(args, environment);
      expect(code).toBe(1);
      expect(stdout + stderr).toContain("schema version 900");
      expect(stderr).not.toMatch(/\n\s+at /);
    }
  });

  test("a server that is not there is one sentence without the password: exit 1", async () => {
    const environment = { HOOKWELL_DATABASE_URL: "postgres://app:hunter2@127.0.0.1:1/app" };
    const { code, stderr } = await spawnAndWait(["migrate"], { environment });
    expect(code).toBe(1);
    expect(stderr).toContain("ECONNREFUSED");
    expect(stderr).not.toContain("hunter2");
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});
