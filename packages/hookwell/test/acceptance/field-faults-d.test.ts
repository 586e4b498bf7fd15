import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { dayLongRetryPolicy } from "../../src/deliver/retry-policy.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import { BlockedAddressError } from "../../src/model/errors.ts";
import { HttpSender } from "../../src/send/http-sender.ts";
import { answers, startReceiver } from "../../src/testing/receiver.ts";
import { failing } from "../deliver/rows.ts";
import { kinds } from "../deliver/stores.ts";
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
    expect(await world.store.lag(world.time.clock())).toEqual({ at: world.time.clock() });
    await world.subscribe("sub_dead");
    await world.capture({ id: "evt_1" });
    await world.later(400_000);
    expect(await world.store.lag(world.time.clock())).toEqual({ at: world.time.clock() });
    // A worker that stopped does show: nobody takes the row that is due.
    world.time.skip(600_000);
    const { oldestDueAt } = await world.store.lag(world.time.clock());
    expect(oldestDueAt).toBeDefined();
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
});
