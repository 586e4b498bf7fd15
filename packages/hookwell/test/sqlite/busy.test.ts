import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StorageError } from "../../src/model/errors.ts";
import { systemTimers } from "../../src/model/timers.ts";
import { createHookwell } from "../../src/publish/create-hookwell.ts";
import { openNodeSqlite } from "../../src/store/sqlite/driver.ts";
import { type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { idleStatementsPerSecond, StatementCount } from "../deliver/idle.ts";
import { freshSqlite } from "../support/databases.ts";
import { deliverDue, dispatchNew, event, hostScope, own, subscription } from "./support.ts";

let file: ReturnType<typeof freshSqlite>;
let store: SqliteOutbox;

beforeEach(async () => {
  file = freshSqlite();
  store = sqliteStore({ path: file.path, migrate: true });
  await store.open({ withKeys: true });
});

afterEach(async () => {
  await store.close();
  file.drop();
});

test("field-faults I5: 50 parallel writers with dispatch, claims and outcomes going on: nobody sees SQLITE_BUSY", async () => {
  const writers = 50;
  const each = 6;
  const setup = new DatabaseSync(file.path, { timeout: 5_000 });
  setup.exec("CREATE TABLE business (id TEXT PRIMARY KEY)");
  await store.createSubscription(own, subscription("sub_a"));
  const delivered = new Map<string, number>();
  let writing = true;
  const engine = (async () => {
    // Runs until the writers are done and nothing is left; any error of the store fails the test.
    for (;;) {
      const last = !writing;
      const dispatched = await dispatchNew(store);
      const ids = await deliverDue(store);
      for (const id of ids) delivered.set(id, (delivered.get(id) ?? 0) + 1);
      if (last && dispatched === 0 && ids.length === 0) return;
      await systemTimers.sleep(0);
    }
  })();
  const errors = await Promise.all(
    Array.from({ length: writers }, (_, writer) => runWriter({ path: file.path, writer, count: each })),
  );
  writing = false;
  await engine;
  expect(errors.flat()).toEqual([]);
  const business = setup
    .prepare("SELECT id FROM business ORDER BY id")
    .all()
    .map((row) => row.id);
  setup.close();
  expect(business).toHaveLength(writers * each);
  expect([...delivered.keys()].sort()).toEqual(business);
  expect([...delivered.values()].every((times) => times === 1)).toBe(true);
});

function runWriter(data: { path: string; writer: number; count: number }): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./busy-writer.ts", import.meta.url), { workerData: data });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

test("field-faults I5: while the application holds the write lock, the event loop runs and the store waits for it", async () => {
  const host = new DatabaseSync(file.path, { timeout: 5_000 });
  host.exec("BEGIN IMMEDIATE");
  store.captureSync(hostScope(host), [event("evt_held")]);
  let done = false;
  const capture = store.capture(own, [event("evt_waits")]).then(() => {
    done = true;
  });
  // Reads of the store are not stopped, and see what is committed.
  expect(await store.getEvent("evt_held", {})).toBeUndefined();
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(done).toBe(false);
  host.exec("COMMIT");
  await capture;
  expect((await store.takeNew(["user.created"], 10, null)).map((item) => item.id)).toEqual([
    "evt_held",
    "evt_waits",
  ]);
  host.close();
});

test("field-faults A4: while a backlog is dispatched, other work of the process has its turn between the batches", async () => {
  for (let batch = 0; batch < 10; batch++)
    await store.capture(
      own,
      Array.from({ length: 100 }, (_, n) => event(`evt_${batch}_${n}`, { route: "*" })),
    );
  const hooks = createHookwell({ store });
  const run = hooks.start({ worker: false });
  let turns = 0;
  while ((await store.countRemaining(1_000, null)).newEvents > 0) {
    turns += 1;
    await systemTimers.sleep(0);
  }
  // More than a batch's worth of them would mean that several batches went by in one turn.
  expect(turns).toBeGreaterThanOrEqual(9);
  await run.stop();
});

test("a lock held beyond patience is a StorageError, and the same write succeeds afterwards", async () => {
  const hasty = sqliteStore({ path: file.path, patienceMs: 0 });
  await hasty.open({ withKeys: true });
  const host = new DatabaseSync(file.path);
  host.exec("BEGIN IMMEDIATE");
  const refusal = await hasty.capture(own, [event("evt_1")]).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StorageError);
  expect((refusal as Error).message).toContain("is busy");
  host.exec("ROLLBACK");
  host.close();
  expect(await hasty.capture(own, [event("evt_1")])).toEqual([{ id: "evt_1", duplicate: false }]);
  await hasty.close();
});

test("a process that dispatches and delivers runs less than five statements a second while nothing happens", async () => {
  const count = new StatementCount();
  const counting = sqliteStore({
    path: file.path,
    open: (path, options) => {
      const handle = openNodeSqlite(path, options);
      return {
        exec: (sql) => handle.exec(sql),
        prepare(sql) {
          const statement = handle.prepare(sql);
          // The counter of commits in shared memory is no statement on the database, and runs on the real clock.
          const note = (): unknown => sql.includes("data_version") || count.texts.push(sql);
          return {
            all(...params) {
              note();
              return statement.all(...params);
            },
            run: (...params) => statement.run(...params),
          };
        },
        close: () => handle.close(),
      };
    },
  });
  await counting.open({ withKeys: true });
  const perSecond = await idleStatementsPerSecond(counting, count);
  await counting.close();
  expect(perSecond).toBeGreaterThan(1);
  expect(perSecond).toBeLessThan(5);
});

test("field-faults H1: paused between the claim's commit and the last look, it is given back unsent", async () => {
  await store.createSubscription(own, subscription("sub_a"));
  await store.capture(own, [event("evt_1")]);
  await dispatchNew(store);
  const other = new DatabaseSync(file.path);
  let claimed = false;
  const claiming = sqliteStore({
    path: file.path,
    open: (path, options) => {
      const handle = openNodeSqlite(path, options);
      return {
        exec: (sql) => handle.exec(sql),
        prepare(sql) {
          const statement = handle.prepare(sql);
          return {
            all(...params) {
              const rows = statement.all(...params);
              if (/SET lease_token = \?/.test(sql)) claimed = true;
              if (claimed && sql === "COMMIT")
                other.exec("UPDATE hookwell_subscription SET status = 'paused' WHERE id = 'sub_a'");
              return rows;
            },
            run: (...params) => statement.run(...params),
          };
        },
        close: () => handle.close(),
      };
    },
  });
  await claiming.open({ withKeys: true });
  expect((await claiming.claim({ now: null, limit: 10, leaseMs: 60_000 })).deliveries).toEqual([]);
  expect(claimed).toBe(true);
  const { items } = await store.listDeliveries({}, { limit: 10 });
  expect(items).toMatchObject([{ status: "pending", attempts: 0 }]);
  await claiming.close();
  other.close();
});
