import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Worker, type WorkerConfig } from "../../src/deliver/worker.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import { HttpSender } from "../../src/send/http-sender.ts";
import { answers, startReceiver } from "../../src/testing/receiver.ts";
import { enqueue, failing, get } from "../deliver/rows.ts";
import { kinds } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

/** Lines of the three levels of a logger. */
class Lines {
  readonly all: string[] = [];
  readonly info = (line: string): number => this.all.push(line);
  readonly warn = this.info;
  readonly error = this.info;
}

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  let lines: Lines;
  beforeEach(async () => {
    world = await World.open(kind);
    lines = new Lines();
  });
  afterEach(() => world.close());

  const worker = (config: Partial<WorkerConfig> & Pick<WorkerConfig, "sender">): Worker =>
    new Worker({
      store: world.store,
      now: world.time.clock,
      timers: world.time,
      monotonic: world.time.monotonic,
      random: () => 0.5,
      logger: lines,
      policy: { maxAttempts: 3, baseDelay: 1_000, maxDelay: 8_000 },
      ...config,
    });

  test("events 8: every row of one event holds the same bytes", async () => {
    for (const id of ["sub_a", "sub_b", "sub_c"]) await world.subscribe(id);
    await world.capture({ id: "evt_big", data: '{"n":9007199254740993,"z":1,"a":"\\u0000é"}' });
    const sender = new FakeSender(world.time);
    world.start(sender);
    await world.advance(1_000);
    const bodies = sender.sent.map(({ delivery }) => Buffer.from(delivery.payload).toString("utf8"));
    expect(bodies.length).toBe(3);
    expect(new Set(bodies)).toEqual(
      new Set([
        '{"id":"evt_big","type":"thing.made","timestamp":"2026-03-01T09:00:00.000Z","data":{"n":9007199254740993,"z":1,"a":"\\u0000é"}}',
      ]),
    );
  });

  test("events 26: a success on the first attempt is one POST, and delivered", async () => {
    await enqueue(world, "dlv_1");
    await using receiver = await startReceiver();
    await world.store.addSubscription({
      id: "sub_real",
      projectId: "live",
      url: receiver.url,
      secret: "s",
      eventTypes: [],
      active: true,
    });
    const sender = new HttpSender({
      network: { allow: ["127.0.0.0/8"], http: true },
      clock: world.time.clock,
    });
    const row = {
      ...(await get(world.store, "dlv_1")),
      id: "dlv_2",
      subscriptionId: "sub_real",
      url: receiver.url,
    };
    await world.store.markDelivered("dlv_1", world.time.clock());
    await world.store.enqueueDelivery(row);
    await worker({ sender }).processOnce();
    await worker({ sender }).processOnce();
    await sender.close();
    expect(receiver.requests.length).toBe(1);
    expect(receiver.requests[0]!.method).toBe("POST");
    expect(receiver.requests[0]!.body.equals(row.payload)).toBe(true);
    expect(await get(world.store, "dlv_2")).toMatchObject({ status: "delivered", attempts: 1 });
  });

  test("events 27: fail, fail, succeed: retried only when due, with the same body and body signature", async () => {
    await using receiver = await startReceiver({ respond: answers(503, 307, 204) });
    await world.subscribe("sub_real", { url: receiver.url });
    const http = new HttpSender({ network: { allow: ["127.0.0.0/8"], http: true }, clock: world.time.clock });
    await world.capture({ id: "evt_x", data: '{"name":"Zoë \\ud83d\\ude80"}' });
    await world.dispatcher().dispatchOnce();
    const once = worker({ sender: world.track(http) });
    const requestsAfter: number[] = [];
    for (const wait of [0, 999, 1, 1_999, 1, 60_000]) {
      world.time.skip(wait);
      await once.processOnce();
      requestsAfter.push(receiver.requests.length);
    }
    await http.close();
    expect(requestsAfter).toEqual([1, 1, 2, 2, 3, 3]);
    const [first, ...rest] = receiver.requests;
    for (const request of rest) {
      expect(request.body.equals(first!.body)).toBe(true);
      expect(request.headers["x-hookwell-signature"]).toBe(first!.headers["x-hookwell-signature"]);
      expect(request.headers["webhook-id"]).toBe("evt_x");
      expect(request.headers["x-hookwell-delivery"]).toBe(first!.headers["x-hookwell-delivery"]);
    }
    expect(receiver.requests.map((request) => request.headers["x-hookwell-attempt"])).toEqual([
      "1",
      "2",
      "3",
    ]);
    const [delivery] = await world.deliveries();
    expect(delivery).toMatchObject({ status: "delivered", attempts: 3 });
  });

  test("events 29: three attempts that fail: three sends, failed, and the hook called once", async () => {
    await enqueue(world, "dlv_1");
    const sender = new FakeSender(world.time, () => 500);
    const abandoned: Delivery[] = [];
    const once = worker({ sender, failureHook: (delivery) => abandoned.push(delivery) });
    for (let tick = 0; tick < 12; tick++) {
      await once.processOnce();
      world.time.skip(1_000);
    }
    expect(sender.sent.map(({ at }) => at.getTime() - sender.sent[0]!.at.getTime())).toEqual([
      0, 1_000, 3_000,
    ]);
    expect(await get(world.store, "dlv_1")).toMatchObject({
      status: "failed",
      attempts: 3,
      lastError: "answered with status 500",
    });
    expect(abandoned).toMatchObject([
      { id: "dlv_1", status: "failed", attempts: 3, lastError: "answered with status 500" },
    ]);
  });

  test("events 29: the production loop calls the hook once, from the recorded transition", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    const sender = new FakeSender(world.time, () => "connect_refused");
    const abandoned: Delivery[] = [];
    world.start(sender, { failureHook: (delivery) => abandoned.push(delivery) });
    await world.later(300_000);
    expect(sender.sent.length).toBe(3);
    expect(abandoned).toMatchObject([
      { eventId: "evt_1", status: "failed", attempts: 3, lastError: "no answer: connect_refused" },
    ]);
    expect(await world.deliveries()).toMatchObject([
      { status: "failed", reason: "attempts_exhausted", errorCode: "connect_refused", attempts: 3 },
    ]);
  });

  test("events 29: a hook that throws, at once or later, is reported and stops nothing", async () => {
    await enqueue(world, "dlv_1", "dlv_2");
    const hooks = [
      () => {
        throw new Error("hook down");
      },
      async () => {
        throw new Error("hook down");
      },
    ];
    const sender = new FakeSender(world.time, () => 400);
    await worker({
      sender,
      policy: { maxAttempts: 1 },
      failureHook: () => hooks.pop()?.() as undefined,
    }).processOnce();
    await world.settle();
    expect(lines.all.filter((line) => line.includes("hook down")).length).toBe(2);
    expect((await get(world.store, "dlv_2")).status).toBe("failed");
  });

  test("events 30: with one attempt the first failure is final, and nothing is rescheduled", async () => {
    await enqueue(world, "dlv_1");
    const rescheduled: string[] = [];
    const store = failing(world.store, {
      reschedule: async (id) => {
        rescheduled.push(id);
      },
    });
    const sender = new FakeSender(world.time, () => "timeout");
    await worker({ sender, store, policy: { maxAttempts: 1 } }).processOnce();
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "failed", attempts: 1 });
    expect(rescheduled).toEqual([]);
  });

  test("events 31: a policy left empty, and batch and interval of 0 or less, are the defaults", async () => {
    const limits: number[] = [];
    const store = failing(world.store, {
      claimDue: (now, limit) => {
        limits.push(limit);
        return world.store.claimDue(now, limit);
      },
    });
    const sender = new FakeSender(world.time);
    const stop = new AbortController();
    const runs = [
      worker({ sender, store, batch: 0, interval: 0 }).run(stop.signal),
      worker({ sender, store, batch: -3, interval: -1 }).run(stop.signal),
      new Worker({ sender, store, now: world.time.clock, timers: world.time }).run(stop.signal),
    ];
    await world.settle();
    expect(limits).toEqual([50, 50, 50]);
    expect(world.time.asked).toEqual([1_000, 1_000, 1_000]);
    stop.abort();
    await Promise.all(runs);

    await enqueue(world, "dlv_1");
    const refusing = new FakeSender(world.time, () => 500);
    const bare = new Worker({ sender: refusing, store: world.store, now: world.time.clock, policy: {} });
    for (let second = 0; second < 70; second++) {
      await bare.processOnce();
      world.time.skip(1_000);
    }
    const start = refusing.sent[0]!.at.getTime();
    expect(refusing.sent.map(({ at }) => (at.getTime() - start) / 1_000)).toEqual([0, 2, 6, 14, 30, 62]);
  });

  test("events 32: one failing delivery in a batch does not stop the others", async () => {
    await enqueue(world, ...names(0, 9, "dlv_"));
    const sender = new FakeSender(world.time, async ({ id }) => {
      if (id === "dlv_0003") throw new TypeError("a sender with a fault of its own");
      return id === "dlv_0005" ? 422 : 200;
    });
    await worker({ sender }).processOnce();
    const states = await Promise.all(
      names(0, 9, "dlv_").map(async (id) => (await get(world.store, id)).status),
    );
    expect(states.filter((state) => state === "delivered").length).toBe(7);
    expect(await get(world.store, "dlv_0003")).toMatchObject({
      status: "pending",
      attempts: 1,
      lastError: "a sender with a fault of its own",
    });
  });

  test("events 32: a round rejects when the claim fails, and only then", async () => {
    await enqueue(world, "dlv_1");
    const down = async (): Promise<never> => {
      throw new Error("store down");
    };
    const sender = new FakeSender(world.time);
    const marks = { markDelivered: down, reschedule: down, markFailed: down };
    await expect(
      worker({ sender, store: failing(world.store, marks) }).processOnce(),
    ).resolves.toBeUndefined();
    await expect(
      worker({ sender, store: failing(world.store, { claimDue: down }) }).processOnce(),
    ).rejects.toThrow("store down");
  });

  test("events 33: a store that fails at markDelivered: logged, and sent again after the lease, same bytes", async () => {
    await enqueue(world, "dlv_1");
    let broken = true;
    const store = failing(world.store, {
      markDelivered: async (id, at, token) => {
        if (broken) throw new Error("disk full");
        return world.store.markDelivered(id, at, token);
      },
    });
    const sender = new FakeSender(world.time);
    const once = worker({ sender, store });
    await once.processOnce();
    expect(lines.all.join()).toMatch(/dlv_1.*disk full/);
    broken = false;
    world.time.skip(29_999);
    await once.processOnce();
    expect(sender.sent.length).toBe(1);
    world.time.skip(1);
    await once.processOnce();
    expect(sender.sent.length).toBe(2);
    expect(sender.sent[1]!.delivery.payload).toEqual(sender.sent[0]!.delivery.payload);
    expect((await get(world.store, "dlv_1")).status).toBe("delivered");
  });

  test("events 33: the production loop: outcomes wait for a store that is away, and are not sent twice", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" }, { id: "evt_2" });
    let broken = true;
    const store = failing(world.store, {
      record: async (outcomes, now) => {
        if (broken) throw new Error("connection refused");
        return world.store.record(outcomes, now);
      },
    });
    const sender = new FakeSender(world.time);
    world.start(sender, { store });
    await world.advance(10_000);
    expect((await world.deliveries()).map((delivery) => delivery.status)).toEqual(["pending", "pending"]);
    broken = false;
    await world.later(60_000);
    expect((await world.deliveries()).map((delivery) => delivery.status)).toEqual(["delivered", "delivered"]);
    expect(sender.sent.length).toBe(2);
    expect(world.observed.of("storeLost")).toEqual([{ loop: "record", error: "connection refused" }]);
    expect(world.observed.of("storeRegained")).toEqual([{ loop: "record" }]);
  });

  test("events 33: away for longer than the lease: sent again with the same bytes, then recorded once", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    let broken = true;
    const store = failing(world.store, {
      record: async (outcomes, now) => {
        if (broken) throw new Error("connection refused");
        return world.store.record(outcomes, now);
      },
    });
    const sender = new FakeSender(world.time);
    world.start(sender, { store });
    await world.advance(45_000);
    broken = false;
    await world.later(60_000);
    expect(sender.sent.length).toBeGreaterThan(1);
    expect(new Set(sender.sent.map(({ delivery }) => Buffer.from(delivery.payload).toString())).size).toBe(1);
    expect((await world.deliveries())[0]!.status).toBe("delivered");
    expect(world.observed.of("delivered").length).toBe(1);
  });
});
