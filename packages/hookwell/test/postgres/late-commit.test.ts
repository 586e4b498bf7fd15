import { afterAll, beforeAll, expect, test } from "vitest";
import { begin, dispatchAll, emitted, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.make();
});
afterAll(() => database.drop());

test("field-faults A5: events are picked up whatever the order of their ids and commits", async () => {
  const application = database.pool();
  const store = await database.store();
  await store.createSubscription(own, subscriptionInput("sub_a"));
  const delivered = async (): Promise<string[]> => {
    while ((await dispatchAll(store)) > 0);
    const { deliveries } = await store.claim({ now: null, limit: 100, leaseMs: 60_000 });
    return deliveries.map(({ eventId }) => eventId).sort();
  };

  // Three transactions take their sequence numbers 1, 2, 3; ids run the other way; commits go 2, 3 (back), 1.
  const first = await begin(application);
  const second = await begin(application);
  const third = await begin(application);
  await store.capture(first.scope, [eventInput("evt_c")]);
  await store.capture(second.scope, [eventInput("evt_b")]);
  await store.capture(third.scope, [eventInput("evt_a")]);

  await second.end("COMMIT");
  expect(await delivered()).toEqual(["evt_b"]);
  await third.end("ROLLBACK");
  expect(await delivered()).toEqual([]);
  // Many later ones come and go while the first is still open.
  for (let i = 0; i < 20; i++) await store.capture(own, [eventInput(`evt_z${i}`)]);
  expect(await delivered()).toHaveLength(20);
  await first.end("COMMIT");
  expect(await delivered()).toEqual(["evt_c"]);
  expect(await store.takeNew(["user.created", "*"], 10, null)).toEqual([]);
});

test("field-faults A5: rows that capture fanned out and that commit late are claimed, although their lane slept", async () => {
  const application = database.pool();
  const store = await database.store();
  await store.createSubscription(own, subscriptionInput("sub_late", { projectId: "late" }));
  const claim = async (): Promise<string[]> => {
    while ((await dispatchAll(store)) > 0);
    const { deliveries } = await store.claim({ now: null, limit: 10, leaseMs: 60_000 });
    return deliveries.map(({ eventId }) => eventId);
  };

  const slow = await begin(application);
  await store.capture(slow.scope, [emitted("evt_slow", { projectId: "late" })]);
  await store.capture(own, [emitted("evt_quick", { projectId: "late" })]);
  expect(await claim()).toEqual(["evt_quick"]);
  // The lane has nothing due and goes to sleep.
  expect(await claim()).toEqual([]);
  await slow.end("COMMIT");
  expect(await claim()).toEqual(["evt_slow"]);
});

test("field-faults A5: a repeated emit that commits late adds its row to an event dispatched long before", async () => {
  const application = database.pool();
  const store = await database.store();
  const projectId = "again";
  await store.createSubscription(own, subscriptionInput("sub_again_1", { projectId }));
  await store.capture(own, [emitted("evt_again", { projectId })]);
  await dispatchAll(store);
  expect((await store.claim({ now: null, limit: 10, leaseMs: 60_000 })).deliveries).toHaveLength(1);
  await store.createSubscription(own, subscriptionInput("sub_again_2", { projectId }));
  // Both lanes sleep.
  expect((await store.claim({ now: null, limit: 10, leaseMs: 60_000 })).deliveries).toHaveLength(0);

  const repeat = await begin(application);
  expect(await store.capture(repeat.scope, [emitted("evt_again", { projectId })])).toEqual([
    { id: "evt_again", duplicate: true },
  ]);
  expect((await store.claim({ now: null, limit: 10, leaseMs: 60_000 })).deliveries).toHaveLength(0);
  await repeat.end("COMMIT");
  const { deliveries } = await store.claim({ now: null, limit: 10, leaseMs: 60_000 });
  expect(deliveries.map(({ subscriptionId }) => subscriptionId)).toEqual(["sub_again_2"]);
  expect(Buffer.from(deliveries[0]!.payload).toString()).toBe('{"id":"evt_again"}');
});
