import type { StoreStats } from "../../store/stats-contract.ts";
import { equal, like, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { day, minute, own, project, proof, retention, type StoreWorld, second } from "./store-world.ts";

/** What a store says of what happens in it. */
export function statsRules(rule: Rule): void {
  const stats = (t: StoreWorld, projectId?: string): Promise<StoreStats> => t.store.stats(projectId, null);
  /** Sums over the minutes that are shown. */
  async function totals(t: StoreWorld, projectId?: string): Promise<unknown> {
    const sum = { dispatched: 0, delivered: 0, failedAttempts: 0, failed: 0 };
    for (const minute of (await stats(t, projectId)).minutes)
      for (const part of Object.keys(sum) as (keyof typeof sum)[]) sum[part] += minute[part];
    return sum;
  }

  rule("an empty store: nothing happened, nothing waits, nothing is wrong", async (t) => {
    same(await stats(t), {
      at: t.now(),
      minutes: [],
      pending: { count: 0, capped: false },
      newEvents: { count: 0, capped: false },
      lanes: {
        items: [],
        counts: { circuit_open: 0, failing: 0, rate_limited: 0, disabled: 0 },
        more: false,
      },
    });
    same(await stats(t, "nobody"), await stats(t));
  });

  rule("each recorded outcome is counted once, in its minute and project: stale ones are not", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_o", { projectId: "other" });
    for (let n = 0; n < 6; n++) await t.publish(`evt_${n}`);
    await t.publish("evt_other", { projectId: "other" });
    await t.capture(t.event("evt_waits"));
    const rows = await t.claim();
    equal(rows.length, 7);
    const ours = rows.filter((row) => row.projectId === project);
    const [other] = rows.filter((row) => row.projectId !== project);
    const [a, b, c, d, e, f] = ours;
    t.step(minute);
    const lost = { reason: "worker_lost", errorCode: "worker_lost", error: "lost" };
    const outcomes = [
      t.delivered(a!),
      t.retry(b!, minute),
      t.failed(c!),
      t.released(d!),
      { ...proof(e!), kind: "failed" as const, ...lost },
      t.delivered(other!),
      // The second outcome of a row, and one of a claim that is over.
      t.failed(a!),
      { ...t.delivered(f!), leaseToken: "00000000-0000-4000-8000-000000000000" },
    ];
    await t.store.record(outcomes, null);
    await t.store.record(outcomes, null);
    const first = new Date(Math.floor(t.in(-minute).getTime() / minute) * minute);
    const second = new Date(first.getTime() + minute);
    const none = { dispatched: 0, delivered: 0, failedAttempts: 0, failed: 0 };
    same((await stats(t)).minutes, [
      { minute: first, ...none, dispatched: 7 },
      { minute: second, ...none, delivered: 2, failedAttempts: 2, failed: 2 },
    ]);
    same((await stats(t, project)).minutes, [
      { minute: first, ...none, dispatched: 6 },
      { minute: second, ...none, delivered: 1, failedAttempts: 2, failed: 2 },
    ]);
    same(await totals(t, "other"), { ...none, dispatched: 1, delivered: 1 });
    await t.store.record([t.gone(f!)], null);
    same(await totals(t, project), { dispatched: 6, delivered: 1, failedAttempts: 3, failed: 3 });
  });

  rule("a batch with an outcome that cannot be recorded counts the others once", async (t) => {
    await t.subscribe("sub_a");
    for (let n = 0; n < 5; n++) await t.publish(`evt_${n}`);
    const rows = await t.claim();
    const outcomes = rows.map((row, n) => (n === 3 ? t.retry(row, Number.NaN) : t.delivered(row)));
    equal((await t.store.record(outcomes, null)).recorded.length, 4);
    same(await totals(t), { dispatched: 5, delivered: 4, failedAttempts: 0, failed: 0 });
  });

  rule("the marks of a bare worker are counted like outcomes, a row that is given back is not", async (t) => {
    for (const id of ["dlv_1", "dlv_2", "dlv_3", "dlv_4"]) await t.enqueue(id);
    const [a, b, c, d] = await t.claim();
    await t.store.markDelivered(a!.id, t.now(), a!.leaseToken);
    await t.store.markDelivered(a!.id, t.now(), a!.leaseToken);
    await t.store.reschedule(b!.id, b!.attempts, "no", t.in(minute), b!.leaseToken);
    await t.store.markFailed(c!.id, c!.attempts, "no", c!.leaseToken);
    await t.store.reschedule(d!.id, d!.attempts - 1, "", t.now(), d!.leaseToken);
    await t.store.markFailed(d!.id, 1, "stale", "stale");
    same(await totals(t), { dispatched: 0, delivered: 1, failedAttempts: 2, failed: 1 });
  });

  rule("store objects that record at the same time lose no count and wait for none", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    for (let n = 0; n < 12; n++) await t.publish(`evt_${n}`);
    const rows = await t.claim();
    const stores = [t.store, (await t.subject.reopen?.()) ?? t.store];
    await Promise.all(
      rows.map((row, n) => stores[n % 2]!.record([n % 3 === 0 ? t.failed(row) : t.delivered(row)], null)),
    );
    same(await totals(t), { dispatched: 12, delivered: 16, failedAttempts: 8, failed: 8 });
  });

  rule("a minute is shown for an hour, and upkeep drops it later", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    t.step(60 * minute);
    equal((await stats(t)).minutes.length, 1);
    t.step(minute);
    equal((await stats(t)).minutes.length, 0);
    await t.store.maintain(null, 100, null);
    equal((await t.store.stats(undefined, t.in(-minute))).minutes.length, 1);
    t.step(60 * minute);
    equal((await t.store.maintain(null, 100, null)).more, false);
    equal((await t.store.stats(undefined, t.in(-61 * minute))).minutes.length, 0);
  });

  rule(
    "the backlog: pending rows, undispatched events, and the age of the oldest that could go",
    async (t) => {
      await t.subscribe("sub_a");
      await t.subscribe("sub_p");
      await t.subscribe("sub_o", { projectId: "other" });
      await t.publish("evt_1");
      const [row] = (await t.claim()).filter(({ subscriptionId }) => subscriptionId === "sub_a");
      await t.store.record([t.retry(row!, 10 * minute)], null);
      await t.store.setSubscriptionStatus(own, "sub_p", "paused", undefined, {});
      t.step(second);
      await t.capture(t.event("evt_new"));
      t.step(second);
      await t.publish("evt_other", { projectId: "other" });
      like(await stats(t), {
        pending: { count: 3, capped: false },
        newEvents: { count: 1, capped: false },
        oldestDueAt: t.now(),
        oldestNewAt: t.in(-second),
      });
      like(await stats(t, project), {
        pending: { count: 2, capped: false },
        newEvents: { count: 1, capped: false },
        oldestDueAt: undefined,
        oldestNewAt: t.in(-second),
      });
      like(await stats(t, "other"), {
        pending: { count: 1, capped: false },
        newEvents: { count: 0, capped: false },
        oldestDueAt: t.now(),
        oldestNewAt: undefined,
      });
      // What was asked for another time is answered for that time.
      like(await t.store.stats(project, t.in(10 * minute)), { oldestDueAt: t.in(10 * minute - 2 * second) });
    },
  );

  rule("lanes that need somebody: what broke last comes first, and each once", async (t) => {
    const policy = { breaker: { failures: 2, probeMs: minute, probeMaxMs: minute } };
    const lane = async (id: string, overrides = {}): Promise<void> => {
      await t.subscribe(id, { eventTypes: [`for.${id}`], ...overrides });
      for (let n = 0; n < 4; n++) await t.publish(`evt_${id}_${n}`, { type: `for.${id}` });
    };
    await lane("sub_off");
    await t.store.setSubscriptionStatus(own, "sub_off", "disabled", undefined, {});
    const offAt = t.now();
    t.step(second);
    await lane("sub_open");
    await t.store.record(
      (await t.claim(2)).map((row) => t.broken(row, day)),
      null,
      policy,
    );
    const openAt = t.now();
    t.step(second);
    await lane("sub_failing");
    await lane("sub_hiccup");
    await lane("sub_well");
    const rooms = new Map([
      ["sub_failing", 3],
      ["sub_hiccup", 2],
    ]);
    const failing = await t.claim(9, { rooms, room: 0 });
    await t.store.record(
      failing.map((row) => t.retry(row, day)),
      null,
      policy,
    );
    const failingAt = t.now();
    await lane("sub_slow", { projectId: "other", rateLimit: { limit: 1, perSeconds: 3_600 } });
    await t.publish("evt_slow", { type: "for.sub_slow", projectId: "other" });
    await t.publish("evt_slow_2", { type: "for.sub_slow", projectId: "other" });
    const slowAt = t.now();
    await t.claim();
    t.step(minute - 1);
    equal((await stats(t)).lanes.counts.rate_limited, 0);
    t.step(1);
    const about = (subscriptionId: string, reason: string, since: Date, failures?: number) => ({
      subscriptionId,
      projectId: subscriptionId === "sub_slow" ? "other" : project,
      reason,
      since,
      failures,
    });
    const ours = [
      about("sub_failing", "failing", failingAt, 3),
      about("sub_open", "circuit_open", openAt, 2),
      about("sub_off", "disabled", offAt),
    ];
    const counts = { circuit_open: 1, failing: 1, rate_limited: 0, disabled: 1 };
    same((await stats(t, project)).lanes, { items: ours, counts, more: false });
    const slow = about("sub_slow", "rate_limited", slowAt, 0);
    same((await stats(t)).lanes, {
      items: [ours[0], slow, ...ours.slice(1)],
      counts: { ...counts, rate_limited: 1 },
      more: false,
    });
    same((await stats(t, "other")).lanes.items, [slow]);
    // Held on purpose, it needs nobody.
    await t.store.setSubscriptionStatus(own, "sub_open", "paused", undefined, {});
    equal((await stats(t)).lanes.counts.circuit_open, 0);
  });

  rule("a hundred lanes are named and all are counted", async (t) => {
    for (let n = 0; n < 103; n++) {
      const id = `sub_${String(n).padStart(3, "0")}`;
      await t.subscribe(id);
      await t.store.setSubscriptionStatus(own, id, "disabled", undefined, {});
      t.step(1);
    }
    for (const projectId of [undefined, project]) {
      const { items, counts, more } = (await stats(t, projectId)).lanes;
      equal(items.length, 100);
      equal(items[0]!.subscriptionId, "sub_102");
      same([counts.disabled, more], [103, true]);
    }
  });

  rule(
    "what a disabled subscription held for too long is counted as failed, and told of once a minute",
    async (t) => {
      await t.subscribe("sub_a");
      await t.subscribe("sub_ops", { eventTypes: ["hookwell.*"] });
      for (let n = 0; n < 3; n++) await t.publish(`evt_${n}`);
      await t.store.setSubscriptionStatus(own, "sub_a", "disabled", undefined, {});
      const told = async () => {
        const { items } = await t.store.listEvents({ type: "hookwell.delivery.failed" }, { limit: 100 });
        return items.map(({ data, projectId }) => [projectId, JSON.parse(data)]);
      };
      t.step(retention.heldMs);
      equal((await t.store.maintain(retention, 2, null)).failed.length, 2);
      const [[of, first] = []] = await told();
      equal(of, project);
      like(first, {
        subscription_id: "sub_a",
        event_type: "user.created",
        error_code: "held_too_long",
        count: 2,
      });
      t.step(minute - 1);
      equal((await t.store.maintain(retention, 2, null)).failed.length, 1);
      equal((await told()).length, 1);
      same(await totals(t), { dispatched: 0, delivered: 0, failedAttempts: 0, failed: 3 });
    },
  );
}
