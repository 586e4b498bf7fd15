import { createHookwell, defineEvents, type HookwellCore, type HookwellOptions } from "hookwell";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { kinds } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const anything = z.record(z.string(), z.unknown());

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  const running: { stop(): Promise<void> }[] = [];
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(async () => {
    const stopped = Promise.all(running.splice(0).map((run) => run.stop()));
    await world.advance(10);
    await stopped;
    await world.close();
  });

  /** A whole process: an instance over a store of its own, on the world's time. */
  const process = (
    sender: FakeSender,
    options: Partial<Omit<HookwellOptions<undefined, never, never>, "events">> & { events?: unknown } = {},
    store = world.store,
  ): HookwellCore => {
    const { events, ...rest } = options;
    return createHookwell({
      store,
      sender,
      clock: world.time.clock,
      timers: world.time,
      randomNumber: () => 0.5,
      logger: quiet,
      retry: { maxAttempts: 2, baseDelay: 10_000, maxDelay: 60_000 },
      ...rest,
      ...(events ? { events: events as never } : {}),
    }) as unknown as HookwellCore;
  };
  const start = (hooks: HookwellCore, options: Parameters<HookwellCore["start"]>[0] = {}): void => {
    running.push(hooks.start(options));
  };
  const begin = (): Date => new Date(world.time.clock().getTime() - 1_000);

  test("field-faults H2: what a disabled subscription missed is listed as unmatched, and a replay delivers it", async () => {
    const sender = new FakeSender(world.time);
    const hooks = process(sender);
    start(hooks);
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_before" });
    await world.advance(2_000);
    await hooks.subscriptions.disable("sub_a");
    await world.capture(...names(0, 7).map((id) => ({ id })));
    await world.advance(2_000);
    await hooks.subscriptions.enable("sub_a");
    await world.advance(2_000);
    expect(sender.sent.map(({ delivery }) => delivery.eventId)).toEqual(["evt_before"]);
    const unmatched = await hooks.events.list({ type: "thing.made", outcome: "unmatched" });
    expect(unmatched.items.map(({ id }) => id).sort()).toEqual(names(0, 7));

    const input = { subscriptionId: "sub_a", since: begin0(), status: ["missing"] } as const;
    expect(await hooks.replays.count(input)).toEqual({ count: 7 });
    const { id, count } = await hooks.replays.create(input);
    expect(count).toBe(7);
    await world.advance(2_000);
    expect(sender.sent.map(({ delivery }) => delivery.eventId).sort()).toEqual(
      ["evt_before", ...names(0, 7)].sort(),
    );
    expect(await hooks.replays.get(id)).toMatchObject({
      status: "done",
      queued: 7,
      delivered: 7,
      failed: 0,
      skipped: 0,
    });
    expect((await hooks.events.list({ type: "thing.made", outcome: "unmatched" })).items).toEqual([]);
    expect(await hooks.replays.count(input)).toEqual({ count: 0 });
    const bodies = sender.sent.map(({ delivery }) => JSON.parse(Buffer.from(delivery.payload).toString()));
    expect(bodies.find(({ id: of }) => of === "evt_0003")).toMatchObject({
      type: "thing.made",
      data: { number: "evt_0003" },
    });
  });

  test("field-faults J2: seven resends during backoff, from two replicas at once: one send at a time, and one more in all", async () => {
    const sender = new FakeSender(world.time, async () => {
      await world.time.sleep(3_000);
      return 500;
    });
    const replicas = [process(sender), process(sender, {}, await world.again())];
    for (const hooks of replicas) start(hooks);
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    await world.advance(5_000);
    expect(sender.sent.length).toBe(1);
    const [{ id } = { id: "" }] = await world.deliveries();
    const press = (): Promise<PromiseSettledResult<unknown>[]> =>
      Promise.allSettled(Array.from({ length: 7 }, (_, n) => replicas[n % 2]!.deliveries.retry(id)));
    const inBackoff = await press();
    expect(inBackoff.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    // A replay of everything that failed finds nothing: the row is pending.
    const replay = await replicas[0]!.replays.create({
      filter: { eventId: "evt_1" },
      since: begin(),
      status: ["failed", "delivered", "cancelled"],
    });
    await world.advance(1_500);
    expect(sender.inFlight).toBe(1);
    const inFlight = await press();
    expect(inFlight.map((result) => result.status === "rejected" && result.reason.code)).toEqual(
      Array(7).fill("invalid_state"),
    );
    await world.later(50_000);
    expect(sender.sent.length).toBe(2);
    expect(sender.mostInFlight).toBe(1);
    expect(await replicas[1]!.replays.get(replay.id)).toMatchObject({ status: "done", count: 0, queued: 0 });
    // Given up by now: resent by both at once, it is one new round, whose attempts are its own.
    const final = await press();
    expect(final.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
    await world.later(100_000);
    expect(sender.sent.length).toBe(4);
    expect(sender.mostInFlight).toBe(1);
    expect((await world.deliveries())[0]).toMatchObject({ status: "failed", round: 2, attempts: 2 });
  });

  test("a replay that two replicas take on sends each delivery once, after what is live, and tells what became of them", async () => {
    let status = 503;
    const sender = new FakeSender(world.time, ({ eventId }) =>
      eventId === "evt_0007" && status === 200 ? 503 : status,
    );
    const lanes = { breaker: false } as const;
    const replicas = [process(sender, { lanes }), process(sender, { lanes }, await world.again())];
    await world.subscribe("sub_a");
    await world.capture(...names(0, 12).map((id) => ({ id })));
    // One of the two, so that the order in which sends begin can be told.
    start(replicas[0]!);
    await world.later(60_000);
    expect((await replicas[0]!.deliveries.list({ status: "failed" })).items.length).toBe(12);
    const first = sender.sent.length;
    start(replicas[1]!);
    status = 200;
    await replicas[0]!.subscriptions.pause("sub_a");
    const replay = await replicas[0]!.replays.create({
      subscriptionId: "sub_a",
      since: begin0(),
      status: ["failed"],
    });
    expect(replay).toMatchObject({ count: 12, status: "running" });
    await world.advance(1_500);
    expect(await replicas[1]!.replays.get(replay.id)).toMatchObject({
      status: "done",
      queued: 12,
      delivered: 0,
    });
    await world.capture({ id: "evt_live_1" }, { id: "evt_live_2" });
    await world.advance(2_000);
    expect(sender.sent.length).toBe(first);
    await replicas[0]!.subscriptions.resume("sub_a");
    await world.later(30_000);
    const sent = sender.sent.slice(first).map(({ delivery }) => delivery.eventId);
    expect(sent.slice(0, 2).sort()).toEqual(["evt_live_1", "evt_live_2"]);
    expect(
      sent
        .slice(2)
        .filter((id) => id !== "evt_0007")
        .sort(),
    ).toEqual(names(0, 12).filter((id) => id !== "evt_0007"));
    await world.later(20_000);
    const told = await replicas[1]!.replays.get(replay.id);
    expect(told).toMatchObject({
      status: "done",
      count: 12,
      queued: 12,
      delivered: 11,
      failed: 1,
      cancelled: 0,
    });
    const listed = await replicas[0]!.deliveries.list({ replayId: replay.id, status: "failed" });
    expect(listed.items.map(({ eventId }) => eventId)).toEqual(["evt_0007"]);
  });

  test("only a process that has the type renders what was missed: with its fields, its envelope and its enrichment", async () => {
    const events = defineEvents({
      "order.paid": {
        schema: anything,
        fields: { always: ["id"], default: ["total"], optional: { email: { personal: true }, late: {} } },
        enrich: async (asked) => new Map(asked.map(({ id }) => [id, { late: `of ${id}` }])),
        envelope: (event, data) => ({ order: event.id, data }),
      },
      "order.lost": {
        schema: anything,
        envelope: () => {
          throw new Error("no such order");
        },
      },
    });
    const sender = new FakeSender(world.time);
    const server = process(sender);
    const application = process(sender, { events });
    await world.subscribe("sub_a", { fields: ["email", "late"] });
    await application.subscriptions.disable("sub_a");
    for (const type of ["order.paid", "order.lost"])
      await application.emitUnknown(
        type,
        { id: 1, total: 2, email: "a@b.example" },
        { tx: "own", id: `evt_${type.replace(".", "_")}`, projectId: "live" },
      );
    await application.drain({ deadlineMs: 1_000 });
    await application.subscriptions.enable("sub_a");
    world.time.skip(1);
    start(server);
    const replay = await server.replays.create({
      subscriptionId: "sub_a",
      since: begin(),
      status: ["missing"],
    });
    await world.advance(2_000);
    expect(await server.replays.get(replay.id)).toMatchObject({ status: "running", count: 2, queued: 0 });
    start(application, { worker: false });
    // Five tries, the last one 31 s after the first.
    await world.later(150_000);
    expect(sender.sent.map(({ delivery }) => Buffer.from(delivery.payload).toString())).toEqual([
      '{"order":"evt_order_paid","data":{"id":1,"email":"a@b.example","late":"of evt_order_paid"}}',
    ]);
    expect((await server.events.get("evt_order_paid")).patch).toBe('{"late":"of evt_order_paid"}');
    expect(await server.replays.get(replay.id)).toMatchObject({
      status: "done",
      queued: 1,
      skipped: 1,
      error: "Event evt_order_lost could not be rendered: no such order",
    });
  });

  test("drain takes replays on; stopped it leaves what it queued, which a bulk cancel by its id ends", async () => {
    let status = 500;
    const sender = new FakeSender(world.time, () => status);
    const hooks = process(sender, {
      retry: { maxAttempts: 1, baseDelay: 1, maxDelay: 1 },
      lanes: { breaker: false },
    });
    await world.subscribe("sub_a");
    await world.capture(...names(0, 5).map((id) => ({ id })));
    await hooks.drain({ deadlineMs: 60_000 });
    status = 200;
    const input = {
      filter: { projectId: "live", type: "thing.made" },
      since: begin(),
      status: ["failed"],
    } as const;
    world.time.skip(1);
    const one = await hooks.replays.create(input);
    expect(await hooks.drain({ deadlineMs: 60_000 })).toMatchObject({
      delivered: 5,
      remaining: { pending: 0 },
    });
    await hooks.drain({ deadlineMs: 60_000 });
    expect(await hooks.replays.get(one.id)).toMatchObject({ status: "done", delivered: 5 });

    await hooks.subscriptions.pause("sub_a");
    const two = await hooks.replays.create({ ...input, status: ["delivered"] });
    await hooks.drain({ deadlineMs: 60_000 });
    await expect(hooks.replays.cancel(two.id)).rejects.toMatchObject({ code: "invalid_state" });
    const three = await hooks.replays.create({ ...input, status: ["delivered", "failed"] });
    expect(three.count).toBe(0);
    expect(await hooks.replays.cancel(three.id)).toMatchObject({ status: "stopped" });
    const filter = { replayId: two.id };
    expect(await hooks.deliveries.cancelMany(filter, { dryRun: true })).toEqual({ count: 5 });
    expect(await hooks.deliveries.cancelMany(filter, { visibility: { projectId: "other" } })).toEqual({
      count: 0,
    });
    expect(await hooks.deliveries.cancelMany(filter)).toEqual({ count: 5 });
    expect(await hooks.deliveries.cancelMany(filter)).toEqual({ count: 0 });
    await hooks.drain({ deadlineMs: 60_000 });
    expect(await hooks.replays.get(two.id)).toMatchObject({ status: "done", queued: 5, cancelled: 5 });
    expect(sender.sent.length).toBe(10);
  });

  function begin0(): Date {
    return new Date(world.time.clock().getTime() - 3_600_000);
  }
});
