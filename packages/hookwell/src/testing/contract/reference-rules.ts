import type { Delivery } from "../../model/delivery.ts";
import { equal, like, ok, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { minute } from "./store-world.ts";

/** The reference methods: spec/events.md, checks 6, 13 to 20, 25 and 42. */
export function referenceRules(rule: Rule): void {
  rule("events 6: get answers a row as it was enqueued, url, secret and payload included", async (t) => {
    const given = t.delivery("dlv_1", {
      lastError: "earlier",
      nextAttemptAt: t.in(5),
      headers: { "x-a": "1" },
    });
    await t.store.enqueueDelivery(given);
    like(await t.store.get("dlv_1"), { ...given, secrets: ["whsec_bound"], round: 1, leaseToken: undefined });
  });

  rule(
    "events 13: a subscription changed behind the publisher's back leaves the row its url and secret",
    async (t) => {
      const old = { id: "sub_a", projectId: "live", eventTypes: [], active: true };
      await t.store.addSubscription({ ...old, url: "https://old.example/", secret: "old" });
      await t.enqueue("dlv_1", { url: "https://old.example/", secret: "old" });
      await t.store.addSubscription({ ...old, url: "https://new.example/", secret: "new" });
      like(await t.store.get("dlv_1"), { url: "https://old.example/", secret: "old" });
      like(await t.claimOne(), { url: "https://old.example/", secret: "old", secrets: ["old"] });
    },
  );

  rule("events 13: a row whose subscription is not there at all is claimed like any other", async (t) => {
    await t.enqueue("dlv_1", { subscriptionId: "sub_never_added" });
    same(await t.claimIds(), ["dlv_1"]);
  });

  for (const end of ["pending", "delivered", "failed"] as const)
    rule(
      `events 14: the same pair again is DeliveryExistsError, first row ${end}, other row id`,
      async (t) => {
        await t.enqueue("dlv_1", { eventId: "evt_1" });
        if (end === "delivered") await t.store.markDelivered("dlv_1", t.now());
        if (end === "failed") await t.store.markFailed("dlv_1", 1, "no");
        await refused("delivery_exists", () => t.enqueue("dlv_2", { eventId: "evt_1" }));
        await refused("delivery_exists", () => t.enqueue("dlv_1", { eventId: "evt_1" }));
        equal((await t.store.get("dlv_1"))?.status, end);
        equal(await t.store.get("dlv_2"), undefined);
      },
    );

  rule(
    "events 14: one event for two subscriptions, and one subscription with two events, are no repeats",
    async (t) => {
      await t.enqueue("dlv_1", { eventId: "evt_1", subscriptionId: "sub_a" });
      await t.enqueue("dlv_2", { eventId: "evt_1", subscriptionId: "sub_b" });
      await t.enqueue("dlv_3", { eventId: "evt_2", subscriptionId: "sub_a" });
      equal((await t.claim()).length, 3);
    },
  );

  rule("events 42: a row id that another pair has is DuplicateIdError", async (t) => {
    await t.enqueue("dlv_1", { eventId: "evt_1" });
    await refused("duplicate_id", () => t.enqueue("dlv_1", { eventId: "evt_2" }));
    equal((await t.store.get("dlv_1"))?.eventId, "evt_1");
    equal((await t.claim()).length, 1);
  });

  for (const nothing of [undefined, null])
    rule(`events 15: enqueueDelivery(${nothing}) is an error`, async (t) => {
      await refused("validation_failed", () => t.store.enqueueDelivery(nothing as unknown as Delivery));
    });

  rule("events 15: a payload that the caller changes afterwards is stored as it was", async (t) => {
    const payload = Buffer.from('{"n":1}');
    await t.enqueue("dlv_1", { payload });
    payload.fill("x");
    equal(Buffer.from((await t.store.get("dlv_1"))!.payload).toString(), '{"n":1}');
  });

  rule("events 15: payload bytes come back exactly, whatever they are", async (t) => {
    const payload = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    await t.enqueue("dlv_1", { payload });
    ok(Buffer.from(payload).equals((await t.claimOne()).payload));
    ok(Buffer.from(payload).equals((await t.store.get("dlv_1"))!.payload));
  });

  rule("events 42: returned rows are copies", async (t) => {
    await t.enqueue("dlv_1");
    const row = (await t.store.get("dlv_1")) as { -readonly [K in keyof Delivery]: Delivery[K] };
    row.payload.fill(0);
    row.status = "failed";
    row.nextAttemptAt.setTime(0);
    like(await t.store.get("dlv_1"), { status: "pending", nextAttemptAt: t.now() });
    equal(Buffer.from((await t.claimOne()).payload).toString(), '{"row":"dlv_1"}');
  });

  for (const limit of [0, -1, Number.NaN, 1.5])
    rule(`events 16: a claim of ${limit} rows is an error`, async (t) => {
      await t.enqueue("dlv_1");
      await refused("validation_failed", () => t.store.claimDue(t.now(), limit));
      await refused("validation_failed", () => t.claim(limit));
      same(await t.claimIds(), ["dlv_1"]);
    });

  rule("events 17: a next attempt of now is due, now + 1 ms is not", async (t) => {
    await t.enqueue("dlv_now");
    await t.enqueue("dlv_later", { nextAttemptAt: t.in(1) });
    same(ids(await t.store.claimDue(t.now(), 10)), ["dlv_now"]);
    same(ids(await t.store.claimDue(t.now(), 10)), []);
    same(ids(await t.store.claimDue(t.step(1), 10)), ["dlv_later"]);
  });

  rule("events 18: more due rows than the limit gives exactly the limit", async (t) => {
    for (let n = 0; n < 7; n++) await t.enqueue(`dlv_${n}`);
    equal((await t.store.claimDue(t.now(), 3)).length, 3);
    equal((await t.store.claimDue(t.now(), 3)).length, 3);
    equal((await t.store.claimDue(t.now(), 3)).length, 1);
  });

  rule("events 18: one lane gives its oldest next attempt first, then the smaller id", async (t) => {
    await t.enqueue("dlv_c", { nextAttemptAt: t.in(-5) });
    await t.enqueue("dlv_b", { nextAttemptAt: t.in(-9) });
    await t.enqueue("dlv_a", { nextAttemptAt: t.in(-5) });
    await t.enqueue("dlv_d", { nextAttemptAt: t.in(-10) });
    same(ids(await t.store.claimDue(t.now(), 10)), ["dlv_d", "dlv_b", "dlv_a", "dlv_c"]);
  });

  rule("events 18: claimDue takes one row from each lane in turn, lanes in id order", async (t) => {
    for (const lane of ["sub_c", "sub_a", "sub_b"])
      for (const n of [1, 2]) await t.enqueue(`dlv_${lane}_${n}`, { subscriptionId: lane });
    same(ids(await t.store.claimDue(t.now(), 5)), [
      "dlv_sub_a_1",
      "dlv_sub_b_1",
      "dlv_sub_c_1",
      "dlv_sub_a_2",
      "dlv_sub_b_2",
    ]);
  });

  rule("events 19: a second claim without a report is empty", async (t) => {
    await t.enqueue("dlv_1");
    equal((await t.store.claimDue(t.now(), 10)).length, 1);
    same(await t.store.claimDue(t.now(), 10), []);
  });

  rule("events 19: 16 parallel claimers over 500 rows get each row once", async (t) => {
    for (let n = 0; n < 500; n++) await t.enqueue(`dlv_${n}`, { subscriptionId: `sub_${n % 7}` });
    const claimed: string[] = [];
    const claimer = async (): Promise<void> => {
      for (;;) {
        const rows = await t.store.claimDue(t.now(), 9);
        if (rows.length === 0) return;
        claimed.push(...ids(rows));
      }
    };
    await Promise.all(Array.from({ length: 16 }, claimer));
    // A claimer may have ended while another one held the rest locked.
    claimed.push(...ids(await t.store.claimDue(t.now(), 500)));
    equal(claimed.length, 500);
    equal(new Set(claimed).size, 500);
  });

  rule("events 20: only pending rows are claimed", async (t) => {
    for (const status of ["delivered", "failed", "cancelled", "pending"] as const)
      await t.enqueue(`dlv_${status}`, { status });
    await t.enqueue("dlv_marked");
    await t.store.markDelivered("dlv_marked", t.now());
    same(await t.claimIds(), ["dlv_pending"]);
    t.step(10 * minute);
    same(await t.claimIds(), ["dlv_pending"]);
  });

  rule("events 25: get of an unknown id is absent", async (t) => {
    equal(await t.store.get("dlv_none"), undefined);
  });

  rule(
    "events 25: listActiveSubscriptions gives the project's active ones by id, as they were added",
    async (t) => {
      const add = (id: string, projectId: string, active: boolean) =>
        t.store.addSubscription({
          id,
          projectId,
          url: `https://${id}.example/`,
          secret: `s-${id}`,
          eventTypes: ["user.created", "user.updated"],
          active,
        });
      await add("c", "live", true);
      await add("a", "live", true);
      await add("b", "live", false);
      await add("d", "test", true);
      const [a, c, ...rest] = await t.store.listActiveSubscriptions("live");
      same(rest, []);
      like(a, {
        id: "a",
        projectId: "live",
        tenantId: undefined,
        ownerId: undefined,
        url: "https://a.example/",
        secret: "s-a",
        eventTypes: ["user.created", "user.updated"],
        active: true,
      });
      equal(c!.id, "c");
      same(await t.store.listActiveSubscriptions("other"), []);
    },
  );

  rule("events 25: a subscription added again is replaced, and an empty tenant is no tenant", async (t) => {
    const first = {
      id: "a",
      projectId: "live",
      url: "https://a.example/",
      secret: "1",
      eventTypes: [],
      active: true,
    };
    await t.store.addSubscription({ ...first, tenantId: "acme", ownerId: "u1" });
    like((await t.store.listActiveSubscriptions("live"))[0], { tenantId: "acme", ownerId: "u1" });
    await t.store.addSubscription({
      ...first,
      tenantId: "",
      ownerId: "",
      secret: "2",
      eventTypes: ["user.updated"],
    });
    const list = await t.store.listActiveSubscriptions("live");
    equal(list.length, 1);
    like(list[0], { tenantId: undefined, ownerId: undefined, secret: "2", eventTypes: ["user.updated"] });
    await t.store.addSubscription({ ...first, active: false });
    same(await t.store.listActiveSubscriptions("live"), []);
    like(await t.store.getSubscription("a", {}), { status: "disabled", statusReason: "by_hand" });
  });

  rule("events 25: management's paused, disabled and deleted subscriptions are not active", async (t) => {
    for (const id of ["sub_a", "sub_b", "sub_c", "sub_d"])
      await t.subscribe(id, { headers: { "x-key": "1" } });
    await t.store.setSubscriptionStatus({ kind: "own" }, "sub_b", "paused", undefined, {});
    await t.store.setSubscriptionStatus({ kind: "own" }, "sub_c", "disabled", "by_hand", {});
    await t.store.setSubscriptionStatus({ kind: "own" }, "sub_d", "deleted", undefined, {});
    const list = await t.store.listActiveSubscriptions("live");
    same(
      list.map((item) => item.id),
      ["sub_a"],
    );
    like(list[0], { secret: "whsec_of_sub_a", active: true });
  });
}

function ids(deliveries: readonly Delivery[]): string[] {
  return deliveries.map((delivery) => delivery.id);
}
