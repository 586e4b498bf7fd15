import { createHookwell, MemoryOutbox, type OutboxStore } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import { generateKey, sqliteStore } from "hookwell/sqlite";
import { answers, startReceiver } from "hookwell/testing";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { loopback } from "../send/deliveries.ts";
import { freshPostgres, freshSqlite, migrated } from "../support/databases.ts";

const quiet = { info() {}, warn() {}, error() {} };

interface Opened {
  readonly store: OutboxStore;
  drop(): void | Promise<void>;
}

const stores: Readonly<Record<string, () => Promise<Opened>>> = {
  memory: async () => ({ store: new MemoryOutbox(), drop() {} }),
  async SQLite() {
    const { path, drop } = freshSqlite();
    return { store: sqliteStore({ path, migrate: true, logger: quiet }), drop };
  },
  async PostgreSQL() {
    const { url, drop } = await freshPostgres(migrated);
    const pool = new pg.Pool({ connectionString: url });
    const store = postgresStore({ pool, encryptionKeys: `k1:${generateKey()}`, migrate: true });
    return { store, drop: () => pool.end().then(drop) };
  },
};

describe.each(Object.entries(stores))("on %s", (_name, open) => {
  /** Twenty events queued for a receiver that answers 410; `work` gets them out until the other 19 are cancelled. */
  async function twentyToNobody(
    work: (hooks: ReturnType<typeof createHookwell>, cancelled: Promise<void>) => Promise<void>,
  ): Promise<void> {
    await using receiver = await startReceiver({ respond: answers({ status: 410, body: "moved away" }) });
    const { store, drop } = await open();
    await store.open({ withKeys: true });
    let done = (): void => {};
    let left = 19;
    const cancelled = new Promise<void>((resolve) => {
      done = resolve;
    });
    const hooks = createHookwell({
      store,
      project: "live",
      network: loopback,
      logger: quiet,
      observe: (name, event) => {
        if (name === "cancelled" && "deliveries" in event) left -= event.deliveries as number;
        if (left === 0) done();
      },
    });
    const { id } = await hooks.subscriptions.create({ url: receiver.url });
    for (let index = 0; index < 20; index++) await hooks.emit("order.paid", { index }, { tx: "own" });
    await work(hooks, cancelled);
    expect(receiver.requests).toHaveLength(1);
    await expect(hooks.subscriptions.get(id)).resolves.toMatchObject({
      status: "disabled",
      statusReason: "gone",
    });
    await hooks.emit("order.paid", { index: 21 }, { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    expect(receiver.requests).toHaveLength(1);
    await store.maintain(null, 1000, null);
    const { items } = await hooks.deliveries.list({ subscriptionId: id }, { limit: 100 });
    expect(items).toHaveLength(20);
    const [failed, ...more] = items.filter((delivery) => delivery.status === "failed");
    expect([failed?.errorCode, more]).toEqual(["http_410", []]);
    expect(items.filter((delivery) => delivery.status === "cancelled")).toHaveLength(19);
    await hooks.close();
    await drop();
  }

  test("field-faults E3: 410 with 20 queued, drained: one request, the subscription disabled, the rest cancelled", () =>
    twentyToNobody(async (hooks) => {
      // Twenty, and the two events that tell of the disabling and of the failure.
      const result = await hooks.drain({ deadlineMs: 10_000 });
      expect(result).toMatchObject({ dispatched: 22, delivered: 0, failed: 1 });
    }));

  test("field-faults E3: 410 with 20 queued, on the running loops: one request, and maintenance cancels the rest soon", () =>
    twentyToNobody(async (hooks, cancelled) => {
      const abandoned: string[] = [];
      const run = hooks.start({ failureHook: ({ lastError }) => abandoned.push(lastError ?? "") });
      await cancelled;
      await run.stop();
      expect(abandoned).toEqual([expect.stringContaining("410")]);
    }));
});
