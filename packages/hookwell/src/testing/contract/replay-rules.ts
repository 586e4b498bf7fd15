import { deliveryId } from "../../model/ids.ts";
import { equal, like, refused, same } from "./checks.ts";
import { advanceAll, countAll, ended, limits, makeReplay, newReplay, replayNow } from "./replays.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, type StoreWorld, second, start } from "./store-world.ts";

/** Deliveries that are sent again as a durable job. */
export function replayRules(rule: Rule): void {
  const record = async (t: StoreWorld, as: "delivered" | "failed" | "retry" | "released") => {
    const claimed = await t.claim();
    await t.store.record(
      claimed.map((row) => (as === "retry" ? t.retry(row, 5 * second) : t[as](row))),
      null,
    );
    return claimed.map((row) => row.eventId);
  };

  rule(
    "what failed is queued once as a new round, same id and bytes, and counted when it ends",
    async (t) => {
      await t.subscribe("sub_a");
      for (let n = 0; n < 5; n++) await ended(t, `evt_${n}`, n === 2 ? "delivered" : "failed");
      const before = await t.store.getDelivery(deliveryId("evt_1", "sub_a"), {});
      t.step(minute);
      equal(await countAll(t, newReplay(t)), 4);
      const made = await makeReplay(t, { count: 4 });
      like(made, {
        id: "rpl_1",
        status: "running",
        count: 4,
        queued: 0,
        createdAt: t.now(),
        finishedAt: undefined,
      });
      equal(await advanceAll(t), 4);
      like(await replayNow(t), { status: "done", queued: 4, delivered: 0, failed: 0, finishedAt: t.now() });
      like(await t.store.getDelivery(before!.id, {}), {
        status: "pending",
        round: 2,
        attempts: 0,
        reason: undefined,
        body: before!.body,
        createdAt: before!.createdAt,
      });
      const claimed = await t.claim();
      same(claimed.map(({ eventId }) => eventId).sort(), ["evt_0", "evt_1", "evt_3", "evt_4"]);
      const [first, second_, third, fourth] = claimed;
      await t.store.record([t.delivered(first!), t.failed(second_!), t.retry(third!, second)], null);
      await t.store.cancelDelivery(own, fourth!.id, {}, null);
      like(await replayNow(t), { queued: 4, delivered: 1, failed: 1, cancelled: 1, skipped: 0 });
      await advanceAll(t);
      like(await replayNow(t), { queued: 4, delivered: 1, failed: 1, cancelled: 1, skipped: 0 });
      t.step(minute);
      same(await record(t, "delivered"), [third!.eventId]);
      like(await replayNow(t), { delivered: 2, failed: 1, cancelled: 1 });
      same(await t.claimIds(), []);
    },
  );

  rule("statuses, period and each part of the selection say which rows it takes", async (t) => {
    await t.subscribe("sub_a", { tenantId: "acme", ownerId: "u1", eventTypes: ["user.*", "booking.made"] });
    await t.subscribe("sub_b", { url: "https://other.example:8443/in" });
    const audience = ["u1"];
    await ended(t, "evt_1", "failed", { audience, subject: "user:1" });
    await ended(t, "evt_2", "delivered", { audience, type: "booking.made", route: "booking.made" });
    t.step(minute);
    const middle = t.now();
    const [cancelled] = await t.publish("evt_3", { audience });
    await t.store.cancelDelivery(own, cancelled!, {}, null);
    await ended(t, "evt_4", "failed");
    t.step(1);
    const found = (overrides: Parameters<typeof newReplay>[1]) =>
      countAll(t, newReplay(t, { statuses: ["failed", "delivered", "cancelled"], ...overrides }));
    const selected = (selection: object) => found({ selection });
    equal(await selected({}), 4);
    equal(await selected({ subscriptionId: "sub_a" }), 3);
    equal(await selected({ tenantId: "acme" }), 3);
    equal(await selected({ ownerId: "u1" }), 3);
    equal(await selected({ ownerId: "u2" }), 0);
    equal(await selected({ projectId: "test" }), 0);
    equal(await selected({ eventId: "evt_2" }), 1);
    equal(await selected({ type: "booking.made" }), 1);
    equal(await selected({ subject: "user:1" }), 1);
    equal(await selected({ urlHost: "other.example" }), 1);
    equal(await selected({ urlHost: "other.example:8443", errorCode: "http_500" }), 1);
    equal(await selected({ errorCode: "timeout" }), 0);
    equal(await selected({ replayId: "rpl_none" }), 0);
    equal(await found({ selection: {}, statuses: ["cancelled"] }), 1);
    equal(await found({ selection: {}, statuses: ["failed"] }), 2);
    equal(await found({ selection: {}, since: middle }), 2);
    equal(await found({ selection: {}, until: middle }), 2);
    await makeReplay(t, { selection: { tenantId: "acme" }, statuses: ["failed", "cancelled"] });
    equal(await advanceAll(t), 2);
    same((await t.claim()).map(({ eventId }) => eventId).sort(), ["evt_1", "evt_3"]);
  });

  rule(
    "live deliveries of the same lane go first, whatever became of earlier tries of the replayed ones",
    async (t) => {
      await t.subscribe("sub_a");
      for (let n = 0; n < 3; n++) await ended(t, `evt_old_${n}`, "failed");
      t.step(minute);
      await makeReplay(t);
      await advanceAll(t);
      t.step(minute);
      await t.publish("evt_live_1");
      const [live, old] = await t.claim(2);
      const [one, two, three] = [0, 1, 2].map((n) => `evt_old_${n}`).sort(byId);
      same([live!.eventId, old!.eventId], ["evt_live_1", one]);
      await t.store.record([t.delivered(live!), t.retry(old!, second)], null);
      await t.store.record(
        (await t.claim(1)).map((row) => t.released(row)),
        null,
      );
      t.step(minute);
      await t.publish("evt_live_2");
      const rest = await t.claim();
      same(
        rest.map(({ eventId }) => eventId),
        ["evt_live_2", two, three, one],
      );
      await t.store.record(
        rest.map((row) => t.retry(row, second)),
        null,
      );
      // A lane in which only replayed rows wait is put to sleep, and wakes at their time.
      same(await t.claimIds(), []);
      t.step(second);
      const again = await t.claim();
      equal(again[0]!.eventId, "evt_live_2");
      equal(again.length, 4);
    },
  );

  rule("other lanes are not held up: a replayed row takes the turn of its lane", async (t) => {
    await t.subscribe("sub_a");
    await ended(t, "evt_1", "failed");
    await t.subscribe("sub_b", { eventTypes: ["booking.made"] });
    t.step(minute);
    await makeReplay(t);
    await advanceAll(t);
    for (const id of ["evt_2", "evt_3"]) await t.publish(id, { type: "booking.made", route: "booking.made" });
    const claimed = await t.claim(4, { rooms: new Map([["sub_a", 2]]) });
    same(
      claimed.slice(0, 2).map(({ subscriptionId }) => subscriptionId),
      ["sub_a", "sub_b"],
    );
  });

  rule("a sleeping lane wakes for what a replay put off, and not before", async (t) => {
    await t.subscribe("sub_a");
    await ended(t, "evt_1", "failed");
    t.step(minute);
    await makeReplay(t);
    await advanceAll(t);
    await record(t, "retry");
    same(await t.claimIds(), []);
    t.step(5 * second - 1);
    same(await t.claimIds(), []);
    like(await t.store.countRemaining(10), { pending: 0 });
    t.step(1);
    like(await t.store.countRemaining(10), { pending: 1 });
    same(await record(t, "delivered"), ["evt_1"]);
  });

  rule(
    "field-faults J2: a pending row is never touched, and one that a resend re-opened is left alone",
    async (t) => {
      await t.subscribe("sub_a");
      const [waiting] = await t.publish("evt_1");
      await record(t, "retry");
      await ended(t, "evt_2", "failed");
      const [resent] = await ended(t, "evt_3", "failed");
      t.step(second);
      await makeReplay(t, { statuses: ["failed", "delivered", "cancelled"] });
      await t.store.retryDelivery(own, resent!, {}, null);
      const before = await t.store.getDelivery(waiting!, {});
      equal(await advanceAll(t), 1);
      same(await t.store.getDelivery(waiting!, {}), before);
      like(await t.store.getDelivery(resent!, {}), { round: 2 });
      like(await replayNow(t), { status: "done", queued: 1 });
      // What was resent by hand is not the replay's to count.
      const [row] = await t.claim(1);
      equal(row!.id, resent);
      await t.store.record([t.delivered(row!)], null);
      like(await replayNow(t), { queued: 1, delivered: 0 });
    },
  );

  rule(
    "field-faults J2: what was cancelled while it was being sent is sent again only when that must be over",
    async (t) => {
      await t.subscribe("sub_a");
      const [byHand, byReplay] = [...(await t.publish("evt_1")), ...(await t.publish("evt_2"))];
      const sending = await t.claim();
      for (const { id } of sending) await t.store.cancelDelivery(own, id, {}, null);
      await refused("invalid_state", () => t.store.retryDelivery(own, byHand!, {}, null));
      t.step(1);
      await makeReplay(t, { statuses: ["cancelled"] });
      equal(await advanceAll(t), 0);
      like(await replayNow(t), { status: "done", skipped: 2 });
      same(
        (
          await t.store.record(
            sending.map((row) => t.delivered(row)),
            null,
          )
        ).recorded,
        [],
      );
      t.step(leaseMs);
      await t.store.retryDelivery(own, byHand!, {}, null);
      await makeReplay(t, { id: "rpl_2", statuses: ["cancelled"] });
      equal(await advanceAll(t), 1);
      same(await t.claimIds(), [byHand, byReplay]);
    },
  );

  rule("a row that a replay queued and a hand re-opened afterwards is counted once", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await ended(t, "evt_1", "failed");
    t.step(second);
    await makeReplay(t);
    await advanceAll(t);
    await record(t, "delivered");
    await t.store.retryDelivery(own, id!, {}, null);
    await record(t, "failed");
    await advanceAll(t);
    like(await replayNow(t), { queued: 1, delivered: 1, failed: 0 });
    same((await t.store.listDeliveries({ replayId: "rpl_1" }, { limit: 10 })).items, []);
  });

  rule("each step is whole and starts where the last one ended, also in another process", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 9; n++) await ended(t, `evt_${n}`, "failed");
    t.step(second);
    await makeReplay(t);
    const stores = [t.store, (await t.subject.reopen?.()) ?? t.store];
    let queued = 0;
    for (let turn = 0; turn < 12; turn++) {
      const steps = await Promise.all(stores.map((store) => store.replays.advance(limits, null)));
      for (const step of steps) queued += step.queued;
    }
    equal(queued, 9);
    like(await replayNow(t), { status: "done", queued: 9 });
    const rounds = (await t.store.listDeliveries({}, { limit: 100 })).items.map(({ round }) => round);
    same(rounds, Array(9).fill(2));
  });

  rule("at most so many of a replay are pending; it goes on as they end", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 7; n++) await ended(t, `evt_${n}`, "failed");
    t.step(second);
    await makeReplay(t);
    equal(await advanceAll(t, { pending: 3 }), 3);
    like(await replayNow(t), { status: "running", queued: 3 });
    t.step(limits.waitMs);
    equal(await advanceAll(t, { pending: 3 }), 0);
    await record(t, "delivered");
    t.step(limits.waitMs);
    equal(await advanceAll(t, { pending: 3 }), 3);
    await record(t, "failed");
    t.step(limits.waitMs);
    equal(await advanceAll(t, { pending: 3 }), 1);
    like(await replayNow(t), { status: "done", queued: 7, delivered: 3, failed: 3 });
  });

  rule("replays take turns", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    for (let n = 0; n < 4; n++) await ended(t, `evt_${n}`, "failed");
    t.step(second);
    await makeReplay(t);
    await makeReplay(t, { id: "rpl_2", selection: { subscriptionId: "sub_b" } });
    t.step(1);
    await t.store.replays.advance(limits, null);
    await t.store.replays.advance(limits, null);
    like(await replayNow(t, "rpl_1"), { queued: 2 });
    like(await replayNow(t, "rpl_2"), { queued: 2 });
  });

  rule("stopped it queues nothing more, and what it queued stays; it stops once", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 4; n++) await ended(t, `evt_${n}`, "failed");
    t.step(second);
    await makeReplay(t);
    await t.store.replays.advance(limits, null);
    like(await t.store.replays.stop(own, "rpl_1", {}, null), {
      status: "stopped",
      queued: 2,
      finishedAt: t.now(),
    });
    equal(await advanceAll(t), 0);
    equal((await t.claimIds()).length, 2);
    await refused("invalid_state", () => t.store.replays.stop(own, "rpl_1", {}, null));
    await refused("not_found", () => t.store.replays.stop(own, "rpl_none", {}, null));
  });

  rule(
    "it fails when its subscription is disabled or deleted while it runs; a paused one queues and holds",
    async (t) => {
      await t.subscribe("sub_a");
      for (let n = 0; n < 5; n++) await ended(t, `evt_${n}`, "failed");
      t.step(second);
      await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
      await makeReplay(t);
      await t.store.replays.advance(limits, null);
      same(await t.claimIds(), []);
      const [row] = (await t.store.listDeliveries({ replayId: "rpl_1" }, { limit: 1 })).items;
      like(row, { status: "pending", hold: "paused", round: 2 });
      await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
      const { ended: told } = await t.store.replays.advance(limits, null);
      same(told, [{ id: "rpl_1", status: "failed", subscriptionId: "sub_a" }]);
      const failed = await replayNow(t);
      like(failed, { status: "failed", queued: 2, finishedAt: t.now() });
      equal(failed.error?.includes("sub_a became disabled"), true);
    },
  );

  rule("of a wider selection, rows of subscriptions that take nothing are left out", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    await ended(t, "evt_1", "failed");
    await t.store.setSubscriptionStatus(own, "sub_b", "disabled", "by_hand", {});
    t.step(second);
    equal(await countAll(t, newReplay(t, { selection: {} })), 1);
    await makeReplay(t, { selection: {} });
    equal(await advanceAll(t), 1);
    same(
      (await t.claim()).map(({ subscriptionId }) => subscriptionId),
      ["sub_a"],
    );
  });

  rule(
    "of an ordered subscription nothing lower goes out after something higher, and one goes at a time",
    async (t) => {
      await t.subscribe("sub_a", { ordering: "subject" });
      const subject = "user:1";
      for (let revision = 1; revision <= 3; revision++)
        await ended(t, `evt_r${revision}`, "failed", { subject, revision });
      for (let n = 0; n < 2; n++) await ended(t, `evt_c${n}`, "failed", { subject: "user:2" });
      t.step(second);
      await makeReplay(t, { count: 5 });
      equal(await advanceAll(t, { look: 100, most: 100 }), 3);
      like(await replayNow(t), { status: "done", queued: 3, skipped: 2 });
      const [first, other] = await t.claim();
      same([first!.eventId, other!.eventId].sort(), ["evt_c0", "evt_r3"]);
      same(await t.claimIds(), []);
      await t.store.record([t.delivered(first!), t.delivered(other!)], null);
      same(
        (await t.claim()).map(({ eventId }) => eventId),
        ["evt_c1"],
      );
    },
  );

  rule("it belongs to the project, tenant and owner of its selection; lists are newest first", async (t) => {
    await t.subscribe("sub_a");
    const one = await makeReplay(t, { selection: { projectId: "live", tenantId: "acme" } });
    t.step(1);
    const two = await makeReplay(t, {
      id: "rpl_2",
      selection: { projectId: "live", subscriptionId: "sub_a" },
    });
    t.step(1);
    const all = await makeReplay(t, { id: "rpl_3", selection: { type: "user.created" } });
    const { replays } = t.store;
    same(await replays.get("rpl_1", { projectId: "live", tenantId: "acme" }), one);
    equal(await replays.get("rpl_1", { tenantId: "other" }), undefined);
    equal(await replays.get("rpl_1", { ownerId: "u1" }), undefined);
    equal(await replays.get("rpl_3", { projectId: "live" }), undefined);
    same(await replays.get("rpl_3", {}), all);
    await refused("not_found", () => replays.stop(own, "rpl_3", { projectId: "live" }, null));
    same((await replays.list({}, { limit: 10 })).items, [all, two, one]);
    same((await replays.list({ projectId: "live" }, { limit: 10 })).items, [two, one]);
    same((await replays.list({ subscriptionId: "sub_a" }, { limit: 10 })).items, [two]);
    same((await replays.list({ status: "done" }, { limit: 10 })).items, []);
    const page = await replays.list({}, { limit: 2 });
    same((await replays.list({}, { limit: 2, after: page.next! })).items, [one]);
    await refused("duplicate_id", () => makeReplay(t, { id: "rpl_3" }));
  });

  rule("made in a transaction it exists if that commits", async (t) => {
    await refused("rolled_back", () =>
      t.subject.transaction(async (scope) => {
        await t.store.replays.create(scope, newReplay(t));
        throw Object.assign(new Error("no"), { code: "rolled_back" });
      }),
    );
    equal(await t.store.replays.get("rpl_1", {}), undefined);
    await t.subject.transaction((scope) => t.store.replays.create(scope, newReplay(t)));
    like(await replayNow(t), { status: "running" });
  });

  rule("ended ones are forgotten after their time, and what ends later is counted nowhere", async (t) => {
    await t.subscribe("sub_a");
    await ended(t, "evt_1", "failed");
    t.step(second);
    await makeReplay(t);
    await advanceAll(t);
    t.step(limits.keepMs! - 1);
    await t.store.replays.advance(limits, null);
    like(await replayNow(t), { status: "done" });
    t.step(1);
    await t.store.replays.advance(limits, null);
    equal(await t.store.replays.get("rpl_1", {}), undefined);
    await record(t, "delivered");
    await t.store.replays.advance(limits, null);
    equal(await t.store.replays.get("rpl_1", {}), undefined);
  });

  rule("a replay of nothing is done at once", async (t) => {
    await t.subscribe("sub_a");
    await makeReplay(t, { since: new Date(start - minute), statuses: ["failed", "missing"] });
    equal(await advanceAll(t), 0);
    like(await replayNow(t), { status: "done", queued: 0, skipped: 0 });
    same(await t.store.replays.advance(limits, null), { queued: 0, again: false, running: false, ended: [] });
  });
}

/** The order of rows that are due at the same time. */
function byId(a: string, b: string): number {
  return deliveryId(a, "sub_a") < deliveryId(b, "sub_a") ? -1 : 1;
}
