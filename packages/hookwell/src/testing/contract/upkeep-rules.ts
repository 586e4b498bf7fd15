import type { RetentionPolicy } from "../../store/contract.ts";
import { equal, like, ok, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { day, leaseMs, minute, own, retention, type StoreWorld, second } from "./store-world.ts";

/** Maintenance, retention, and what tells how far behind the work is. */
export function upkeepRules(rule: Rule): void {
  const upkeep = (t: StoreWorld, policy: RetentionPolicy | null = retention, limit = 100) =>
    t.store.maintain(policy, limit, null);
  const nothing = { cancelled: 0, failed: [], prunedDeliveries: 0, prunedEvents: 0, more: false };

  /** One event for one subscription, brought to its end now. */
  async function ended(
    t: StoreWorld,
    event: string,
    end: "delivered" | "failed" | "cancelled",
  ): Promise<string> {
    const [id] = await t.publish(event);
    const claimed = await t.claimOne();
    if (end === "delivered") await t.store.record([t.delivered(claimed)], null);
    if (end === "failed") await t.store.record([t.failed(claimed)], null);
    if (end === "cancelled") await t.store.cancelDelivery(own, id!, {}, null);
    return id!;
  }

  rule("maintenance of an empty and of a busy store does nothing that is not due", async (t) => {
    same(await upkeep(t), nothing);
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.claimOne();
    await t.publish("evt_2");
    await t.capture(t.event("evt_3"));
    same(await upkeep(t), nothing);
  });

  rule("field-faults H1: what waits for a deleted subscription is cancelled", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    const [a, b] = await t.publish("evt_1");
    await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
    t.step(second);
    same(await upkeep(t, null), { ...nothing, cancelled: 1 });
    like(await t.store.getDelivery(a!, {}), { status: "cancelled", reason: "deleted", updatedAt: t.now() });
    like(await t.store.getDelivery(b!, {}), { status: "pending" });
    same(await upkeep(t, null), nothing);
  });

  rule(
    "a send in flight to a deleted subscription is left until its lease ends or its outcome comes",
    async (t) => {
      await t.subscribe("sub_a");
      const [one] = await t.publish("evt_1");
      const claimed = await t.claimOne();
      const [two] = await t.publish("evt_2");
      await t.claimOne();
      await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
      equal((await upkeep(t)).cancelled, 0);
      equal((await t.store.record([t.delivered(claimed)], null)).recorded.length, 1);
      t.step(leaseMs);
      equal((await upkeep(t)).cancelled, 1);
      like(await t.store.getDelivery(one!, {}), { status: "delivered" });
      like(await t.store.getDelivery(two!, {}), { status: "cancelled" });
    },
  );

  rule("cancelling goes in batches, and says when there is more", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 7; n++) await t.publish(`evt_${n}`);
    await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
    const results = [await upkeep(t, null, 3), await upkeep(t, null, 3), await upkeep(t, null, 3)];
    same(
      results.map(({ cancelled, more }) => [cancelled, more]),
      [
        [3, true],
        [3, true],
        [1, false],
      ],
    );
  });

  rule(
    "what a disabled subscription holds fails with its reason after the time, and is answered whole",
    async (t) => {
      await t.subscribe("sub_a");
      const [id] = await t.publish("evt_1");
      await t.store.record([t.retry(await t.claimOne(), minute)], null);
      await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "failing", {});
      t.step(30 * day - 1);
      same(await upkeep(t), nothing);
      t.step(1);
      const { failed, ...rest } = await upkeep(t);
      same(rest, { cancelled: 0, prunedDeliveries: 0, prunedEvents: 0, more: false });
      equal(failed.length, 1);
      like(failed[0], {
        id,
        status: "failed",
        attempts: 1,
        payload: Buffer.from('{"event":"evt_1"}'),
        lastError: "The receiver answered 500.",
        updatedAt: t.now(),
      });
      like(await t.store.getDelivery(id!, {}), {
        status: "failed",
        reason: "failing",
        nextAttemptAt: undefined,
      });
      same(await upkeep(t), nothing);
    },
  );

  rule("what a paused subscription holds is held for good", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    t.step(400 * day);
    same(await upkeep(t), nothing);
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), [id]);
  });

  for (const [end, days] of [
    ["delivered", 30],
    ["cancelled", 30],
    ["failed", 90],
  ] as const)
    rule(`a ${end} row and its event go after ${days} days`, async (t) => {
      await t.subscribe("sub_a");
      const id = await ended(t, "evt_1", end);
      t.step(days * day - 1);
      same(await upkeep(t), nothing);
      ok(await t.store.getDelivery(id, {}));
      t.step(1);
      same(await upkeep(t), { ...nothing, prunedDeliveries: 1, prunedEvents: 1 });
      equal(await t.store.getDelivery(id, {}), undefined);
      equal(await t.store.getEvent("evt_1", {}), undefined);
      same(await t.store.listAttempts(id), []);
      same(await upkeep(t), nothing);
    });

  rule("without retention nothing is pruned or failed", async (t) => {
    await t.subscribe("sub_a");
    await ended(t, "evt_1", "delivered");
    await t.publish("evt_2");
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", undefined, {});
    t.step(1_000 * day);
    same(await upkeep(t, null), nothing);
    ok(await t.store.getEvent("evt_1", {}));
  });

  rule("field-faults I4: an event stays until its last delivery is gone", async (t) => {
    await t.subscribe("sub_a");
    const failed = await ended(t, "evt_1", "failed");
    await t.subscribe("sub_b", { eventTypes: ["user.updated"] });
    t.step(31 * day);
    same(await upkeep(t), nothing);
    await t.store.retryDelivery(own, failed, {}, null);
    t.step(100 * day);
    same(await upkeep(t), nothing);
    await t.store.record([t.delivered(await t.claimOne())], null);
    t.step(30 * day);
    same(await upkeep(t), { ...nothing, prunedDeliveries: 1, prunedEvents: 1 });
  });

  rule(
    "field-faults I4: a delivered row stays as long as its event's window, so that the pair stays known",
    async (t) => {
      const short = { ...retention, deliveredMs: day };
      await t.subscribe("sub_a");
      const event = t.emitted("evt_1", { subject: "user:1", revision: 1 });
      await t.capture(event);
      await t.store.dispatch([{ projectId: "live", id: "evt_1", bodies: [], deliveries: [] }], null);
      await t.store.record([t.delivered(await t.claimOne())], null);
      t.step(29 * day);
      same(await upkeep(t, short), nothing);
      same(await t.capture(event), [{ id: "evt_1", duplicate: true }]);
      await refused("revision_conflict", () =>
        t.capture(t.event("evt_2", { subject: "user:1", revision: 1 })),
      );
      same(await t.claimIds(), []);
    },
  );

  rule(
    "field-faults I4: an id inside its window answers duplicate after a prune of others; after it, it is free",
    async (t) => {
      await t.subscribe("sub_a");
      await ended(t, "evt_old", "delivered");
      t.step(10 * day);
      await ended(t, "evt_young", "delivered");
      t.step(20 * day);
      same(await upkeep(t), { ...nothing, prunedDeliveries: 1, prunedEvents: 1 });
      same(await t.capture(t.event("evt_young")), [{ id: "evt_young", duplicate: true }]);
      await refused("event_mismatch", () => t.capture(t.event("evt_young", { contentHash: "other" })));
      same(await t.capture(t.event("evt_old", { contentHash: "other" })), [
        { id: "evt_old", duplicate: false },
      ]);
    },
  );

  rule("a revision is free again when its event is pruned", async (t) => {
    await t.capture(t.event("evt_1", { subject: "user:1", revision: 1 }));
    await t.dispatch(t.event("evt_1"));
    t.step(30 * day);
    same(await upkeep(t), { ...nothing, prunedEvents: 1 });
    same(await t.capture(t.event("evt_2", { subject: "user:1", revision: 1 })), [
      { id: "evt_2", duplicate: false },
    ]);
  });

  rule("an event that was never dispatched is not pruned; a parked one is, after its window", async (t) => {
    await t.capture(t.event("evt_new"), t.event("evt_parked"));
    await t.store.failDispatch({ projectId: "live", id: "evt_parked" }, "no", null, null);
    t.step(30 * day - 1);
    same(await upkeep(t), nothing);
    t.step(1);
    same(await upkeep(t), { ...nothing, prunedEvents: 1 });
    ok(await t.store.getEvent("evt_new", {}));
    equal(await t.store.getEvent("evt_parked", {}), undefined);
  });

  rule("a captured id that was pruned can be used again with its own body", async (t) => {
    await t.subscribe("sub_a");
    const first = t.emitted("evt_1");
    await t.capture(first);
    await t.store.dispatch([{ projectId: "live", id: "evt_1", bodies: [], deliveries: [] }], null);
    await t.store.record([t.delivered(await t.claimOne())], null);
    t.step(30 * day);
    same(await upkeep(t), { ...nothing, prunedDeliveries: 1, prunedEvents: 1 });
    const second = t.emitted("evt_1", { contentHash: "second" });
    await t.capture({ ...second, fanOut: { ...second.fanOut!, body: '{"second":1}' } });
    await t.store.dispatch([{ projectId: "live", id: "evt_1", bodies: [], deliveries: [] }], null);
    like(await t.claimOne(), { payload: Buffer.from('{"second":1}') });
  });

  rule(
    "rows without an event, as the reference publisher queues them, go after their own time",
    async (t) => {
      await t.enqueue("dlv_1");
      await t.store.markDelivered("dlv_1", t.now());
      t.step(30 * day - 1);
      same(await upkeep(t), nothing);
      t.step(1);
      same(await upkeep(t), { ...nothing, prunedDeliveries: 1 });
      equal(await t.store.get("dlv_1"), undefined);
      await t.enqueue("dlv_1", { payload: Buffer.from("again") });
      like(await t.claimOne(), { payload: Buffer.from("again") });
    },
  );

  rule("pruning goes in batches, and says when there is more", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 5; n++) await ended(t, `evt_${n}`, "delivered");
    t.step(30 * day);
    let deliveries = 0;
    let events = 0;
    let passes = 0;
    for (let more = true; more; passes++) {
      const result = await upkeep(t, retention, 2);
      ok(result.prunedDeliveries <= 2 && result.prunedEvents <= 2);
      deliveries += result.prunedDeliveries;
      events += result.prunedEvents;
      ({ more } = result);
    }
    same([deliveries, events], [5, 5]);
    ok(passes <= 6);
  });

  rule(
    "a deleted subscription stays as a tombstone until the window is over and no delivery is left",
    async (t) => {
      await t.subscribe("sub_a");
      await ended(t, "evt_1", "failed");
      await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
      t.step(89 * day);
      await upkeep(t);
      equal((await t.store.getSubscription("sub_a", {}))?.status, "deleted");
      t.step(day);
      await upkeep(t);
      await upkeep(t);
      equal(await t.store.getSubscription("sub_a", {}), undefined);
      await t.subscribe("sub_b");
      await t.store.setSubscriptionStatus(own, "sub_b", "deleted", undefined, {});
      t.step(30 * day - 1);
      await upkeep(t);
      ok(await t.store.getSubscription("sub_b", {}));
      t.step(1);
      await upkeep(t);
      equal(await t.store.getSubscription("sub_b", {}), undefined);
    },
  );

  rule(
    "field-faults D2: lag is the oldest due row of a runnable lane, and the oldest undispatched event",
    async (t) => {
      same(await t.store.lag(null), { at: t.now() });
      await t.subscribe("sub_a");
      await t.subscribe("sub_b", { eventTypes: ["user.updated"] });
      await t.publish("evt_1");
      const first = t.now();
      t.step(minute);
      await t.publish("evt_2");
      await t.publish("evt_3", { type: "user.updated" });
      await t.capture(t.event("evt_4"));
      const later = t.now();
      t.step(minute);
      await t.capture(t.event("evt_5"));
      same(await t.store.lag(null), { at: t.now(), oldestDueAt: first, oldestNewAt: later });
      await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
      same((await t.store.lag(null)).oldestDueAt, later);
      await t.store.setSubscriptionStatus(own, "sub_b", "disabled", undefined, {});
      equal((await t.store.lag(null)).oldestDueAt, undefined);
      await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
      same((await t.store.lag(null)).oldestDueAt, first);
    },
  );

  rule("lag: rows in flight and rows that wait for their time are not late", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    const claimed = await t.claimOne();
    same(await t.store.lag(null), { at: t.now() });
    t.step(leaseMs + second);
    same(await t.store.lag(null), { at: t.now(), oldestDueAt: t.in(-second) });
    await t.store.record([t.retry(claimed, minute)], null);
    same(await t.store.lag(null), { at: t.now() });
    same(await t.store.lag(t.in(minute)), { at: t.in(minute), oldestDueAt: t.in(minute) });
  });

  rule("lag: a lane that Retry-After held counts from the end of the hold", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.publish("evt_2");
    const [claimed] = await t.claim(1);
    await t.store.record([t.retry(claimed!, second, 10 * minute)], null);
    same(await t.store.lag(null), { at: t.now() });
    t.step(10 * minute + second);
    same(await t.store.lag(null), { at: t.now(), oldestDueAt: t.in(-second) });
  });

  rule(
    "what remains: due rows on runnable lanes and undispatched events, counted up to the limit",
    async (t) => {
      same(await t.store.countRemaining(100), { pending: 0, newEvents: 0 });
      await t.subscribe("sub_a");
      await t.subscribe("sub_b");
      for (let n = 0; n < 4; n++) await t.publish(`evt_${n}`);
      await t.capture(t.event("evt_new_1"), t.event("evt_new_2"));
      same(await t.store.countRemaining(100), { pending: 8, newEvents: 2 });
      same(await t.store.countRemaining(3), { pending: 3, newEvents: 2 });
      same(await t.store.countRemaining(1), { pending: 1, newEvents: 1 });
      const [one, two] = await t.claim(2);
      await t.store.record([t.retry(one!, minute), t.delivered(two!)], null);
      same(await t.store.countRemaining(100), { pending: 6, newEvents: 2 });
      await t.store.setSubscriptionStatus(own, "sub_b", "paused", undefined, {});
      same(await t.store.countRemaining(100), { pending: 3, newEvents: 2 });
      same(await t.store.countRemaining(100, t.in(minute)), { pending: 4, newEvents: 2 });
      t.step(minute);
      same(await t.store.countRemaining(100), { pending: 4, newEvents: 2 });
    },
  );

  rule("watch and notify neither wait nor throw, also after the watch was stopped", async (t) => {
    const stop = t.store.watch(() => {
      throw new Error("nobody may hear this");
    });
    stop();
    stop();
    equal(t.store.notify(), undefined);
  });
}
