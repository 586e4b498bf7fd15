import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { dayLongRetryPolicy } from "../../src/deliver/retry-policy.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import { BlockedAddressError } from "../../src/model/errors.ts";
import { HttpSender } from "../../src/send/http-sender.ts";
import { type Answer, answers, startReceiver } from "../../src/testing/receiver.ts";
import { failing } from "../deliver/rows.ts";
import { kinds, tables } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

const network = { allow: ["127.0.0.0/8"], http: true };

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  const statuses = async (): Promise<string[]> => (await world.deliveries()).map(({ status }) => status);

  test("field-faults D1: rows of a worker that died are late, which shows, and are sent when the lease ends", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 5).map((id) => ({ id })));
    await world.dispatcher().dispatchOnce();
    // The dead worker: it claimed, and was never heard of again.
    const dead = await world.store.claim({ now: world.time.clock(), limit: 3, leaseMs: 30_000 });
    expect(dead.deliveries.length).toBe(3);
    const leaseEnd = world.time.clock().getTime() + 30_000;
    const sender = new FakeSender(world.time);
    world.start(sender);
    await world.advance(29_999);
    expect(sender.sent.length).toBe(2);
    expect((await world.store.lag(new Date(leaseEnd + 5_000))).oldestDueAt).toEqual(new Date(leaseEnd));
    await world.advance(1_201);
    expect(await statuses()).toEqual(Array(5).fill("delivered"));
    expect(new Set([...sender.counts().values()])).toEqual(new Set([1]));
    const attempts = (await world.deliveries()).map((delivery) => delivery.attempts).sort();
    expect(attempts).toEqual([1, 1, 2, 2, 2]);
  });

  test("field-faults D2: a database that goes away: said once a loop, and work resumes alone when it is back", async () => {
    await world.subscribe("sub_a");
    let away = false;
    const guard = async (): Promise<void> => {
      if (away) throw new Error("terminating connection due to administrator command");
    };
    const store = failing(world.store, {
      takeNew: async (...given) => guard().then(() => world.store.takeNew(...given)),
      claim: async (...given) => guard().then(() => world.store.claim(...given)),
      record: async (...given) => guard().then(() => world.store.record(...given)),
      maintain: async (...given) => guard().then(() => world.store.maintain(...given)),
    });
    const sender = new FakeSender(world.time, async () => {
      await world.time.sleep(500);
      return 200;
    });
    world.start(sender, { store, dispatcher: world.dispatcher({ store }) });
    for (let outage = 1; outage <= 2; outage++) {
      away = false;
      await world.advance(10_000);
      await world.capture({ id: `evt_before_${outage}` });
      await world.advance(1_300);
      // Lost in the middle of a send, too.
      away = true;
      await world.capture({ id: `evt_during_${outage}` });
      await world.advance(20_000);
      const lost = world.observed.of("storeLost").map(({ loop }) => loop);
      expect(lost.filter((loop) => loop === "deliver").length).toBe(outage);
      expect(lost.filter((loop) => loop === "dispatch").length).toBe(outage);
      away = false;
      await world.advance(10_000);
      expect(await statuses()).toEqual(Array(outage * 2).fill("delivered"));
    }
    const [lost, regained] = (["storeLost", "storeRegained"] as const).map((name) =>
      world.observed
        .of(name)
        .map(({ loop }) => loop)
        .sort(),
    );
    expect(regained).toEqual(lost);
    expect(new Set([...sender.counts().values()])).toEqual(new Set([1]));
  });

  test("field-faults D2: an event without subscribers, and a dead subscriber in backoff, are no lag", async () => {
    await world.capture({ id: "evt_nobody" });
    const sender = new FakeSender(world.time, () => "connect_refused");
    world.start(sender, { policy: [600_000, 600_000] });
    await world.advance(2_000);
    expect(await world.store.lag(world.time.clock())).toEqual({});
    await world.subscribe("sub_dead");
    await world.capture({ id: "evt_1" });
    await world.later(400_000);
    expect(await world.store.lag(world.time.clock())).toEqual({});
    // A worker that stopped does show: nobody takes the row that is due.
    world.time.skip(600_000);
    const { oldestDueAt } = await world.store.lag(world.time.clock());
    expect(oldestDueAt).toBeDefined();
  });

  test("field-faults D4: an event that nobody can dispatch is parked with its reason; the next 150 arrive", async () => {
    await world.subscribe("sub_a");
    // No publisher writes this: it stands for a row that was damaged.
    await world.capture({ id: "evt_bad", data: '{"cut off' });
    await world.capture(...names(0, 150).map((id) => ({ id })));
    const sender = new FakeSender(world.time);
    world.start(sender);
    await world.advance(3_000);
    expect(sender.sent.length).toBe(150);
    await world.later(120_000);
    const bad = await world.store.getEvent("evt_bad", {});
    expect(bad).toMatchObject({
      state: "parked",
      outcome: "parked",
      error: expect.stringMatching(/JSON|string/),
    });
    expect(await world.store.listEvents({ outcome: "parked" }, { limit: 10 })).toMatchObject({
      items: [{ id: "evt_bad" }],
    });
    expect(sender.sent.length).toBe(150);
  });

  // Only what is a table can be damaged by SQL.
  const sqlTest = kind.name in tables ? test : () => {};
  sqlTest(
    "field-faults D4: rows damaged by SQL, each in another column: they alone fail, with a reason; the rest arrives",
    async () => {
      const table = tables[kind.name]!;
      await world.subscribe("sub_a");
      await world.subscribe("sub_broken");
      await world.subscribe("sub_b", { ownerId: "own_1" });
      const columns = ["data", "actor", "audience"];
      await world.capture(
        ...columns.map((id) => ({ id, actor: { type: "user", id: "u" }, audience: ["own_1"] })),
      );
      await world.capture({ id: "audience-number", audience: ["own_1"] });
      for (const column of columns)
        await world.sql(`UPDATE ${table("event")} SET ${column} = '{"cut' WHERE id = '${column}'`);
      await world.sql(`UPDATE ${table("event")} SET audience = '7' WHERE id = 'audience-number'`);
      await world.capture(...names(0, 60).map((id) => ({ id })));
      await world.dispatcher().dispatchOnce();
      // Two deliveries lost what they would send, and one endpoint what it is sent with.
      await world.sql(`DELETE FROM ${table("body")} WHERE event_id IN ('evt_0003', 'evt_0004')`);
      await world.sql(
        `UPDATE ${table("endpoint")} SET sealed = 'v1.k1.nonsense' WHERE subscription_id = 'sub_broken'`,
      );
      const sender = new FakeSender(world.time);
      const abandoned: Delivery[] = [];
      world.start(sender, {
        store: await world.again(),
        failureHook: (delivery) => abandoned.push(delivery),
      });
      await world.advance(3_000);
      expect(sender.to("sub_a").length).toBe(58);
      await world.later(200_000);
      for (const id of [...columns, "audience-number"]) {
        const event = await world.store.getEvent(id, {});
        expect(event).toMatchObject({
          state: "parked",
          outcome: "parked",
          error: expect.stringMatching(/./),
        });
      }
      const failed = await world.store.listDeliveries({ status: "failed" }, { limit: 100 });
      expect(failed.items.map(({ errorCode }) => errorCode)).toEqual(Array(62).fill("unreadable"));
      // Each is reported once, with what could be read of it.
      expect(new Set(abandoned.map(({ id }) => id))).toEqual(new Set(failed.items.map(({ id }) => id)));
      expect(abandoned.length).toBe(62);
      for (const delivery of abandoned)
        expect(delivery).toMatchObject({
          status: "failed",
          attempts: 0,
          url: "",
          lastError: expect.stringContaining("damaged"),
        });
      expect(world.observed.of("failed").map(({ errorCode }) => errorCode)).toEqual(
        Array(62).fill("unreadable"),
      );
      expect(sender.sent.length).toBe(58);
    },
  );

  sqlTest("field-faults D4: a damaged row that was held too long is reported as well", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    await world.store.setSubscriptionStatus({ kind: "own" }, "sub_a", "disabled", "by_hand", {});
    await world.sql(`DELETE FROM ${tables[kind.name]!("body")}`);
    const kept = { deliveredMs: 1e9, failedMs: 1e9, eventsMs: 1e9, heldMs: 60_000 };
    const abandoned: string[] = [];
    world.start(new FakeSender(world.time), {
      retention: kept,
      failureHook: ({ eventId, status }) => abandoned.push(`${eventId} ${status}`),
    });
    await world.later(200_000);
    expect(abandoned).toEqual(["evt_1 failed"]);
  });

  sqlTest(
    "field-faults D4: a process that lacks a newer key says so, and spends no attempt that another one could use",
    async () => {
      await world.subscribe("sub_a");
      await world.capture({ id: "evt_1" }, { id: "evt_2" });
      await world.dispatcher().dispatchOnce();
      const endpoint = tables[kind.name]!("endpoint");
      await world.sql(`UPDATE ${endpoint} SET sealed = 'k9' || substr(sealed, 3)`);
      const sender = new FakeSender(world.time);
      world.start(sender, { store: await world.again() });
      await world.later(200_000);
      expect(world.observed.of("storeLost")).toEqual([
        { loop: "deliver", error: expect.stringContaining('"k9"') },
      ]);
      expect((await world.deliveries()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual([
        "pending 0",
        "pending 0",
      ]);
      await world.sql(`UPDATE ${endpoint} SET sealed = 'k1' || substr(sealed, 3)`);
      await world.advance(10_000);
      expect(sender.sent.length).toBe(2);
    },
  );

  test("field-faults D4: an outcome that the store cannot take is left to its lease; the others are recorded", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 4).map((id) => ({ id })));
    // A sender with a fault of its own: a status that is no number.
    const sender = new FakeSender(world.time);
    const odd = {
      deliver: async (delivery: Delivery) => {
        const receipt = await sender.deliver(delivery);
        if (delivery.eventId !== "evt_0002" || delivery.attempts > 1) return receipt;
        return { startedAt: world.time.clock(), durationMs: 1, statusCode: Number.NaN };
      },
    };
    world.start(odd);
    await world.advance(1_000);
    expect((await statuses()).sort()).toEqual(["delivered", "delivered", "delivered", "pending"]);
    await world.later(31_000);
    expect(await statuses()).toEqual(Array(4).fill("delivered"));
  });

  test("field-faults D5: on the day-long schedule, every attempt comes when it should", async () => {
    await using receiver = await startReceiver({
      respond: answers(500, 404, 504, 302, 500, 429, 500, 200),
    });
    await world.subscribe("sub_a", { url: receiver.url });
    await world.capture({ id: "evt_1" });
    const http = world.track(new HttpSender({ network, clock: world.time.clock }));
    const attempted: number[] = [];
    world.start(http, {
      policy: dayLongRetryPolicy(),
      observe: (name) => {
        if (name === "attempted") attempted.push(world.time.clock().getTime());
      },
    });
    // In steps, each ending just before and just after what the schedule says (random is in the middle: no jitter).
    let seen = 1;
    await world.advance(1_000);
    for (const delay of [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]) {
      expect(receiver.requests.length).toBe(seen);
      const due = attempted.at(-1)! + delay * 1_000;
      // Skipped, not waited for: the polls of a day have nothing to show.
      world.time.skip(due - 2_000 - world.time.clock().getTime());
      await world.advance(1_999);
      expect(receiver.requests.length).toBe(seen);
      await world.advance(1_300);
      expect(receiver.requests.length).toBe(++seen);
    }
    await http.close();
    expect(await world.deliveries()).toMatchObject([{ status: "delivered", attempts: 8 }]);
    expect(
      (await world.store.listAttempts((await world.deliveries())[0]!.id)).map(({ errorCode }) => errorCode),
    ).toEqual(expect.arrayContaining(["http_500", "http_404", "http_504", "http_302", "http_429"]));
  });

  test("field-faults D6: requests that fail before they begin are recorded, and the limit holds", async () => {
    await world.subscribe("sub_refused");
    await world.subscribe("sub_throws");
    await world.capture({ id: "evt_1" });
    let sends = 0;
    world.start(
      {
        deliver: ({ subscriptionId }) => {
          sends++;
          // One throws before it makes a promise, one refuses the address.
          if (subscriptionId === "sub_throws") throw new RangeError("no such thing");
          return Promise.reject(new BlockedAddressError("10.0.0.1 is not public"));
        },
      },
      { policy: { maxAttempts: 4, baseDelay: 1_000 } },
    );
    await world.later(600_000);
    expect(sends).toBe(8);
    for (const delivery of await world.deliveries()) {
      expect(delivery).toMatchObject({ status: "failed", attempts: 4, reason: "attempts_exhausted" });
      const log = await world.store.listAttempts(delivery.id);
      expect(log.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    }
  });

  test("field-faults D6: a row whose every worker dies is not sent for ever: worker lost during attempt n", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    for (let death = 0; death < 3; death++) {
      const { deliveries } = await world.store.claim({ now: world.time.clock(), limit: 1, leaseMs: 30_000 });
      expect(deliveries[0]!.attempts).toBe(death + 1);
      world.time.skip(30_000);
    }
    const sender = new FakeSender(world.time);
    const abandoned: Delivery[] = [];
    world.start(sender, { failureHook: (delivery) => abandoned.push(delivery) });
    await world.later(60_000);
    expect(sender.sent).toEqual([]);
    expect(await world.deliveries()).toMatchObject([
      {
        status: "failed",
        attempts: 3,
        reason: "worker_lost",
        errorCode: "worker_lost",
        lastError: "worker lost during attempt 3",
      },
    ]);
    expect(abandoned).toMatchObject([{ attempts: 3, lastError: "worker lost during attempt 3" }]);
  });

  test("field-faults D7: a name whose server fails, and one that only later exists, are retried and arrive", async () => {
    await using receiver = await startReceiver();
    await world.subscribe("sub_servfail", { url: `http://servfail.test:${receiver.port}/a` });
    await world.subscribe("sub_later", { url: `http://later.test:${receiver.port}/b` });
    let asked = 0;
    const http = new HttpSender({
      network,
      clock: world.time.clock,
      resolver: async (hostname) => {
        if (asked++ < 4)
          throw Object.assign(new Error(`queryA ${hostname}`), {
            code: hostname === "later.test" ? "ENOTFOUND" : "ESERVFAIL",
          });
        return [{ address: "127.0.0.1", family: 4 }];
      },
    });
    await world.capture({ id: "evt_1" });
    world.start(world.track(http), { policy: { maxAttempts: 5, baseDelay: 1_000 } });
    await world.advance(500);
    expect((await world.deliveries()).map(({ status, errorCode }) => `${status} ${errorCode}`)).toEqual([
      "pending dns_failed",
      "pending dns_failed",
    ]);
    await world.advance(20_000);
    await http.close();
    expect((await world.deliveries()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual([
      "delivered 3",
      "delivered 3",
    ]);
  });

  describe("field-faults D9: Retry-After", () => {
    // The policy waits 10 s at first and 60 s at most.
    const date = (ms: number): string => new Date(Date.parse("2026-03-01T09:00:00Z") + ms).toUTCString();
    test.each<[string, Answer, number]>([
      ["seconds", { status: 429, headers: { "retry-after": "45" } }, 45_000],
      ["an HTTP date", { status: 503, headers: { "retry-after": date(37_000) } }, 37_000],
      ["less than the policy", { status: 503, headers: { "retry-after": "3" } }, 10_000],
      ["more than the policy ever waits", { status: 429, headers: { "retry-after": "90000" } }, 60_000],
      ["an absurd number", { status: 429, headers: { "retry-after": "1000000000000" } }, 60_000],
      ["a date in the past", { status: 429, headers: { "retry-after": date(-50_000) } }, 10_000],
      ["a negative number", { status: 429, headers: { "retry-after": "-45" } }, 10_000],
      ["a fraction", { status: 429, headers: { "retry-after": "45.5" } }, 10_000],
      ["a word", { status: 503, headers: { "retry-after": "tomorrow" } }, 10_000],
      ["a status that it does not belong to", { status: 500, headers: { "retry-after": "45" } }, 10_000],
    ])("field-faults D9: %s", async (_name, answer, gap) => {
      await using receiver = await startReceiver({ respond: answers(answer, 200) });
      await world.subscribe("sub_a", { url: receiver.url });
      await world.capture({ id: "evt_1" });
      const http = new HttpSender({ network, clock: world.time.clock });
      world.start(world.track(http));
      await world.settle();
      await world.advance(0);
      expect(receiver.requests.length).toBe(1);
      const first = world.time.clock().getTime();
      // Most of the wait is skipped: its polls have nothing to show.
      world.time.skip(gap - 1_500);
      await world.advance(1_499);
      expect(receiver.requests.length).toBe(1);
      await world.advance(1_201);
      expect(receiver.requests.length).toBe(2);
      expect(world.time.clock().getTime() - first).toBeGreaterThanOrEqual(gap);
      await http.close();
    });

    test("field-faults D9: the whole lane waits, and no other lane does", async () => {
      await world.subscribe("sub_busy");
      await world.subscribe("sub_free");
      let busy = true;
      const sender = new FakeSender(world.time, ({ subscriptionId }) =>
        subscriptionId === "sub_busy" && busy ? { status: 503, retryAfterMs: 40_000 } : 200,
      );
      world.start(sender);
      await world.capture({ id: "evt_1" });
      await world.advance(1_000);
      busy = false;
      await world.capture(...names(2, 8).map((id) => ({ id })));
      await world.advance(38_000);
      expect(sender.to("sub_busy").length).toBe(1);
      expect(sender.to("sub_free").length).toBe(7);
      await world.advance(3_000);
      expect(sender.to("sub_busy").length).toBe(8);
    });

    test("field-faults D9: the lane waits as well when it was the answer to a last attempt", async () => {
      await world.subscribe("sub_busy");
      const sender = new FakeSender(world.time, ({ eventId }) =>
        eventId === "evt_1" ? { status: 429, retryAfterMs: 25_000 } : 200,
      );
      world.start(sender, { policy: { maxAttempts: 1, maxDelay: 20_000 } });
      await world.capture({ id: "evt_1" });
      await world.advance(1_000);
      expect(await statuses()).toEqual(["failed"]);
      await world.capture({ id: "evt_2" });
      // The longest delay of the policy bounds it.
      await world.advance(18_900);
      expect(sender.sent.length).toBe(1);
      await world.advance(2_400);
      expect(sender.sent.length).toBe(2);
    });
  });

  describe("field-faults D12: shutdown", () => {
    test("field-faults D12: what is under way ends within the grace period, what waits stays pending, all arrive", async () => {
      for (const id of names(0, 10, "sub_")) await world.subscribe(id);
      // Once all have answered, two endpoints never do, the others after a second.
      const sender = new FakeSender(world.time, async ({ subscriptionId, eventId }) => {
        if (eventId === "evt_warm") return 200;
        if (subscriptionId <= "sub_0001") return "hang";
        await world.time.sleep(1_000);
        return 200;
      });
      const first = world.start(sender);
      await world.capture({ id: "evt_warm" });
      await world.advance(1_500);
      expect(sender.sent.splice(0).length).toBe(10);
      await world.capture(...names(0, 30).map((id) => ({ id })));
      first.wake();
      await world.advance(500);
      expect(sender.inFlight).toBe(40);
      const stopped = first.stop({ graceMs: 2_000 });
      await world.advance(1_500);
      expect(sender.inFlight).toBe(8);
      await world.advance(500);
      await stopped;
      expect(sender.inFlight).toBe(0);
      expect(world.time.sleeping).toBe(0);
      expect(sender.sent.length).toBe(40);
      expect((await world.deliveries({ status: "delivered" })).length).toBe(10 + 32);
      // The eight were given back: nothing is leased, no attempt is spent.
      const all = await world.store.claim({ now: world.time.clock(), limit: 1_000, leaseMs: 1 });
      expect(all.deliveries.length).toBe(300 - 32);
      expect(all.deliveries.every(({ attempts }) => attempts === 1)).toBe(true);
      world.time.skip(1);

      const healthy = new FakeSender(world.time);
      world.start(healthy, { store: await world.again() });
      await world.advance(5_000);
      expect(healthy.sent.length).toBe(300 - 32);
      expect(await world.store.countRemaining(1)).toEqual({ pending: 0, newEvents: 0 });
    });

    test("field-faults D12: rows of a claim that comes back during the stop are given back unsent", async () => {
      await world.subscribe("sub_a");
      await world.capture({ id: "evt_1" });
      await world.dispatcher().dispatchOnce();
      let answer = (): void => {};
      const store = failing(world.store, {
        claim: async (request) => {
          const claimed = await world.store.claim(request);
          await new Promise<void>((resolve) => {
            answer = resolve;
          });
          return claimed;
        },
      });
      const sender = new FakeSender(world.time);
      const loops = world.start(sender, { store });
      await world.settle();
      const stopped = loops.stop();
      answer();
      await stopped;
      expect(sender.sent).toEqual([]);
      expect(await world.deliveries()).toMatchObject([{ status: "pending", attempts: 0 }]);
    });

    test("field-faults D12: a stop ends although the database is away and a sender is deaf", async () => {
      await world.subscribe("sub_a");
      await world.subscribe("sub_deaf");
      await world.capture({ id: "evt_1" });
      const store = failing(world.store, {
        record: async () => {
          throw new Error("no route to host");
        },
      });
      const sender = new FakeSender(world.time, ({ subscriptionId }) =>
        subscriptionId === "sub_deaf" ? new Promise<never>(() => {}) : 200,
      );
      const loops = world.start(sender, { store });
      await world.advance(500);
      let ended = false;
      const stopped = loops.stop({ graceMs: 2_000 }).then(() => {
        ended = true;
      });
      await world.advance(2_000);
      expect(ended).toBe(false);
      await world.advance(2_000);
      await stopped;
      expect(world.time.sleeping).toBe(0);
      // Nothing is lost: both are due again when their leases end.
      world.time.skip(30_000);
      const again = await world.store.claim({ now: world.time.clock(), limit: 10, leaseMs: 1 });
      expect(again.deliveries.length).toBe(2);
    });
  });
});
