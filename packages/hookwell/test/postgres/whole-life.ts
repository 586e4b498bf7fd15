import { createHookwell, defineEvents } from "hookwell";
import { pgTx } from "hookwell/pg";
import { type ReceivedRequest, startReceiver } from "hookwell/testing";
import type pg from "pg";
import { expect } from "vitest";
import { z } from "zod";
import type { Retention } from "../../src/publish/surface.ts";
import { verify } from "../../src/send/verify.ts";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { loopback } from "../send/deliveries.ts";

/** Who does what: each on a store of its own, over a pool of its own. */
export interface Actors {
  /** Emits, in transactions of this pool. */
  readonly capture: { readonly store: PostgresOutbox; readonly pool: pg.Pool };
  /** Dispatch and deliver. */
  readonly workers: readonly PostgresOutbox[];
  /** Subscriptions, replays, holds, retries. */
  readonly operator: PostgresOutbox;
}

const schema = z.object({ id: z.string() });
const events = defineEvents({
  "thing.made": { schema, subject: (thing) => `thing:${thing.id.at(-1)}` },
  "thing.sold": { schema, fanOut: "emit" },
});
const deadlineMs = 60_000;
const transactions = 24;

/**
 * Everything that a database is asked for in a life of Hookwell, once: emitting in transactions that commit, roll back
 * or go on after a refusal, dispatching and delivering by several workers, failures of every kind, rotation, holds,
 * retries, cancels, replays, counters, upkeep. Fails when anything is lost, invented or sent twice.
 */
export async function wholeLife({ capture, workers, operator }: Actors): Promise<void> {
  const receiver = await startReceiver({
    respond: ({ path }) => (path === "/failing" ? 500 : path === "/gone" ? 410 : 200),
  });
  const hooksOf = (store: PostgresOutbox, retention: Retention = {}) =>
    createHookwell({
      store,
      tx: pgTx(),
      project: "live",
      events,
      network: loopback,
      retry: [1, 1],
      lanes: { disable: { failures: 3, overMs: 1 } },
      retention,
      logger: { info() {}, warn() {}, error() {} },
    });
  const emitter = hooksOf(capture.store);
  const working = workers.map((store) => hooksOf(store));
  const { subscriptions, deliveries, replays, holds, ...managing } = hooksOf(operator);
  const drain = () => Promise.all(working.map((hooks) => hooks.drain({ deadlineMs })));
  const subscribe = (path: string, more: object = {}) =>
    subscriptions.create({ url: `http://127.0.0.1:${receiver.port}${path}`, ...more });
  const at = (path: string): ReceivedRequest[] => receiver.requests.filter((got) => got.path === path);
  const idsAt = (path: string): string[] => at(path).map(({ headers }) => String(headers["webhook-id"]));

  /** One transaction of the application: two events, and one that is refused and changes nothing. */
  async function transaction(id: string, how: "COMMIT" | "ROLLBACK"): Promise<void> {
    const tx = await capture.pool.connect();
    try {
      await tx.query("BEGIN");
      await emitter.emit("thing.made", { id }, { tx, id: `evt_made_${id}` });
      await emitter.emit("thing.sold", { id }, { tx, id: `evt_sold_${id}` });
      const other = emitter.emit("thing.sold", { id: "other" }, { tx, id: `evt_sold_${id}` });
      await expect(other).rejects.toMatchObject({ code: "event_mismatch" });
      expect(await emitter.emit("thing.made", { id }, { tx, id: `evt_made_${id}` })).toMatchObject({
        duplicate: true,
      });
      await tx.query(how);
    } finally {
      tx.release();
    }
  }

  const plain = await subscribe("/plain", { rateLimit: { limit: 10_000, perSeconds: 1 }, maxInFlight: 8 });
  await subscribe("/ordered", { ordering: "subject", eventTypes: ["thing.made"] });
  await subscribe("/ops", { eventTypes: ["hookwell.*"] });
  const failing = await subscribe("/failing", { eventTypes: ["thing.sold"] });
  const gone = await subscribe("/gone", { eventTypes: ["thing.sold"] });

  const runs = working.map((hooks) => hooks.start());
  const committed: string[] = [];
  await Promise.all(
    Array.from({ length: transactions }, async (_, number) => {
      const id = String(number).padStart(3, "0");
      const commits = number % 3 !== 0;
      await transaction(id, commits ? "COMMIT" : "ROLLBACK");
      if (commits) committed.push(`evt_made_${id}`, `evt_sold_${id}`);
    }),
  );
  const made = committed.filter((id) => id.startsWith("evt_made"));
  await receiver.waitFor(
    () => idsAt("/plain").length >= committed.length && idsAt("/ordered").length >= made.length,
  );
  await Promise.all(runs.map((run) => run.stop()));
  await drain();
  expect(idsAt("/plain").sort()).toEqual([...committed].sort());
  expect(idsAt("/ordered").sort()).toEqual([...made].sort());
  expect(await subscriptions.get(failing.id)).toMatchObject({ status: "disabled", statusReason: "failing" });
  expect(await subscriptions.get(gone.id)).toMatchObject({ status: "disabled", statusReason: "gone" });
  expect(at("/ops").length).toBeGreaterThan(0);

  // Rotation: from now on both secrets sign.
  const { secret } = await subscriptions.rotateSecret(plain.id);
  await transaction("rotated", "COMMIT");
  await drain();
  for (const { headers, body } of at("/plain").slice(-2)) verify(headers, body, [secret]);

  // A hold stops one type and lets the other go.
  await holds.set({ type: "thing.sold" });
  await transaction("held", "COMMIT");
  await drain();
  expect(idsAt("/plain")).toContain("evt_made_held");
  expect(idsAt("/plain")).not.toContain("evt_sold_held");
  await holds.release({ type: "thing.sold" });
  await drain();
  expect(idsAt("/plain")).toContain("evt_sold_held");

  // By hand: one again, one never, and everything that waits for a paused endpoint never.
  const [last] = (await deliveries.list({ subscriptionId: plain.id }, { limit: 1 })).items;
  await deliveries.retry(last!.id);
  await drain();
  expect(idsAt("/plain").filter((id) => id === last!.eventId)).toHaveLength(2);
  await subscriptions.pause(plain.id);
  await transaction("paused", "COMMIT");
  await drain();
  const [waiting] = (await deliveries.list({ subscriptionId: plain.id, status: "pending" })).items;
  await deliveries.cancel(waiting!.id);
  expect(await deliveries.cancelMany({ subscriptionId: plain.id })).toEqual({ count: 1 });
  await subscriptions.resume(plain.id);

  // Replays: what was delivered once more, and all of it to one that was not there.
  const since = new Date(Date.now() - 3_600_000);
  const late = await subscribe("/late", { eventTypes: ["thing.made"] });
  const again = await replays.create({ subscriptionId: plain.id, since, status: ["delivered"] });
  const missing = await replays.create({ subscriptionId: late.id, since, status: ["missing"] });
  const before = at("/plain").length;
  await drain();
  await drain();
  // The retried one is one delivery, sent twice; the two that were cancelled were never sent.
  expect(at("/plain").length - before).toBe(before - 1);
  expect(await replays.get(again.id)).toMatchObject({ queued: before - 1, failed: 0 });
  expect(await replays.get(missing.id)).toMatchObject({ queued: made.length + 3 });
  expect(idsAt("/late").sort()).toEqual(
    [...made, "evt_made_rotated", "evt_made_held", "evt_made_paused"].sort(),
  );

  // Counters, health and upkeep.
  const stats = await working[0]!.stats();
  expect(stats.lanes.items.map(({ subscriptionId }) => subscriptionId)).not.toContain(plain.id);
  expect((await working[0]!.store.lag(null)).oldestNewAt).toBeUndefined();
  await subscriptions.delete(late.id);
  // What the disabled endpoint held too long fails, is told of, and in the end nothing is left.
  const pruning = hooksOf(workers[0]!, { deliveredMs: 1, failedMs: 1, eventsMs: 1, heldMs: 1 });
  const left = async () => [...(await managing.events.list()).items, ...(await deliveries.list()).items];
  while ((await left()).length > 0) {
    await pruning.maintain();
    await working[0]!.drain({ deadlineMs });
  }
  await expect(subscriptions.get(late.id)).rejects.toMatchObject({ code: "not_found" });

  for (const hooks of [emitter, ...working]) await hooks.close();
  await receiver.close();
}
