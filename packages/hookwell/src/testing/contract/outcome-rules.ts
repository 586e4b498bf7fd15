import type { Outcome } from "../../model/delivery.ts";
import { equal, like, ok, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, own, proof, type StoreWorld, second } from "./store-world.ts";

/** What `record` does with the outcomes of claimed rows. */
export function outcomeRules(rule: Rule): void {
  async function queued(t: StoreWorld, events = 1): Promise<string[]> {
    await t.subscribe("sub_a");
    const ids: string[] = [];
    for (let n = 1; n <= events; n++) ids.push(...(await t.publish(`evt_${n}`)));
    return ids;
  }

  rule("delivered: final, delivered now, the exchange in the log, nothing left to claim", async (t) => {
    const [id] = await queued(t);
    const claimed = await t.claimOne();
    const exchange = t.exchange({ statusCode: 204, durationMs: 31, excerpt: "thanks" });
    t.step(second);
    const result = await t.store.record([{ ...proof(claimed), kind: "delivered", exchange }], null);
    same(result, { recorded: [{ id, status: "delivered", attempts: 1 }], stale: [], lanes: [] });
    like(await t.store.getDelivery(id!, {}), {
      status: "delivered",
      reason: undefined,
      attempts: 1,
      errorCode: undefined,
      lastError: undefined,
      nextAttemptAt: undefined,
      updatedAt: t.now(),
      deliveredAt: t.now(),
      attemptLog: [{ number: 1, round: 1, startedAt: exchange.startedAt, durationMs: 31, statusCode: 204 }],
    });
    t.step(minute);
    same(await t.claimIds(), []);
  });

  rule("field-faults D5: retry: due again after the delay, with error and log", async (t) => {
    const [id] = await queued(t);
    const claimed = await t.claimOne();
    const exchange = t.failure({ statusCode: 503, errorCode: "http_503", error: "no", excerpt: "busy" });
    t.step(20);
    const result = await t.store.record(
      [{ ...proof(claimed), kind: "retry", exchange, delayMs: minute }],
      null,
    );
    same(result, { recorded: [{ id, status: "pending", attempts: 1 }], stale: [], lanes: [] });
    like(await t.store.getDelivery(id!, {}), {
      status: "pending",
      attempts: 1,
      errorCode: "http_503",
      lastError: "no",
      nextAttemptAt: t.in(minute),
      updatedAt: t.now(),
      attemptLog: [{ ...exchange, number: 1, round: 1 }],
    });
    t.step(minute - 1);
    same(await t.claimIds(), []);
    t.step(1);
    like(await t.claimOne(), { attempts: 2, lastError: "no" });
  });

  rule("a date given as now is the time of the outcome", async (t) => {
    const [id] = await queued(t);
    const claimed = await t.claimOne();
    await t.store.record([t.retry(claimed, minute)], t.in(9 * second));
    like(await t.store.getDelivery(id!, {}), {
      nextAttemptAt: t.in(minute + 9 * second),
      updatedAt: t.in(9 * second),
    });
  });

  rule("failed: final, with reason, code, error and log", async (t) => {
    const [id] = await queued(t);
    const claimed = await t.claimOne();
    const result = await t.store.record([t.failed(claimed)], null);
    same(result, { recorded: [{ id, status: "failed", attempts: 1 }], stale: [], lanes: [] });
    like(await t.store.getDelivery(id!, {}), {
      status: "failed",
      reason: "attempts_exhausted",
      errorCode: "http_500",
      lastError: "The receiver answered 500.",
      nextAttemptAt: undefined,
      deliveredAt: undefined,
      attemptLog: [{ ...t.failure(), number: 1, round: 1 }],
    });
    t.step(minute);
    same(await t.claimIds(), []);
  });

  rule(
    "failed without an exchange: the send that the claim counted is taken back, and there is no log entry",
    async (t) => {
      const [id] = await queued(t);
      await t.claimOne();
      t.step(leaseMs);
      const claimed = await t.claimOne();
      const lost = { reason: "worker_lost", errorCode: "worker_lost", error: "worker lost during attempt 1" };
      const result = await t.store.record([{ ...proof(claimed), kind: "failed", ...lost }], null);
      same(result.recorded, [{ id, status: "failed", attempts: 1 }]);
      like(await t.store.getDelivery(id!, {}), {
        status: "failed",
        reason: "worker_lost",
        errorCode: "worker_lost",
        lastError: "worker lost during attempt 1",
        attempts: 1,
        attemptLog: [],
      });
    },
  );

  rule("events 39: released: given back unsent, due as before, the attempt taken back", async (t) => {
    const [id] = await queued(t);
    const due = t.now();
    t.step(second);
    const result = await t.store.record([t.released(await t.claimOne())], null);
    same(result, { recorded: [{ id, status: "pending", attempts: 0 }], stale: [], lanes: [] });
    like(await t.store.getDelivery(id!, {}), { attempts: 0, nextAttemptAt: due, attemptLog: [] });
    equal((await t.claimOne()).attempts, 1);
  });

  rule("events 39: a released row goes before rows that became due after it", async (t) => {
    await t.enqueue("dlv_1");
    t.step(second);
    await t.enqueue("dlv_0");
    const [first] = await t.claim(1);
    t.step(second);
    await t.store.record([t.released(first!)], null);
    same(await t.claimIds(), ["dlv_1", "dlv_0"]);
  });

  rule(
    "field-faults E3: gone: failed, the subscription disabled as gone, its other rows held and then cancelled",
    async (t) => {
      const [id, other] = await queued(t, 2);
      const [claimed] = await t.claim(1);
      const result = await t.store.record([t.gone(claimed!)], null);
      same(result, { recorded: [{ id: claimed!.id, status: "failed", attempts: 1 }], stale: [], lanes: [] });
      like(await t.store.getDelivery(claimed!.id, {}), {
        status: "failed",
        reason: "gone",
        errorCode: "http_410",
        lastError: "The receiver answered 410.",
      });
      like(await t.store.getSubscription("sub_a", {}), {
        status: "disabled",
        statusReason: "gone",
        updatedAt: t.now(),
      });
      same(await t.claimIds(), []);
      t.step(minute);
      equal((await t.store.maintain(null, 100, null)).cancelled, 1);
      const rest = claimed!.id === id ? other! : id!;
      like(await t.store.getDelivery(rest, {}), { status: "cancelled", reason: "gone", updatedAt: t.now() });
      same(await t.publish("evt_3"), []);
    },
  );

  for (const status of ["deleted", "disabled"] as const)
    rule(`gone leaves a subscription that is ${status} already as it is`, async (t) => {
      await queued(t);
      const claimed = await t.claimOne();
      await t.store.setSubscriptionStatus(own, "sub_a", status, undefined, {});
      const before = await t.store.getSubscription("sub_a", {});
      t.step(second);
      await t.store.record([t.gone(claimed)], null);
      same(await t.store.getSubscription("sub_a", {}), before);
      equal((await t.store.get(claimed.id))?.status, "failed");
    });

  rule("gone of a row whose subscription is not there fails the row", async (t) => {
    await t.enqueue("dlv_1", { subscriptionId: "sub_never_added" });
    await t.store.record([t.gone(await t.claimOne())], null);
    equal((await t.store.get("dlv_1"))?.status, "failed");
  });

  rule("one batch records outcomes of every kind", async (t) => {
    for (const lane of ["a", "b", "c", "d", "e"]) {
      await t.subscribe(`sub_${lane}`);
      await t.enqueue(`dlv_${lane}`, { subscriptionId: `sub_${lane}` });
    }
    const [a, b, c, d, e] = await t.claim();
    const outcomes = [t.gone(a!), t.delivered(b!), t.retry(c!, second, minute), t.failed(d!), t.released(e!)];
    const { recorded, stale } = await t.store.record(outcomes, null);
    same(
      [...recorded].sort((x, y) => (x.id < y.id ? -1 : 1)),
      [
        { id: "dlv_a", status: "failed", attempts: 1 },
        { id: "dlv_b", status: "delivered", attempts: 1 },
        { id: "dlv_c", status: "pending", attempts: 1 },
        { id: "dlv_d", status: "failed", attempts: 1 },
        { id: "dlv_e", status: "pending", attempts: 0 },
      ],
    );
    same(stale, []);
    same(await t.claimIds(), ["dlv_e"]);
  });

  rule("an empty batch is nothing", async (t) => {
    same(await t.store.record([], null), { recorded: [], stale: [], lanes: [] });
  });

  rule(
    "events 24: a stale token, an unknown id and a final row are stale and counted; the others count",
    async (t) => {
      for (const id of ["dlv_1", "dlv_2", "dlv_3"]) await t.enqueue(id);
      const [one, two, three] = await t.claim();
      await t.store.record([t.delivered(three!)], null);
      const { recorded, stale } = await t.store.record(
        [
          { ...t.delivered(one!), leaseToken: two!.leaseToken },
          t.delivered(two!),
          t.failed(three!),
          { ...t.delivered(one!), id: "dlv_unknown" },
        ],
        null,
      );
      same(recorded, [{ id: "dlv_2", status: "delivered", attempts: 1 }]);
      same([...stale].sort(), ["dlv_1", "dlv_3", "dlv_unknown"]);
      equal(t.store.staleOutcomes, 3);
      equal((await t.store.get("dlv_1"))?.status, "pending");
      equal((await t.store.get("dlv_3"))?.status, "delivered");
    },
  );

  rule("field-faults C4: an outcome of a cancelled row is stale, and it stays cancelled", async (t) => {
    const [id] = await queued(t);
    const claimed = await t.claimOne();
    await t.store.cancelDelivery(own, id!, {}, null);
    same((await t.store.record([t.delivered(claimed)], null)).stale, [id]);
    like(await t.store.getDelivery(id!, {}), { status: "cancelled", attemptLog: [] });
  });

  rule("events 38: the outcome of an older claim is stale; of the newest it counts", async (t) => {
    const [id] = await queued(t);
    const old = await t.claimOne();
    t.step(leaseMs);
    const current = await t.claimOne();
    same((await t.store.record([t.failed(old)], null)).stale, [id]);
    same((await t.store.record([t.delivered(current)], null)).recorded.length, 1);
    like(await t.store.getDelivery(id!, {}), { status: "delivered", attempts: 2, lastError: undefined });
  });

  rule(
    "an outcome that no store can keep is in neither list and leaves its row claimed; the rest is recorded",
    async (t) => {
      for (let n = 0; n < 9; n++) await t.enqueue(`dlv_${n}`);
      const claimed = await t.claim();
      const outcomes = claimed.map((row): Outcome => {
        if (row.id === "dlv_3") return t.retry(row, Number.NaN);
        if (row.id === "dlv_5") return t.failed(row, Number.NaN);
        if (row.id === "dlv_6")
          return {
            ...proof(row),
            kind: "retry",
            exchange: t.failure({ startedAt: new Date(Number.NaN) }),
            delayMs: 1,
          };
        return t.delivered(row);
      });
      const { recorded, stale } = await t.store.record(outcomes, null);
      same(
        recorded.map((row) => row.id).sort(),
        claimed.map((row) => row.id).filter((id) => !["dlv_3", "dlv_5", "dlv_6"].includes(id)),
      );
      same(stale, []);
      for (const id of ["dlv_3", "dlv_5", "dlv_6"])
        like(await t.store.getDelivery(id, {}), { status: "pending", attemptLog: [] });
      same(await t.claimIds(), []);
      t.step(leaseMs);
      same(await t.claimIds(), ["dlv_3", "dlv_5", "dlv_6"]);
    },
  );

  rule("whole milliseconds: fractions of a delay and a duration are rounded", async (t) => {
    const [id] = await queued(t);
    const claimed = await t.claimOne();
    const exchange = t.failure({ durationMs: 12.6 });
    await t.store.record([{ ...proof(claimed), kind: "retry", exchange, delayMs: 1_000.4 }], null);
    const detail = await t.store.getDelivery(id!, {});
    same(detail!.nextAttemptAt, t.in(second));
    equal(detail!.attemptLog[0]!.durationMs, 13);
  });

  rule(
    "field-faults D6: the log has every failed attempt and the one that delivered, in order",
    async (t) => {
      const [id] = await queued(t);
      for (let n = 0; n < 3; n++) {
        await t.store.record([t.retry(await t.claimOne(), second)], null);
        t.step(second);
      }
      await t.store.record([t.delivered(await t.claimOne())], null);
      const detail = await t.store.getDelivery(id!, {});
      same(
        detail!.attemptLog.map(({ number, statusCode }) => [number, statusCode]),
        [
          [1, 500],
          [2, 500],
          [3, 500],
          [4, 200],
        ],
      );
      same(await t.store.listAttempts(id!), detail!.attemptLog);
      like(detail, { attempts: 4, lastError: "The receiver answered 500.", errorCode: "http_500" });
      same(await t.store.listAttempts("dlv_none"), []);
    },
  );

  rule("a retry by hand keeps the log of the earlier round, also the success that ended it", async (t) => {
    const [id] = await queued(t);
    await t.store.record([t.retry(await t.claimOne(), 0)], null);
    await t.store.record([t.delivered(await t.claimOne())], null);
    t.step(minute);
    await t.store.retryDelivery(own, id!, {}, null);
    const claimed = await t.claimOne();
    like(claimed, { attempts: 1, round: 2 });
    await t.store.record([t.failed(claimed)], null);
    same(
      (await t.store.listAttempts(id!)).map((row) => [row.round, row.number, row.statusCode]),
      [
        [1, 1, 500],
        [1, 2, 200],
        [2, 1, 500],
      ],
    );
  });

  rule("a hundred outcomes in one batch", async (t) => {
    for (let n = 0; n < 100; n++) await t.enqueue(`dlv_${n}`, { subscriptionId: `sub_${n % 3}` });
    const claimed = await t.claim();
    const { recorded } = await t.store.record(
      claimed.map((row, n) => (n % 2 ? t.delivered(row) : t.retry(row, n))),
      null,
    );
    equal(recorded.length, 100);
    ok(recorded.every((row) => row.attempts === 1));
    t.step(minute);
    equal((await t.claim()).length, 50);
  });
}
