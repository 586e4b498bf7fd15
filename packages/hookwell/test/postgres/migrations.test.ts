import type pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SchemaVersionError } from "../../src/model/errors.ts";
import { migrationName } from "../../src/store/migrations.ts";
import { Database } from "../../src/store/postgres/database.ts";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { PostgresMigrations } from "../../src/store/postgres/migrator.ts";
import { migrations } from "../../src/store/postgres/schema.ts";
import { generateKey } from "../../src/store/sealing.ts";
import { dispatchAll, emitted, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";
import { wholeLife } from "./whole-life.ts";

let database: TestDatabase;
let pool: pg.Pool;
beforeEach(async () => {
  database = await TestDatabase.make({ empty: true });
  pool = database.pool();
});
afterEach(() => database.drop());

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: unknown) => {
      expect(error).toBeInstanceOf(SchemaVersionError);
      return (error as Error).message;
    },
  );
/** The version of this build, and the step that a next one would bring. */
const current = migrations.length;
const more = migrationName({ version: current + 1, name: "more" });
const nextRelease = [
  ...migrations,
  {
    version: current + 1,
    name: "more",
    compatibleFrom: 1,
    sql: "ALTER TABLE @.event ADD COLUMN more text;\n",
  },
];

test("field-faults I6: an empty database is refused by name of the command, and nothing is created unasked", async () => {
  const store = database.unopened({ migrate: false });
  expect(await refusal(store.open({ withKeys: true }))).toMatch(/no Hookwell tables.*`hookwell migrate`/);
  expect(await refusal(store.takeNew(["a"], 1, null))).toContain("`hookwell migrate`");
  const { rows } = await pool.query("SELECT to_regnamespace('hookwell')::text AS name");
  expect(rows).toEqual([{ name: null }]);
});

test("field-faults I6: a new build on the old schema refuses and names the steps that are missing", async () => {
  await database.store();
  const newer = new PostgresMigrations(new Database(pool, '"hookwell"', undefined), nextRelease);
  expect(await newer.check()).toEqual({ current, wanted: current + 1, pending: [more], usable: false });
  expect(await refusal(newer.demandUsable())).toMatch(
    new RegExp(`version ${current} .*needs ${current + 1}.*\`hookwell migrate\`.*${more}`),
  );
  expect(await newer.migrate()).toEqual([more]);
  await newer.demandUsable();
});

test("field-faults I6: an old build runs on a schema that was only extended, and refuses one that was contracted", async () => {
  await database.store();
  const db = new Database(pool, '"hookwell"', undefined);
  await new PostgresMigrations(db, nextRelease).migrate();
  const store = await database.store({ migrate: false });
  await store.capture(own, [eventInput("evt_1")]);
  // Asking the old build to migrate changes nothing and is no error: a rolling deploy does that.
  expect(await store.migrations.migrate()).toEqual([]);

  const contracted = {
    version: current + 2,
    name: "less",
    compatibleFrom: current + 1,
    sql: "ALTER TABLE @.event DROP COLUMN more;\n",
  };
  await new PostgresMigrations(db, [...nextRelease, contracted]).migrate();
  expect(await refusal(database.unopened({ migrate: false }).open({ withKeys: false }))).toMatch(
    `version ${current + 2}, which this build (version ${current}) cannot use`,
  );
  expect(await refusal(store.migrations.migrate())).toContain(`version ${current + 2}`);
});

test("field-faults I6: a migration that fails half way leaves the schema as it was", async () => {
  await database.store();
  const db = new Database(pool, '"hookwell"', undefined);
  const broken = {
    version: current + 2,
    name: "broken",
    compatibleFrom: 1,
    sql: "ALTER TABLE @.body ADD COLUMN half text;\nALTER TABLE @.nothing ADD COLUMN half text;\n",
  };
  await expect(new PostgresMigrations(db, [...nextRelease, broken]).migrate()).rejects.toThrow();
  expect(await new PostgresMigrations(db).check()).toMatchObject({ current, usable: true });
  const { rows } = await pool.query(
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'hookwell' AND column_name IN ('half', 'more')",
  );
  expect(rows).toEqual([]);
});

test("field-faults I6: a table that went missing under a running store is named, with the command", async () => {
  const store = await database.store();
  await pool.query("DROP TABLE hookwell.lane CASCADE");
  expect(await refusal(store.claim({ now: null, limit: 1, leaseMs: 1 }))).toMatch(/lane.*`hookwell migrate`/);
});

test("four processes that migrate at once take turns, and one of them does the work", async () => {
  const stores = Array.from({ length: 4 }, () => database.unopened());
  const done = await Promise.all(stores.map((store) => store.migrations.migrate()));
  expect(done.flat()).toEqual(migrations.map(migrationName));
});

test("the printed SQL makes a schema that works, under any name", async () => {
  const store = database.unopened({ schema: "webhooks_2", migrate: false });
  await pool.query(store.migrations.sql());
  await store.open({ withKeys: true });
  await store.createSubscription(own, subscriptionInput("sub_1"));
  await store.capture(own, [emitted("evt_1")]);
  await dispatchAll(store);
  expect((await store.claim({ now: null, limit: 10, leaseMs: 1_000 })).deliveries).toHaveLength(1);
  expect(() => database.unopened({ schema: 'x"; DROP TABLE y' })).toThrow(/Schema name/);
});

test("three roles that have what was printed for them live the whole life, and none can do another's work", async () => {
  const suffix = new URL(database.url).pathname.slice(1);
  const roles = ["migrator", "capture", "worker"] as const;
  const nameOf = (role: string): string => `${role} "of" $$ ${suffix}`;
  const quoted = (role: string): string => `"${nameOf(role).replaceAll('"', '""')}"`;
  for (const role of roles) await pool.query(`CREATE ROLE ${quoted(role)} LOGIN PASSWORD 'x'`);
  const as = (role: string): { pool: pg.Pool; store: PostgresOutbox } => {
    const url = new URL(database.url);
    url.username = encodeURIComponent(nameOf(role));
    url.password = "x";
    const own = database.pool({ connectionString: url.toString() });
    return { pool: own, store: database.unopened({ pool: own, migrate: false }) };
  };
  const [migrator, capture, worker] = [as("migrator"), as("capture"), as("worker")];

  // The owner of the database lets the migrator in; the migrator lets in the others.
  await pool.query(migrator.store.migrations.grant(nameOf("migrator"), "migrator"));
  // As careful owners have it: what is made is nobody else's until it is granted.
  await migrator.pool.query("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC");
  await migrator.store.migrations.migrate();
  for (const role of ["capture", "worker"] as const)
    await migrator.pool.query(migrator.store.migrations.grant(nameOf(role), role));

  const others = [worker.store, as("worker").store];
  await wholeLife({ capture, workers: others, operator: migrator.store });

  const denied = async (work: Promise<unknown>): Promise<void> => {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: "storage", cause: { code: "42501" } });
    expect(String(error)).toContain("hookwell migrate --grant");
  };
  await denied(capture.store.claim({ now: null, limit: 1, leaseMs: 1 }));
  await denied(capture.store.createSubscription(own, subscriptionInput("sub_1")));
  await denied(worker.store.createSubscription(own, subscriptionInput("sub_1")));
  await denied(worker.store.listApiKeys({ limit: 1 }));
  for (const role of ["capture", "worker"] as const) {
    const { pool: theirs, store } = as(role);
    expect(await store.migrations.migrate()).toEqual([]);
    await expect(theirs.query("CREATE TABLE hookwell.own (id int)")).rejects.toMatchObject({ code: "42501" });
    await expect(theirs.query("DELETE FROM hookwell.migration")).rejects.toMatchObject({ code: "42501" });
  }
  for (const role of [...roles].reverse())
    await pool.query(`DROP OWNED BY ${quoted(role)} CASCADE; DROP ROLE ${quoted(role)}`);
});

test("without keys, or with the wrong ones, a store refuses to start and says what to do; capture needs none", async () => {
  const keyless = database.unopened({ encryptionKeys: "" });
  await expect(keyless.open({ withKeys: true })).rejects.toMatchObject({
    code: "encryption_key",
    message: expect.stringContaining("`hookwell keys generate`"),
  });
  await keyless.open({ withKeys: false });
  await keyless.capture(own, [eventInput("evt_1")]);

  const store = await database.store();
  await store.createSubscription(own, subscriptionInput("sub_1"));
  await dispatchAll(store);
  const wrong = database.unopened({ encryptionKeys: `k1:${generateKey()}` });
  await expect(wrong.open({ withKeys: true })).rejects.toMatchObject({ code: "encryption_key" });
  const { deliveries } = await store.claim({ now: null, limit: 1, leaseMs: 1_000 });
  expect(deliveries).toMatchObject([{ attempts: 1 }]);
});

test("secrets and header values are nowhere in the database in the clear", async () => {
  const store = await database.store();
  const headers = { authorization: "Bearer veryprivate" };
  await store.createSubscription(
    own,
    subscriptionInput("sub_1", { headers, secret: "whsec_c2VjcmV0c2VjcmV0" }),
  );
  const request = { owner: "key_1", key: "k" };
  const begun = await store.beginRequest(
    { ...request, fingerprint: "f", leaseMs: 1, repeatable: false },
    null,
  );
  const token = begun.state === "begun" ? begun.token : "";
  expect(await store.finishRequest(request, token, "whsec_c2VjcmV0c2VjcmV0")).toBe(true);
  const { rows: tables } = await pool.query("SELECT tablename FROM pg_tables WHERE schemaname = 'hookwell'");
  for (const { tablename } of tables) {
    const { rows } = await pool.query(`SELECT t::text AS row FROM hookwell.${tablename} t`);
    const stored = rows.map(({ row }) => row).join("\n");
    expect(stored).not.toContain("veryprivate");
    expect(stored).not.toContain("c2VjcmV0");
  }
});
