import { equal, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, type StoreWorld, second } from "./store-world.ts";

/** Lanes that wait, and everything that wakes one: no wake-up may be lost. */
export function laneRules(rule: Rule): void {
  /** A lane that a claim has just found without anything due. */
  async function asleep(t: StoreWorld): Promise<void> {
    await t.subscribe("sub_a");
    same(await t.claimIds(), []);
  }

  /** A lane with one row that is due in a minute, and a claim that found nothing. */
  async function waiting(t: StoreWorld): Promise<string> {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_0");
    await t.store.record([t.retry(await t.claimOne(), minute)], null);
    same(await t.claimIds(), []);
    return id!;
  }

  rule("a lane without rows is taken again after a dispatch", async (t) => {
    await asleep(t);
    const ids = await t.publish("evt_1");
    same(await t.claimIds(), ids);
  });

  rule("a lane that is empty again, and again, is taken after each dispatch", async (t) => {
    await asleep(t);
    for (const event of ["evt_1", "evt_2", "evt_3"]) {
      const ids = await t.publish(event);
      const claimed = await t.claim();
      same(
        claimed.map((d) => d.id),
        ids,
      );
      await t.store.record(
        claimed.map((d) => t.delivered(d)),
        null,
      );
      same(await t.claimIds(), []);
      same(await t.claimIds(), []);
    }
  });

  rule("a lane whose rows are all later is taken when the first one's time comes, not before", async (t) => {
    const id = await waiting(t);
    t.step(minute - 1);
    same(await t.claimIds(), []);
    t.step(1);
    same(await t.claimIds(), [id]);
  });

  rule(
    "a lane that waits is taken at once after a dispatch, and its later row still comes at its time",
    async (t) => {
      const id = await waiting(t);
      const ids = await t.publish("evt_1");
      const claimed = await t.claim();
      same(
        claimed.map((d) => d.id),
        ids,
      );
      await t.store.record(
        claimed.map((d) => t.delivered(d)),
        null,
      );
      same(await t.claimIds(), []);
      t.step(minute);
      same(await t.claimIds(), [id]);
    },
  );

  rule("a lane that waits is taken at once after enqueueDelivery", async (t) => {
    await waiting(t);
    await t.enqueue("dlv_new", { subscriptionId: "sub_a" });
    same(await t.claimIds(), ["dlv_new"]);
  });

  rule("a row enqueued for later is taken at its time, also before the time its lane slept to", async (t) => {
    await waiting(t);
    await t.enqueue("dlv_new", { subscriptionId: "sub_a", nextAttemptAt: t.in(second) });
    same(await t.claimIds(), []);
    t.step(second);
    same(await t.claimIds(), ["dlv_new"]);
  });

  rule("a lane that waits is taken at once after a retry by hand", async (t) => {
    const id = await waiting(t);
    await t.store.retryDelivery(own, id, {}, null);
    same(await t.claimIds(), [id]);
  });

  rule("a lane with a claimed row is taken when the lease ends", async (t) => {
    await t.subscribe("sub_a");
    const ids = await t.publish("evt_1");
    await t.claimOne();
    same(await t.claimIds(), []);
    t.step(leaseMs);
    same(await t.claimIds(), ids);
  });

  rule(
    "a lane that waits for a lease is taken at once after a release, a reschedule and a retry outcome",
    async (t) => {
      await t.subscribe("sub_a");
      const [id] = await t.publish("evt_1");
      const claimAndSleep = async () => {
        const claimed = await t.claimOne();
        same(await t.claimIds(), []);
        return claimed;
      };
      await t.store.record([t.released(await claimAndSleep())], null);
      const again = await claimAndSleep();
      await t.store.reschedule(id!, 1, "x", t.now(), again.leaseToken);
      await t.store.record([t.retry(await claimAndSleep(), 0)], null);
      same(await t.claimIds(), [id]);
    },
  );

  rule(
    "field-faults H2: a paused lane takes rows, and a resumed one gives all of them, though claims came between",
    async (t) => {
      await asleep(t);
      await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
      const [one] = await t.publish("evt_1");
      const [two] = await t.publish("evt_2");
      same(await t.claimIds(), []);
      await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
      same((await t.claimIds()).sort(), [one, two].sort());
    },
  );

  rule("a disabled lane that is enabled again gives what was pending", async (t) => {
    const id = await waiting(t);
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
    t.step(2 * minute);
    same(await t.claimIds(), []);
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), [id]);
  });

  rule("a lane resumed before its row is due gives the row at its time", async (t) => {
    const id = await waiting(t);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), []);
    t.step(minute);
    same(await t.claimIds(), [id]);
  });

  rule("a subscription added again as active frees the lane that an inactive one held", async (t) => {
    const subscription = {
      id: "sub_a",
      projectId: "live",
      url: "https://a.example/",
      secret: "s",
      eventTypes: [],
      active: true,
    };
    await t.store.addSubscription(subscription);
    await t.enqueue("dlv_1");
    await t.store.addSubscription({ ...subscription, active: false });
    same(await t.claimIds(), []);
    await t.store.addSubscription(subscription);
    same(await t.claimIds(), ["dlv_1"]);
  });

  rule("field-faults D9: Retry-After holds the whole lane exactly so long, and no other lane", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    const [a1, b1] = await t.publish("evt_1");
    const [held] = await t.claim(1);
    await t.store.record([t.retry(held!, 10 * second, minute)], null);
    const [a2, b2] = await t.publish("evt_2");
    same(await t.claimIds(), [b1, b2].sort());
    t.step(minute - 1);
    same(
      (await t.claimIds()).filter((id) => id === a1 || id === a2),
      [],
    );
    t.step(1);
    same((await t.claimIds(100, { rooms: new Map([["sub_b", 0]]) })).sort(), [a1, a2].sort());
  });

  rule("field-faults D9: Retry-After on a last attempt holds the lane for the others", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    await t.publish("evt_1");
    const [failed] = await t.claim(1);
    const { recorded } = await t.store.record([t.failed(failed!, minute)], null);
    same(
      recorded.map(({ status }) => status),
      ["failed"],
    );
    const [a2] = await t.publish("evt_2");
    equal(
      (await t.claim()).every(({ subscriptionId }) => subscriptionId === "sub_b"),
      true,
    );
    t.step(minute - 1);
    same(await t.claimIds(100, { rooms: new Map([["sub_b", 0]]) }), []);
    t.step(1);
    same(await t.claimIds(100, { rooms: new Map([["sub_b", 0]]) }), [a2]);
  });

  rule("field-faults D9: a shorter Retry-After does not end a longer hold", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.publish("evt_2");
    const [one, two] = await t.claim();
    await t.store.record([t.retry(one!, second, minute)], null);
    await t.store.record([t.retry(two!, second, 5 * second)], null);
    t.step(minute - 1);
    same(await t.claimIds(), []);
    t.step(1);
    same((await t.claimIds()).length, 2);
  });

  rule(
    "field-faults D9: neither a retry by hand, nor pause and resume, nor new work ends a hold",
    async (t) => {
      await t.subscribe("sub_a");
      const [id] = await t.publish("evt_1");
      await t.store.record([t.retry(await t.claimOne(), second, minute)], null);
      await t.store.retryDelivery(own, id!, {}, null);
      same(await t.claimIds(), []);
      await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
      await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
      same(await t.claimIds(), []);
      const [other] = await t.publish("evt_2");
      same(await t.claimIds(), []);
      t.step(minute);
      same((await t.claimIds()).sort(), [id, other].sort());
    },
  );

  rule("field-faults D9: a hold shorter than the row's own delay leaves the row its time", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.record([t.retry(await t.claimOne(), minute, second)], null);
    const [other] = await t.publish("evt_2");
    t.step(second);
    same(await t.claimIds(), [other]);
    t.step(minute - second);
    same((await t.claimIds()).sort(), [id, other].sort());
  });

  rule("deliveries that capture made are taken at the latest when the event is dispatched", async (t) => {
    await asleep(t);
    const event = t.emitted("evt_1");
    await t.capture(event);
    await t.store.dispatch([{ projectId: "live", id: "evt_1", bodies: [], deliveries: [] }], null);
    same(
      (await t.claim()).map((d) => d.eventId),
      ["evt_1"],
    );
  });

  rule("events 10: a row that a repeated emit adds to a sleeping lane is taken", async (t) => {
    const event = t.emitted("evt_1");
    await t.capture(event);
    await t.store.dispatch([{ projectId: "live", id: "evt_1", bodies: [], deliveries: [] }], null);
    await asleep(t);
    await t.capture(event);
    same(
      (await t.claim()).map((d) => d.eventId),
      ["evt_1"],
    );
  });

  rule("one claim finds the due rows of 300 lanes, after all of them slept", async (t) => {
    for (let n = 0; n < 300; n++)
      await t.enqueue(`dlv_${n}`, {
        subscriptionId: `sub_${n}`,
        nextAttemptAt: t.in(n % 2 ? second : minute),
      });
    same(await t.claimIds(), []);
    t.step(second);
    same((await t.claimIds(1_000)).length, 150);
    same(await t.claimIds(1_000), []);
    t.step(minute);
    same((await t.claimIds(1_000)).length, 300);
  });
}
