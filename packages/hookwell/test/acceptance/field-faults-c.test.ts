import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpSender } from "../../src/send/http-sender.ts";
import { startReceiver } from "../../src/testing/receiver.ts";
import { failing } from "../deliver/rows.ts";
import { kinds } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  test("field-faults C2: two replicas, three endpoints of which one is slow: each event is sent once to each", async () => {
    for (const id of ["sub_a", "sub_b", "sub_slow"]) await world.subscribe(id);
    const sender = new FakeSender(world.time, async ({ subscriptionId }) => {
      await (subscriptionId === "sub_slow"
        ? world.time.sleep(700)
        : new Promise((done) => setImmediate(done)));
      return 200;
    });
    const other = await world.again();
    world.start(sender);
    world.start(sender, { store: other, dispatcher: world.dispatcher({ store: other }) });
    const ids = names(0, 240);
    for (let from = 0; from < ids.length; from += 40) {
      await world.capture(...ids.slice(from, from + 40).map((id) => ({ id })));
      await world.advance(150);
    }
    await world.advance(8_000);
    expect(sender.sent.length).toBe(720);
    expect([...sender.counts().values()].every((count) => count === 1)).toBe(true);
    expect(await world.store.countRemaining(10)).toEqual({ pending: 0, newEvents: 0 });
    expect(world.observed.of("leaseLost")).toEqual([]);
  });

  test("field-faults C3: endpoints that hang to the limit do not cost the rest of the batch a second send", async () => {
    for (const id of names(0, 40, "sub_")) await world.subscribe(id);
    // The first dozen answers nothing until the exchange limit; two replicas look for work all the while.
    const sender = new FakeSender(world.time, async ({ subscriptionId }) => {
      if (subscriptionId >= "sub_0012") return 200;
      await world.time.sleep(15_000);
      return "timeout";
    });
    const other = await world.again();
    world.start(sender, { policy: { maxAttempts: 1 } });
    world.start(sender, {
      policy: { maxAttempts: 1 },
      store: other,
      dispatcher: world.dispatcher({ store: other }),
    });
    await world.capture({ id: "evt_1" });
    await world.advance(16_000);
    await world.later(60_000);
    expect(sender.sent.length).toBe(40);
    expect((await world.deliveries({ status: "delivered" })).length).toBe(28);
    expect((await world.deliveries({ status: "failed" })).length).toBe(12);
  });

  test("field-faults C3: rows whose lease ran down before the send are given back unsent, not sent late", async () => {
    await world.subscribe("sub_a");
    await world.subscribe("sub_b");
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    let stall = 15_001;
    const store = failing(world.store, {
      claim: async (request) => {
        const claimed = await world.store.claim(request);
        // The process was stopped between claim and send, so that 14.999 s of the lease are left.
        if (claimed.deliveries.length > 0) world.time.skip(stall);
        stall = 0;
        return claimed;
      },
    });
    const sender = new FakeSender(world.time);
    world.start(sender, { store });
    await world.advance(10);
    expect(world.observed.of("released").length).toBe(2);
    await world.advance(2_000);
    expect([...sender.counts().values()]).toEqual([1, 1]);
    expect((await world.deliveries()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual([
      "delivered 1",
      "delivered 1",
    ]);
  });

  test("field-faults C4: what was cancelled in flight stays cancelled, whatever the answer", async () => {
    await world.subscribe("sub_ok");
    await world.subscribe("sub_bad");
    await world.capture({ id: "evt_1" });
    const sender = new FakeSender(world.time, async ({ subscriptionId }) => {
      await world.time.sleep(5_000);
      return subscriptionId === "sub_ok" ? 200 : 503;
    });
    world.start(sender);
    await world.advance(1_000);
    expect(sender.inFlight).toBe(2);
    for (const { id } of await world.deliveries())
      await world.store.cancelDelivery({ kind: "own" }, id, {}, world.time.clock());
    await world.advance(5_000);
    await world.later(60_000);
    expect((await world.deliveries()).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    expect(sender.sent.length).toBe(2);
    expect(world.observed.of("leaseLost").length).toBe(2);
    expect(world.observed.of("delivered")).toEqual([]);
  });

  test("field-faults C4: a stalled replica's failure does not overwrite the success of another, nor a new round", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    const answers: ((status: number) => void)[] = [];
    const stalled = new FakeSender(world.time, () => new Promise<number>((answer) => answers.push(answer)));
    const abandoned: string[] = [];
    world.start(stalled, { policy: { maxAttempts: 1 }, failureHook: ({ id }) => abandoned.push(id) });
    await world.advance(500);
    const [made] = await world.deliveries();
    // 31 s later its lease is over: another worker takes the row, and is done with it.
    const healthy = new FakeSender(world.time);
    const other = await world.again();
    world.time.skip(31_000);
    const second = await other.claim({ now: world.time.clock(), limit: 1, leaseMs: 30_000 });
    const { id, leaseToken } = second.deliveries[0]!;
    await healthy.deliver(second.deliveries[0]!);
    const exchange = { startedAt: world.time.clock(), durationMs: 1, statusCode: 200 };
    await other.record([{ kind: "delivered", id, leaseToken: leaseToken!, exchange }], world.time.clock());
    await other.retryDelivery({ kind: "own" }, id, {}, world.time.clock());
    answers[0]!(500);
    await world.settle();
    const after = (await world.store.getDelivery(made!.id, {}))!;
    expect(after).toMatchObject({ status: "pending", round: 2 });
    expect(abandoned).toEqual([]);
    expect(world.observed.of("failed")).toEqual([]);
  });

  test("field-faults C5: attempts of several workers: the same id and bytes, a new timestamp and signature", async () => {
    let failures = 3;
    await using receiver = await startReceiver({ respond: () => (failures-- > 0 ? 502 : 200) });
    await world.subscribe("sub_a", { url: receiver.url });
    await world.capture({ id: "evt_1", data: '{"text":"line\\u2028end 𠜎","n":1e21}' });
    const http = new HttpSender({ network: { allow: ["127.0.0.0/8"], http: true }, clock: world.time.clock });
    // Each attempt is made by a process of its own, one after the other.
    for (let life = 0; life < 5; life++) {
      const store = await world.again();
      const loops = world.start(world.track(http), {
        store,
        policy: [60_000, 60_000, 60_000, 60_000],
        dispatcher: world.dispatcher({ store }),
      });
      await world.advance(2_000);
      await loops.stop();
      world.time.skip(60_000);
    }
    await http.close();
    expect(receiver.requests.length).toBe(4);
    const [first, ...rest] = receiver.requests.map(({ headers, body }) => ({
      body: body.toString("base64"),
      headers: Object.fromEntries(
        Object.entries(headers).filter(
          ([name]) => !["webhook-timestamp", "webhook-signature", "x-hookwell-attempt"].includes(name),
        ),
      ),
    }));
    for (const request of rest) expect(request).toEqual(first);
    for (const name of ["webhook-timestamp", "webhook-signature", "x-hookwell-attempt"])
      expect(new Set(receiver.requests.map(({ headers }) => headers[name])).size).toBe(4);
    expect(first!.headers["webhook-id"]).toBe("evt_1");
  });

  test("field-faults C6: after a full drain, new processes and new days send nothing again", async () => {
    await world.subscribe("sub_a");
    await world.subscribe("sub_b");
    const sender = new FakeSender(world.time, ({ eventId }) => (eventId === "evt_0003" ? 500 : 200));
    await world.capture(...names(0, 30).map((id) => ({ id })));
    const first = world.start(sender);
    await world.advance(1_000);
    await world.later(120_000);
    await first.stop();
    const sent = sender.sent.length;
    expect(sent).toBe(58 + 6);
    for (let restart = 0; restart < 3; restart++) {
      const store = await world.again();
      const loops = world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
      loops.wake();
      await world.advance(2_000);
      await loops.stop();
      world.time.skip(86_400_000);
    }
    expect(sender.sent.length).toBe(sent);
  });
});
