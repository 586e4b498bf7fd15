import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Delivery, Outcome } from "../../src/model/delivery.ts";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { dispatchAll, emitted, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.make();
});
afterAll(() => database.drop());

const lanes = 8;
const events = 160;
const leaseMs = 60_000;

/**
 * A lane that sleeps wakes no later than the first of its rows may be sent. True of every snapshot, but for rows that
 * capture made: the dispatcher, or a note, wakes their lane.
 */
const unreachable = `
  SELECT count(*)::int AS n FROM hookwell.delivery d JOIN hookwell.lane l USING (subscription_id)
  WHERE d.status = 'pending' AND NOT l.ready AND l.held = 0
    AND (l.next_due IS NULL OR l.next_due > greatest(d.due_at, l.hold_until))
    AND NOT EXISTS (SELECT 1 FROM hookwell.event e WHERE e.id = d.event_id AND e.state = 'new')
    AND NOT EXISTS (SELECT 1 FROM hookwell.lane_wake w WHERE w.subscription_id = d.subscription_id)`;

const exchange = {
  startedAt: new Date(),
  durationMs: 1,
  statusCode: 503,
  errorCode: "http_503",
  error: "503",
};

function outcomeOf({ id, leaseToken = "", attempts }: Delivery): Outcome {
  const dice = attempts > 3 ? 0 : randomInt(8);
  if (dice === 1) return { id, leaseToken, kind: "released" };
  if (dice === 2) return { id, leaseToken, kind: "retry", exchange, delayMs: randomInt(12) };
  if (dice === 3) return { id, leaseToken, kind: "retry", exchange, delayMs: 1, holdLaneMs: randomInt(12) };
  return { id, leaseToken, kind: "delivered", exchange: { ...exchange, statusCode: 200 } };
}

test("no wake-up is lost while lanes are given work and put to sleep from every side", async () => {
  const pool = database.pool({ max: 16 });
  const store = await database.store({ pool });
  for (let lane = 0; lane < lanes; lane++)
    await store.createSubscription(own, subscriptionInput(`sub_${lane}`, { tenantId: `t${lane % 4}` }));

  let captured = 0;
  let producing = true;
  const delivered = new Set<string>();
  const produce = async (outbox: PostgresOutbox): Promise<void> => {
    while (captured < events) {
      const n = captured++;
      const tenantId = `t${n % 4}`;
      const make = n % 3 === 0 ? emitted : eventInput;
      await outbox.capture(own, [make(`evt_${n}`, { tenantId })]);
      // A repeat may add rows to an event that was dispatched meanwhile.
      if (n % 30 === 0)
        await outbox.createSubscription(own, subscriptionInput(`sub_late_${n}`, { tenantId }));
      if (n % 3 === 0 && n >= 30)
        await outbox.capture(own, [emitted(`evt_${n - 30}`, { tenantId: `t${(n - 30) % 4}` })]);
      await dispatchAll(outbox, 5);
    }
  };
  const remaining = async (): Promise<number> => {
    const { rows } = await pool.query(
      "SELECT (SELECT count(*) FROM hookwell.delivery WHERE status = 'pending')::int + (SELECT count(*) FROM hookwell.event WHERE state = 'new')::int AS n",
    );
    return rows[0].n;
  };
  const consume = async (outbox: PostgresOutbox): Promise<void> => {
    let cursor = "";
    for (;;) {
      const claim = await outbox.claim({ now: null, limit: 7, leaseMs, cursor });
      cursor = claim.cursor;
      const { recorded } = await outbox.record(claim.deliveries.map(outcomeOf), null);
      for (const row of recorded)
        if (row.status === "delivered") {
          expect(delivered).not.toContain(row.id);
          delivered.add(row.id);
        }
      if (claim.deliveries.length > 0 || producing) continue;
      await dispatchAll(outbox);
      if ((await remaining()) === 0) return;
    }
  };
  const watchInvariant = async (): Promise<number> => {
    let looks = 0;
    for (; producing; looks++) {
      const { rows } = await pool.query(unreachable);
      expect(rows[0].n).toBe(0);
    }
    return looks;
  };

  const watching = watchInvariant();
  const consuming = [store, await database.store({ pool }), store].map(consume);
  await Promise.all([produce(store), produce(await database.store({ pool }))]);
  producing = false;
  expect(await watching).toBeGreaterThan(5);
  await Promise.all(consuming);

  const { rows } = await pool.query(
    "SELECT count(*)::int AS n, count(*) FILTER (WHERE status = 'delivered')::int AS done FROM hookwell.delivery",
  );
  expect(rows[0].done).toBe(rows[0].n);
  expect(delivered.size).toBe(rows[0].n);
  expect(rows[0].n).toBeGreaterThanOrEqual((events * lanes) / 4);
});

test("a lane that is just being put to sleep stays awake for a row that commits meanwhile", async () => {
  const pool = database.pool();
  const store = await database.store({ pool });
  await store.createSubscription(own, subscriptionInput("sub_edge", { projectId: "edge" }));
  await store.capture(own, [eventInput("evt_edge", { projectId: "edge" })]);

  // The giver's transaction has written its row and its lane, and is not committed.
  const giver = await pool.connect();
  await giver.query("BEGIN");
  await giver.query(
    `INSERT INTO hookwell.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, next_attempt_at,
       due_at, created_at, updated_at)
     SELECT 'dlv_edge', 'edge', 'evt_edge', id, endpoint_id, 'v', 'user.created', 1, 1, 1, 1
     FROM hookwell.subscription WHERE id = 'sub_edge'`,
  );
  await giver.query("INSERT INTO hookwell.body VALUES ('edge', 'evt_edge', 'v', '{}')");
  await giver.query(
    "UPDATE hookwell.lane SET ready = true, next_due = NULL WHERE subscription_id = 'sub_edge'",
  );

  // The claim finds the lane empty, and must neither wait for the giver nor put the lane to sleep over it.
  expect((await store.claim({ now: null, limit: 5, leaseMs })).deliveries).toEqual([]);
  await giver.query("COMMIT");
  giver.release();
  expect((await store.claim({ now: null, limit: 5, leaseMs })).deliveries.map(({ id }) => id)).toEqual([
    "dlv_edge",
  ]);
});
