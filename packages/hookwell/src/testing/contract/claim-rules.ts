import { equal, like, ok, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, type StoreWorld, second } from "./store-world.ts";

/** The turn rule and what a claim hands out: DESIGN section 5. */
export function claimRules(rule: Rule): void {
  /** Lanes with so many due rows each; rows are named after lane and number. */
  async function fill(t: StoreWorld, lanes: Readonly<Record<string, number>>): Promise<void> {
    for (const [lane, count] of Object.entries(lanes))
      for (let n = 1; n <= count; n++)
        await t.enqueue(`${lane}${n}`, { subscriptionId: lane, nextAttemptAt: t.in(n - 100) });
  }

  rule(
    "events 18: lanes in id order after the cursor, one row a turn, and the cursor is the last row's lane",
    async (t) => {
      await fill(t, { c: 2, a: 4, b: 1 });
      const first = await t.store.claim({ now: null, limit: 2, leaseMs });
      same(
        first.deliveries.map((d) => d.id),
        ["a1", "b1"],
      );
      equal(first.cursor, "b");
      const next = await t.store.claim({ now: null, limit: 3, leaseMs, cursor: first.cursor });
      same(
        next.deliveries.map((d) => d.id),
        ["c1", "a2", "c2"],
      );
      equal(next.cursor, "c");
      const last = await t.store.claim({ now: null, limit: 10, leaseMs, cursor: next.cursor });
      same(
        last.deliveries.map((d) => d.id),
        ["a3", "a4"],
      );
      equal(last.cursor, "a");
    },
  );

  rule("events 18: a claim that finds nothing answers the cursor it was given", async (t) => {
    const nothing = { deliveries: [], failed: [] };
    same(await t.store.claim({ now: null, limit: 2, leaseMs, cursor: "m" }), { ...nothing, cursor: "m" });
    same(await t.store.claim({ now: null, limit: 2, leaseMs }), { ...nothing, cursor: "" });
  });

  rule(
    "events 18: a cursor need not name a lane, and lanes before it come after those behind it",
    async (t) => {
      await fill(t, { a: 1, c: 1, e: 1 });
      same(await t.claimIds(3, { cursor: "b" }), ["c1", "e1", "a1"]);
      t.step(leaseMs);
      same(await t.claimIds(3, { cursor: "z" }), ["a1", "c1", "e1"]);
      t.step(leaseMs);
      same(await t.claimIds(3, { cursor: "c" }), ["e1", "a1", "c1"]);
    },
  );

  rule("events 18: turns go on over lanes of different length until the limit", async (t) => {
    await fill(t, { a: 5, b: 2, c: 3 });
    same(await t.claimIds(9), ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "c3", "a4"]);
  });

  rule(
    "events 18: a limit inside a turn leaves out the last lanes of that turn, not those of one before",
    async (t) => {
      await fill(t, { a: 3, b: 3, c: 3 });
      same(await t.claimIds(4), ["a1", "b1", "c1", "a2"]);
      same(await t.claimIds(5), ["a3", "b2", "c2", "b3", "c3"]);
    },
  );

  rule("events 18: following the cursor reaches each of 60 lanes within three claims of 20", async (t) => {
    const lane = (n: number): string => `lane_${String(n).padStart(2, "0")}`;
    for (let n = 0; n < 60; n++) await fill(t, { [lane(n)]: n === 0 ? 30 : 2 });
    const reached = new Set<string>();
    let cursor = "";
    for (let round = 0; round < 3; round++) {
      const result = await t.store.claim({ now: null, limit: 20, leaseMs, cursor });
      for (const { subscriptionId } of result.deliveries) reached.add(subscriptionId);
      cursor = result.cursor;
    }
    equal(reached.size, 60);
  });

  rule("a lane gets at most its room, and 0 leaves it out", async (t) => {
    await fill(t, { a: 4, b: 4, c: 4, d: 4 });
    const rooms = new Map([
      ["a", 3],
      ["b", 0],
      ["d", 1],
    ]);
    same(await t.claimIds(10, { room: 2, rooms }), ["a1", "c1", "d1", "a2", "c2", "a3"]);
    same(await t.claimIds(10, { room: 0 }), []);
    same(await t.claimIds(10, { room: 0, rooms: new Map([["b", 1]]) }), ["b1"]);
    same(await t.claimIds(3, { rooms: new Map([["a", 0]]) }), ["b2", "c3", "d2"]);
  });

  rule("a room of 0 does not make the store forget the lane's rows", async (t) => {
    await fill(t, { a: 1 });
    same(await t.claimIds(10, { rooms: new Map([["a", 0]]) }), []);
    same(await t.claimIds(10), ["a1"]);
  });

  rule("events 38: an ended lease is due at its end, between the rows that wait", async (t) => {
    await t.enqueue("a1");
    await t.claimOne();
    await t.enqueue("a2", { nextAttemptAt: t.in(leaseMs - 1) });
    await t.enqueue("a3", { nextAttemptAt: t.in(leaseMs + 1) });
    t.step(leaseMs + 1);
    same(await t.claimIds(), ["a2", "a1", "a3"]);
  });

  rule(
    "a claim sets a new token, a lease from now and one more attempt, and leaves the times of the row",
    async (t) => {
      await t.subscribe("sub_a", { headers: { "X-Api-Key": "k" } });
      const [id] = await t.publish("evt_1", { tenantId: "acme", subject: "user:1", revision: 3 });
      const created = t.now();
      t.step(second);
      const claimed = await t.claimOne();
      like(claimed, {
        id,
        eventId: "evt_1",
        subscriptionId: "sub_a",
        url: "https://sub-a.example/hook",
        secret: "whsec_of_sub_a",
        secrets: ["whsec_of_sub_a"],
        headers: { "X-Api-Key": "k" },
        payload: Buffer.from('{"event":"evt_1"}'),
        status: "pending",
        attempts: 1,
        round: 1,
        lastError: undefined,
        type: "user.created",
        projectId: "live",
        tenantId: "acme",
        subject: "user:1",
        nextAttemptAt: created,
        createdAt: created,
        updatedAt: created,
        leaseUntil: t.in(leaseMs),
      });
      ok(claimed.leaseToken.length >= 16);
      same(await t.store.get(id!), claimed);
    },
  );

  rule("the lease is as long as the claim says", async (t) => {
    await t.enqueue("a1");
    await t.claim(1, { leaseMs: 7 * minute });
    t.step(7 * minute - 1);
    same(await t.claimIds(), []);
    t.step(1);
    same(await t.claimIds(), ["a1"]);
  });

  rule("a date given as now counts instead of the store's clock", async (t) => {
    await t.enqueue("a1", { nextAttemptAt: t.in(minute) });
    same(await t.claimIds(1), []);
    const [claimed] = await t.claim(1, { now: t.in(minute) });
    same(claimed?.leaseUntil, t.in(minute + leaseMs));
  });

  for (const status of ["paused", "disabled", "deleted"] as const)
    rule(`field-faults H1: rows of a ${status} subscription are not claimed, other lanes are`, async (t) => {
      await t.subscribe("sub_a");
      await t.subscribe("sub_b");
      const [, b] = await t.publish("evt_1");
      await t.store.setSubscriptionStatus(own, "sub_a", status, undefined, {});
      same(await t.claimIds(), [b]);
      t.step(minute);
      same(await t.claimIds(), [b]);
    });

  rule("field-faults H1: an ended lease of a deleted subscription is not claimed again", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.claimOne();
    await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
    t.step(minute);
    same(await t.claimIds(), []);
  });

  rule(
    "events 19: another store object on the same database sees the claim, and its token counts there",
    async (t) => {
      const other = (await t.subject.reopen?.()) ?? t.store;
      await t.enqueue("a1");
      const claimed = await t.claimOne();
      same((await other.claim({ now: null, limit: 5, leaseMs })).deliveries, []);
      await other.record([t.delivered(claimed)], null);
      equal((await t.store.get("a1"))?.status, "delivered");
    },
  );
}
