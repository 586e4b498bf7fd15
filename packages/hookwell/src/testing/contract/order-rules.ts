import { like, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, type StoreWorld, second } from "./store-world.ts";

/** Captures and dispatches revisions of one subject. */
async function revisions(t: StoreWorld, subject: string, ...numbers: readonly number[]): Promise<string[]> {
  const ids: string[] = [];
  for (const revision of numbers) {
    const name = `evt_${subject.replace(":", "_")}_${revision}`;
    ids.push((await t.publish(name, { subject, revision }))[0]!);
    t.step(1);
  }
  return ids;
}

const ordered = { ordering: "subject" } as const;

/** Ordering `subject` of a subscription. */
export function orderRules(rule: Rule): void {
  rule("one delivery of a subject at a time, by revision; other subjects flow", async (t) => {
    await t.subscribe("sub_a", ordered);
    const [, b1, b2] = await revisions(t, "user:b", 3, 1, 2);
    const [c1] = await revisions(t, "user:c", 1);
    const [free] = await t.publish("evt_free");
    same((await t.claimIds()).sort(), [b1, c1, free].sort());
    same(await t.claimIds(), []);
    like(await t.store.getDelivery(b2!, {}), { hold: "ordering" });
    like(await t.store.getDelivery(b1!, {}), { hold: undefined });
  });

  rule("finishing the first readies the next at once, whatever became of it; a retry does not", async (t) => {
    await t.subscribe("sub_a", ordered);
    const ids = await revisions(t, "user:b", 1, 2, 3, 4, 5);
    await t.store.record([t.delivered(await t.claimOne())], null);
    const second_ = await t.claimOne();
    same(second_.id, ids[1]);
    await t.store.record([t.retry(second_, minute)], null);
    same(await t.claimIds(), []);
    t.step(minute);
    await t.store.record([t.failed(await t.claimOne())], null);
    const third = await t.claimOne();
    same(third.id, ids[2]);
    await t.store.record([t.released(third)], null);
    same((await t.claimOne()).id, ids[2]);
    await t.store.cancelDelivery(own, ids[2]!, {}, null);
    const fourth = await t.claimOne();
    same(fourth.id, ids[3]);
    await t.store.markDelivered(fourth.id, t.now(), fourth.leaseToken);
    same((await t.claimOne()).id, ids[4]);
  });

  rule(
    "field-faults C1: a lower revision that comes after a higher one was claimed is cancelled as superseded",
    async (t) => {
      await t.subscribe("sub_a", ordered);
      await t.subscribe("sub_b");
      const [five] = await revisions(t, "user:b", 5);
      const claimed = await t.claim();
      same(claimed.length, 2);
      await t.store.record(
        claimed.map((row) => t.retry(row, second)),
        null,
      );
      const [late] = await revisions(t, "user:b", 4);
      like(await t.store.getDelivery(late!, {}), { status: "cancelled", reason: "superseded", attempts: 0 });
      const [six] = await revisions(t, "user:b", 6);
      t.step(second);
      const next = (await t.claim()).filter(({ subscriptionId }) => subscriptionId === "sub_a");
      same(
        next.map(({ id }) => id),
        [five],
      );
      await t.store.record([t.delivered(next[0]!)], null);
      same(
        (await t.claimIds()).filter((id) => id === six),
        [six],
      );
      const [old] = await revisions(t, "user:b", 3);
      like(await t.store.getDelivery(old!, {}), { status: "cancelled", reason: "superseded" });
      await refused("invalid_state", () => t.store.retryDelivery(own, late!, {}, null));
    },
  );

  rule("a lower revision that comes before the higher one was claimed goes first", async (t) => {
    await t.subscribe("sub_a", ordered);
    const [seven, six] = await revisions(t, "user:b", 7, 6);
    const [five, four] = await revisions(t, "user:b", 5, 4);
    for (const id of [four, five, six, seven]) {
      const row = await t.claimOne();
      same(row.id, id);
      await t.store.record([t.delivered(row)], null);
    }
  });

  rule("without revisions the order is that of capture, and nothing is superseded", async (t) => {
    await t.subscribe("sub_a", ordered);
    const first = t.event("evt_1", { subject: "user:b" });
    const later = t.event("evt_2", { subject: "user:b" });
    await t.capture(first);
    await t.capture(later);
    const [two] = await t.dispatch(later);
    const claimed = await t.claimOne();
    same(claimed.id, two);
    const [one] = await t.dispatch(first);
    same(await t.claimIds(), []);
    await t.store.record([t.delivered(claimed)], null);
    same((await t.claimOne()).id, one);
  });

  rule("an expired lease gives the same row again, and no other of its subject", async (t) => {
    await t.subscribe("sub_a", ordered);
    const [one] = await revisions(t, "user:b", 1, 2);
    await t.claimOne();
    t.step(leaseMs);
    same(await t.claimIds(), [one]);
  });

  rule("subjects of different tenants, and other subscriptions, do not wait for each other", async (t) => {
    await t.subscribe("sub_a", ordered);
    await t.subscribe("sub_b", ordered);
    await t.publish("evt_1", { subject: "user:b", revision: 1, tenantId: "acme" });
    await t.publish("evt_2", { subject: "user:b", revision: 1, tenantId: "other" });
    await t.publish("evt_3", { subject: "user:b", revision: 1 });
    same((await t.claim()).length, 6);
  });

  rule(
    "a retry by hand of what waits does not pass those before it; one of a final row takes its turn",
    async (t) => {
      await t.subscribe("sub_a", ordered);
      const [one, two] = await revisions(t, "user:b", 1, 2);
      const row = await t.claimOne();
      await t.store.retryDelivery(own, two!, {}, null);
      same(await t.claimIds(), []);
      await t.store.record([t.failed(row)], null);
      // Nothing higher has been seen yet: the first may go again, before the second.
      await t.store.retryDelivery(own, one!, {}, null);
      const again = await t.claimOne();
      same(again.id, one);
      await t.store.record([t.delivered(again)], null);
      same((await t.claimOne()).id, two);
    },
  );

  rule("given up, the order holds nothing back; a paused and resumed one keeps it", async (t) => {
    await t.subscribe("sub_a", ordered);
    const [one, two, three] = await revisions(t, "user:b", 1, 2, 3);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), [one]);
    await t.store.updateSubscription(own, "sub_a", { ordering: "none" }, {});
    same((await t.claimIds()).sort(), [two, three].sort());
  });

  rule(
    "fan-out in capture leaves an event with a subject to the dispatcher where one of its subscriptions is ordered",
    async (t) => {
      await t.subscribe("sub_a", ordered);
      await t.subscribe("sub_b");
      const event = { ...t.emitted("evt_1"), subject: "user:b", revision: 1 };
      await t.capture(event);
      same(await t.claimIds(), []);
      like(await t.store.getEvent("evt_1", {}), { state: "new", fannedOut: false });
      await t.capture({ ...t.emitted("evt_2") });
      like(await t.store.getEvent("evt_2", {}), { fannedOut: true });
      same((await t.dispatch(event)).length, 2);
    },
  );
}
