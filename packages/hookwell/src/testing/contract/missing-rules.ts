import { deliveryId } from "../../model/ids.ts";
import type { MissingDelivery, MissingFill } from "../../store/replay-contract.ts";
import { equal, like, same } from "./checks.ts";
import { advanceAll, countAll, limits, makeReplay, newReplay, replayNow } from "./replays.ts";
import type { Rule } from "./rule.ts";
import { day, minute, own, type StoreWorld, second, start } from "./store-world.ts";

const routes = ["user.created", "booking.made", "*"];

/** Events that became no delivery, and are to become one. */
export function missingRules(rule: Rule): void {
  const missing = (t: StoreWorld, more: object = {}) => newReplay(t, { statuses: ["missing"], ...more });
  const take = (t: StoreWorld, of: readonly string[] = routes) => t.store.replays.takeMissing(of, 100, null);
  const disabled = async (t: StoreWorld, work: () => Promise<unknown>): Promise<void> => {
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
    await work();
    await t.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
  };
  const fillOf = ({ event, match, tries: _tries, ...key }: MissingDelivery): MissingFill => ({
    ...key,
    ...(event &&
      match && {
        delivery: {
          id: deliveryId(event.id, match.subscriptionId),
          subscriptionId: match.subscriptionId,
          endpointId: match.endpointId,
          ...(match.ordered && { ordered: true as const }),
          ...(!event.fannedOut && {
            body: { variant: "late", bytes: Buffer.from(`{"late":"${event.id}"}`) },
          }),
        },
      }),
  });
  const fillAll = async (t: StoreWorld): Promise<number> =>
    t.store.replays.fillMissing((await take(t)).map(fillOf), null);

  rule(
    "field-faults H2: events that a disabled subscription missed are found, noted once and delivered",
    async (t) => {
      await t.subscribe("sub_a");
      await t.publish("evt_before");
      await disabled(t, async () => {
        for (let n = 0; n < 5; n++) await t.publish(`evt_${n}`);
      });
      await t.publish("evt_after");
      await t.capture(t.event("evt_new"));
      t.step(second);
      equal(await countAll(t, missing(t)), 5);
      await makeReplay(t, { statuses: ["missing"], count: 5 });
      equal(await advanceAll(t), 0);
      like(await replayNow(t), { status: "running", queued: 0 });
      const rows = await take(t);
      same(
        rows.map(({ eventId, tries, match, event }) => [eventId, tries, match?.subscriptionId, event?.data]),
        [0, 1, 2, 3, 4].map((n) => [`evt_${n}`, 0, "sub_a", `{"id":"evt_${n}"}`]),
      );
      same(await take(t, ["other.type"]), []);
      equal(await t.store.replays.fillMissing(rows.map(fillOf), null), 5);
      equal(await t.store.replays.fillMissing(rows.map(fillOf), null), 0);
      same(await take(t), []);
      t.step(limits.waitMs);
      await advanceAll(t);
      like(await replayNow(t), { status: "done", queued: 5, skipped: 0 });
      const claimed = await t.claim();
      // Live ones first.
      same(
        claimed.map(({ eventId }) => eventId),
        ["evt_before", "evt_after", "evt_0", "evt_1", "evt_2", "evt_3", "evt_4"].sort(
          (a, b) => Number(a > "evt_9") * -1 + Number(b > "evt_9") || byId(a, b),
        ),
      );
      const late = claimed.find(({ eventId }) => eventId === "evt_3")!;
      equal(Buffer.from(late.payload).toString(), '{"late":"evt_3"}');
      await t.store.record(
        claimed.map((row) => t.delivered(row)),
        null,
      );
      like(await replayNow(t), { delivered: 5, failed: 0 });
      equal(await countAll(t, missing(t)), 0);
    },
  );

  rule(
    "it counts what matches now: project, tenant, owner, types and the parts of the selection",
    async (t) => {
      await t.subscribe("sub_a", { tenantId: "acme", ownerId: "u1", eventTypes: ["user.*", "booking.made"] });
      const given: [string, object][] = [
        ["evt_yes", { tenantId: "acme", audience: ["u1", "u2"], subject: "user:1" }],
        ["evt_free", { audience: ["u1"], type: "booking.made", route: "booking.made" }],
        ["evt_tenant", { tenantId: "other", audience: ["u1"] }],
        ["evt_owner", { tenantId: "acme", audience: ["u2"] }],
        ["evt_nobody", { tenantId: "acme" }],
        ["evt_type", { tenantId: "acme", audience: ["u1"], type: "booking.lost", route: "booking.lost" }],
        ["evt_project", { projectId: "test", audience: ["u1"] }],
        ["evt_ours", { type: "hookwell.delivery.failed", route: "*" }],
      ];
      await disabled(t, async () => {
        for (const [id, facts] of given) await t.publish(id, facts);
      });
      t.step(second);
      const selected = (selection: object) =>
        countAll(t, missing(t, { selection: { subscriptionId: "sub_a", ...selection } }));
      equal(await selected({}), 2);
      equal(await selected({ type: "booking.made" }), 1);
      equal(await selected({ subject: "user:1" }), 1);
      equal(await selected({ eventId: "evt_free" }), 1);
      equal(await selected({ eventId: "evt_owner" }), 0);
      await t.store.updateSubscription(own, "sub_a", { eventTypes: [] }, {});
      equal(await selected({}), 3);
      await t.store.updateSubscription(own, "sub_a", { eventTypes: ["hookwell.*"] }, {});
      equal(await selected({}), 0);
    },
  );

  rule(
    "no event from before the promised window is missing: its delivered row may be pruned by now",
    async (t) => {
      await t.subscribe("sub_a");
      await t.subscribe("sub_b");
      await t.publish("evt_1");
      await t.store.record(
        (await t.claim()).map((row) => (row.subscriptionId === "sub_a" ? t.delivered(row) : t.failed(row))),
        null,
      );
      t.step(29 * day);
      await disabled(t, () => t.publish("evt_2"));
      t.step(2 * day);
      const retention = { deliveredMs: 30 * day, failedMs: 90 * day, eventsMs: 30 * day, heldMs: 30 * day };
      await t.store.maintain(retention, 100, null);
      equal((await t.store.getEvent("evt_1", {}))?.outcome, "failed");
      same(
        (await t.store.listDeliveries({ eventId: "evt_1", subscriptionId: "sub_a" }, { limit: 1 })).items,
        [],
      );
      equal(await countAll(t, missing(t)), 1);
      await makeReplay(t, { statuses: ["missing"] });
      await advanceAll(t);
      same(
        (await take(t)).map(({ eventId }) => eventId),
        ["evt_2"],
      );
    },
  );

  rule("deliveries that ended go first, then what is missing", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.store.record(
      (await t.claim()).map((row) => t.failed(row)),
      null,
    );
    await disabled(t, () => t.publish("evt_2"));
    t.step(second);
    equal(await countAll(t, newReplay(t, { statuses: ["failed", "missing"] })), 2);
    await makeReplay(t, { statuses: ["failed", "missing"] });
    equal(await advanceAll(t), 1);
    equal(await fillAll(t), 1);
    t.step(limits.waitMs);
    await advanceAll(t);
    like(await replayNow(t), { status: "done", queued: 2 });
    same(
      (await t.claim()).map(({ eventId }) => eventId),
      ["evt_1", "evt_2"],
    );
  });

  rule("what waits to be rendered counts as pending", async (t) => {
    await t.subscribe("sub_a");
    await disabled(t, async () => {
      for (let n = 0; n < 4; n++) await t.publish(`evt_${n}`);
    });
    t.step(second);
    await makeReplay(t, { statuses: ["missing"] });
    await advanceAll(t, { pending: 3 });
    equal((await take(t)).length, 3);
    await fillAll(t);
    t.step(limits.waitMs);
    await advanceAll(t, { pending: 3 });
    equal((await take(t)).length, 0);
    await t.store.record(
      (await t.claim()).map((row) => t.delivered(row)),
      null,
    );
    t.step(limits.waitMs);
    await advanceAll(t, { pending: 3 });
    equal((await take(t)).length, 1);
  });

  rule(
    "one that cannot be rendered is tried again, then skipped with its error, and stops no other",
    async (t) => {
      await t.subscribe("sub_a");
      await disabled(t, async () => {
        for (let n = 0; n < 2; n++) await t.publish(`evt_${n}`);
      });
      t.step(second);
      await makeReplay(t, { statuses: ["missing"] });
      await advanceAll(t);
      const [bad, good] = await take(t);
      equal(await t.store.replays.failMissing(bad!, "no field", 5 * second, null), true);
      same(
        (await take(t)).map(({ eventId }) => eventId),
        ["evt_1"],
      );
      equal(await t.store.replays.fillMissing([fillOf(good!)], null), 1);
      t.step(5 * second);
      const [again] = await take(t);
      like(again, { eventId: "evt_0", tries: 1 });
      equal(await t.store.replays.failMissing(again!, "no\u0000 field", null, null), true);
      equal(await t.store.replays.failMissing(again!, "no field", null, null), false);
      await advanceAll(t);
      like(await replayNow(t), { status: "done", queued: 1, skipped: 1, error: "no\ufffd field" });
    },
  );

  rule(
    "one that was queued otherwise, or is no longer wanted, is skipped; a patch is stored with the event",
    async (t) => {
      await t.subscribe("sub_a", { eventTypes: ["user.created", "booking.made"] });
      await disabled(t, async () => {
        await t.publish("evt_1");
        await t.publish("evt_2", { type: "booking.made", route: "booking.made" });
        await t.publish("evt_3");
      });
      t.step(second);
      await makeReplay(t, { statuses: ["missing"] });
      await advanceAll(t);
      await t.enqueue("dlv_other", { eventId: "evt_1", subscriptionId: "sub_a" });
      await t.store.updateSubscription(own, "sub_a", { eventTypes: ["user.created"] }, {});
      const fills = (await take(t)).map(fillOf);
      same(
        fills.map(({ delivery }) => delivery !== undefined),
        [true, false, true],
      );
      equal(
        await t.store.replays.fillMissing([fills[0]!, fills[1]!, { ...fills[2]!, patch: '{"x":1}' }], null),
        1,
      );
      await advanceAll(t);
      t.step(limits.waitMs);
      await advanceAll(t);
      like(await replayNow(t), { status: "done", queued: 1, skipped: 2 });
      equal((await t.store.getEvent("evt_3", {}))?.patch, '{"x":1}');
    },
  );

  rule("stopped, nothing noted is made any more", async (t) => {
    await t.subscribe("sub_a");
    await disabled(t, () => t.publish("evt_1"));
    t.step(second);
    await makeReplay(t, { statuses: ["missing"] });
    await advanceAll(t);
    const rows = await take(t);
    await t.store.replays.stop(own, "rpl_1", {}, null);
    same(await take(t), []);
    equal(await t.store.replays.fillMissing(rows.map(fillOf), null), 0);
    same(await t.claimIds(), []);
    like(await replayNow(t), { status: "stopped", queued: 0, skipped: 0 });
  });

  rule("an event that capture fanned out gets the body that capture froze", async (t) => {
    await t.subscribe("sub_a");
    await disabled(t, async () => {
      const event = t.emitted("evt_1");
      await t.capture(event);
      await t.store.dispatch(
        [{ projectId: event.projectId, id: event.id, bodies: [], deliveries: [] }],
        null,
      );
    });
    t.step(second);
    await makeReplay(t, { statuses: ["missing"] });
    await advanceAll(t);
    equal(await fillAll(t), 1);
    const claimed = await t.claimOne();
    equal(Buffer.from(claimed.payload).toString(), '{"event":"evt_1"}');
  });

  rule("of an ordered subscription they go by revision, and none below what was sent", async (t) => {
    await t.subscribe("sub_a", { ordering: "subject" });
    const subject = "user:1";
    await disabled(t, async () => {
      for (const revision of [1, 2, 4]) await t.publish(`evt_${revision}`, { subject, revision });
    });
    await t.publish("evt_3", { subject, revision: 3 });
    await t.store.record(
      (await t.claim()).map((row) => t.delivered(row)),
      null,
    );
    t.step(minute);
    await makeReplay(t, { statuses: ["missing"], since: new Date(start) });
    await advanceAll(t);
    await fillAll(t);
    t.step(limits.waitMs);
    await advanceAll(t);
    const sent = await t.claimOne();
    equal(sent.eventId, "evt_4");
    like(await replayNow(t), { status: "done", queued: 3, cancelled: 2 });
  });
}

function byId(a: string, b: string): number {
  return deliveryId(a, "sub_a") < deliveryId(b, "sub_a") ? -1 : 1;
}
