import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpSender } from "../../src/send/http-sender.ts";
import { type Answer, answers, startReceiver } from "../../src/testing/receiver.ts";
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
