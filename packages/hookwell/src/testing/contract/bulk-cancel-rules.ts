import type { DeliverySelection } from "../../model/replay.ts";
import type { TimeRange } from "../../store/contract.ts";
import type { CancelPosition } from "../../store/replay-contract.ts";
import { equal, like, same } from "./checks.ts";
import { advanceAll, ended, makeReplay, replayNow } from "./replays.ts";
import type { Rule } from "./rule.ts";
import { minute, own, type StoreWorld, second } from "./store-world.ts";

/** Many pending deliveries are cancelled, a window at a time. */
export function bulkCancelRules(rule: Rule): void {
  const cancel = async (
    t: StoreWorld,
    selection: DeliverySelection,
    { dryRun = false, period = {} as TimeRange } = {},
  ): Promise<number> => {
    let count = 0;
    for (let after: CancelPosition | undefined; ; ) {
      const window = await t.store.replays.cancelWindow(selection, period, after, { look: 2, dryRun }, null);
      count += window.count;
      after = window.next;
      if (!after) return count;
    }
  };

  rule("what the selection names is cancelled, in windows, and nothing else", async (t) => {
    await t.subscribe("sub_a", { tenantId: "acme" });
    await t.subscribe("sub_b", { url: "https://other.example/in" });
    await ended(t, "evt_0", "delivered");
    for (let n = 1; n < 4; n++) await t.publish(`evt_${n}`, { subject: `user:${n}` });
    t.step(minute);
    await t.publish("evt_4", { type: "booking.made", route: "booking.made" });
    const dryRun = true;
    equal(await cancel(t, {}, { dryRun }), 8);
    equal(await cancel(t, { subscriptionId: "sub_b" }, { dryRun }), 4);
    equal(await cancel(t, { tenantId: "acme" }, { dryRun }), 4);
    equal(await cancel(t, { projectId: "test" }, { dryRun }), 0);
    equal(await cancel(t, { subject: "user:2" }, { dryRun }), 2);
    equal(await cancel(t, { urlHost: "other.example", type: "user.created" }, { dryRun }), 3);
    equal(await cancel(t, { eventId: "evt_4" }, { dryRun }), 2);
    equal(await cancel(t, {}, { dryRun, period: { since: t.now() } }), 2);
    equal(await cancel(t, {}, { dryRun, period: { until: t.now() } }), 6);
    equal((await t.store.listDeliveries({ status: "pending" }, { limit: 100 })).items.length, 8);
    equal(await cancel(t, { subscriptionId: "sub_b", type: "user.created" }), 3);
    equal(await cancel(t, { subscriptionId: "sub_b", type: "user.created" }), 0);
    const { items } = await t.store.listDeliveries({ status: "cancelled" }, { limit: 100 });
    same(
      items.map(({ subscriptionId, reason, updatedAt }) => [subscriptionId, reason, updatedAt]),
      Array(3).fill(["sub_b", "by_hand", t.now()]),
    );
    same((await t.claim()).map(({ subscriptionId }) => subscriptionId).sort(), [
      "sub_a",
      "sub_a",
      "sub_a",
      "sub_a",
      "sub_b",
    ]);
  });

  rule("one that is being sent is cancelled too, and its outcome is stale", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    const claimed = await t.claimOne();
    equal(await cancel(t, { subscriptionId: "sub_a" }), 1);
    same((await t.store.record([t.delivered(claimed)], null)).stale, [claimed.id]);
    like(await t.store.getDelivery(claimed.id, {}), { status: "cancelled", reason: "by_hand" });
  });

  rule("what a replay queued can be cancelled by its id, and the replay counts it", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 3; n++) await ended(t, `evt_${n}`, "failed");
    t.step(second);
    await makeReplay(t);
    await advanceAll(t);
    await t.publish("evt_live");
    equal(await cancel(t, { replayId: "rpl_1" }), 3);
    like(await replayNow(t), { queued: 3, cancelled: 3 });
    same(
      (await t.claim()).map(({ eventId }) => eventId),
      ["evt_live"],
    );
  });

  rule("the next of an ordered subject is let go when those before it are cancelled", async (t) => {
    await t.subscribe("sub_a", { ordering: "subject" });
    for (let revision = 1; revision <= 3; revision++)
      await t.publish(`evt_${revision}`, { subject: "user:1", revision });
    t.step(second);
    equal(await cancel(t, { eventId: "evt_1" }), 1);
    equal((await t.claimOne()).eventId, "evt_2");
    equal(await cancel(t, { subscriptionId: "sub_a" }), 2);
    same(await t.claimIds(), []);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
  });
}
