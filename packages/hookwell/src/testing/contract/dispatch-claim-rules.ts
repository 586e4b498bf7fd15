import { deliveryId } from "../../model/ids.ts";
import type { DispatchItem, DispatchRoom } from "../../store/contract.ts";
import { equal, like, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, own, proof, type StoreWorld, second } from "./store-world.ts";

const everything: DispatchRoom = { limit: 100, leaseMs };

/** What a dispatch claims of the rows it makes. */
export function dispatchClaimRules(rule: Rule): void {
  async function items(t: StoreWorld, ...events: readonly string[]): Promise<DispatchItem[]> {
    const [matches = []] = await t.store.matchSubscriptions([{ projectId: "live", filters: [""] }]);
    return events.map((id) => ({
      projectId: "live",
      id,
      bodies: [{ variant: "v", bytes: Buffer.from(`{"of":"${id}"}`) }],
      deliveries: matches.map(({ subscriptionId, endpointId, ordered }) => ({
        id: deliveryId(id, subscriptionId),
        subscriptionId,
        endpointId,
        variant: "v",
        ...(ordered && { ordered }),
      })),
    }));
  }
  /** Captures and dispatches the events; "event subscription" of what was claimed at once. */
  async function claimed(t: StoreWorld, room: DispatchRoom, ...events: readonly string[]): Promise<string[]> {
    await t.capture(...events.map((id) => t.event(id, { subject: "user:1" })));
    const { deliveries } = await t.store.dispatch(await items(t, ...events), null, room);
    return deliveries.map(({ eventId, subscriptionId }) => `${eventId} ${subscriptionId}`);
  }

  rule("rows that a dispatch claims are whole, leased, and nobody else's until the lease ends", async (t) => {
    await t.subscribe("sub_a", { headers: { "x-key": "secret" } });
    await t.capture(t.event("evt_1", { tenantId: "acme", subject: "user:1" }));
    const result = await t.store.dispatch(await items(t, "evt_1"), null, everything);
    same(result.dispatched, [{ projectId: "live", id: "evt_1" }]);
    same(result.failed, []);
    const [row] = result.deliveries;
    like(row, {
      eventId: "evt_1",
      subscriptionId: "sub_a",
      payload: Buffer.from('{"of":"evt_1"}'),
      headers: { "x-key": "secret" },
      tenantId: "acme",
      subject: "user:1",
      status: "pending",
      attempts: 1,
      round: 1,
      nextAttemptAt: t.now(),
      leaseUntil: t.in(leaseMs),
    });
    same(await t.claimIds(), []);
    t.step(leaseMs - 1);
    same(await t.claimIds(), []);
    t.step(1);
    const again = await t.claimOne();
    like(again, { id: row!.id, attempts: 2, payload: row!.payload });
    // The first lease was lost.
    same((await t.store.record([t.delivered(row!)], null)).stale, [row!.id]);
    equal((await t.store.record([t.delivered(again)], null)).recorded.length, 1);
  });

  rule("their outcomes are recorded as those of any claim", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    await t.capture(t.event("evt_1"));
    const { deliveries } = await t.store.dispatch(await items(t, "evt_1"), null, everything);
    const [one, two] = deliveries;
    await t.store.record([t.delivered(one!), t.retry(two!, second)], null);
    like(await t.store.getDelivery(one!.id, {}), { status: "delivered", attempts: 1 });
    same(await t.claimIds(), []);
    t.step(second);
    like(await t.claimOne(), { id: two!.id, attempts: 2 });
  });

  rule(
    "one row of each lane per turn, lanes in id order, at most its room for each, until the limit",
    async (t) => {
      for (const id of ["sub_c", "sub_a", "sub_b"]) await t.subscribe(id);
      const rooms = new Map([
        ["sub_b", 0],
        ["sub_c", 1],
      ]);
      same(await claimed(t, { ...everything, room: 2, rooms }, "evt_1", "evt_2", "evt_3"), [
        "evt_1 sub_a",
        "evt_1 sub_c",
        "evt_2 sub_a",
      ]);
      // What was left is due, so that these are queued behind it.
      same(await claimed(t, everything, "evt_4"), []);
      equal((await t.claim()).length, 9);
      same(await claimed(t, { ...everything, limit: 4 }, "evt_5", "evt_6"), [
        "evt_5 sub_a",
        "evt_5 sub_b",
        "evt_5 sub_c",
        "evt_6 sub_a",
      ]);
    },
  );

  rule("without room everything is queued", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"));
    same((await t.store.dispatch(await items(t, "evt_1"), null)).deliveries, []);
    equal((await t.claim()).length, 1);
  });

  rule("a lane that waits for a later time is open; one with a row that is due is not", async (t) => {
    await t.subscribe("sub_a");
    await t.enqueue("dlv_later", { nextAttemptAt: t.in(second) });
    same(await claimed(t, everything, "evt_1"), ["evt_1 sub_a"]);
    t.step(second);
    same(await claimed(t, everything, "evt_2"), []);
    equal((await t.claim()).length, 2);
  });

  for (const [what, close] of [
    ["paused", (t) => t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {})],
    [
      "with a rate",
      (t) => t.store.updateSubscription(own, "sub_a", { rateLimit: { limit: 5, perSeconds: 1 } }, {}),
    ],
    ["with a bound of its own", (t) => t.store.updateSubscription(own, "sub_a", { maxInFlight: 5 }, {})],
    ["under a hold", (t) => t.store.setHold(own, { id: "hld_1", selector: { type: "other.*" } }, null)],
  ] as const satisfies readonly (readonly [string, (t: StoreWorld) => Promise<unknown>])[])
    for (const isNew of [true, false])
      rule(`a lane ${what} is left to claims${isNew ? ", also before its first row" : ""}`, async (t) => {
        await t.subscribe("sub_a");
        if (!isNew) {
          await t.publish("evt_0");
          await t.store.record([t.delivered(await t.claimOne())], null);
        }
        await close(t);
        same(await claimed(t, everything, "evt_1"), []);
        like(await t.store.getDelivery(deliveryId("evt_1", "sub_a"), {}), { status: "pending", attempts: 0 });
      });

  rule("a lane under Retry-After is left to claims until that ends", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_0");
    await t.store.record([t.retry(await t.claimOne(), 10 * second, 2 * second)], null);
    same(await claimed(t, everything, "evt_1"), []);
    t.step(2 * second);
    equal((await t.claim()).length, 1);
    same(await claimed(t, everything, "evt_2"), ["evt_2 sub_a"]);
  });

  rule("a lane whose circuit is open is left to its probes", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_0");
    const breaker = { failures: 1, probeMs: second, probeMaxMs: second };
    await t.store.record([t.broken(await t.claimOne(), second)], null, { breaker });
    same(await claimed(t, everything, "evt_1"), []);
    t.step(10 * second);
    same(await claimed(t, everything, "evt_2"), []);
  });

  rule("rows with a place in an order are left to claims", async (t) => {
    await t.subscribe("sub_a", { ordering: "subject" });
    await t.subscribe("sub_b");
    same(await claimed(t, everything, "evt_1", "evt_2"), ["evt_1 sub_b", "evt_2 sub_b"]);
    same(
      (await t.claim()).map(({ eventId }) => eventId),
      ["evt_1"],
    );
  });

  rule("a pair that is queued already is not claimed by the dispatch", async (t) => {
    await t.subscribe("sub_a");
    await t.capture(t.event("evt_1"));
    await t.enqueue("dlv_first", { eventId: "evt_1", nextAttemptAt: t.in(second) });
    same((await t.store.dispatch(await items(t, "evt_1"), null, everything)).deliveries, []);
    t.step(second);
    like(await t.claimOne(), { id: "dlv_first", attempts: 1 });
  });

  rule("two dispatchers at once: each row is claimed by one, and by no claim", async (t) => {
    await t.subscribe("sub_a");
    const events = Array.from({ length: 20 }, (_, n) => `evt_${n}`);
    await t.capture(...events.map((id) => t.event(id)));
    const all = await items(t, ...events);
    const results = await Promise.all([
      t.store.dispatch(all, null, everything),
      t.store.dispatch([...all].reverse(), null, everything),
    ]);
    const rest = await t.store.dispatch(all, null, everything);
    const taken = [...results, rest].flatMap(({ deliveries }) => deliveries);
    equal(new Set(taken.map(({ id }) => id)).size, taken.length);
    const left = await t.claim();
    equal(taken.length + left.length, 20);
    for (const row of taken) like(await t.store.getDelivery(row.id, {}), { attempts: 1 });
    equal(
      (
        await t.store.record(
          taken.map((row) => t.delivered(row)),
          null,
        )
      ).recorded.length,
      taken.length,
    );
    same(new Set([...taken, ...left].map(proof).map(({ id }) => id)).size, 20);
  });
}
