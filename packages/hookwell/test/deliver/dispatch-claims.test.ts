import { afterEach, beforeEach, expect, test } from "vitest";
import { DeliveryLoop } from "../../src/deliver/delivery-loop.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { failing } from "./rows.ts";
import { FakeSender, names, World } from "./world.ts";

// A dispatcher claims for the worker beside it what that has room for.

let world: World;
beforeEach(async () => {
  world = await World.open();
});
afterEach(() => world.close());

/** The store, and what was asked of it. */
function watched(): {
  store: OutboxStore;
  claims: number[];
  dispatches: { events: number; claimed: number }[];
} {
  const claims: number[] = [];
  const dispatches: { events: number; claimed: number }[] = [];
  const store = failing(world.store, {
    async claim(request) {
      const result = await world.store.claim(request);
      claims.push(result.deliveries.length);
      return result;
    },
    async dispatch(items, now, room) {
      const result = await world.store.dispatch(items, now, room);
      dispatches.push({ events: items.length, claimed: result.deliveries.length });
      return result;
    },
  });
  return { store, claims, dispatches };
}

test("on an idle lane a delivery is sent without a claim, and recorded", async () => {
  await world.subscribe("sub_a");
  const { store, claims } = watched();
  const sender = new FakeSender(world.time);
  const loops = world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
  await world.advance(3_000);
  for (const id of names(0, 5)) {
    await world.capture({ id });
    loops.emitted();
    await world.advance(2_000);
  }
  expect(sender.sent.map(({ delivery }) => delivery.eventId)).toEqual(names(0, 5));
  expect(claims.filter((rows) => rows > 0)).toEqual([]);
  expect((await world.deliveries()).map(({ status, attempts }) => [status, attempts])).toEqual(
    names(0, 5).map(() => ["delivered", 1]),
  );
  expect(world.observed.of("claimed")).toHaveLength(5);
  expect(world.observed.of("attempted")).toHaveLength(5);
});

test("with healthy receivers nearly everything goes that way, whatever the fan-out, each once", async () => {
  for (const id of names(0, 20, "sub_")) await world.subscribe(id);
  const { store, claims, dispatches } = watched();
  const sender = new FakeSender(world.time, async () => {
    await world.time.sleep(3);
    return 200;
  });
  const loops = world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
  for (let round = 0; round < 12; round++) {
    await world.capture(...names(10 * round, 10 * round + 10).map((id) => ({ id })));
    loops.emitted();
    await world.advance(50);
  }
  await world.advance(1_000);
  expect([...sender.counts().values()].filter((count) => count !== 1)).toEqual([]);
  expect(sender.counts().size).toBe(2_400);
  const claimed = claims.reduce((sum, rows) => sum + rows, 0);
  // While nothing was known of the lanes.
  expect(claimed).toBeLessThan(400);
  expect(dispatches.reduce((sum, each) => sum + each.claimed, 0)).toBe(2_400 - claimed);
});

test("a worker that cannot keep up does not keep events from being dispatched", async () => {
  await world.subscribe("sub_a");
  await world.capture(...names(0, 1_000).map((id) => ({ id })));
  const sender = new FakeSender(world.time, () => new Promise(() => {}));
  world.start(sender);
  await world.advance(4_000);
  expect(sender.sent).toHaveLength(1);
  expect(world.observed.of("dispatched")).toHaveLength(1_000);
});

test("one slow lane does not hold up the events of others", async () => {
  await world.subscribe("sub_slow", { eventTypes: ["slow.made"] });
  await world.subscribe("sub_quick", { eventTypes: ["quick.made"] });
  const sender = new FakeSender(world.time, ({ subscriptionId }) =>
    subscriptionId === "sub_slow" ? new Promise(() => {}) : 200,
  );
  const loops = world.start(sender);
  await world.capture(...names(0, 300).map((id) => ({ id, type: "slow.made" })));
  await world.advance(2_000);
  await world.capture(...names(300, 400).map((id) => ({ id, type: "quick.made" })));
  loops.emitted();
  await world.advance(300);
  expect(sender.to("sub_quick")).toHaveLength(100);
});

test("what is claimed while the loops stop is given back unsent", async () => {
  await world.subscribe("sub_a");
  await world.capture({ id: "evt_1" });
  let stop: Promise<void> | undefined;
  const store = failing(world.store, {
    async dispatch(items, now, room) {
      const result = await world.store.dispatch(items, now, room);
      expect(result.deliveries).toHaveLength(1);
      stop = loops.stop();
      return result;
    },
  });
  const sender = new FakeSender(world.time);
  const loops = world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
  await world.advance(2_000);
  await stop;
  expect(sender.sent).toEqual([]);
  const [row] = await world.deliveries();
  expect(row).toMatchObject({ status: "pending", attempts: 0 });
  expect(
    (await world.store.claim({ now: world.time.clock(), limit: 1, leaseMs: 1_000 })).deliveries,
  ).toHaveLength(1);
});

test("a dispatch waits for the claim under way, and the other way round", async () => {
  await world.subscribe("sub_a");
  const loop = new DeliveryLoop(world.parts(new FakeSender(world.time)));
  const order: string[] = [];
  const claiming = loop.claimOnce().then(() => order.push("claimed"));
  const claim = await loop.begin();
  order.push("begun");
  await claiming;
  let wanted = 0;
  loop.onWanted = () => wanted++;
  expect(await loop.claimOnce()).toEqual({ claimed: 0, again: false });
  expect(wanted).toBe(0);
  claim!.end();
  expect(wanted).toBe(1);
  expect(order).toEqual(["claimed", "begun"]);
  await loop.claimOnce();
});

test("claims wait a second at most for a dispatch that waits; what it claims after all is given back", async () => {
  await world.subscribe("sub_a", { eventTypes: ["a.made"] });
  await world.subscribe("sub_b", { eventTypes: ["b.made"] });
  let free = (): void => {};
  const freed = new Promise<void>((resolve) => {
    free = resolve;
  });
  const store = failing(world.store, {
    async dispatch(items, now, room) {
      if (items.some(({ id }) => id === "evt_a")) await freed;
      return await world.store.dispatch(items, now, room);
    },
  });
  let answer = 500;
  const sender = new FakeSender(world.time, () => answer);
  const loops = world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
  await world.capture({ id: "evt_b", type: "b.made" });
  await world.advance(2_000);
  expect(sender.to("sub_b")).toHaveLength(1);
  answer = 200;
  await world.capture({ id: "evt_a", type: "a.made" });
  loops.emitted();
  await world.advance(15_000);
  expect(sender.to("sub_b")).toHaveLength(2);
  free();
  await world.advance(2_000);
  expect([...sender.counts()].sort()).toEqual([
    ["evt_a sub_a", 1],
    ["evt_b sub_b", 2],
  ]);
  expect(world.observed.of("released")).toHaveLength(1);
  expect((await world.deliveries()).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
  // It claims again as before.
  await world.capture({ id: "evt_c", type: "a.made" });
  loops.emitted();
  await world.advance(50);
  expect(sender.to("sub_a")).toHaveLength(2);
});

test("when the dispatch fails nothing is sent, and what was left behind is found", async () => {
  await world.subscribe("sub_a");
  await world.capture({ id: "evt_1" }, { id: "evt_2" });
  let failures = 2;
  const store = failing(world.store, {
    async dispatch(items, now, room) {
      if (failures-- > 0) throw new Error("the store is away");
      return await world.store.dispatch(items, now, room);
    },
  });
  const sender = new FakeSender(world.time);
  world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
  await world.advance(5_000);
  expect([...sender.counts()].sort()).toEqual([
    ["evt_1 sub_a", 1],
    ["evt_2 sub_a", 1],
  ]);
});
