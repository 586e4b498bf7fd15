import { DatabaseSync } from "node:sqlite";
import BetterSqlite3 from "better-sqlite3";
import { Kysely } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { betterSqlite3 } from "../../src/adapters/better-sqlite3.ts";
import { kysely, sqliteDialect } from "../../src/adapters/kysely.ts";
import type { SyncTxAdapter } from "../../src/adapters/seam.ts";
import { RevisionConflictError } from "../../src/model/errors.ts";
import type { Scope } from "../../src/store/contract.ts";
import { type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshSqlite } from "../support/databases.ts";
import { event, hostScope, listeningLogger, own, subscription } from "./support.ts";

let file: ReturnType<typeof freshSqlite>;
let store: SqliteOutbox;
const logger = listeningLogger();

beforeEach(async () => {
  file = freshSqlite();
  logger.lines.length = 0;
  store = sqliteStore({ path: file.path, migrate: true, logger });
  await store.open({ withKeys: false });
});

afterEach(async () => {
  await store.close();
  file.drop();
});

test("a host connection that would not wait for a lock is warned about, once, at the first emit", () => {
  const host = new DatabaseSync(file.path);
  for (const id of ["evt_1", "evt_2"]) {
    host.exec("BEGIN IMMEDIATE");
    store.captureSync(hostScope(host), [event(id)]);
    host.exec("COMMIT");
  }
  expect(logger.lines).toHaveLength(1);
  expect(logger.lines[0]).toContain("busy timeout of 0 ms");
  expect(host.prepare("PRAGMA busy_timeout").get()).toEqual({ timeout: 0 });
  host.close();
});

test("the settings of the host connection are as they were, and none is warned about that waits", async () => {
  const settings = [
    "busy_timeout",
    "synchronous",
    "foreign_keys",
    "journal_size_limit",
    "cache_size",
    "temp_store",
  ];
  const host = new DatabaseSync(file.path, { timeout: 1_000 });
  host.exec("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -123");
  const read = (): unknown[] => settings.map((name) => host.prepare(`PRAGMA ${name}`).get());
  const before = read();
  host.exec("BEGIN");
  store.captureSync(hostScope(host), [event("evt_1")]);
  await store.createSubscription(hostScope(host), subscription("sub_a"));
  await store.setSubscriptionStatus(hostScope(host), "sub_a", "paused", undefined, {});
  host.exec("COMMIT");
  expect(read()).toEqual(before);
  expect(logger.lines.filter((line) => line.includes("busy"))).toEqual([]);
  host.close();
});

test("one refused event of several: nothing of the call is written, and the transaction goes on", async () => {
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  await store.capture(own, [event("evt_old", { subject: "user:1", revision: 7 })]);
  host.exec("BEGIN");
  const fanOut = { body: "{}", filters: [""] };
  const call = (): unknown =>
    store.captureSync(hostScope(host), [
      event("evt_a", { fanOut }),
      event("evt_b", { subject: "user:1", revision: 7 }),
      event("evt_c"),
    ]);
  expect(call).toThrow(RevisionConflictError);
  expect(store.captureSync(hostScope(host), [event("evt_d")])).toEqual([{ id: "evt_d", duplicate: false }]);
  host.exec("COMMIT");
  const { items } = await store.listEvents({}, { limit: 10 });
  expect(items.map((item) => item.id).sort()).toEqual(["evt_d", "evt_old"]);
  expect(host.prepare("SELECT count(*) AS n FROM hookwell_body").get()).toEqual({ n: 0 });
  host.close();
});

test("an emit that is not awaited is inside a commit that follows it at once", async () => {
  const db = new Kysely<unknown>({
    dialect: sqliteDialect({ database: new DatabaseSync(file.path, { timeout: 5_000 }) }),
  });
  const adapter = kysely<unknown>() as never;
  const trx = await db.startTransaction().execute();
  const captured = store.capture({ kind: "async", adapter, tx: trx }, [event("evt_1")]);
  await trx.commit().execute();
  await captured;
  expect((await store.getEvent("evt_1", {}))?.id).toBe("evt_1");
  await db.destroy();
});

test("better-sqlite3 with big integers as its default captures and manages like any other", async () => {
  await store.close();
  store = sqliteStore({ path: file.path, open: (path, options) => new BetterSqlite3(path, options) });
  const host = new BetterSqlite3(file.path, { timeout: 5_000 });
  host.defaultSafeIntegers(true);
  const scope: Scope = { kind: "sync", adapter: betterSqlite3() as SyncTxAdapter<unknown>, tx: host };
  const fanOut = { body: '{"n":9007199254740993}', filters: [""] };
  await store.createSubscription(own, subscription("sub_a"));
  host.exec("BEGIN");
  const revision = Number.MAX_SAFE_INTEGER;
  const twice = [
    event("evt_1", { subject: "s", revision, fanOut }),
    event("evt_1", { subject: "s", revision, fanOut }),
  ];
  expect(store.captureSync(scope, twice)).toEqual([
    { id: "evt_1", duplicate: false },
    { id: "evt_1", duplicate: true },
  ]);
  const made = await store.createSubscription(scope, subscription("sub_b", { maxInFlight: 3 }));
  expect(made).toMatchObject({ id: "sub_b", maxInFlight: 3, status: "active" });
  expect(made.createdAt.getTime()).toBeGreaterThan(0);
  host.exec("COMMIT");
  host.close();
  expect(await store.getEvent("evt_1", {})).toMatchObject({ revision, fannedOut: true });
  const { items } = await store.listDeliveries({}, { limit: 10 });
  const detail = await store.getDelivery(items[0]!.id, {});
  expect(Buffer.from(detail!.body).toString()).toBe('{"n":9007199254740993}');
});

test("management in a synchronous transaction is done before the call returns", () => {
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  host.exec("BEGIN");
  const pending = store.createSubscription(hostScope(host), subscription("sub_a"));
  host.exec("COMMIT");
  expect(host.prepare("SELECT count(*) AS n FROM hookwell_subscription").get()).toEqual({ n: 1 });
  host.close();
  return pending;
});

test("a database that is not UTF-8 is refused, because bodies would have other bytes", async () => {
  const other = freshSqlite();
  const wide = new DatabaseSync(other.path);
  wide.exec("PRAGMA encoding = 'UTF-16le'; CREATE TABLE business (id TEXT)");
  wide.close();
  const refused = sqliteStore({ path: other.path, migrate: true });
  await expect(refused.open({ withKeys: false })).rejects.toThrow(/Hookwell needs PRAGMA encoding = 'UTF-8'/);
  other.drop();
});

test("the store wakes on commits of other connections, and on none of its own", async () => {
  let wakes = 0;
  let woken: () => void = () => {};
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      woken = resolve;
    });
  const stop = store.watch(() => {
    wakes++;
    woken();
  });
  await store.capture(own, [event("evt_own")]);
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  const first = next();
  host.exec("BEGIN");
  store.captureSync(hostScope(host), [event("evt_1")]);
  host.exec("COMMIT");
  await first;
  expect(wakes).toBe(1);
  stop();
  host.close();
});
