import { afterAll, beforeAll, expect, test } from "vitest";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { dispatchAll, emitted, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
let stores: PostgresOutbox[];
beforeAll(async () => {
  database = await TestDatabase.make();
  stores = [await database.store(), await database.store()];
});
afterAll(() => database.drop());

const exchange = { startedAt: new Date(), durationMs: 1, statusCode: 200 };

async function fill(projectId: string, lanes: number, events: number): Promise<number> {
  for (let lane = 0; lane < lanes; lane++)
    await stores[0]!.createSubscription(own, subscriptionInput(`sub_${projectId}_${lane}`, { projectId }));
  const inputs = Array.from({ length: events }, (_, i) => emitted(`evt_${projectId}_${i}`, { projectId }));
  for (let i = 0; i < inputs.length; i += 50) await stores[0]!.capture(own, inputs.slice(i, i + 50));
  while ((await dispatchAll(stores[0]!, 500)) > 0);
  return lanes * events;
}

async function drain(store: PostgresOutbox, limit: number, sent: string[]): Promise<void> {
  let cursor = "";
  for (;;) {
    const claim = await store.claim({ now: null, limit, leaseMs: 60_000, cursor });
    cursor = claim.cursor;
    if (claim.deliveries.length === 0) return;
    sent.push(...claim.deliveries.map(({ id }) => id));
    const outcomes = claim.deliveries.map(({ id, leaseToken = "" }) => ({
      id,
      leaseToken,
      kind: "delivered" as const,
      exchange,
    }));
    expect((await store.record(outcomes, null)).stale).toEqual([]);
  }
}

test("field-faults C2: two replicas over twenty endpoints send each delivery once", async () => {
  const rows = await fill("wide", 20, 100);
  const sent: string[] = [];
  await Promise.all(stores.map((store) => drain(store, 50, sent)));
  expect(sent).toHaveLength(rows);
  expect(new Set(sent).size).toBe(rows);
  expect(stores.map((store) => store.staleOutcomes)).toEqual([0, 0]);
});

test("field-faults C2: two replicas of four loops each over one endpoint send each delivery once", async () => {
  const rows = await fill("narrow", 1, 600);
  const sent: string[] = [];
  const loops = [...stores, ...stores, ...stores, ...stores];
  await Promise.all(loops.map((store, i) => drain(store, 7 + i, sent)));
  // A loop that came while others held the last rows may have gone home early, but none is sent twice.
  expect(new Set(sent).size).toBe(sent.length);
  await drain(stores[0]!, 100, sent);
  expect(sent).toHaveLength(rows);
});

test("field-faults C2: two dispatchers that take the same events make each delivery once", async () => {
  await stores[0]!.createSubscription(own, subscriptionInput("sub_both", { projectId: "both" }));
  await stores[0]!.capture(
    own,
    Array.from({ length: 60 }, (_, i) => eventInput(`evt_both_${i}`, { projectId: "both" })),
  );
  const counts = await Promise.all([...stores, ...stores].map((store) => dispatchAll(store)));
  while ((await dispatchAll(stores[1]!)) > 0);
  expect(counts.reduce((a, b) => a + b)).toBeLessThanOrEqual(60);
  const sent: string[] = [];
  await drain(stores[1]!, 100, sent);
  expect(sent).toHaveLength(60);
});

test("sixteen claimers at once get each of 500 rows once", async () => {
  await fill("rush", 5, 100);
  const claims = await Promise.all(
    Array.from({ length: 16 }, (_, i) => stores[i % 2]!.claim({ now: null, limit: 50, leaseMs: 60_000 })),
  );
  const ids = claims.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
  for (;;) {
    const { deliveries } = await stores[0]!.claim({ now: null, limit: 100, leaseMs: 60_000 });
    if (deliveries.length === 0) break;
    ids.push(...deliveries.map(({ id }) => id));
  }
  expect(new Set(ids).size).toBe(500);
  expect(ids).toHaveLength(500);
});
