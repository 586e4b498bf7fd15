import type { EventOutcome } from "../../model/event.ts";
import type { DeliveryFilter, EventFilter, Page, PageOf, SubscriptionFilter } from "../../store/contract.ts";
import { equal, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { minute, own, type StoreWorld, second } from "./store-world.ts";

/** Lists, filters and pages. */
export function listRules(rule: Rule): void {
  const all = { limit: 100 };
  const events = async (t: StoreWorld, filter: EventFilter) =>
    (await t.store.listEvents(filter, all)).items.map((item) => item.id);
  const deliveries = async (t: StoreWorld, filter: DeliveryFilter) =>
    (await t.store.listDeliveries(filter, all)).items.map((item) => item.id);
  const subscriptions = async (t: StoreWorld, filter: SubscriptionFilter) =>
    (await t.store.listSubscriptions(filter, all)).items.map((item) => item.id);

  /** Every page of a list; `between` runs after each page. */
  async function pages<T extends { readonly id: string }>(
    list: (page: Page) => Promise<PageOf<T>>,
    limit: number,
    between: () => Promise<unknown> = async () => {},
  ): Promise<string[][]> {
    const found: string[][] = [];
    let page: PageOf<T> = await list({ limit });
    for (;;) {
      found.push(page.items.map((item) => item.id));
      if (!page.next) return found;
      await between();
      page = await list({ limit, after: page.next });
    }
  }

  rule(
    "field-faults J1: deliveries of equal time come once each, newest id first, while others are added",
    async (t) => {
      const ids = Array.from({ length: 50 }, (_, n) => `dlv_${String(n).padStart(2, "0")}`);
      for (const id of ids) await t.enqueue(id);
      let added = 0;
      const found = await pages(
        (page) => t.store.listDeliveries({}, page),
        7,
        () => t.enqueue(`dlv_new_${added++}`, { createdAt: t.in(1 + added) }),
      );
      same(found.flat(), ids.reverse());
      equal(found.length, 8);
    },
  );

  rule(
    "field-faults J1: events and subscriptions of equal and different times page the same way",
    async (t) => {
      const names = Array.from({ length: 23 }, (_, n) => String(n).padStart(2, "0"));
      for (const [n, name] of names.entries()) {
        if (n % 5 === 0) t.step(1);
        await t.capture(t.event(`evt_${name}`));
        await t.subscribe(`sub_${name}`);
      }
      const newest = [...names].reverse();
      same(
        (await pages((page) => t.store.listEvents({}, page), 4)).flat(),
        newest.map((name) => `evt_${name}`),
      );
      same(
        (await pages((page) => t.store.listSubscriptions({}, page), 4)).flat(),
        newest.map((name) => `sub_${name}`),
      );
    },
  );

  rule("a last page that is full has no next", async (t) => {
    for (let n = 0; n < 6; n++) await t.capture(t.event(`evt_${n}`));
    same(
      (await pages((page) => t.store.listEvents({}, page), 3)).map((page) => page.length),
      [3, 3],
    );
    same(await t.store.listEvents({ type: "none.such" }, { limit: 3 }), { items: [] });
  });

  for (const limit of [0, 101, 2.5])
    rule(`a page of ${limit} is refused`, async (t) => {
      await refused("validation_failed", () => t.store.listEvents({}, { limit }));
      await refused("validation_failed", () => t.store.listDeliveries({}, { limit }));
      await refused("validation_failed", () => t.store.listSubscriptions({}, { limit }));
      await refused("validation_failed", () => t.store.listApiKeys({ limit }));
    });

  rule("a range is half-open: from since, up to but not including until", async (t) => {
    await t.subscribe("sub_a");
    const made: string[] = [];
    for (let n = 0; n < 4; n++) {
      made.push(...(await t.publish(`evt_${n}`, { occurredAt: t.in(-minute) })));
      t.step(second);
    }
    const range = { since: t.in(-3 * second), until: t.in(-second) };
    same(await events(t, range), ["evt_2", "evt_1"]);
    same(await deliveries(t, range), [made[2], made[1]]);
    same(await events(t, { since: range.until }), ["evt_3"]);
    same(await deliveries(t, { until: range.since }), [made[0]]);
  });

  rule("events by id, type, subject, project and tenant", async (t) => {
    await t.capture(
      t.event("evt_1", { subject: "user:1", tenantId: "acme" }),
      t.event("evt_2", { subject: "user:2", type: "user.updated" }),
      t.event("evt_3", { subject: "user:1", projectId: "test" }),
    );
    same(await events(t, {}), ["evt_3", "evt_2", "evt_1"]);
    same(await events(t, { id: "evt_2" }), ["evt_2"]);
    same(await events(t, { type: "user.created" }), ["evt_3", "evt_1"]);
    same(await events(t, { subject: "user:1" }), ["evt_3", "evt_1"]);
    same(await events(t, { subject: "user:1", projectId: "live" }), ["evt_1"]);
    same(await events(t, { tenantId: "acme" }), ["evt_1"]);
    same(await events(t, { id: "evt_2", type: "user.created" }), []);
  });

  rule("the outcome of an event is that of its deliveries", async (t) => {
    const outcomes: Record<string, EventOutcome> = {};
    const check = async () => {
      for (const [id, outcome] of Object.entries(outcomes))
        equal((await t.store.getEvent(id, {}))?.outcome, outcome, id);
      for (const outcome of [
        "unmatched",
        "held",
        "pending",
        "delivered",
        "failed",
        "cancelled",
        "parked",
      ] as const)
        same(
          (await events(t, { outcome })).filter((id) => id in outcomes).sort(),
          Object.keys(outcomes)
            .filter((id) => outcomes[id] === outcome)
            .sort(),
          outcome,
        );
    };
    await t.capture(t.event("evt_new"), t.event("evt_parked"), t.event("evt_unmatched"));
    await t.store.failDispatch({ projectId: "live", id: "evt_parked" }, "no", null, null);
    await t.dispatch(t.event("evt_unmatched"));
    Object.assign(outcomes, { evt_new: "pending", evt_parked: "parked", evt_unmatched: "unmatched" });
    await check();

    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    const outcomeOf = { a: "delivered", b: "failed" };
    for (const [event, a, b, outcome] of [
      ["evt_dd", "delivered", "delivered", "delivered"],
      ["evt_df", "delivered", "failed", "failed"],
      ["evt_dc", "delivered", "cancelled", "delivered"],
      ["evt_cc", "cancelled", "cancelled", "cancelled"],
      ["evt_fc", "failed", "cancelled", "failed"],
      ["evt_dp", "delivered", "pending", "pending"],
      ["evt_fp", "failed", "pending", "pending"],
    ] as const) {
      Object.assign(outcomeOf, { a, b });
      await t.publish(event);
      for (const claimed of await t.claim()) {
        const end = claimed.subscriptionId === "sub_a" ? a : b;
        if (end === "delivered") await t.store.record([t.delivered(claimed)], null);
        if (end === "failed") await t.store.record([t.failed(claimed)], null);
        if (end === "cancelled") await t.store.cancelDelivery(own, claimed.id, {}, null);
        if (end === "pending") await t.store.record([t.retry(claimed, 10 * minute)], null);
      }
      outcomes[event] = outcome;
    }
    await check();

    await t.store.setSubscriptionStatus(own, "sub_b", "paused", undefined, {});
    Object.assign(outcomes, { evt_dp: "held", evt_fp: "held" });
    await t.publish("evt_half_held");
    outcomes.evt_half_held = "pending";
    await check();
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", undefined, {});
    outcomes.evt_half_held = "held";
    await check();
  });

  rule("outcomes page like everything else", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 9; n++) await t.publish(`evt_${n}`, n % 2 ? { type: "user.updated" } : {});
    for (const claimed of await t.claim())
      await t.store.record(
        [claimed.type === "user.updated" ? t.failed(claimed) : t.delivered(claimed)],
        null,
      );
    same(await pages((page) => t.store.listEvents({ outcome: "delivered" }, page), 2), [
      ["evt_8", "evt_6"],
      ["evt_4", "evt_2"],
      ["evt_0"],
    ]);
  });

  rule(
    "deliveries by status, subscription, event, type, subject, error code, project and host",
    async (t) => {
      await t.subscribe("sub_a", { url: "https://one.example:8443/x" });
      await t.subscribe("sub_b", { url: "https://two.example/x" });
      const [a1, b1] = await t.publish("evt_1", { subject: "user:1" });
      t.step(1);
      const [a2, b2] = await t.publish("evt_2", { type: "user.updated" });
      for (const claimed of await t.claim()) {
        if (claimed.id === a1) await t.store.record([t.delivered(claimed)], null);
        if (claimed.id === b1) await t.store.record([t.failed(claimed)], null);
        if (claimed.id === a2)
          await t.store.record(
            [
              {
                ...t.retry(claimed, minute),
                kind: "retry",
                delayMs: minute,
                exchange: t.failure({ errorCode: "timeout" }),
              },
            ],
            null,
          );
      }
      const newestFirst = (...ids: (string | undefined)[]) => ids.sort().reverse();
      same(await deliveries(t, { status: "delivered" }), [a1]);
      same(await deliveries(t, { status: "pending" }), newestFirst(a2, b2));
      same(await deliveries(t, { subscriptionId: "sub_a" }), [a2, a1]);
      same(await deliveries(t, { eventId: "evt_1" }), newestFirst(a1, b1));
      same(await deliveries(t, { type: "user.updated" }), newestFirst(a2, b2));
      same(await deliveries(t, { subject: "user:1" }), newestFirst(a1, b1));
      same(await deliveries(t, { errorCode: "timeout" }), [a2]);
      same(await deliveries(t, { errorCode: "http_500", status: "failed" }), [b1]);
      same(await deliveries(t, { urlHost: "two.example" }), [b2, b1]);
      same(await deliveries(t, { projectId: "test" }), []);
      same(await deliveries(t, { subscriptionId: "sub_a", eventId: "evt_2" }), [a2]);
    },
  );

  rule("a host is found with its port or without, never by a part of its name", async (t) => {
    await t.subscribe("sub_a", { url: "https://one.example:8443/x" });
    await t.subscribe("sub_b", { url: "https://one.example/x" });
    await t.subscribe("sub_c", { url: "https://ONE.example:443/y" });
    await t.subscribe("sub_d", { url: "https://xone.example/x" });
    const [a] = await t.publish("evt_1");
    same((await subscriptions(t, { urlHost: "one.example" })).sort(), ["sub_a", "sub_b", "sub_c"]);
    same(await subscriptions(t, { urlHost: "one.example:8443" }), ["sub_a"]);
    same(await subscriptions(t, { urlHost: "one.exampl" }), []);
    same(await subscriptions(t, { urlHost: "%" }), []);
    same(await deliveries(t, { urlHost: "one.example:8443" }), [a]);
    await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
    same(await subscriptions(t, { urlHost: "moved.example" }), ["sub_a"]);
    same(await deliveries(t, { urlHost: "moved.example" }), [a]);
  });

  rule("subscriptions by status, external id, project, tenant and owner", async (t) => {
    await t.subscribe("sub_a", { externalId: "x1" });
    await t.subscribe("sub_b", { externalId: "x1", projectId: "test" });
    await t.subscribe("sub_c", { tenantId: "acme", ownerId: "u1" });
    await t.store.setSubscriptionStatus(own, "sub_c", "paused", undefined, {});
    same(await subscriptions(t, { externalId: "x1" }), ["sub_b", "sub_a"]);
    same(await subscriptions(t, { externalId: "x1", projectId: "live" }), ["sub_a"]);
    same(await subscriptions(t, { status: "paused" }), ["sub_c"]);
    same(await subscriptions(t, { status: "active" }), ["sub_b", "sub_a"]);
    same(await subscriptions(t, { tenantId: "acme" }), ["sub_c"]);
    same(await subscriptions(t, { ownerId: "u1", projectId: "live" }), ["sub_c"]);
  });
}
