import { ok, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, second } from "./store-world.ts";

/** `max_in_flight` and `rate_limit` of a subscription. */
export function limitRules(rule: Rule): void {
  rule(
    "max_in_flight: no more are in flight, whoever claims; an outcome frees a place at once",
    async (t) => {
      await t.subscribe("sub_a", { maxInFlight: 2 });
      await t.subscribe("sub_b");
      for (let n = 1; n <= 4; n++) await t.publish(`evt_${n}`);
      const of = (lane: string, rows: readonly { subscriptionId: string }[]): number =>
        rows.filter(({ subscriptionId }) => subscriptionId === lane).length;
      const first = await t.claim();
      same([of("sub_a", first), of("sub_b", first)], [2, 4]);
      const other = (await t.subject.reopen?.()) ?? t.store;
      same((await other.claim({ now: null, limit: 10, leaseMs })).deliveries, []);
      const mine = first.filter(({ subscriptionId }) => subscriptionId === "sub_a");
      await t.store.record([t.delivered(mine[0]!)], null);
      const next = await t.claim();
      same(next.length, 1);
      await t.store.record([t.retry(mine[1]!, minute), t.released(next[0]!)], null);
      same((await t.claim()).length, 2);
    },
  );

  rule("max_in_flight: what a dead worker held is free when its lease ends", async (t) => {
    await t.subscribe("sub_a", { maxInFlight: 1 });
    await t.publish("evt_1");
    await t.publish("evt_2");
    await t.claimOne();
    t.step(leaseMs - 1);
    same(await t.claimIds(), []);
    t.step(1);
    await t.claimOne();
    same(await t.claimIds(), []);
  });

  rule("max_in_flight: the reference marks free a place", async (t) => {
    await t.subscribe("sub_a", { maxInFlight: 1 });
    for (let n = 1; n <= 4; n++) await t.publish(`evt_${n}`);
    const one = await t.claimOne();
    await t.store.markDelivered(one.id, t.now(), one.leaseToken);
    const two = await t.claimOne();
    await t.store.markFailed(two.id, 1, "no", two.leaseToken);
    const three = await t.claimOne();
    await t.store.reschedule(three.id, 1, "no", t.in(minute), three.leaseToken);
    await t.claimOne();
  });

  rule("max_in_flight: changed and removed, it holds from the next claim on", async (t) => {
    await t.subscribe("sub_a", { maxInFlight: 1 });
    for (let n = 1; n <= 5; n++) await t.publish(`evt_${n}`);
    await t.claimOne();
    await t.store.updateSubscription(own, "sub_a", { maxInFlight: 3 }, {});
    same((await t.claim()).length, 2);
    await t.store.updateSubscription(own, "sub_a", { maxInFlight: null }, {});
    same((await t.claim()).length, 2);
  });

  rule(
    "rate_limit: at most so many begin in any period, across store objects, and they do flow",
    async (t) => {
      await t.subscribe("sub_a", { rateLimit: { limit: 5, perSeconds: 10 } });
      for (let n = 1; n <= 30; n++) await t.publish(`evt_${n}`);
      const other = (await t.subject.reopen?.()) ?? t.store;
      const begun: number[] = [];
      for (let n = 0; n < 120; n++) {
        const store = n % 2 ? other : t.store;
        const { deliveries } = await store.claim({ now: null, limit: 10, leaseMs });
        for (const row of deliveries) {
          begun.push(t.now().getTime());
          await store.record([t.delivered(row)], null);
        }
        t.step(250);
      }
      for (const at of begun)
        ok(begun.filter((other_) => other_ >= at && other_ < at + 10 * second).length <= 5);
      same(begun.length, 15);
    },
  );

  rule(
    "rate_limit: a high rate may send a few together, and not more than the rate in any second",
    async (t) => {
      await t.subscribe("sub_a", { rateLimit: { limit: 100, perSeconds: 1 } });
      for (let n = 1; n <= 40; n++) await t.publish(`evt_${n}`);
      const first = await t.claim();
      same(first.length, 5);
      t.step(11);
      same((await t.claim()).length, 1);
    },
  );

  rule("rate_limit: what waits for it says so; the claim says when to come again", async (t) => {
    await t.subscribe("sub_a", { rateLimit: { limit: 1, perSeconds: 60 } });
    await t.publish("evt_1");
    await t.publish("evt_2");
    const { deliveries, againInMs } = await t.store.claim({ now: null, limit: 10, leaseMs });
    same(deliveries.length, 1);
    same(againInMs, minute);
    const { items } = await t.store.listDeliveries({}, { limit: 10 });
    same(items.filter(({ hold }) => hold === "rate_limited").length, 1);
    same((await t.store.lag(null)).oldestDueAt, undefined);
    t.step(minute - 1);
    same(await t.claimIds(), []);
    t.step(1);
    same((await t.claimIds()).length, 1);
  });

  rule("rate_limit: removed, nothing waits for it any more", async (t) => {
    await t.subscribe("sub_a", { rateLimit: { limit: 1, perSeconds: 60 } });
    for (let n = 1; n <= 3; n++) await t.publish(`evt_${n}`);
    await t.claimOne();
    await t.store.updateSubscription(own, "sub_a", { rateLimit: null }, {});
    same((await t.claim()).length, 2);
  });
}
