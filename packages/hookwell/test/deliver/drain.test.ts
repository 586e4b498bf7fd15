import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DrainResult, drain } from "../../src/deliver/drain.ts";
import { createHookwell } from "../../src/publish/create-hookwell.ts";
import { MemoryOutbox } from "../../src/store/memory/index.ts";
import { failing } from "./rows.ts";
import { kinds } from "./stores.ts";
import { FakeSender, names, World } from "./world.ts";

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
    await world.subscribe("sub_a");
    await world.subscribe("sub_b");
  });
  afterEach(() => world.close());

  const run = (
    sender: FakeSender,
    options: { deadlineMs?: number; max?: number } = {},
  ): Promise<DrainResult> =>
    drain(
      { ...world.parts(sender), store: world.store, dispatcher: world.dispatcher() },
      { deadlineMs: 10_000, ...options },
    );
  /** Rows that can be claimed now: those that are pending and due, and that nobody holds. */
  const claimable = async (): Promise<number> =>
    (await world.store.claim({ now: world.time.clock(), limit: 1_000, leaseMs: 1 })).deliveries.length;

  test("dispatches and delivers everything, says what it did, and leaves no timer", async () => {
    await world.capture(...names(0, 130).map((id) => ({ id })));
    const sender = new FakeSender(world.time, ({ eventId, subscriptionId }) =>
      eventId === "evt_0007" ? (subscriptionId === "sub_a" ? 500 : 410) : 200,
    );
    const drained = run(sender);
    await world.advance(500);
    const result = await drained;
    expect(result.dispatched).toBe(130);
    expect(result.rescheduled).toBe(1);
    expect(result.failed).toBe(1);
    expect(result.delivered).toBe(sender.sent.length - 2);
    expect(result.remaining).toEqual({ pending: 0, newEvents: 0 });
    expect(world.time.sleeping).toBe(0);
    expect(await claimable()).toBe(0);
  });

  test("nothing to do: it returns without waiting", async () => {
    expect(await run(new FakeSender(world.time))).toEqual({
      dispatched: 0,
      delivered: 0,
      rescheduled: 0,
      failed: 0,
      remaining: { pending: 0, newEvents: 0 },
      holds: 0,
    });
    expect(world.time.sleeping).toBe(0);
  });

  test("at the deadline what hangs is given back: no lease is left, and no attempt spent", async () => {
    await world.capture(...names(0, 10).map((id) => ({ id })));
    const sender = new FakeSender(world.time, ({ subscriptionId }) =>
      subscriptionId === "sub_a" ? "hang" : 200,
    );
    const drained = run(sender, { deadlineMs: 3_000 });
    await world.advance(3_000);
    const result = await drained;
    expect(result).toMatchObject({ delivered: 10, rescheduled: 0, failed: 0 });
    expect(result.remaining).toEqual({ pending: 10, newEvents: 0 });
    expect(world.time.sleeping).toBe(0);
    expect((await world.deliveries({ status: "pending" })).map(({ attempts }) => attempts)).toEqual(
      Array(10).fill(0),
    );
    expect(await claimable()).toBe(10);
  });

  test("`max` bounds the sends, and what is left is counted", async () => {
    await world.capture(...names(0, 20).map((id) => ({ id })));
    const sender = new FakeSender(world.time);
    const drained = run(sender, { max: 7 });
    await world.advance(500);
    expect(await drained).toMatchObject({
      dispatched: 20,
      delivered: 7,
      remaining: { pending: 33, newEvents: 0 },
    });
    expect(sender.sent.length).toBe(7);
  });

  test("sends that end while a claim without room is under way do not end it early", async () => {
    await world.capture(...names(0, 130).map((id) => ({ id })));
    const waiting: (() => void)[] = [];
    let held = true;
    const sender = new FakeSender(world.time, async () => {
      if (held) await new Promise<void>((resolve) => waiting.push(resolve));
      return 200;
    });
    const endSends = async (): Promise<void> => {
      for (const end of waiting.splice(0)) end();
      while (sender.inFlight > 0) await new Promise(setImmediate);
    };
    let rounds = 0;
    const dispatcher = world.dispatcher();
    const dispatchOnce = async () => {
      const round = await dispatcher.dispatchOnce();
      if (++rounds === 2) await endSends();
      return round;
    };
    let claimed = -1;
    const store = failing(world.store, {
      claim: async (request) => {
        const isFull = rounds === 3 && sender.inFlight > 0;
        const result = await world.store.claim(request);
        if (!isFull) return result;
        claimed = result.deliveries.length;
        held = false;
        await endSends();
        return result;
      },
    });
    const drained = drain(
      { ...world.parts(sender), store, dispatcher: { dispatchOnce } },
      { deadlineMs: 10_000 },
    );
    while (held) await new Promise(setImmediate);
    await world.advance(500);
    const result = await drained;
    expect(claimed).toBe(0);
    expect(result.delivered).toBe(260);
    expect(result.remaining).toEqual({ pending: 0, newEvents: 0 });
  });

  test("a store that fails ends it with that error, after the rows were given back", async () => {
    await world.capture(...names(0, 5).map((id) => ({ id })));
    let claims = 0;
    const store = failing(world.store, {
      claim: async (request) => {
        if (claims++ > 0) throw new Error("the database went away");
        return world.store.claim(request);
      },
    });
    const sender = new FakeSender(world.time, async () => {
      await world.time.sleep(100);
      return 200;
    });
    const drained = drain(
      { ...world.parts(sender), store, dispatcher: world.dispatcher() },
      { deadlineMs: 1_000 },
    ).catch((error: Error) => error.message);
    await world.advance(1_000);
    expect(await drained).toBe("the database went away");
    expect(world.time.sleeping).toBe(0);
    expect((await world.deliveries({ status: "delivered" })).length).toBe(2);
    expect(await claimable()).toBe(8);
  });
});

test("what remains is counted by the clock that the instance was given, not by the store's own", async () => {
  const store = new MemoryOutbox();
  const hooks = createHookwell({ store, clock: () => new Date("2199-01-01"), project: "live" });
  await hooks.subscriptions.create({ url: "https://example.com/" });
  await hooks.emit("a.b", 1, { tx: "own" });
  const { dispatched, remaining } = await hooks.drain({ deadlineMs: 1_000, max: 0 });
  expect({ dispatched, remaining }).toEqual({ dispatched: 1, remaining: { pending: 1, newEvents: 0 } });
  await hooks.close();
});
