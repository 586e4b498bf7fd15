import BetterSqlite3 from "better-sqlite3";
import { ConfigurationError, createHookwell } from "hookwell";
import { betterSqlite3 } from "hookwell/better-sqlite3";
import { kysely, sqliteDialect } from "hookwell/kysely";
import { type SqliteOptions, sqliteStore } from "hookwell/sqlite";
import { Kysely } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freshSqlite } from "../support/databases.ts";
import { encryptionKeys } from "./host.ts";

// Two copies of SQLite in one process do not see each other's locks: POSIX locks belong to the process. Both can
// hold the write lock at once, and the first to close takes itself for the last and deletes the other's log.

let file: ReturnType<typeof freshSqlite>;
let cleanUp: (() => unknown)[];
beforeEach(() => {
  file = freshSqlite();
  cleanUp = [];
});
afterEach(async () => {
  for (const step of cleanUp.reverse()) await step();
  file.drop();
});

async function opened(options: Partial<SqliteOptions> = {}) {
  const store = sqliteStore({ path: file.path, encryptionKeys, migrate: true, ...options });
  await store.open({ withKeys: true });
  cleanUp.push(() => store.close());
  return store;
}
const withBetterSqlite3: Partial<SqliteOptions> = {
  open: (path, options) => new BetterSqlite3(path, options),
};

test("a host on another copy of SQLite than the store is refused at its first emit", async () => {
  const store = await opened();
  const host = new BetterSqlite3(file.path);
  cleanUp.push(() => host.close());
  const hooks = createHookwell({ store, tx: betterSqlite3(), project: "live" });
  const work = () => hooks.transaction(host, (tx) => hooks.emitSync("a.b", {}, { tx }));
  expect(work).toThrow(ConfigurationError);
  expect(work).toThrow(/two copies of the SQLite library.*new Database\(path, options\)/s);
  expect(host.prepare("SELECT count(*) AS n FROM hookwell_event").get()).toEqual({ n: 0 });
});

test("so is one that hides its driver behind Kysely", async () => {
  const store = await opened();
  const database = new BetterSqlite3(file.path);
  const db = new Kysely<Record<string, never>>({ dialect: sqliteDialect({ database }) });
  cleanUp.push(() => db.destroy());
  const hooks = createHookwell({ store, tx: kysely<Record<string, never>>(), project: "live" });
  const work = db.transaction().execute((tx) => hooks.emit("a.b", {}, { tx }));
  await expect(work).rejects.toMatchObject({ code: "two_sqlite_libraries" });
  expect(database.prepare("SELECT count(*) AS n FROM hookwell_event").get()).toEqual({ n: 0 });
});

test("with the host's driver the store shares its locks and its log", async () => {
  const store = await opened(withBetterSqlite3);
  const host = new BetterSqlite3(file.path);
  const hooks = createHookwell({ store, tx: betterSqlite3(), project: "live" });
  let waited = false;
  host.exec("BEGIN IMMEDIATE");
  hooks.emitSync("a.b", {}, { tx: host, id: "first" });
  const own = hooks.emit("a.b", {}, { tx: "own", id: "second" }).then(() => {
    expect(waited).toBe(true);
  });
  await new Promise((resolve) => setImmediate(resolve));
  waited = true;
  host.exec("COMMIT");
  await own;
  host.close();
  await hooks.emit("a.b", {}, { tx: "own", id: "third" });
  const after = new BetterSqlite3(file.path);
  cleanUp.push(() => after.close());
  expect(after.prepare("SELECT id FROM hookwell_event ORDER BY seq").pluck().all()).toEqual([
    "first",
    "second",
    "third",
  ]);
});

test("the store works on the host's driver from capture to delivery", async () => {
  const store = await opened(withBetterSqlite3);
  const bodies: string[] = [];
  const sender = {
    deliver: async ({ payload }: { payload: Uint8Array }) =>
      void bodies.push(Buffer.from(payload).toString()),
  };
  const hooks = createHookwell({ store, project: "live", sender });
  await hooks.subscriptions.create({ url: "https://a.example/", headers: { "x-a": "1" } });
  await hooks.emit("a.b", { name: "é\u0000" }, { tx: "own", id: "e", occurredAt: "2026-03-01T09:00:00Z" });
  expect(await hooks.drain({ deadlineMs: 10_000 })).toMatchObject({ dispatched: 1, delivered: 1 });
  expect(bodies).toEqual([
    '{"id":"e","type":"a.b","timestamp":"2026-03-01T09:00:00.000Z","data":{"name":"é\\u0000"}}',
  ]);
  const [row] = (await hooks.deliveries.list()).items;
  expect(Buffer.from((await hooks.deliveries.get(row!.id)).body).toString()).toBe(bodies[0]);
});
