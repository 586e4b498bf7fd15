import type { EventKey } from "../../model/event.ts";
import type { DispatchItem } from "../../store/contract.ts";
import { equal, like, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { minute, own, type StoreWorld, second } from "./store-world.ts";

/** From new to dispatched or parked. */
export function dispatchRules(rule: Rule): void {
  const key = (id: string): EventKey => ({ projectId: "live", id });
  const types = ["user.created", "user.updated", "*"];
  async function taken(t: StoreWorld, routes: readonly string[] = types, limit = 10): Promise<string[]> {
    const events = await t.store.takeNew(routes, limit, null);
    // What tells of a parked event is not what these rules are about.
    return events.filter(({ type }) => !type.startsWith("hookwell.")).map((event) => event.id);
  }
  async function dispatched(t: StoreWorld, items: readonly DispatchItem[]): Promise<readonly EventKey[]> {
    return (await t.store.dispatch(items, null)).dispatched;
  }
  async function item(t: StoreWorld, id: string, lanes: readonly string[]): Promise<DispatchItem> {
    const [found = []] = await t.store.matchSubscriptions([{ projectId: "live", filters: [""] }]);
    return {
      ...key(id),
      bodies: [{ variant: "v", bytes: Buffer.from(`{"of":"${id}"}`) }],
      deliveries: lanes.map((subscriptionId) => ({
        id: `dlv_${id}_${subscriptionId}`,
        subscriptionId,
        endpointId: found.find((match) => match.subscriptionId === subscriptionId)!.endpointId,
        variant: "v",
      })),
    };
  }

  rule("takeNew gives new events of the routes in capture order, whatever their ids and times", async (t) => {
    await t.capture(
      t.event("evt_z", { occurredAt: t.in(minute) }),
      t.event("evt_a", { type: "user.updated" }),
    );
    await t.capture(t.event("evt_m", { type: "booking.created" }), t.event("evt_k", { route: "*" }));
    same(await taken(t), ["evt_z", "evt_a", "evt_k"]);
    same(await taken(t, ["booking.created"]), ["evt_m"]);
    same(await taken(t, ["user.created", "user.updated"], 1), ["evt_z"]);
    same(await taken(t, []), []);
  });

  rule("takeNew takes no lock: the same events are given again until they are dispatched", async (t) => {
    await t.capture(t.event("evt_1"));
    same(await taken(t), ["evt_1"]);
    same(await taken(t), ["evt_1"]);
    await t.dispatch(t.event("evt_1"));
    same(await taken(t), []);
  });

  rule("dispatch writes bodies and rows and marks the event", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    await t.capture(t.event("evt_1", { tenantId: "acme", subject: "user:1" }));
    t.step(second);
    const base = await item(t, "evt_1", ["sub_a", "sub_b"]);
    const bodies = [...base.bodies, { variant: "w", bytes: Buffer.from([0, 255, 10]) }];
    const deliveries = [base.deliveries[0]!, { ...base.deliveries[1]!, variant: "w" }];
    same(await dispatched(t, [{ ...base, bodies, deliveries, patch: '{"link":"x"}' }]), [key("evt_1")]);
    like(await t.store.getEvent("evt_1", {}), {
      state: "dispatched",
      patch: '{"link":"x"}',
      dispatchedAt: t.now(),
      outcome: "pending",
    });
    like(await t.store.getDelivery("dlv_evt_1_sub_a", {}), {
      body: Buffer.from('{"of":"evt_1"}'),
      projectId: "live",
      tenantId: "acme",
      type: "user.created",
      subject: "user:1",
      status: "pending",
      attempts: 0,
      round: 1,
      nextAttemptAt: t.now(),
      createdAt: t.now(),
      updatedAt: t.now(),
    });
    same((await t.store.get("dlv_evt_1_sub_b"))?.payload, Buffer.from([0, 255, 10]));
  });

  rule("an event is dispatched once: a second dispatch answers nothing and writes nothing", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    await t.capture(t.event("evt_1"));
    await t.store.dispatch([await item(t, "evt_1", ["sub_a"])], null);
    t.step(second);
    same(await dispatched(t, [await item(t, "evt_1", ["sub_a", "sub_b"])]), []);
    equal((await t.store.listDeliveries({}, { limit: 10 })).items.length, 1);
    like(await t.store.getEvent("evt_1", {}), { dispatchedAt: t.in(-second) });
  });

  rule("a batch dispatches what is still new and answers that, in order", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"), t.event("evt_2"), t.event("evt_3"));
    await t.store.dispatch([await item(t, "evt_2", [])], null);
    const items = [];
    for (const id of ["evt_3", "evt_2", "evt_unknown", "evt_1"]) items.push(await item(t, id, ["sub_a"]));
    same(await dispatched(t, items), [key("evt_3"), key("evt_1")]);
    same((await t.claim()).map((row) => row.eventId).sort(), ["evt_1", "evt_3"]);
    same(await dispatched(t, []), []);
  });

  rule("two dispatchers at once: each event is one's, each pair is queued once", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(...Array.from({ length: 20 }, (_, n) => t.event(`evt_${n}`)));
    const items: DispatchItem[] = [];
    for (let n = 0; n < 20; n++) items.push(await item(t, `evt_${n}`, ["sub_a"]));
    const dispatchers = [items, [...items].reverse(), items, items];
    const done = (await Promise.all(dispatchers.map((batch) => dispatched(t, batch)))).flat();
    equal(new Set(done.map((event) => event.id)).size, done.length);
    // Skipped because another one held it; none may be left after one more look.
    await t.store.dispatch(items, null);
    equal((await t.claim(100)).length, 20);
    same(await taken(t, types, 100), []);
  });

  rule("a pair that is queued already is left alone", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    await t.capture(t.event("evt_1"));
    await t.enqueue("dlv_first", { eventId: "evt_1", subscriptionId: "sub_a" });
    same(await dispatched(t, [await item(t, "evt_1", ["sub_a", "sub_b"])]), [key("evt_1")]);
    same((await t.claimIds()).sort(), ["dlv_evt_1_sub_b", "dlv_first"]);
  });

  rule("field-faults D2: an event that matches nothing is dispatched and unmatched", async (t) => {
    await t.capture(t.event("evt_1"));
    await t.dispatch(t.event("evt_1"));
    like(await t.store.getEvent("evt_1", {}), {
      state: "dispatched",
      outcome: "unmatched",
      patch: undefined,
    });
  });

  rule("rows for a subscription that was paused or disabled meanwhile are queued and held", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"));
    const dispatched = await item(t, "evt_1", ["sub_a"]);
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", undefined, {});
    await t.store.dispatch([dispatched], null);
    same(await t.claimIds(), []);
    like(await t.store.getDelivery("dlv_evt_1_sub_a", {}), { status: "pending", hold: "disabled" });
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), ["dlv_evt_1_sub_a"]);
  });

  rule("an event fanned out in capture is dispatched without rows, and they stay as they are", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.emitted("evt_1"));
    same(await taken(t, ["*"]), ["evt_1"]);
    same(await dispatched(t, [{ ...key("evt_1"), bodies: [], deliveries: [] }]), [key("evt_1")]);
    like(await t.claimOne(), { eventId: "evt_1", attempts: 1 });
  });

  rule("a date given as now is the time of the dispatch", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"));
    await t.store.dispatch([await item(t, "evt_1", ["sub_a"])], t.in(minute));
    like(await t.store.get("dlv_evt_1_sub_a"), { createdAt: t.in(minute), nextAttemptAt: t.in(minute) });
  });

  rule("field-faults D4: a failed try comes again after its delay, the others are not held up", async (t) => {
    await t.capture(t.event("evt_1"), t.event("evt_2"));
    equal(await t.store.failDispatch(key("evt_1"), "enrich broke", second, null), true);
    like(await t.store.getEvent("evt_1", {}), {
      state: "new",
      tries: 1,
      error: "enrich broke",
      outcome: "pending",
    });
    same(await taken(t), ["evt_2"]);
    t.step(second);
    same(await taken(t), ["evt_1", "evt_2"]);
    equal(await t.store.failDispatch(key("evt_1"), "again", 2 * second, null), true);
    like(await t.store.getEvent("evt_1", {}), { tries: 2, error: "again" });
    t.step(second);
    same(await taken(t), ["evt_2"]);
  });

  rule(
    "field-faults D4: under a limit the events that became due first are taken, in capture order",
    async (t) => {
      await t.capture(t.event("evt_1"), t.event("evt_2"));
      t.step(second);
      await t.capture(t.event("evt_3"));
      await t.store.failDispatch(key("evt_1"), "no", 2 * second, null);
      t.step(2 * second);
      await t.capture(t.event("evt_4"));
      same(await taken(t, types, 2), ["evt_2", "evt_3"]);
      same(await taken(t, types, 3), ["evt_1", "evt_2", "evt_3"]);
      same(await taken(t, types, 4), ["evt_1", "evt_2", "evt_3", "evt_4"]);
      await t.store.failDispatch(key("evt_3"), "no", null, null);
      await t.store.releaseEvent(own, key("evt_3"));
      same(await taken(t, types, 2), ["evt_2", "evt_3"]);
    },
  );

  rule("field-faults D4: an event without another try is parked with its error and no row", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"));
    equal(await t.store.failDispatch(key("evt_1"), "cannot render", null, null), true);
    like(await t.store.getEvent("evt_1", {}), {
      state: "parked",
      outcome: "parked",
      tries: 1,
      error: "cannot render",
    });
    t.step(minute);
    same(await taken(t), []);
    same(await t.dispatch(t.event("evt_1")).then(() => t.claimIds()), []);
  });

  rule("failDispatch of an event that is not new changes nothing", async (t) => {
    await t.capture(t.event("evt_1"), t.event("evt_2"));
    await t.dispatch(t.event("evt_1"));
    await t.store.failDispatch(key("evt_2"), "parked", null, null);
    equal(await t.store.failDispatch(key("evt_1"), "late", second, null), false);
    equal(await t.store.failDispatch(key("evt_2"), "late", second, null), false);
    equal(await t.store.failDispatch(key("evt_none"), "late", second, null), false);
    like(await t.store.getEvent("evt_1", {}), { state: "dispatched", tries: 0, error: undefined });
    like(await t.store.getEvent("evt_2", {}), { state: "parked", error: "parked" });
  });

  rule("a parked event can be released, and starts again from no tries", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"));
    await t.store.failDispatch(key("evt_1"), "no", null, null);
    await t.store.releaseEvent(own, key("evt_1"));
    like(await t.store.getEvent("evt_1", {}), {
      state: "new",
      tries: 0,
      outcome: "pending",
      error: undefined,
    });
    same(await taken(t), ["evt_1"]);
    same(await t.dispatch(t.event("evt_1")), await t.claimIds());
  });

  rule("only a parked event can be released", async (t) => {
    await t.capture(t.event("evt_1"));
    await refused("invalid_state", () => t.store.releaseEvent(own, key("evt_1")));
    await t.dispatch(t.event("evt_1"));
    await refused("invalid_state", () => t.store.releaseEvent(own, key("evt_1")));
    await refused("not_found", () => t.store.releaseEvent(own, key("evt_none")));
    await refused("not_found", () => t.store.releaseEvent(own, { projectId: "test", id: "evt_1" }));
  });
}
