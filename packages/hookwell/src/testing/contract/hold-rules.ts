import { equal, like, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, proof, retention, type StoreWorld, second } from "./store-world.ts";

type Selector = Parameters<StoreWorld["store"]["setHold"]>[1]["selector"];

async function hold(t: StoreWorld, selector: Selector, id = `hld_${JSON.stringify(selector)}`) {
  return t.store.setHold(own, { id, selector }, null);
}

/** Releases, and gives back what was set aside. */
async function release(t: StoreWorld, selector: Selector): Promise<void> {
  equal((await t.store.releaseHold(own, selector)) !== undefined, true);
  await giveBack(t);
}

async function giveBack(t: StoreWorld, limit = 1_000): Promise<void> {
  while ((await t.store.giveBackHeld(limit, null)).more);
}

const everything = { all: true } as const;
const bookings = { type: "booking.*" } as const;
const ofLive = { projectId: "live" } as const;

/** What an operator holds is captured and dispatched, and not sent. */
export function holdRules(rule: Rule): void {
  for (const [what, selector] of [
    ["everything", everything],
    ["a project", ofLive],
    ["a type", { type: "user.created" }],
    ["a family of types", { type: "user.*" }],
  ] as const)
    rule(
      `a hold of ${what}: events are captured and dispatched, nothing is claimed until release`,
      async (t) => {
        await t.subscribe("sub_a");
        const [before] = await t.publish("evt_before");
        await hold(t, selector);
        const [after] = await t.publish("evt_after");
        same(await t.claimIds(), []);
        t.step(minute);
        same(await t.claimIds(), []);
        like(await t.store.getDelivery(before!, {}), { status: "pending", hold: "held", attempts: 0 });
        like(await t.store.getEvent("evt_after", {}), { state: "dispatched", outcome: "held" });
        const held = await t.store.listEvents({ outcome: "held" }, { limit: 10 });
        same(held.items.map(({ id }) => id).sort(), ["evt_after", "evt_before"]);
        await release(t, selector);
        like(await t.store.getDelivery(before!, {}), { hold: undefined });
        same((await t.claimIds()).sort(), [before, after].sort());
      },
    );

  rule("other projects and other types flow past what is held, in the lane too", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b", { projectId: "other" });
    const [held] = await t.publish("evt_1", { type: "booking.created" });
    t.step(1);
    const [deeper] = await t.publish("evt_2", { type: "booking.host.changed" });
    const [alike] = await t.publish("evt_3", { type: "bookings.created" });
    const [free] = await t.publish("evt_4", { type: "user.created" });
    const [elsewhere] = await t.publish("evt_5", { type: "user.created", projectId: "other" });
    await hold(t, bookings);
    same((await t.claimIds()).sort(), [alike, free, elsewhere].sort());
    await hold(t, { projectId: "other" });
    const [more] = await t.publish("evt_6");
    await t.publish("evt_7", { projectId: "other" });
    same(await t.claimIds(), [more]);
    await release(t, bookings);
    same(await t.claimIds(), [held, deeper]);
  });

  rule("holds overlap: what two cover goes when both are released, in whatever order", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1", { type: "booking.created" });
    for (const selector of [ofLive, bookings, everything, { type: "booking.created" }])
      await hold(t, selector);
    same(await t.claimIds(), []);
    for (const selector of [everything, ofLive, { type: "booking.created" }]) {
      await release(t, selector);
      same(await t.claimIds(), []);
      like(await t.store.getDelivery(id!, {}), { hold: "held" });
    }
    await release(t, bookings);
    same(await t.claimIds(), [id]);
  });

  rule("holding twice changes nothing and says so; releasing what is not held says so", async (t) => {
    const first = await t.store.setHold(
      own,
      { id: "hld_1", selector: bookings, reason: "a", heldBy: "b" },
      null,
    );
    const wanted = { id: "hld_1", selector: bookings, reason: "a", heldBy: "b", createdAt: t.now() };
    same(first, { hold: wanted, created: true });
    t.step(second);
    same(await t.store.setHold(own, { id: "hld_2", selector: bookings, reason: "c" }, null), {
      hold: wanted,
      created: false,
    });
    same(await t.store.listHolds(), [wanted]);
    same(await t.store.releaseHold(own, everything), undefined);
    same(await t.store.releaseHold(own, { id: "hld_2" }), undefined);
    same(await t.store.releaseHold(own, { id: "hld_1" }), wanted);
    same(await t.store.releaseHold(own, bookings), undefined);
    same(await t.store.listHolds(), []);
  });

  rule("holds are listed oldest first, and a project sees its own only", async (t) => {
    for (const [index, selector] of [ofLive, everything, { projectId: "other" }, bookings].entries()) {
      await hold(t, selector, `hld_${index}`);
      t.step(1);
    }
    const ids = async (projectId?: string) =>
      (await t.store.listHolds({ projectId })).map((record) => record.id);
    same(await ids(), ["hld_0", "hld_1", "hld_2", "hld_3"]);
    same(await ids("other"), ["hld_2"]);
    same(await ids("none"), []);
  });

  rule("the hundred-and-first hold is refused, and leaves nothing", async (t) => {
    for (let n = 0; n < 100; n++) await hold(t, { type: `type_${n}` }, `hld_${n}`);
    await refused("validation_failed", () => hold(t, everything));
    same((await t.store.listHolds()).length, 100);
    same((await hold(t, { type: "type_7" })).created, false);
  });

  rule("a hold and a release join the caller's transaction", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await t.subject
      .transaction(async (scope) => {
        await t.store.setHold(scope, { id: "hld_1", selector: everything }, null);
        throw new Error("rolled back");
      })
      .catch(() => {});
    same(await t.store.listHolds(), []);
    await t.subject.transaction((scope) =>
      t.store.setHold(scope, { id: "hld_1", selector: everything }, null),
    );
    same(await t.claimIds(), []);
    await t.subject.transaction((scope) => t.store.releaseHold(scope, everything));
    same(await t.claimIds(), [id]);
  });

  rule("a hold is there for another store object on the same database, and after a restart", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1", { type: "booking.created" });
    await hold(t, bookings);
    const other = (await t.subject.reopen?.()) ?? t.store;
    same((await other.claim({ now: null, limit: 10, leaseMs })).deliveries, []);
    await other.releaseHold(own, bookings);
    while ((await other.giveBackHeld(10, null)).more);
    same(await t.claimIds(), [id]);
  });

  rule("what is in flight when the hold begins is finished; its next attempt waits", async (t) => {
    await t.subscribe("sub_a");
    const [delivered, retried, released] = [
      (await t.publish("evt_1"))[0]!,
      (await t.publish("evt_2"))[0]!,
      (await t.publish("evt_3"))[0]!,
    ];
    const claimed = new Map((await t.claim()).map((row) => [row.id, row]));
    await hold(t, ofLive);
    const { recorded } = await t.store.record(
      [
        t.delivered(claimed.get(delivered)!),
        t.retry(claimed.get(retried)!, second),
        t.released(claimed.get(released)!),
      ],
      null,
    );
    equal(recorded.length, 3);
    like(await t.store.getDelivery(delivered, {}), { status: "delivered", hold: undefined });
    t.step(minute);
    same(await t.claimIds(), []);
    like(await t.store.getDelivery(retried, {}), { hold: "held", attempts: 1 });
    like(await t.store.getDelivery(released, {}), { hold: "held", attempts: 0 });
    await release(t, ofLive);
    same((await t.claimIds()).sort(), [retried, released].sort());
  });

  rule("a lease that ends under a hold is not claimed again; its late outcome still counts", async (t) => {
    await t.subscribe("sub_a");
    const [one] = await t.publish("evt_1");
    const [two] = await t.publish("evt_2");
    const claimed = await t.claim();
    await hold(t, { type: "user.*" });
    t.step(leaseMs);
    same(await t.claimIds(), []);
    const late = claimed.find((row) => row.id === one)!;
    same((await t.store.record([t.delivered(late)], null)).stale, []);
    await release(t, { type: "user.*" });
    const [again] = await t.claim();
    like(again, { id: two, attempts: 2 });
  });

  rule("a held head holds its subject: no later revision overtakes it, whatever their types", async (t) => {
    await t.subscribe("sub_a", { ordering: "subject" });
    const subject = "booking:1";
    const [one] = await t.publish("evt_1", { type: "booking.created", subject, revision: 1 });
    const [two] = await t.publish("evt_2", { type: "user.created", subject, revision: 2 });
    const [other] = await t.publish("evt_3", { type: "user.created", subject: "booking:2", revision: 1 });
    await hold(t, bookings);
    same(await t.claimIds(), [other]);
    const [three] = await t.publish("evt_4", { type: "user.created", subject, revision: 3 });
    same(await t.claimIds(), []);
    like(await t.store.getDelivery(one!, {}), { hold: "held" });
    like(await t.store.getDelivery(two!, {}), { hold: "ordering" });
    await release(t, bookings);
    for (const id of [one, two, three]) {
      const [next] = await t.claim();
      same(next?.id, id);
      await t.store.record([t.delivered(next!)], null);
    }
  });

  rule("a lower revision that comes during the hold goes before the held head", async (t) => {
    await t.subscribe("sub_a", { ordering: "subject" });
    const [two] = await t.publish("evt_2", { subject: "user:1", revision: 2 });
    await hold(t, { type: "user.created" });
    same(await t.claimIds(), []);
    const [one] = await t.publish("evt_1", { subject: "user:1", revision: 1, type: "user.updated" });
    const first = await t.claimOne();
    same(first.id, one);
    await t.store.record([t.delivered(first)], null);
    same(await t.claimIds(), []);
    await release(t, { type: "user.created" });
    same(await t.claimIds(), [two]);
  });

  rule("retry and cancel by hand work on what is held, and send nothing", async (t) => {
    await t.subscribe("sub_a");
    const [one] = await t.publish("evt_1");
    const [two] = await t.publish("evt_2");
    const [three] = await t.publish("evt_3");
    const first = (await t.claim(1))[0]!;
    await t.store.record([t.delivered(first)], null);
    await hold(t, { type: "user.*" });
    same(await t.claimIds(), []);
    for (const id of [one!, two!])
      like(await t.store.retryDelivery(own, id, {}, null), { status: "pending", hold: "held" });
    like(await t.store.cancelDelivery(own, three!, {}, null), { status: "cancelled", hold: undefined });
    same(await t.claimIds(), []);
    await release(t, { type: "user.*" });
    same((await t.claimIds()).sort(), [one, two].sort());
  });

  rule("pause and hold are independent: a row goes when neither stops it", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await hold(t, ofLive);
    same(await t.claimIds(), []);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    like(await t.store.getDelivery(id!, {}), { hold: "paused" });
    await release(t, ofLive);
    same(await t.claimIds(), []);
    await hold(t, ofLive);
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    same(await t.claimIds(), []);
    like(await t.store.getDelivery(id!, {}), { hold: "held" });
    await release(t, ofLive);
    same(await t.claimIds(), [id]);
  });

  rule(
    "a url changed under a hold is where the held row goes; a deleted subscription's rows are cancelled",
    async (t) => {
      await t.subscribe("sub_a");
      await t.subscribe("sub_b");
      const [a, b] = await t.publish("evt_1");
      await hold(t, { type: "user.*" });
      same(await t.claimIds(), []);
      await t.store.updateSubscription(own, "sub_a", { url: "https://new.example/" }, {});
      await t.store.setSubscriptionStatus(own, "sub_b", "deleted", undefined, {});
      same(await t.claimIds(), []);
      await t.store.maintain(null, 100, null);
      like(await t.store.getDelivery(b!, {}), { status: "cancelled", reason: "deleted" });
      await release(t, { type: "user.*" });
      const [sent] = await t.claim();
      like(sent, { id: a, url: "https://new.example/" });
    },
  );

  rule("retention leaves held rows, their events and bodies, however long the hold", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    await hold(t, ofLive);
    same(await t.claimIds(), []);
    t.step(400 * 24 * 60 * minute);
    const { prunedDeliveries, prunedEvents } = await t.store.maintain(retention, 100, null);
    same([prunedDeliveries, prunedEvents], [0, 0]);
    await release(t, ofLive);
    const claimed = await t.claimOne();
    same([claimed.id, claimed.payload], [id, Buffer.from('{"event":"evt_1"}')]);
  });

  rule("what is held is neither late nor counted as remaining; what is not, is", async (t) => {
    await t.subscribe("sub_a");
    const start = t.now();
    await t.publish("evt_1", { type: "booking.created" });
    t.step(second);
    const later = t.now();
    await t.publish("evt_2");
    const seen = async () => [
      (await t.store.lag(null)).oldestDueAt,
      (await t.store.countRemaining(10, null)).pending,
    ];
    same(await seen(), [start, 2]);
    await hold(t, bookings);
    same(await seen(), [later, 1]);
    await t.claim(1, { room: 0 });
    await hold(t, everything);
    same(await seen(), [undefined, 0]);
    await release(t, everything);
    same(await seen(), [later, 1]);
    await release(t, bookings);
    same(await seen(), [start, 2]);
  });

  rule("operational events are held like all others", async (t) => {
    await t.subscribe("sub_ops", { eventTypes: ["hookwell.*"] });
    const [told] = await t.publish("evt_ops", { type: "hookwell.delivery.failed" });
    await hold(t, { type: "hookwell.*" });
    same(await t.claimIds(), []);
    await release(t, { type: "hookwell.*" });
    await hold(t, everything);
    same(await t.claimIds(), []);
    await release(t, everything);
    same(await t.claimIds(), [told]);
  });

  rule("limits of a lane are spent by what is sent, not by what is held", async (t) => {
    await t.subscribe("sub_a", { maxInFlight: 1, rateLimit: { limit: 1, perSeconds: 1 } });
    const [held] = await t.publish("evt_1", { type: "booking.created" });
    const [free] = await t.publish("evt_2");
    await hold(t, bookings);
    const sent = await t.claimOne();
    same(sent.id, free);
    await t.store.record([t.delivered(sent)], null);
    t.step(second);
    same(await t.claimIds(), []);
    await release(t, bookings);
    same(await t.claimIds(), [held]);
  });

  rule(
    "thousands of held rows before one that flows: it is found, and all come back in order of their time",
    async (t) => {
      await t.subscribe("sub_a", { eventTypes: ["user.*"] });
      const ids: string[] = [];
      for (let n = 0; n < 700; n++) {
        const id = `dlv_${String(n).padStart(4, "0")}`;
        await t.enqueue(id, { type: "booking.created", nextAttemptAt: t.in(n - 1_000) });
        ids.push(id);
      }
      await t.enqueue("dlv_free", { type: "user.created" });
      await hold(t, bookings);
      const found: string[] = [];
      for (let again = true; again; ) {
        const result = await t.store.claim({ now: null, limit: 10, leaseMs });
        found.push(...result.deliveries.map(({ id }) => id));
        again = result.again ?? false;
      }
      same(found, ["dlv_free"]);
      await t.store.releaseHold(own, bookings);
      await giveBack(t, 100);
      equal(await t.store.countToGiveBack(10), 0);
      same(await t.claimIds(1_000), ids);
    },
  );

  rule("a claim that is stale after release and hold again loses nothing", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    for (let n = 0; n < 3; n++) {
      await hold(t, ofLive, `hld_${n}`);
      same(await t.claimIds(), []);
      await t.store.releaseHold(own, ofLive);
      if (n === 1) await giveBack(t);
    }
    await giveBack(t);
    const claimed = await t.claimOne();
    same(claimed.id, id);
    same((await t.store.record([{ ...proof(claimed), kind: "released" }], null)).stale, []);
  });
}
