import type { SubscriptionStatus } from "../../model/states.ts";
import type { Visibility } from "../../store/contract.ts";
import { equal, like, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, newSubscription, own, type StoreWorld, second } from "./store-world.ts";

/** Subscriptions and deliveries as an operator handles them. */
export function managementRules(rule: Rule): void {
  const set = (t: StoreWorld, status: SubscriptionStatus, visibility: Visibility = {}) =>
    t.store.setSubscriptionStatus(own, "sub_a", status, undefined, visibility);

  rule("a subscription comes back as it was created, without its secret or header values", async (t) => {
    const given = newSubscription("sub_a", {
      tenantId: "acme",
      ownerId: "u1",
      url: "https://receiver.example:8443/in?x=1",
      eventTypes: ["user.*", "booking.created"],
      fields: ["email"],
      headers: { "X-Key": "secret-value", "x-other": "2" },
      description: "Billing 🂡",
      metadata: { team: "core", "key.with": 'quote"' },
      externalId: "crm-7",
      rateLimit: { limit: 5, perSeconds: 60 },
      maxInFlight: 3,
      ordering: "subject",
    });
    const record = await t.store.createSubscription(own, given);
    const { secret: _secret, headers: _headers, ...shown } = given;
    same(record, {
      ...shown,
      headerNames: ["X-Key", "x-other"],
      status: "active",
      createdAt: t.now(),
      updatedAt: t.now(),
      version: record.version,
    });
    same(await t.store.getSubscription("sub_a", {}), record);
    const page = await t.store.listSubscriptions({}, { limit: 10 });
    same(page, { items: [record] });
    equal(JSON.stringify([record, page]).includes("secret-value"), false);
    equal(JSON.stringify([record, page]).includes("whsec_"), false);
  });

  rule("a minimal subscription has nothing that was not given", async (t) => {
    const { version: _version, ...record } = await t.subscribe("sub_a");
    same(record, {
      id: "sub_a",
      projectId: "live",
      url: "https://sub-a.example/hook",
      eventTypes: [],
      headerNames: [],
      status: "active",
      ordering: "none",
      createdAt: t.now(),
      updatedAt: t.now(),
    });
  });

  rule("a subscription id that exists is DuplicateIdError", async (t) => {
    await t.subscribe("sub_a");
    await refused("duplicate_id", () => t.subscribe("sub_a", { url: "https://other.example/" }));
    await refused("duplicate_id", () => t.subscribe("sub_a", { projectId: "test" }));
    like(await t.store.getSubscription("sub_a", {}), {
      url: "https://sub-a.example/hook",
      projectId: "live",
    });
  });

  rule("an update changes what is given, removes what is null, leaves the rest", async (t) => {
    const given = {
      fields: ["email"],
      description: "old",
      metadata: { a: "1" },
      externalId: "x",
      maxInFlight: 2,
    };
    await t.subscribe("sub_a", { ...given, rateLimit: { limit: 1, perSeconds: 1 }, headers: { "x-a": "1" } });
    t.step(second);
    const changed = await t.store.updateSubscription(
      own,
      "sub_a",
      {
        description: "new",
        eventTypes: ["user.created"],
        ordering: "subject",
        fields: [],
        metadata: undefined,
      },
      {},
    );
    like(changed, {
      ...given,
      fields: [],
      description: "new",
      eventTypes: ["user.created"],
      ordering: "subject",
      headerNames: ["x-a"],
      createdAt: t.in(-second),
      updatedAt: t.now(),
    });
    const emptied = await t.store.updateSubscription(
      own,
      "sub_a",
      {
        fields: null,
        description: null,
        metadata: null,
        externalId: null,
        rateLimit: null,
        maxInFlight: null,
      },
      {},
    );
    like(emptied, {
      fields: undefined,
      description: undefined,
      metadata: undefined,
      externalId: undefined,
      rateLimit: undefined,
      maxInFlight: undefined,
      eventTypes: ["user.created"],
    });
    same(await t.store.getSubscription("sub_a", {}), emptied);
  });

  const path: readonly (readonly [SubscriptionStatus, SubscriptionStatus, boolean])[] = [
    ["active", "paused", true],
    ["active", "disabled", true],
    ["active", "deleted", true],
    ["paused", "active", true],
    ["paused", "disabled", true],
    ["paused", "deleted", true],
    ["disabled", "active", true],
    ["disabled", "paused", false],
    ["disabled", "deleted", true],
    ["deleted", "active", false],
    ["deleted", "paused", false],
    ["deleted", "disabled", false],
  ];
  for (const [from, to, allowed] of path)
    rule(`${from} -> ${to} is ${allowed ? "made" : "refused"}`, async (t) => {
      await t.subscribe("sub_a");
      if (from !== "active") await set(t, from);
      t.step(second);
      if (allowed) {
        const reason = to === "disabled" ? "by_hand" : undefined;
        like(await set(t, to), { status: to, statusReason: reason, updatedAt: t.now() });
      } else await refused("invalid_state", () => set(t, to));
      equal((await t.store.getSubscription("sub_a", {}))?.status, allowed ? to : from);
    });

  for (const status of ["active", "paused", "disabled", "deleted"] as const)
    rule(`${status} -> ${status} changes nothing, not even the time`, async (t) => {
      await t.subscribe("sub_a");
      const before = await set(t, status);
      t.step(second);
      const again = await t.store.setSubscriptionStatus(own, "sub_a", status, "failing", {});
      same(again, before);
      same(await t.store.getSubscription("sub_a", {}), before);
    });

  rule("a reason is kept while disabled, and gone when enabled", async (t) => {
    await t.subscribe("sub_a");
    like(await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "failing", {}), {
      statusReason: "failing",
    });
    like(await set(t, "active"), { statusReason: undefined });
  });

  rule("a deleted subscription cannot be changed, is not listed, and is found as deleted", async (t) => {
    await t.subscribe("sub_a");
    await set(t, "deleted");
    await refused("invalid_state", () => t.store.updateSubscription(own, "sub_a", { description: "x" }, {}));
    same((await t.store.listSubscriptions({}, { limit: 10 })).items, []);
    equal((await t.store.listSubscriptions({ status: "deleted" }, { limit: 10 })).items.length, 1);
    equal((await t.store.getSubscription("sub_a", {}))?.status, "deleted");
  });

  rule("management of an unknown id is NotFoundError", async (t) => {
    await refused("not_found", () => set(t, "paused"));
    await refused("not_found", () => t.store.updateSubscription(own, "sub_a", {}, {}));
    await refused("not_found", () => t.store.retryDelivery(own, "dlv_a", {}, null));
    await refused("not_found", () => t.store.cancelDelivery(own, "dlv_a", {}, null));
    equal(await t.store.getSubscription("sub_a", {}), undefined);
    equal(await t.store.getDelivery("dlv_a", {}), undefined);
    equal(await t.store.getEvent("evt_a", {}), undefined);
  });

  const strangers: readonly Visibility[] = [
    { projectId: "test" },
    { tenantId: "other" },
    { ownerId: "u2" },
    { projectId: "live", tenantId: "acme", ownerId: "u2" },
    { projectId: "test", tenantId: "acme", ownerId: "u1" },
  ];
  for (const stranger of strangers)
    rule(`field-faults G8: nothing of it exists for ${JSON.stringify(stranger)}`, async (t) => {
      await t.subscribe("sub_a", { tenantId: "acme", ownerId: "u1" });
      const [id] = await t.publish("evt_1", { tenantId: "acme", audience: ["u1"] });
      equal(await t.store.getSubscription("sub_a", stranger), undefined);
      equal(await t.store.getDelivery(id!, stranger), undefined);
      equal(await t.store.getEvent("evt_1", stranger), undefined);
      same((await t.store.listSubscriptions(stranger, { limit: 10 })).items, []);
      same((await t.store.listDeliveries(stranger, { limit: 10 })).items, []);
      same((await t.store.listEvents(stranger, { limit: 10 })).items, []);
      await refused("not_found", () => set(t, "paused", stranger));
      await refused("not_found", () =>
        t.store.updateSubscription(own, "sub_a", { url: "https://x.example/" }, stranger),
      );
      await refused("not_found", () => t.store.retryDelivery(own, id!, stranger, null));
      await refused("not_found", () => t.store.cancelDelivery(own, id!, stranger, null));
      like(await t.claimOne(), { id, url: "https://sub-a.example/hook", attempts: 1 });
    });

  const friends: readonly Visibility[] = [
    {},
    { projectId: "live" },
    { tenantId: "acme" },
    { ownerId: "u1" },
    { projectId: "live", tenantId: "acme", ownerId: "u1" },
  ];
  for (const friend of friends)
    rule(`it exists for ${JSON.stringify(friend)}`, async (t) => {
      await t.subscribe("sub_a", { tenantId: "acme", ownerId: "u1" });
      const [id] = await t.publish("evt_1", { tenantId: "acme", audience: ["u0", "u1"] });
      equal((await t.store.getSubscription("sub_a", friend))?.id, "sub_a");
      equal((await t.store.getDelivery(id!, friend))?.id, id);
      equal((await t.store.getEvent("evt_1", friend))?.id, "evt_1");
      equal((await t.store.listSubscriptions(friend, { limit: 10 })).items.length, 1);
      equal((await t.store.listDeliveries(friend, { limit: 10 })).items.length, 1);
      equal((await t.store.listEvents(friend, { limit: 10 })).items.length, 1);
      like(await t.store.cancelDelivery(own, id!, friend, null), { status: "cancelled" });
      like(await t.store.retryDelivery(own, id!, friend, null), { status: "pending" });
      like(await set(t, "paused", friend), { status: "paused" });
    });

  rule(
    "field-faults G8: a delivery is its endpoint's tenant's, also when its event has none, and never an absent tenant's",
    async (t) => {
      await t.subscribe("sub_acme", { tenantId: "acme" });
      await t.subscribe("sub_any");
      const ids = await t.publish("evt_1");
      await t.publish("evt_2", { tenantId: "acme" });
      const seen = (await t.store.listDeliveries({ tenantId: "acme" }, { limit: 10 })).items;
      same(
        seen.map((row) => row.subscriptionId),
        ["sub_acme", "sub_acme"],
      );
      equal(await t.store.getDelivery(ids[1]!, { tenantId: "acme" }), undefined);
      equal((await t.store.listEvents({ tenantId: "acme" }, { limit: 10 })).items.length, 1);
    },
  );

  rule(
    "field-faults J2: a retry by hand of a waiting row moves its next attempt to now, five times too",
    async (t) => {
      await t.subscribe("sub_a");
      const [id] = await t.publish("evt_1");
      await t.store.record([t.retry(await t.claimOne(), minute)], null);
      t.step(second);
      for (let n = 0; n < 5; n++)
        like(await t.store.retryDelivery(own, id!, {}, null), {
          status: "pending",
          attempts: 1,
          round: 1,
          nextAttemptAt: t.now(),
          updatedAt: t.now(),
        });
      like(await t.claimOne(), { id, attempts: 2, round: 1 });
    },
  );

  rule("a retry by hand of a row in flight is refused, of one whose lease ended it is not", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    const lost = await t.claimOne();
    await refused("invalid_state", () => t.store.retryDelivery(own, id!, {}, null));
    t.step(leaseMs);
    like(await t.store.retryDelivery(own, id!, {}, null), { status: "pending", nextAttemptAt: t.now() });
    same((await t.store.record([t.delivered(lost)], null)).stale, [id]);
    like(await t.claimOne(), { id, attempts: 2 });
  });

  for (const end of ["delivered", "failed", "cancelled"] as const)
    rule(
      `a retry by hand opens a ${end} row in a new round, with the same bytes and no attempts`,
      async (t) => {
        await t.subscribe("sub_a");
        const [id] = await t.publish("evt_1");
        const claimed = await t.claimOne();
        if (end === "delivered") await t.store.record([t.delivered(claimed)], null);
        if (end === "failed") await t.store.record([t.failed(claimed)], null);
        if (end === "cancelled") await t.store.cancelDelivery(own, id!, {}, null);
        t.step(minute);
        like(await t.store.retryDelivery(own, id!, {}, null), {
          id,
          eventId: "evt_1",
          status: "pending",
          reason: undefined,
          attempts: 0,
          round: 2,
          nextAttemptAt: t.now(),
          deliveredAt: undefined,
          updatedAt: t.now(),
          lastError: end === "failed" ? "The receiver answered 500." : undefined,
        });
        like(await t.claimOne(), { id, attempts: 1, round: 2, payload: claimed.payload });
      },
    );

  rule("a retry by hand at a given date is due then", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.record([t.failed(await t.claimOne())], null);
    await t.store.retryDelivery(own, id!, {}, t.in(minute));
    same(await t.claimIds(), []);
    t.step(minute);
    same(await t.claimIds(), [id]);
  });

  rule("a retry by hand is refused when the subscription is deleted, queued when it is paused", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.record([t.failed(await t.claimOne())], null);
    await set(t, "paused");
    like(await t.store.retryDelivery(own, id!, {}, null), { status: "pending", hold: "paused", round: 2 });
    await set(t, "deleted");
    await refused("invalid_state", () => t.store.retryDelivery(own, id!, {}, null));
  });

  rule(
    "a retry by hand is refused when the receiver is gone, until the subscription is enabled",
    async (t) => {
      await t.subscribe("sub_a");
      const [id] = await t.publish("evt_1");
      await t.store.record([t.gone(await t.claimOne())], null);
      await refused("invalid_state", () => t.store.retryDelivery(own, id!, {}, null));
      like(await t.store.getDelivery(id!, {}), { status: "failed", reason: "gone" });
      await set(t, "active");
      like(await t.store.retryDelivery(own, id!, {}, null), { status: "pending", round: 2 });
      same(await t.claimIds(), [id]);
    },
  );

  rule("a retry by hand is queued when the subscription was disabled by hand", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.store.record([t.failed(await t.claimOne())], null);
    await set(t, "disabled");
    like(await t.store.retryDelivery(own, id!, {}, null), { status: "pending", hold: "disabled", round: 2 });
  });

  rule("cancel ends a waiting row", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    t.step(second);
    like(await t.store.cancelDelivery(own, id!, {}, null), {
      status: "cancelled",
      reason: "by_hand",
      nextAttemptAt: undefined,
      updatedAt: t.now(),
    });
    same(await t.claimIds(), []);
  });

  for (const end of ["delivered", "failed", "cancelled"] as const)
    rule(`cancel of a ${end} row is refused`, async (t) => {
      await t.subscribe("sub_a");
      const [id] = await t.publish("evt_1");
      const claimed = await t.claimOne();
      if (end === "delivered") await t.store.record([t.delivered(claimed)], null);
      if (end === "failed") await t.store.record([t.failed(claimed)], null);
      if (end === "cancelled") await t.store.cancelDelivery(own, id!, {}, null);
      const before = await t.store.getDelivery(id!, {});
      t.step(second);
      await refused("invalid_state", () => t.store.cancelDelivery(own, id!, {}, null));
      same(await t.store.getDelivery(id!, {}), before);
    });

  rule("a pending row says what holds it", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    const hold = async () => (await t.store.getDelivery(id!, {}))?.hold;
    equal(await hold(), undefined);
    await t.store.record([t.retry(await t.claimOne(), second, minute)], null);
    equal(await hold(), "retry_after");
    await set(t, "paused");
    equal(await hold(), "paused");
    await set(t, "disabled");
    equal(await hold(), "disabled");
    await set(t, "active");
    equal(await hold(), "retry_after");
    t.step(minute);
    equal(await hold(), undefined);
    await t.store.record([t.delivered(await t.claimOne())], null);
    await set(t, "paused");
    equal(await hold(), undefined);
  });
}
