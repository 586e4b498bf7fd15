import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StorageError } from "../../src/model/errors.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshSqlite } from "../support/databases.ts";
import { deliverDue, dispatchNew, event, hostScope, own, subscription } from "./support.ts";

let file: ReturnType<typeof freshSqlite>;
let store: SqliteOutbox;

beforeEach(async () => {
  file = freshSqlite();
  store = sqliteStore({ path: file.path, migrate: true });
  await store.open({ withKeys: true });
  await store.createSubscription(own, subscription("sub_a"));
});

afterEach(async () => {
  await store.close();
  file.drop();
});

test("bad input: a read-only file is a clear error, on the application's connection and on ours", async () => {
  const host = new DatabaseSync(file.path, { readOnly: true });
  host.exec("BEGIN");
  expect(() => store.captureSync(hostScope(host), [event("evt_1")])).toThrow(
    expect.objectContaining({ code: "storage", message: expect.stringContaining("read-only") }),
  );
  host.exec("ROLLBACK");
  host.close();
  const url = pathToFileURL(file.path);
  url.searchParams.set("mode", "ro");
  const connection = new Connection(url.href);
  await connection.connect();
  const write = connection.write(() => connection.all("DELETE FROM hookwell_event"));
  await expect(write).rejects.toThrow(/is read-only: give this process write access/);
  expect(connection.all("SELECT count(*) AS n FROM hookwell_subscription")).toEqual([{ n: 1 }]);
  connection.close();
  expect(await store.getEvent("evt_1", {})).toBeUndefined();
});

test("bad input: a path that is a directory, or in none, is a clear error", async () => {
  const nowhere = sqliteStore({ path: `${file.path}/not/there.db`, migrate: true });
  await expect(nowhere.open({ withKeys: false })).rejects.toThrow(
    /cannot be opened: check that the directory/,
  );
  const unmade = sqliteStore({ path: `${file.path}.other` });
  await expect(unmade.open({ withKeys: false })).rejects.toThrow(
    /has no Hookwell tables yet; run `hookwell migrate`/,
  );
});

test("bad input: on a full disk a capture in the application's transaction fails whole, and later ones go on", async () => {
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  host.exec("CREATE TABLE business (id TEXT)");
  const { page_count: pages } = host.prepare("PRAGMA page_count").get() as { page_count: number };
  host.exec(`PRAGMA max_page_count = ${pages + 2}`);
  const large = event("evt_large", { data: JSON.stringify("x".repeat(200_000)) });
  host.exec("BEGIN IMMEDIATE");
  host.exec("INSERT INTO business VALUES ('evt_large')");
  expect(() => store.captureSync(hostScope(host), [large])).toThrow(
    expect.objectContaining({ code: "storage", message: expect.stringContaining("disk is full") }),
  );
  if (host.isTransaction) host.exec("ROLLBACK");
  expect(host.prepare("SELECT count(*) AS n FROM business").get()).toEqual({ n: 0 });
  host.exec("PRAGMA max_page_count = 1000000");
  host.exec("BEGIN IMMEDIATE");
  expect(store.captureSync(hostScope(host), [large])).toEqual([{ id: "evt_large", duplicate: false }]);
  host.exec("COMMIT");
  host.close();
  expect((await store.getEvent("evt_large", {}))?.data).toHaveLength(200_002);
});

test("bad input: a disk that is full while outcomes are recorded loses nothing; the row is sent again after its lease", async () => {
  let time = 1_000;
  const limit = limitedDisk();
  const limited = sqliteStore({ path: file.path, now: () => new Date(time) });
  await limited.open({ withKeys: true });
  limit.stop();
  await limited.capture(own, [event("evt_1")]);
  await dispatchNew(limited);
  const [claimed] = (await limited.claim({ now: null, limit: 10, leaseMs: 30_000 })).deliveries;
  limit.set("now");
  const exchange = {
    startedAt: new Date(1),
    durationMs: 1,
    errorCode: "http_500",
    error: "x".repeat(60_000),
  };
  const outcome = {
    id: claimed!.id,
    leaseToken: claimed!.leaseToken!,
    kind: "retry",
    delayMs: 5,
    exchange,
  } as const;
  await expect(limited.record([outcome], null)).rejects.toThrow(StorageError);
  await expect(limited.record([outcome], null)).rejects.toThrow(/disk is full: make room/);
  expect(await limited.getDelivery(claimed!.id, {})).toMatchObject({ status: "pending", attempts: 1 });
  limit.set("free");
  time += 30_000;
  expect(await deliverDue(limited)).toEqual(["evt_1"]);
  expect(await limited.getDelivery(claimed!.id, {})).toMatchObject({ status: "delivered", attempts: 2 });
  await limited.close();
});

/** Catches the next connection that the store makes, so that its file can be kept from growing. */
function limitedDisk(): { set(to: "now" | "free"): void; stop(): void } {
  const original = DatabaseSync.prototype.exec;
  let caught: DatabaseSync | undefined;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    caught = this;
    original.call(this, sql);
  };
  return {
    set(to) {
      const { page_count: pages } = caught!.prepare("PRAGMA page_count").get() as { page_count: number };
      original.call(caught!, `PRAGMA max_page_count = ${to === "now" ? pages : 1_000_000}`);
    },
    stop() {
      DatabaseSync.prototype.exec = original;
    },
  };
}

test("field-faults D4: a delivery whose body or endpoint was damaged fails with a reason; the others are delivered", async () => {
  await store.capture(
    own,
    ["evt_1", "evt_2", "evt_3", "evt_4"].map((id) => event(id)),
  );
  await dispatchNew(store);
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  host.exec("DELETE FROM hookwell_body WHERE event_id = 'evt_2'");
  host.exec(`INSERT INTO hookwell_endpoint SELECT 'end_bad', subscription_id, url, 'k1:AAAA' || substr(sealed, 8),
    NULL, created_at FROM hookwell_endpoint`);
  host.exec("UPDATE hookwell_delivery SET endpoint_id = 'end_bad' WHERE event_id = 'evt_3'");
  host.close();
  expect((await deliverDue(store)).sort()).toEqual(["evt_1", "evt_4"]);
  const { items } = await store.listDeliveries({ status: "failed" }, { limit: 10 });
  expect(items.map((item) => [item.eventId, item.errorCode, item.attempts]).sort()).toEqual([
    ["evt_2", "unreadable", 0],
    ["evt_3", "unreadable", 0],
  ]);
});

test("field-faults D4: an outcome that SQLite refuses is found by halving; the rest of its batch is recorded", async () => {
  await store.capture(
    own,
    ["evt_1", "evt_2", "evt_3"].map((id) => event(id)),
  );
  await dispatchNew(store);
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  host.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON hookwell_delivery
    WHEN new.status = 'delivered' AND new.event_id = 'evt_2' BEGIN SELECT raise(ABORT, 'no'); END`);
  await deliverDue(store);
  const states = await Promise.all(
    ["evt_1", "evt_2", "evt_3"].map(async (eventId) => {
      const { items } = await store.listDeliveries({ eventId }, { limit: 1 });
      return items[0]?.status;
    }),
  );
  expect(states).toEqual(["delivered", "pending", "delivered"]);
  host.close();
});
