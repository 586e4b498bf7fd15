import { equal, like, ok, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, second } from "./store-world.ts";

/** The reference marks and their tokens: spec/events.md, checks 21 to 24, 38 and 42. */
export function markRules(rule: Rule): void {
  rule("events 21: markDelivered ends the row, counts this send and keeps the last error", async (t) => {
    await t.enqueue("dlv_1");
    const first = await t.claimOne();
    await t.store.reschedule("dlv_1", 1, "refused once", t.in(second), first.leaseToken);
    t.step(second);
    const claimed = await t.claimOne();
    const at = t.in(77);
    await t.store.markDelivered("dlv_1", at, claimed.leaseToken);
    like(await t.store.get("dlv_1"), {
      status: "delivered",
      attempts: 2,
      lastError: "refused once",
      updatedAt: at,
      leaseToken: undefined,
    });
    like(await t.store.getDelivery("dlv_1", {}), { deliveredAt: at, nextAttemptAt: undefined });
    t.step(10 * minute);
    same(await t.claimIds(), []);
  });

  rule("events 21: markDelivered without a claim counts the send that was made", async (t) => {
    await t.enqueue("dlv_1");
    await t.store.markDelivered("dlv_1", t.now());
    like(await t.store.get("dlv_1"), { status: "delivered", attempts: 1 });
  });

  rule("events 22: reschedule sets attempts, error and time, and gives the claim up", async (t) => {
    await t.enqueue("dlv_1");
    const claimed = await t.claimOne();
    t.step(40);
    const next = t.in(2 * second);
    await t.store.reschedule("dlv_1", 1, "connection reset", next, claimed.leaseToken);
    like(await t.store.get("dlv_1"), {
      status: "pending",
      attempts: 1,
      lastError: "connection reset",
      nextAttemptAt: next,
      updatedAt: t.now(),
      leaseToken: undefined,
      leaseUntil: undefined,
    });
    t.step(2 * second - 1);
    same(await t.claimIds(), []);
    t.step(1);
    like(await t.claimOne(), { attempts: 2, nextAttemptAt: next });
  });

  rule("events 22: a row may be rescheduled to an earlier time than its lease", async (t) => {
    await t.enqueue("dlv_1");
    const claimed = await t.claimOne();
    await t.store.reschedule("dlv_1", 1, "x", t.now(), claimed.leaseToken);
    same(await t.claimIds(), ["dlv_1"]);
  });

  rule("events 23: markFailed is final", async (t) => {
    await t.enqueue("dlv_1");
    const claimed = await t.claimOne();
    t.step(5);
    await t.store.markFailed("dlv_1", 6, "gave up", claimed.leaseToken);
    like(await t.store.get("dlv_1"), {
      status: "failed",
      attempts: 6,
      lastError: "gave up",
      updatedAt: t.now(),
    });
    like(await t.store.getDelivery("dlv_1", {}), { reason: "attempts_exhausted" });
    t.step(10 * minute);
    same(await t.claimIds(), []);
  });

  rule("events 24: each mark on an unknown id is an error", async (t) => {
    await refused("not_found", () => t.store.markDelivered("dlv_none", t.now()));
    await refused("not_found", () => t.store.reschedule("dlv_none", 1, "x", t.now(), "token"));
    await refused("not_found", () => t.store.markFailed("dlv_none", 1, "x"));
    equal(t.store.staleOutcomes, 0);
  });

  for (const [kind, token] of [
    ["missing", undefined],
    ["stale", "00000000-0000-4000-8000-000000000000"],
  ] as const)
    rule(`events 24: a ${kind} token on a claimed row is ignored and counted`, async (t) => {
      await t.enqueue("dlv_1");
      await t.claimOne();
      const before = await t.store.get("dlv_1");
      await t.store.markDelivered("dlv_1", t.now(), token);
      await t.store.reschedule("dlv_1", 1, "x", t.now(), token);
      await t.store.markFailed("dlv_1", 1, "x", token);
      same(await t.store.get("dlv_1"), before);
      equal(t.store.staleOutcomes, 3);
    });

  rule(
    "events 24: a mark on a final row is ignored and counted, with or without its old token",
    async (t) => {
      await t.enqueue("dlv_1");
      const { leaseToken } = await t.claimOne();
      await t.store.markDelivered("dlv_1", t.now(), leaseToken);
      t.step(5);
      await t.store.markFailed("dlv_1", 2, "late", leaseToken);
      await t.store.reschedule("dlv_1", 2, "late", t.now());
      await t.store.markDelivered("dlv_1", t.now());
      like(await t.store.get("dlv_1"), { status: "delivered", lastError: undefined, updatedAt: t.in(-5) });
      equal(t.store.staleOutcomes, 3);
    },
  );

  rule("events 24: a token that was used up is stale on the waiting row", async (t) => {
    await t.enqueue("dlv_1");
    const { leaseToken } = await t.claimOne();
    await t.store.reschedule("dlv_1", 1, "first", t.in(second), leaseToken);
    await t.store.markFailed("dlv_1", 1, "again", leaseToken);
    like(await t.store.get("dlv_1"), { status: "pending", lastError: "first" });
    equal(t.store.staleOutcomes, 1);
  });

  rule(
    "events 38: a row whose lease ended is claimed again, and the old claim's result is ignored",
    async (t) => {
      await t.enqueue("dlv_1");
      const first = (await t.store.claimDue(t.now(), 1))[0]!;
      same(first.leaseUntil, t.in(leaseMs));
      t.step(leaseMs - 1);
      same(await t.store.claimDue(t.now(), 1), []);
      t.step(1);
      const second = (await t.store.claimDue(t.now(), 1))[0]!;
      equal(second.attempts, 2);
      ok(second.leaseToken !== first.leaseToken);
      await t.store.markFailed("dlv_1", 1, "late", first.leaseToken);
      equal(t.store.staleOutcomes, 1);
      await t.store.markDelivered("dlv_1", t.now(), second.leaseToken);
      like(await t.store.get("dlv_1"), { status: "delivered", attempts: 2 });
    },
  );

  rule("events 38: a result after the lease ended counts while nobody else claimed the row", async (t) => {
    await t.enqueue("dlv_1");
    const { leaseToken } = await t.claimOne();
    t.step(leaseMs + second);
    await t.store.markDelivered("dlv_1", t.now(), leaseToken);
    equal((await t.store.get("dlv_1"))?.status, "delivered");
  });

  rule("events 42: every mark sets updatedAt", async (t) => {
    for (const id of ["dlv_1", "dlv_2"]) await t.enqueue(id);
    const [one, two] = await t.claim();
    equal(one!.updatedAt.getTime(), t.now().getTime());
    t.step(second);
    await t.store.reschedule("dlv_1", 1, "x", t.in(minute), one!.leaseToken);
    await t.store.markFailed("dlv_2", 1, "x", two!.leaseToken);
    same((await t.store.get("dlv_1"))?.updatedAt, t.now());
    same((await t.store.get("dlv_2"))?.updatedAt, t.now());
  });
}
