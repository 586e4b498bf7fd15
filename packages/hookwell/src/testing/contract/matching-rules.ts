import { coveringFilters, type Matchable } from "../../model/matching.ts";
import { equal, like, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { own, type StoreWorld } from "./store-world.ts";

/** Which subscriptions get an event. DESIGN section 4. */
export function matchingRules(rule: Rule): void {
  async function matched(t: StoreWorld, type: string, query: Partial<Matchable> = {}): Promise<string[]> {
    const [found = []] = await t.store.matchSubscriptions([
      { projectId: "live", filters: coveringFilters(type), ...query },
    ]);
    return found.map((match) => match.subscriptionId);
  }

  rule("events 4: same project, active, empty filter or filter with the type", async (t) => {
    await t.subscribe("sub_all");
    await t.subscribe("sub_listed", { eventTypes: ["user.updated", "user.created"] });
    await t.subscribe("sub_other_type", { eventTypes: ["user.deactivated"] });
    await t.subscribe("sub_other_project", { projectId: "test" });
    await t.subscribe("sub_inactive");
    await t.store.setSubscriptionStatus(own, "sub_inactive", "disabled", undefined, {});
    same(await matched(t, "user.created"), ["sub_all", "sub_listed"]);
  });

  rule("a wildcard covers any depth under it, and neither its own word nor a longer one", async (t) => {
    await t.subscribe("sub_a", { eventTypes: ["booking.*"] });
    same(await matched(t, "booking.created"), ["sub_a"]);
    same(await matched(t, "booking.created.late"), ["sub_a"]);
    same(await matched(t, "booking"), []);
    same(await matched(t, "bookings.created"), []);
    same(await matched(t, "booking_x.created"), []);
  });

  rule("a deeper wildcard covers only its branch", async (t) => {
    await t.subscribe("sub_a", { eventTypes: ["a.b.*"] });
    same(await matched(t, "a.b.c"), ["sub_a"]);
    same(await matched(t, "a.b.c.d"), ["sub_a"]);
    same(await matched(t, "a.c.b"), []);
  });

  rule("a subscription with several entries that cover a type matches once", async (t) => {
    await t.subscribe("sub_a", { eventTypes: ["user.created", "user.*", "user.created"] });
    same(await matched(t, "user.created"), ["sub_a"]);
  });

  rule("field-faults H5: the order of the entries does not matter", async (t) => {
    const types = ["user.created", "user.updated", "user.deactivated"];
    const orders = types.flatMap((a) =>
      types.filter((b) => b !== a).map((b) => [a, b, types.find((c) => c !== a && c !== b)!]),
    );
    for (const [index, eventTypes] of orders.entries()) await t.subscribe(`sub_${index}`, { eventTypes });
    for (const type of types) same((await matched(t, type)).length, 6);
  });

  rule("events 5: tenants equal or either absent", async (t) => {
    await t.subscribe("sub_acme", { tenantId: "acme" });
    await t.subscribe("sub_any");
    await t.subscribe("sub_other", { tenantId: "other" });
    same(await matched(t, "user.created", { tenantId: "acme" }), ["sub_acme", "sub_any"]);
    same(await matched(t, "user.created"), ["sub_acme", "sub_any", "sub_other"]);
    same(await matched(t, "user.created", { tenantId: "third" }), ["sub_any"]);
  });

  rule("with an audience only owners in it, without one only the ownerless", async (t) => {
    await t.subscribe("sub_u1", { ownerId: "u1" });
    await t.subscribe("sub_u2", { ownerId: "u2" });
    await t.subscribe("sub_u3_elsewhere", { ownerId: "u3", tenantId: "other" });
    await t.subscribe("sub_none");
    same(await matched(t, "user.created"), ["sub_none"]);
    same(await matched(t, "user.created", { audience: ["u1", "u3"], tenantId: "acme" }), ["sub_u1"]);
    same(await matched(t, "user.created", { audience: ["u2", "u1"] }), ["sub_u1", "sub_u2"]);
    same(await matched(t, "user.created", { audience: [] }), []);
  });

  rule("hookwell.* goes only to explicit entries of ownerless, tenantless subscriptions", async (t) => {
    await t.subscribe("sub_all");
    await t.subscribe("sub_ops", { eventTypes: ["hookwell.*"] });
    await t.subscribe("sub_one", { eventTypes: ["hookwell.event.parked"] });
    await t.subscribe("sub_tenant", { eventTypes: ["hookwell.*"], tenantId: "acme" });
    await t.subscribe("sub_owner", { eventTypes: ["hookwell.*"], ownerId: "u1" });
    same(await matched(t, "hookwell.event.parked", { operational: true }), ["sub_one", "sub_ops"]);
    same(await matched(t, "hookwell.event.parked", { operational: true, tenantId: "acme" }), [
      "sub_one",
      "sub_ops",
    ]);
  });

  rule(
    "paused subscriptions match, and a resumed, an enabled and an edited one match as they are now",
    async (t) => {
      await t.subscribe("sub_a");
      await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
      same(await matched(t, "user.created"), ["sub_a"]);
      await t.store.setSubscriptionStatus(own, "sub_a", "disabled", undefined, {});
      same(await matched(t, "user.created"), []);
      await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
      same(await matched(t, "user.created"), ["sub_a"]);
      await t.store.updateSubscription(own, "sub_a", { eventTypes: ["user.updated"] }, {});
      same(await matched(t, "user.created"), []);
      same(await matched(t, "user.updated"), ["sub_a"]);
      await t.store.updateSubscription(own, "sub_a", { eventTypes: [] }, {});
      same(await matched(t, "user.created"), ["sub_a"]);
      await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
      same(await matched(t, "user.created"), []);
    },
  );

  rule("each query of a batch has its own answer, in order, with fields and endpoint", async (t) => {
    await t.subscribe("sub_a", { fields: ["email", "name"] });
    await t.subscribe("sub_b", { eventTypes: ["user.updated"], fields: [] });
    const answers = await t.store.matchSubscriptions([
      { projectId: "live", filters: coveringFilters("user.created") },
      { projectId: "none", filters: coveringFilters("user.created") },
      { projectId: "live", filters: coveringFilters("user.updated") },
    ]);
    same(
      answers.map((matches) => matches.map((match) => match.subscriptionId)),
      [["sub_a"], [], ["sub_a", "sub_b"]],
    );
    like(answers[0]![0], { fields: ["email", "name"] });
    like(answers[2]![1], { fields: [] });
    same(await t.store.matchSubscriptions([]), []);
  });

  rule("a subscription without a selection of fields has none", async (t) => {
    await t.subscribe("sub_a");
    const [[match] = []] = await t.store.matchSubscriptions([{ projectId: "live", filters: [""] }]);
    like(match, { fields: undefined });
  });

  rule(
    "the deliveries of an event are found by subscription, and of no other event or project",
    async (t) => {
      for (const id of ["sub_a", "sub_b", "sub_c"]) await t.subscribe(id);
      await t.publish("evt_1");
      await t.store.setSubscriptionStatus(own, "sub_b", "disabled", undefined, {});
      await t.publish("evt_2");
      const find = async (event: string, projectId = "live") =>
        (await t.store.deliveriesOfEvent({ projectId, id: event }, ["sub_b", "sub_none", "sub_a"])).map(
          ({ subscriptionId, status }) => [subscriptionId, status],
        );
      same(await find("evt_1"), [
        ["sub_a", "pending"],
        ["sub_b", "pending"],
      ]);
      same(await find("evt_2"), [["sub_a", "pending"]]);
      same(await find("evt_1", "test"), []);
      same(await t.store.deliveriesOfEvent({ projectId: "live", id: "evt_1" }, []), []);
      const [found] = await t.store.deliveriesOfEvent({ projectId: "live", id: "evt_1" }, ["sub_a"]);
      equal((await t.store.getDelivery(found!.id, {}))?.subscriptionId, "sub_a");
    },
  );
}
