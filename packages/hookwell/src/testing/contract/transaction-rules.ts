import { equal, like, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { newSubscription, own } from "./store-world.ts";

class Undo extends Error {}

/** Writes that join a transaction of the application. */
export function transactionRules(rule: Rule): void {
  rule("field-faults A2: a captured event is not there before the commit, and there after it", async (t) => {
    await t.subject.transaction(async (scope) => {
      same(await t.store.capture(scope, [t.event("evt_1")]), [{ id: "evt_1", duplicate: false }]);
      same(await t.store.takeNew(["user.created"], 10, null), []);
      equal(await t.store.getEvent("evt_1", {}), undefined);
    });
    same(
      (await t.store.takeNew(["user.created"], 10, null)).map((event) => event.id),
      ["evt_1"],
    );
  });

  rule("field-faults A2: a rollback leaves nothing: no event, row, body or revision", async (t) => {
    await t.subscribe("sub_a");
    const revision = { subject: "user:1", revision: 1 };
    const attempt = t.subject.transaction(async (scope) => {
      await t.store.capture(scope, [t.emitted("evt_1", revision)]);
      throw new Undo();
    });
    equal(await attempt.catch((error: unknown) => error instanceof Undo), true);
    equal(await t.store.getEvent("evt_1", {}), undefined);
    same((await t.store.listDeliveries({}, { limit: 10 })).items, []);
    const other = t.emitted("evt_1", { ...revision, contentHash: "other" });
    await t.capture({ ...other, fanOut: { ...other.fanOut!, body: '{"second":"try"}' } });
    like(await t.claimOne(), { payload: Buffer.from('{"second":"try"}') });
  });

  rule("a capture sees what its own transaction captured before", async (t) => {
    await t.subject.transaction(async (scope) => {
      await t.store.capture(scope, [t.event("evt_1", { subject: "user:1", revision: 1 })]);
      same(await t.store.capture(scope, [t.event("evt_1")]), [{ id: "evt_1", duplicate: true }]);
      await refused("revision_conflict", () =>
        t.store.capture(scope, [t.event("evt_2", { subject: "user:1", revision: 1 })]),
      );
    });
    same(
      (await t.store.listEvents({}, { limit: 10 })).items.map((event) => event.id),
      ["evt_1"],
    );
  });

  rule("a refused capture leaves the transaction usable, and what else it wrote is committed", async (t) => {
    await t.capture(t.event("evt_0", { subject: "user:1", revision: 1 }));
    await t.subject.transaction(async (scope) => {
      await t.store.capture(scope, [t.event("evt_1")]);
      await refused("event_mismatch", () =>
        t.store.capture(scope, [t.event("evt_0", { contentHash: "other" })]),
      );
      await refused("revision_conflict", () =>
        t.store.capture(scope, [t.event("evt_2"), t.event("evt_3", { subject: "user:1", revision: 1 })]),
      );
      await t.store.capture(scope, [t.event("evt_4")]);
    });
    same(
      (await t.store.takeNew(["user.created"], 10, null)).map((event) => event.id),
      ["evt_0", "evt_1", "evt_4"],
    );
  });

  rule("management joins a transaction: committed together, or nothing", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    const [id, other] = await t.publish("evt_1");
    const changes = (outcome: "commit" | "rollback") =>
      t.subject.transaction(async (scope) => {
        await t.store.createSubscription(scope, newSubscription("sub_c"));
        await t.store.updateSubscription(scope, "sub_a", { url: "https://moved.example/" }, {});
        await t.store.setSubscriptionStatus(scope, "sub_b", "paused", undefined, {});
        await t.store.cancelDelivery(scope, other!, {}, null);
        if (outcome === "rollback") throw new Undo();
      });
    equal(await changes("rollback").catch((error: unknown) => error instanceof Undo), true);
    equal(await t.store.getSubscription("sub_c", {}), undefined);
    like(await t.store.get(id!), { url: "https://sub-a.example/hook" });
    like(await t.store.getSubscription("sub_b", {}), { status: "active" });
    like(await t.store.get(other!), { status: "pending" });
    await changes("commit");
    like(await t.store.getSubscription("sub_c", {}), { status: "active" });
    like(await t.store.get(id!), { url: "https://moved.example/" });
    like(await t.store.getSubscription("sub_b", {}), { status: "paused" });
    like(await t.store.get(other!), { status: "cancelled" });
    same(await t.claimIds(), [id]);
  });

  rule("retry and release join a transaction, and wake the lane when it commits", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.record([t.failed(await t.claimOne())], null);
    await t.capture(t.event("evt_2"));
    await t.store.failDispatch({ projectId: "live", id: "evt_2" }, "no", null, null);
    same(await t.claimIds(), []);
    await t.subject.transaction(async (scope) => {
      like(await t.store.retryDelivery(scope, id!, {}, null), { status: "pending", round: 2 });
      await t.store.releaseEvent(scope, { projectId: "live", id: "evt_2" });
    });
    same(await t.claimIds(), [id]);
    same(
      (await t.store.takeNew(["user.created"], 10, null)).map((event) => event.id),
      ["evt_2"],
    );
  });

  rule("a refused management call leaves the transaction usable", async (t) => {
    await t.subscribe("sub_a");
    await t.subject.transaction(async (scope) => {
      await refused("not_found", () =>
        t.store.updateSubscription(scope, "sub_none", { url: "https://x.example/" }, {}),
      );
      await refused("duplicate_id", () => t.store.createSubscription(scope, newSubscription("sub_a")));
      await t.store.capture(scope, [t.event("evt_1")]);
    });
    equal((await t.store.getEvent("evt_1", {}))?.state, "new");
    like(await t.store.getSubscription("sub_a", {}), { url: "https://sub-a.example/hook" });
  });

  rule(
    "field-faults A5: an event that commits late is taken although later ones were taken before",
    async (t) => {
      await t.capture(t.event("evt_early"));
      await t.subject.transaction(async (scope) => {
        await t.store.capture(scope, [t.event("evt_late")]);
        const taken = await t.store.takeNew(["user.created"], 10, null);
        same(
          taken.map((event) => event.id),
          ["evt_early"],
        );
      });
      await t.dispatch(t.event("evt_early"));
      same(
        (await t.store.takeNew(["user.created"], 10, null)).map((event) => event.id),
        ["evt_late"],
      );
    },
  );

  rule("a scope of the store's own is a transaction for the call alone", async (t) => {
    await t.store.capture(own, [t.event("evt_1")]);
    equal((await t.store.getEvent("evt_1", {}))?.id, "evt_1");
  });
}
