import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Scope } from "../../store/contract.ts";
import { like, ok, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { day, minute, own, type StoreWorld, second } from "./store-world.ts";

const disable: LanePolicy = { disable: { failures: 4, overMs: 2 * day } };
const reporting: LanePolicy = {
  breaker: { failures: 2, probeMs: second, probeMaxMs: second },
  disable: { failures: 4, overMs: 2 * day },
  report: true,
};

/** Fails the one row that is due, again and again, some time apart. */
async function fail(t: StoreWorld, times: number, apartMs: number, policy = disable): Promise<string[]> {
  const changes: string[] = [];
  for (let n = 0; n < times; n++) {
    const { lanes } = await t.store.record([t.retry(await t.claimOne(), apartMs)], null, policy);
    changes.push(...lanes.map(({ change }) => change));
    t.step(apartMs);
  }
  return changes;
}

/** Operational events that were captured, oldest first. */
async function told(t: StoreWorld): Promise<[string, unknown][]> {
  const events = await t.store.takeNew(["*"], 100, null);
  return events
    .filter(({ type }) => type.startsWith("hookwell."))
    .map(({ type, data }) => [type, JSON.parse(data)]);
}

/** Subscriptions that only fail, and the operational events. */
export function failingRules(rule: Rule): void {
  rule(
    "field-faults H4: disabled as failing when both count and time are reached, not by one alone",
    async (t) => {
      await t.subscribe("sub_a");
      await t.publish("evt_1");
      // Many failures in a short time, as of a quiet endpoint that has one bad hour.
      same(await fail(t, 12, minute), []);
      await t.store.record([t.delivered(await t.claimOne())], null, disable);
      await t.publish("evt_2");
      same(await fail(t, 3, day), []);
      like(await t.store.getSubscription("sub_a", {}), { status: "active" });
      same(await fail(t, 1, day), ["disabled"]);
      like(await t.store.getSubscription("sub_a", {}), { status: "disabled", statusReason: "failing" });
      same(await t.claimIds(), []);
      const { items } = await t.store.listDeliveries({ status: "pending" }, { limit: 10 });
      same(items[0]!.hold, "disabled");
    },
  );

  rule("field-faults H4: a success begins the count anew; a 404 counts as much as a 500", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await fail(t, 3, day);
    const [other] = await t.publish("evt_2");
    const both = await t.claim();
    const success = both.find(({ id }) => id === other)!;
    const again = both.find(({ id }) => id !== other)!;
    await t.store.record([t.delivered(success), t.retry(again, day)], null, disable);
    t.step(day);
    same(await fail(t, 2, day), []);
    same(await fail(t, 1, day), ["disabled"]);
  });

  rule("field-faults H4: the time that it was paused does not count", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await fail(t, 3, minute);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    t.step(10 * day);
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await fail(t, 1, day), []);
    same(await fail(t, 1, day), []);
    same(await fail(t, 1, day), ["disabled"]);
  });

  rule("enabled again, what was pending goes on, and the count begins anew", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await fail(t, 4, day);
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await fail(t, 3, day), []);
    same(await fail(t, 1, day), ["disabled"]);
  });

  rule("a circuit that opens and closes, and a disabling, are told of in the same transaction", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    const broken = async (): Promise<void> => {
      await t.store.record([t.broken(await t.claimOne(), day)], null, reporting);
      t.step(day);
    };
    await broken();
    same(await told(t), []);
    await broken();
    same(await told(t), [["hookwell.subscription.failing", { subscription_id: "sub_a", failures: 2 }]]);
    await broken();
    await broken();
    same((await told(t)).at(-1), [
      "hookwell.subscription.disabled",
      { subscription_id: "sub_a", reason: "failing", failures: 4 },
    ]);
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    await broken();
    await broken();
    await t.store.record([t.delivered(await t.claimOne())], null, reporting);
    same(
      (await told(t)).slice(2).map(([type]) => type),
      ["hookwell.subscription.failing", "hookwell.subscription.recovered"],
    );
    const taken = await t.store.takeNew(["*"], 10, null);
    same(new Set(taken.map(({ route, projectId }) => `${route} ${projectId}`)), new Set(["* live"]));
  });

  rule("a subscription that somebody disables is told of with the change, and not without it", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b", { projectId: "other" });
    const disabled = (id: string): [string, unknown] => [
      "hookwell.subscription.disabled",
      { subscription_id: id, reason: "by_hand" },
    ];
    const disable = (id: string, scope: Scope = own): Promise<unknown> =>
      t.store.setSubscriptionStatus(scope, id, "disabled", undefined, {});
    const rolledBack = t.subject.transaction(async (scope) => {
      await disable("sub_a", scope);
      throw new Error("rolled back");
    });
    await rolledBack.catch(() => undefined);
    await t.store.setSubscriptionStatus(own, "sub_b", "paused", undefined, {});
    same(await told(t), []);
    await t.subject.transaction((scope) => disable("sub_a", scope));
    await disable("sub_a");
    same(await told(t), [disabled("sub_a")]);
    t.step(second);
    await disable("sub_b");
    same(await told(t), [disabled("sub_a"), disabled("sub_b")]);
    const taken = await t.store.takeNew(["*"], 10, null);
    same(
      taken.map(({ projectId }) => projectId),
      ["live", "other"],
    );
  });

  rule("a 410 is told of as a disabling", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.record([t.gone(await t.claimOne())], null, reporting);
    same(await told(t), [
      ["hookwell.subscription.disabled", { subscription_id: "sub_a", reason: "gone", failures: 0 }],
      [
        "hookwell.delivery.failed",
        {
          subscription_id: "sub_a",
          delivery_id: id,
          event_id: "evt_1",
          event_type: "user.created",
          error_code: "http_410",
          count: 1,
        },
      ],
    ]);
  });

  rule("failed deliveries are told of at most once a minute and lane, with their count", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    const policy: LanePolicy = { report: true };
    const counts = async (): Promise<unknown[]> =>
      (await told(t)).map(([, data]) => {
        const { subscription_id: lane, count } = data as Record<string, unknown>;
        return [lane, count];
      });
    for (let n = 1; n <= 6; n++) await t.publish(`evt_${n}`);
    const rows = await t.claim(8);
    await t.store.record(
      rows.map((row) => t.failed(row)),
      null,
      policy,
    );
    same(await counts(), [
      ["sub_a", 4],
      ["sub_b", 4],
    ]);
    const [next] = await t.claim(1);
    t.step(minute - 1);
    await t.store.record([t.failed((await t.store.get(next!.id))!)], null, policy);
    same((await counts()).length, 2);
    t.step(1);
    const [last] = await t.claim(1);
    await t.store.record([t.failed(last!)], null, policy);
    const all = await counts();
    same(all.length, 3);
    ok(
      last!.subscriptionId === next!.subscriptionId
        ? (all[2] as unknown[])[1] === 2
        : (all[2] as unknown[])[1] === 1,
    );
  });

  rule("nothing is told of deliveries of operational events, nor without `report`", async (t) => {
    await t.subscribe("sub_a", { eventTypes: ["hookwell.*"] });
    await t.publish("evt_1", { type: "hookwell.event.parked" });
    await t.store.record([t.failed(await t.claimOne())], null, { report: true });
    await t.subscribe("sub_b");
    await t.publish("evt_2");
    await t.store.record([t.failed(await t.claimOne())], null, {});
    same(await told(t), []);
  });

  rule("a parked event is told of, once; a parked operational one is not", async (t) => {
    await t.capture(t.event("evt_1"), t.event("evt_2", { type: "hookwell.delivery.failed" }));
    const error = 'no "template" \\ \u0001 \u2028';
    await t.store.failDispatch({ projectId: "live", id: "evt_1" }, error, 1_000, null);
    await t.store.failDispatch({ projectId: "live", id: "evt_1" }, error, null, null);
    await t.store.failDispatch({ projectId: "live", id: "evt_2" }, error, null, null);
    const parked = (await told(t)).filter(([type]) => type === "hookwell.event.parked");
    same(parked, [["hookwell.event.parked", { event_id: "evt_1", event_type: "user.created", error }]]);
  });
}
