import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EventMismatchError, RevisionConflictError } from "../../src/model/errors.ts";
import { type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshSqlite } from "../support/databases.ts";
import { day, deliverDue, dispatchNew, event, own, retention, subscription } from "./support.ts";

let file: ReturnType<typeof freshSqlite>;
let store: SqliteOutbox;
let time: number;

beforeEach(async () => {
  file = freshSqlite();
  time = 1_000 * day;
  store = sqliteStore({ path: file.path, migrate: true, now: () => new Date(time) });
  await store.open({ withKeys: true });
});

afterEach(async () => {
  await store.close();
  file.drop();
});

function rowsOf(table: string): number {
  const database = new DatabaseSync(file.path, { readOnly: true });
  const row = database.prepare(`SELECT count(*) AS n FROM hookwell_${table}`).get();
  database.close();
  return Number(row?.n);
}

test("field-faults I4: inside the window a pruned-around id is a duplicate, a revision stays used, a pair stays known", async () => {
  await store.createSubscription(own, subscription("sub_a"));
  await store.capture(own, [event("evt_1", { subject: "user:1", revision: 1 })]);
  await dispatchNew(store);
  await deliverDue(store);
  time += 30 * day - 1;
  // An hour's retention of deliveries does not shorten the window of the event.
  expect(await store.maintain({ ...retention, deliveredMs: 3_600_000 }, 100, null)).toMatchObject({
    prunedDeliveries: 0,
    prunedEvents: 0,
  });
  expect(await store.capture(own, [event("evt_1", { subject: "user:1", revision: 1 })])).toEqual([
    { id: "evt_1", duplicate: true },
  ]);
  await expect(store.capture(own, [event("evt_1", { contentHash: "other" })])).rejects.toThrow(
    EventMismatchError,
  );
  await expect(store.capture(own, [event("evt_2", { subject: "user:1", revision: 1 })])).rejects.toThrow(
    RevisionConflictError,
  );
  time += 1;
  expect(await store.maintain(retention, 100, null)).toMatchObject({ prunedDeliveries: 1, prunedEvents: 1 });
  for (const table of ["event", "delivery", "body", "attempt"]) expect(rowsOf(table)).toBe(0);
  expect(await store.capture(own, [event("evt_1")])).toEqual([{ id: "evt_1", duplicate: false }]);
});

test("field-faults I4: pruning in small batches ends with nothing left, and looks at no row twice", async () => {
  await store.createSubscription(own, subscription("sub_a"));
  await store.createSubscription(own, subscription("sub_b"));
  await store.capture(
    own,
    Array.from({ length: 25 }, (_, i) => event(`evt_${i}`)),
  );
  await dispatchNew(store);
  await deliverDue(store);
  time += 31 * day;
  const pruned = { deliveries: 0, events: 0 };
  for (let call = 0, more = true; more; call++) {
    const result = await store.maintain(retention, 7, null);
    expect(result.prunedDeliveries).toBeLessThanOrEqual(7);
    pruned.deliveries += result.prunedDeliveries;
    pruned.events += result.prunedEvents;
    more = result.more;
    expect(call).toBeLessThan(20);
  }
  expect(pruned).toEqual({ deliveries: 50, events: 25 });
  expect(rowsOf("body")).toBe(0);
});

test("field-faults I4: a failed delivery keeps its event for 90 days; both go together then", async () => {
  await store.createSubscription(own, subscription("sub_a"));
  await store.createSubscription(own, subscription("sub_b"));
  await store.capture(own, [event("evt_1")]);
  await dispatchNew(store);
  const { deliveries } = await store.claim({ now: null, limit: 1, leaseMs: 1_000 });
  await store.markFailed(deliveries[0]!.id, 1, "gave up", deliveries[0]!.leaseToken);
  await deliverDue(store);
  time += 40 * day;
  expect(await store.maintain(retention, 100, null)).toMatchObject({ prunedDeliveries: 1, prunedEvents: 0 });
  time += 49 * day;
  expect(await store.maintain(retention, 100, null)).toMatchObject({ prunedDeliveries: 0, prunedEvents: 0 });
  time += day;
  expect(await store.maintain(retention, 100, null)).toMatchObject({ prunedDeliveries: 1, prunedEvents: 1 });
});

test("field-faults I4: an event that nobody dispatched is never pruned", async () => {
  await store.capture(own, [event("evt_1", { route: "nobody.takes" })]);
  time += 400 * day;
  expect(await store.maintain(retention, 100, null)).toMatchObject({ prunedEvents: 0 });
  expect((await store.getEvent("evt_1", {}))?.state).toBe("new");
});

test("a tombstone goes with its last delivery and leaves nothing", async () => {
  await store.createSubscription(own, subscription("sub_a"));
  await store.capture(own, [event("evt_1")]);
  await dispatchNew(store);
  await store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
  expect(await store.maintain(retention, 100, null)).toMatchObject({ cancelled: 1 });
  time += 31 * day;
  await store.maintain(retention, 100, null);
  for (const table of ["subscription", "subscription_filter", "endpoint", "lane", "delivery"])
    expect(rowsOf(table)).toBe(0);
});
