import type { LanePolicy } from "../../model/lane-policy.ts";
import { like, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { minute, own, type StoreWorld, second } from "./store-world.ts";

const policy: LanePolicy = { breaker: { failures: 3, probeMs: 5 * second, probeMaxMs: 20 * second } };
const hour = 60 * minute;

/** A lane with six rows, of which three failed in a row: open, and three never tried. */
async function opened(t: StoreWorld): Promise<void> {
  await t.subscribe("sub_a");
  for (let n = 1; n <= 6; n++) {
    await t.publish(`evt_${n}`);
    t.step(1);
  }
  const claimed = await t.claim(3);
  const { lanes } = await t.store.record(
    claimed.map((row) => t.broken(row, hour)),
    null,
    policy,
  );
  same(lanes, [{ subscriptionId: "sub_a", change: "opened" }]);
}

async function failProbe(t: StoreWorld): Promise<void> {
  await t.store.record([t.broken(await t.claimOne(), hour)], null, policy);
}

/** The circuit breaker of a lane. */
export function circuitRules(rule: Rule): void {
  rule(
    "a circuit opens after so many breakable failures in a row, and shows on what is pending",
    async (t) => {
      await opened(t);
      same(await t.claimIds(), []);
      const { items } = await t.store.listDeliveries({}, { limit: 100 });
      same(new Set(items.map((item) => item.hold)), new Set(["circuit_open"]));
      same((await t.store.lag(null)).oldestDueAt, undefined);
      same((await t.store.countRemaining(100)).pending, 0);
    },
  );

  rule(
    "while it is open one row at a time is sent, the oldest due, after 5 s doubling to the limit",
    async (t) => {
      await opened(t);
      const first = await t.store.listDeliveries({ status: "pending" }, { limit: 100 });
      const untried = first.items.filter((item) => item.attempts === 0).reverse();
      for (const [index, wait] of [5, 10, 20].entries()) {
        t.step(wait * second - 1);
        same(await t.claimIds(), []);
        t.step(1);
        same((await t.claim()).length, 1);
        // While it is in flight no other is.
        same(await t.claimIds(), []);
        const { items } = await t.store.listDeliveries({ status: "pending" }, { limit: 100 });
        same(items.filter((item) => item.attempts > 0).length, 4 + index);
        like(await t.store.get(untried[index]!.id), { attempts: 1 });
        const probe = (await t.store.get(untried[index]!.id))!;
        await t.store.record([t.broken(probe, hour)], null, policy);
      }
      // Nothing else is due, and the wait does not grow beyond the limit.
      await t.publish("evt_7");
      t.step(20 * second - 1);
      same(await t.claimIds(), []);
      t.step(1);
      same((await t.claimIds()).length, 1);
    },
  );

  rule("a success closes the circuit, and the rows that waited have spent no attempt", async (t) => {
    await opened(t);
    t.step(5 * second);
    await failProbe(t);
    t.step(10 * second);
    const { lanes } = await t.store.record([t.delivered(await t.claimOne())], null, policy);
    same(lanes, [{ subscriptionId: "sub_a", change: "closed" }]);
    const rest = await t.claim();
    same(
      rest.map(({ attempts }) => attempts),
      [1],
    );
    const { items } = await t.store.listDeliveries({ status: "pending" }, { limit: 100 });
    same(new Set(items.map((item) => item.hold)), new Set([undefined]));
  });

  rule("the late success of a send begun before the circuit opened closes it too", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 1; n <= 5; n++) await t.publish(`evt_${n}`);
    const claimed = await t.claim(4);
    await t.store.record(
      claimed.slice(0, 3).map((row) => t.broken(row, hour)),
      null,
      policy,
    );
    same(await t.claimIds(), []);
    await t.store.record([t.delivered(claimed[3]!)], null, policy);
    same((await t.claimIds()).length, 1);
  });

  rule("the late failure of a send begun before does not put off the probe", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 1; n <= 5; n++) await t.publish(`evt_${n}`);
    const claimed = await t.claim(4);
    await t.store.record(
      claimed.slice(0, 3).map((row) => t.broken(row, hour)),
      null,
      policy,
    );
    t.step(5 * second - 1);
    await t.store.record([t.broken(claimed[3]!, hour)], null, policy);
    t.step(1);
    same((await t.claimIds()).length, 1);
  });

  rule(
    "a probe given back unsent is made again at once; one whose worker died, when its lease ends",
    async (t) => {
      await opened(t);
      t.step(5 * second);
      const probe = await t.claimOne();
      await t.store.record([t.released(probe)], null, policy);
      const again = await t.claimOne();
      same(again.id, probe.id);
      t.step(30 * second - 1);
      same(await t.claimIds(), []);
      t.step(1);
      same((await t.claimIds()).length, 1);
    },
  );

  rule("a success or an answer that is not breakable ends the row of failures", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 1; n <= 9; n++) await t.publish(`evt_${n}`);
    const rows = await t.claim(9);
    const refused = t.retry(rows[2]!, hour);
    const outcomes = [
      t.broken(rows[0]!, hour),
      t.broken(rows[1]!, hour),
      refused,
      t.broken(rows[3]!, hour),
      t.broken(rows[4]!, hour),
      t.delivered(rows[5]!),
      t.broken(rows[6]!, hour),
    ];
    same((await t.store.record(outcomes, null, policy)).lanes, []);
    same((await t.store.record([t.broken(rows[7]!, hour)], null, policy)).lanes, []);
    same((await t.store.record([t.broken(rows[8]!, hour)], null, policy)).lanes, [
      { subscriptionId: "sub_a", change: "opened" },
    ]);
  });

  rule("without a policy no failure opens a circuit", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 1; n <= 12; n++) await t.publish(`evt_${n}`);
    const rows = await t.claim(11);
    await t.store.record(
      rows.map((row) => t.broken(row, hour)),
      null,
    );
    same((await t.claimIds()).length, 1);
  });

  rule("an open circuit leaves the other lanes alone; a Retry-After holds its probe too", async (t) => {
    await opened(t);
    await t.subscribe("sub_b");
    const [, b] = await t.publish("evt_b");
    const other = await t.claimOne();
    same(other.id, b);
    await t.store.record([t.delivered(other)], null, policy);
    t.step(5 * second);
    const probe = await t.claimOne();
    await t.store.record([t.broken(probe, hour, minute)], null, policy);
    t.step(10 * second);
    same(await t.claimIds(), []);
    t.step(50 * second);
    same((await t.claimIds()).length, 1);
  });

  rule("another url, and being enabled again, close the circuit", async (t) => {
    await opened(t);
    await t.store.updateSubscription(own, "sub_a", { description: "no change of the url" }, {});
    same(await t.claimIds(), []);
    await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
    const claimed = await t.claim();
    same(claimed.length, 3);
    await t.store.record(
      claimed.map((row) => t.broken(row, 0)),
      null,
      policy,
    );
    same(await t.claimIds(), []);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), []);
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same((await t.claimIds()).length, 3);
  });

  rule("new work, a retry by hand and a second store object do not pass an open circuit", async (t) => {
    await opened(t);
    const { items } = await t.store.listDeliveries({}, { limit: 1 });
    await t.store.retryDelivery(own, items[0]!.id, {}, null);
    await t.publish("evt_new");
    same(await t.claimIds(), []);
    const other = (await t.subject.reopen?.()) ?? t.store;
    same((await other.claim({ now: null, limit: 10, leaseMs: minute })).deliveries, []);
    t.step(5 * second);
    same((await other.claim({ now: null, limit: 10, leaseMs: minute })).deliveries.length, 1);
    same(await t.claimIds(), []);
  });
}
