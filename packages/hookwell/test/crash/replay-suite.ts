import { createHookwell, DeliveryError, type HookwellCore, type Sender } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import { sqliteStore } from "hookwell/sqlite";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { freshPostgres, freshSqlite } from "../support/databases.ts";
import { live } from "./life.ts";
import type { ReplayOrder } from "./points.ts";

const most = process.env.HOOKWELL_LONG ? 60 : 2;
const keys = `k1:${Buffer.alloc(32, 7).toString("base64")}`;
const failing = 40;
const missed = 15;

async function open(
  store: ReplayOrder["store"],
  sender: Sender,
): Promise<{ hooks: HookwellCore; address: string; drop: () => unknown }> {
  const logger = { info: () => {}, warn: () => {}, error: () => {} };
  const options = {
    project: "live",
    sender,
    logger,
    retry: [] as number[],
    lanes: { breaker: false, disable: false },
  } as const;
  if (store === "sqlite") {
    const { path, drop } = freshSqlite();
    const hooks = createHookwell({
      ...options,
      store: sqliteStore({ path, migrate: true, encryptionKeys: keys }),
    });
    return { hooks, address: path, drop };
  }
  const { url, drop } = await freshPostgres();
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const hooks = createHookwell({
    ...options,
    store: postgresStore({ pool, migrate: true, encryptionKeys: keys }),
  });
  return {
    hooks,
    address: url,
    drop: async () => {
      await pool.end();
      await drop();
    },
  };
}

/** The promise of a replay, whatever is killed where. */
export function replaySuite(store: ReplayOrder["store"]): void {
  describe(`replays whose processes are killed with SIGKILL on ${store}`, () => {
    test(`${most} lives killed after any of their statements: each delivery is queued once, sent once, and counted`, async () => {
      const sent = new Map<string, number>();
      let broken = true;
      const sender: Sender = {
        async deliver({ id }) {
          const times = { startedAt: new Date(), durationMs: 1 };
          if (broken)
            throw new DeliveryError("http_500", "answered with status 500", { ...times, statusCode: 500 });
          sent.set(id, (sent.get(id) ?? 0) + 1);
          return { ...times, statusCode: 200 };
        },
      };
      const { hooks, address, drop } = await open(store, sender);
      await hooks.ready();
      const { id } = await hooks.subscriptions.create({ url: "https://receiver.example/in" });
      const emit = (count: number) =>
        hooks.emitManyUnknown(
          Array.from({ length: count }, (_, n) => ({ type: "thing.made", data: { n } })),
          { tx: "own" },
        );
      await emit(failing);
      await hooks.drain({ deadlineMs: 20_000 });
      await hooks.subscriptions.disable(id);
      await emit(missed);
      await hooks.drain({ deadlineMs: 20_000 });
      await hooks.subscriptions.enable(id);
      const since = new Date(Date.now() - 3_600_000);
      const until = new Date(Date.now() + 3_600_000);
      const replay = await hooks.replays.create({
        subscriptionId: id,
        since,
        until,
        status: ["failed", "delivered", "missing"],
      });

      /** What is sent between the lives is final again: a walk that went over it once more would send it twice. */
      const sendAll = async (): Promise<void> => {
        const { deliveries } = await hooks.store.claim({ now: null, limit: 100, leaseMs: 30_000 });
        for (const delivery of deliveries) sent.set(delivery.id, (sent.get(delivery.id) ?? 0) + 1);
        const exchange = { startedAt: new Date(), durationMs: 1, statusCode: 200 };
        await hooks.store.record(
          deliveries.map((row) => ({ id: row.id, leaseToken: row.leaseToken!, kind: "delivered", exchange })),
          null,
        );
      };
      let killed = 0;
      for (let life = 0; life < most; life++) {
        // Every place in a step comes, and the lives get on.
        const statements = ((life * 17) % (store === "sqlite" ? 41 : 23)) + 1;
        const order: ReplayOrder = { store, address, encryptionKeys: keys, statements };
        if ((await live("replay-child.ts", order)) === "ended") break;
        killed++;
        await sendAll();
      }
      expect(killed).toBeGreaterThanOrEqual(Math.min(most, 10));
      broken = false;
      for (let turn = 0; turn < 20; turn++) {
        const { remaining } = await hooks.drain({ deadlineMs: 20_000 });
        const { status } = await hooks.replays.get(replay.id);
        if (remaining.pending === 0 && status === "done") break;
      }
      await hooks.drain({ deadlineMs: 20_000 });
      const count = failing + missed;
      expect(sent.size).toBe(count);
      expect([...sent.values()]).toEqual(Array(count).fill(1));
      expect(await hooks.replays.get(replay.id)).toMatchObject({
        count,
        queued: count,
        delivered: count,
        failed: 0,
        cancelled: 0,
        skipped: 0,
      });
      await hooks.close();
      await drop();
      console.log(`${store}: a replay of ${count} over ${killed} killed processes, each sent once`);
    });
  });
}
