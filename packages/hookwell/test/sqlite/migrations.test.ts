import { existsSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SchemaVersionError } from "../../src/model/errors.ts";
import { type Migration, migrationName } from "../../src/store/migrations.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { SqliteMigrations, sqliteMigrations } from "../../src/store/sqlite/migrations.ts";
import { freshSqlite } from "../support/databases.ts";
import { event, hostScope, own } from "./support.ts";

const clock = (): Date => new Date(5);
/** The version of this build, and the step that a next one would bring. */
const current = sqliteMigrations.length;
const later = migrationName({ version: current + 1, name: "later" });
let file: ReturnType<typeof freshSqlite>;
const connections: Connection[] = [];

beforeEach(() => {
  file = freshSqlite();
});

afterEach(() => {
  for (const connection of connections.splice(0)) connection.close();
  file.drop();
});

/** The migrations of a build that knows these steps. */
function build(steps: readonly Migration[] = sqliteMigrations): SqliteMigrations {
  const connection = new Connection(file.path);
  connections.push(connection);
  return new SqliteMigrations(connection, clock, steps);
}

const next = (
  compatibleFrom: number,
  sql = "CREATE TABLE hookwell_later (id TEXT) STRICT;\n",
): Migration[] => [...sqliteMigrations, { version: current + 1, name: "later", compatibleFrom, sql }];

test("field-faults I6: a new build refuses an old schema, and names the command and the step", async () => {
  await build().migrate();
  const newer = build(next(1));
  await expect(newer.require()).rejects.toThrow(SchemaVersionError);
  await expect(newer.require()).rejects.toThrow(new RegExp(`run \`hookwell migrate\` .*${later}`));
  expect(await newer.check()).toMatchObject({
    current,
    wanted: current + 1,
    pending: [later],
    usable: false,
  });
  expect(await newer.migrate()).toEqual([later]);
  await newer.require();
});

test("field-faults I6: an old build goes on with a newer schema that only added, and refuses one that took away", async () => {
  await build(next(1)).migrate();
  const old = sqliteStore({ path: file.path });
  await old.open({ withKeys: true });
  expect(await old.capture(own, [event("evt_1")])).toEqual([{ id: "evt_1", duplicate: false }]);
  await old.close();
  const database = new DatabaseSync(file.path);
  database.exec(`UPDATE hookwell_migration SET compatible_from = version WHERE version = ${current + 1}`);
  database.close();
  for (const migrate of [true, false]) {
    const refused = sqliteStore({ path: file.path, migrate });
    await expect(refused.open({ withKeys: true })).rejects.toThrow(
      `has schema version ${current + 1}, which this build (version ${current}) cannot use; run the release of hookwell`,
    );
    await refused.close();
  }
});

test("field-faults I6: a store that was open when the schema moved on says so in its readiness check", async () => {
  const store = sqliteStore({ path: file.path, migrate: true });
  await store.open({ withKeys: true });
  await build(next(current + 1)).migrate();
  await expect(store.open({ withKeys: true })).rejects.toThrow(SchemaVersionError);
  await store.close();
});

test("field-faults I6: a step that fails half-way leaves nothing of it", async () => {
  await build().migrate();
  const broken = build(
    next(1, "CREATE TABLE hookwell_later (id TEXT) STRICT;\nINSERT INTO nowhere VALUES (1);\n"),
  );
  await expect(broken.migrate()).rejects.toThrow("no such table: nowhere");
  expect(await broken.check()).toMatchObject({ current, usable: false });
  expect(await build(next(1)).migrate()).toEqual([later]);
});

test("migrations run by several processes at once are run once", async () => {
  const done = await Promise.all([build(), build(), build()].map((migrations) => migrations.migrate()));
  expect(done.flat()).toEqual(sqliteMigrations.map(migrationName));
  expect(await build().migrate()).toEqual([]);
});

test("--sql prints what migrate runs", async () => {
  await build().migrate();
  const printed = freshSqlite();
  const database = new DatabaseSync(printed.path);
  database.exec(build().sql());
  const schemaOf = (from: DatabaseSync): unknown[] =>
    from.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").all();
  const migrated = new DatabaseSync(file.path);
  expect(schemaOf(database)).toEqual(schemaOf(migrated));
  migrated.close();
  database.close();
  const store = sqliteStore({ path: printed.path });
  await store.open({ withKeys: true });
  await store.close();
  printed.drop();
});

test("--check makes no file and changes none", async () => {
  expect(await build().check()).toEqual({
    current: 0,
    wanted: current,
    pending: sqliteMigrations.map(migrationName),
    usable: false,
  });
  expect(existsSync(file.path)).toBe(false);
  const application = new DatabaseSync(file.path);
  application.exec("CREATE TABLE business (id TEXT)");
  application.close();
  const before = readFileSync(file.path);
  expect((await build().check()).current).toBe(0);
  expect(readFileSync(file.path)).toEqual(before);
});

test("an emit into a database without the tables says which command mends it, and the transaction can go on", () => {
  const host = new DatabaseSync(file.path);
  host.exec("CREATE TABLE business (id TEXT); BEGIN; INSERT INTO business VALUES ('1')");
  const store = sqliteStore({ path: file.path });
  expect(() => store.captureSync(hostScope(host), [event("evt_1")])).toThrow(
    expect.objectContaining({ code: "schema_version", message: expect.stringContaining("hookwell migrate") }),
  );
  host.exec("COMMIT");
  expect(host.prepare("SELECT count(*) AS n FROM business").get()).toEqual({ n: 1 });
  host.close();
});
