import { afterAll, beforeAll, expect, test } from "vitest";
import type { Delivery } from "../../src/model/delivery.ts";
import type { CaptureInput } from "../../src/model/event.ts";
import { deliveryId } from "../../src/model/ids.ts";
import { day, type LargeDatabase, largeDatabase } from "./postgres-large.ts";
import type { Measured } from "./postgres-plans.ts";

let large: LargeDatabase;
beforeAll(async () => {
  large = await largeDatabase();
}, 120_000);
afterAll(() => large.drop());

const leaseMs = 30_000;
const bigTables = [
  "delivery",
  "event",
  "body",
  "attempt",
  "lane",
  "subscription",
  "subscription_filter",
  "endpoint",
];

/** Runs one call of the store and answers what its statements did, after the checks that hold for all of them. */
async function measure<T>(call: () => Promise<T>): Promise<{ result: T; statements: Measured[] }> {
  large.measuring.take();
  const result = await call();
  const statements = large.measuring.take();
  expect(statements).not.toHaveLength(0);
  for (const { text, seqScans } of statements)
    expect(
      seqScans.filter((table) => bigTables.includes(table)),
      text,
    ).toEqual([]);
  return { result, statements };
}

function rowsRead(statements: readonly Measured[], table?: string): number {
  let sum = 0;
  for (const statement of statements)
    for (const [name, rows] of statement.rowsRead) if (table === undefined || name === table) sum += rows;
  return sum;
}

const released = (deliveries: readonly Delivery[]) =>
  deliveries.map(({ id, leaseToken }) => ({ id, leaseToken: leaseToken!, kind: "released" as const }));

test("a claim of 100 reads few rows beside 200,000 due rows on one lane and 20,000 lanes that wait", async () => {
  const { result, statements } = await measure(() => large.store.claim({ now: null, limit: 100, leaseMs }));
  expect(result.deliveries).toHaveLength(100);
  expect(new Set(result.deliveries.map((row) => row.subscriptionId)).size).toBe(21);
  // The rows taken, once to pick, once to change and once to load; a probe for each lane.
  expect(rowsRead(statements, "delivery")).toBeLessThan(350);
  expect(rowsRead(statements, "lane")).toBeLessThan(100);
  expect(rowsRead(statements)).toBeLessThan(900);
  await large.store.record(released(result.deliveries), null);
});

test("a claim of the dead lane alone costs what it takes, not what waits", async () => {
  const rooms = new Map(Array.from({ length: 20 }, (_, i) => [`sub_r${String(i + 1).padStart(6, "0")}`, 0]));
  const { result, statements } = await measure(() =>
    large.store.claim({ now: null, limit: 100, leaseMs, rooms }),
  );
  expect(result.deliveries.map((row) => row.subscriptionId)).toEqual(Array(100).fill("sub_dead"));
  expect(rowsRead(statements, "delivery")).toBeLessThan(350);
  await large.store.record(released(result.deliveries), null);
});

test("LIMIT is not ignored: never a row more than asked for, whatever the limit", async () => {
  for (const limit of [1, 7, 25, 60]) {
    const { deliveries } = await large.store.claim({ now: null, limit, leaseMs });
    expect(deliveries).toHaveLength(limit);
    const { rows } = await large.pool.query(
      "SELECT count(*)::int AS n FROM hookwell.delivery WHERE lease_token IS NOT NULL",
    );
    expect(rows[0].n).toBe(limit);
    await large.store.record(released(deliveries), null);
  }
});

test("an idle claim, with 20,000 lanes that wait, reads almost nothing", async () => {
  await large.pool.query(
    "UPDATE hookwell.lane SET held = 1 WHERE subscription_id LIKE 'sub_r%' OR subscription_id = 'sub_dead'",
  );
  const { result, statements } = await measure(() => large.store.claim({ now: null, limit: 100, leaseMs }));
  expect(result.deliveries).toHaveLength(0);
  expect(rowsRead(statements)).toBeLessThan(30);
  await large.pool.query(
    "UPDATE hookwell.lane SET held = 0 WHERE subscription_id LIKE 'sub_r%' OR subscription_id = 'sub_dead'",
  );
});

test("recording 100 outcomes reads those rows", async () => {
  const { deliveries } = await large.store.claim({ now: null, limit: 100, leaseMs });
  const exchange = {
    startedAt: new Date(),
    durationMs: 3,
    statusCode: 500,
    errorCode: "http_500",
    error: "500",
  };
  const { result, statements } = await measure(() =>
    large.store.record(
      deliveries.map(({ id, leaseToken = "" }, i) =>
        i % 2
          ? { id, leaseToken, kind: "retry", delayMs: 1_000, exchange }
          : { id, leaseToken, kind: "delivered", exchange },
      ),
      null,
    ),
  );
  expect(result.recorded).toHaveLength(100);
  expect(rowsRead(statements, "delivery")).toBeLessThanOrEqual(300);
  expect(rowsRead(statements)).toBeLessThan(500);
});

test("putting lanes to sleep and waking them reads those lanes", async () => {
  await large.pool.query(
    "UPDATE hookwell.lane SET next_due = 1 WHERE subscription_id BETWEEN 'sub_w000101' AND 'sub_w000150'",
  );
  const { statements } = await measure(() => large.store.claim({ now: null, limit: 100, leaseMs, room: 1 }));
  expect(rowsRead(statements, "lane")).toBeLessThan(600);
  expect(rowsRead(statements, "delivery")).toBeLessThan(400);
  const { rows } = await large.pool.query(
    "SELECT count(*)::int AS n FROM hookwell.lane WHERE subscription_id BETWEEN 'sub_w000101' AND 'sub_w000150' AND NOT ready AND next_due > 1000",
  );
  expect(rows[0].n).toBe(50);
});

const input = (id: string, extra: Partial<CaptureInput> = {}): CaptureInput => ({
  projectId: "live",
  id,
  type: "user.created",
  tenantId: "tenant_77",
  subject: `user:${id}`,
  revision: 1,
  occurredAt: new Date(5),
  data: "{}",
  route: "user.created",
  contentHash: id,
  ...extra,
});

test("capture and its refusals read by key", async () => {
  const one = await measure(() => large.store.capture({ kind: "own" }, [input("evt_n1")]));
  expect(one.statements).toHaveLength(1);
  expect(rowsRead(one.statements)).toBe(0);
  const repeat = await measure(() => large.store.capture({ kind: "own" }, [input("evt_n1")]));
  expect(repeat.result).toEqual([{ id: "evt_n1", duplicate: true }]);
  expect(rowsRead(repeat.statements)).toBeLessThan(5);
  const several = await measure(() =>
    large.store.capture({ kind: "own" }, [input("evt_n2"), input("evt_n3")]),
  );
  expect(rowsRead(several.statements)).toBeLessThan(5);
});

test("fan-out in capture matches by key among 20,000 subscriptions of other tenants", async () => {
  const fanOut = { body: "{}", filters: ["user.created", "user.*", ""] };
  const { statements } = await measure(() =>
    large.store.capture({ kind: "own" }, [input("evt_e1", { fanOut })]),
  );
  expect(statements).toHaveLength(1);
  expect(rowsRead(statements)).toBeLessThan(10);
  const { rows } = await large.pool.query(
    "SELECT subscription_id FROM hookwell.delivery WHERE event_id = 'evt_e1'",
  );
  expect(rows).toEqual([{ subscription_id: "sub_w000077" }]);
});

test("dispatch: taking, matching and writing read what they handle", async () => {
  const taken = await measure(() => large.store.takeNew(["user.created", "*"], 100, null));
  expect(taken.result.map((event) => event.id)).toEqual(["evt_n1", "evt_n2", "evt_n3", "evt_e1"]);
  expect(rowsRead(taken.statements)).toBeLessThan(20);

  const looked = await measure(() => large.store.inspect(null));
  expect(looked.result.undispatched.length).toBeGreaterThan(0);
  expect(rowsRead(looked.statements)).toBeLessThan(50);

  const query = { projectId: "live", tenantId: "tenant_9", filters: ["user.created", "user.*", ""] };
  const matched = await measure(() => large.store.matchSubscriptions([query, query]));
  expect(matched.result[1]).toEqual([{ subscriptionId: "sub_w000009", endpointId: "end_1" }]);
  expect(rowsRead(matched.statements)).toBeLessThan(10);

  const items = taken.result.map(({ projectId, id }) => ({
    projectId,
    id,
    bodies: [{ variant: "v", bytes: Buffer.from("{}") }],
    deliveries: [
      {
        id: deliveryId(id, "sub_w000009"),
        subscriptionId: "sub_w000009",
        endpointId: "end_1",
        variant: "v",
      },
    ],
  }));
  // Rows that are claimed as they are made, and rows that are queued.
  const room = { limit: 100, leaseMs, rooms: new Map([["sub_w000009", 8]]) };
  const one = await measure(() => large.store.dispatch(items.slice(0, 1), null, room));
  expect(one.result.deliveries).toHaveLength(1);
  expect(one.statements).toHaveLength(2);
  expect(one.statements[0]!.text).toContain("closed AS MATERIALIZED");
  expect(rowsRead(one.statements)).toBeLessThan(30);
  const claimed = await measure(() => large.store.dispatch(items.slice(1, 3), null, room));
  expect(claimed.result.deliveries).toHaveLength(2);
  expect(rowsRead(claimed.statements)).toBeLessThan(60);
  const queued = await measure(() => large.store.dispatch(items.slice(3), null));
  expect(queued.result.dispatched).toHaveLength(1);
  expect(rowsRead(queued.statements)).toBeLessThan(40);
});

test("lists and looks read about a page", async () => {
  const page = { limit: 50 };
  for (const call of [
    () => large.store.listDeliveries({}, page),
    () => large.store.listDeliveries({ subscriptionId: "sub_w000500" }, page),
    () => large.store.listDeliveries({ eventId: "evt_00000500" }, page),
    () => large.store.listDeliveries({ status: "failed" }, page),
    () => large.store.listDeliveries({ subject: "user:500" }, page),
    () => large.store.listEvents({}, page),
    () => large.store.listEvents({ subject: "user:500" }, page),
    () => large.store.listEvents({ id: "evt_00000500" }, page),
    () => large.store.listSubscriptions({}, page),
    () => large.store.listSubscriptions({ projectId: "live" }, page),
  ]) {
    const { result, statements } = await measure<{ readonly items: readonly unknown[] }>(call);
    expect(result.items.length, statements[0]!.text).toBeGreaterThan(0);
    expect(rowsRead(statements), statements[0]!.text).toBeLessThan(500);
  }
  const one = await measure(() => large.store.getDelivery("dlv_f3", {}));
  expect(one.result?.attemptLog).toHaveLength(2);
  expect(rowsRead(one.statements)).toBeLessThan(15);
  const pairs = await measure(() =>
    large.store.deliveriesOfEvent({ projectId: "live", id: "evt_00000500" }, ["sub_w000500", "sub_dead"]),
  );
  expect(rowsRead(pairs.statements)).toBeLessThan(10);
  const event = await measure(() => large.store.getEvent("evt_00000500", {}));
  expect(event.result?.outcome).toBe("pending");
  expect(rowsRead(event.statements)).toBeLessThan(20);
});

test("upkeep and the numbers for alerts read batches, not the tables", async () => {
  const retention = { deliveredMs: 30 * day, failedMs: 90 * day, eventsMs: 30 * day, heldMs: 30 * day };
  const { result, statements } = await measure(() => large.store.maintain(retention, 100, null));
  expect(result).toMatchObject({ prunedDeliveries: 100, more: true });
  expect(rowsRead(statements)).toBeLessThan(12_000);
  expect((await large.store.lag(null)).oldestDueAt).toBeInstanceOf(Date);
  const lag = await measure(() => large.store.lag(null));
  expect(rowsRead(lag.statements)).toBeLessThan(200);
  const parked = await measure(() => large.store.listEvents({ outcome: "parked" }, { limit: 100 }));
  expect(rowsRead(parked.statements)).toBeLessThan(200);
  const all = await measure(() => large.store.stats(undefined, null));
  expect(all.result.pending).toEqual({ count: 10_000, capped: true });
  expect(rowsRead(all.statements)).toBeLessThan(12_000);
  // Ten thousand subscriptions of a project are looked at, each with its lane, and as many rows of theirs.
  const one = await measure(() => large.store.stats("live", null));
  expect(one.result).toMatchObject({ pending: { count: 10_000, capped: true }, lanes: { more: true } });
  expect(one.result.oldestDueAt).toBeInstanceOf(Date);
  expect(rowsRead(one.statements)).toBeLessThan(120_000);
  const remaining = await measure(() => large.store.countRemaining(1_000));
  expect(remaining.result.pending).toBe(1_000);
  expect(rowsRead(remaining.statements)).toBeLessThan(2_000);
});

const walk = { look: 1_000, most: 200, pending: 10_000, waitMs: 0, missingMs: null, keepMs: 90 * day };
const ever = { since: new Date(0), until: new Date(2_000_000) };

test("a step of a replay looks at its window and changes its rows, whatever the selection", async () => {
  const selections = [
    [{ type: "user.created" }, ["failed"]],
    [{ type: "user.created" }, ["failed", "delivered"]],
    [{ subscriptionId: "sub_r000001" }, ["delivered"]],
    [{ urlHost: "x.test", subject: "user:7" }, ["cancelled"]],
  ] as const;
  for (const [n, [selection, statuses]] of selections.entries()) {
    const work = { selection, statuses: [...statuses], ...ever };
    await large.store.replays.create({ kind: "own" }, { id: `rpl_${n}`, count: 0, ...work });
    const counted = await measure(() => large.store.replays.count(work, undefined, walk, null));
    expect(rowsRead(counted.statements, "delivery"), JSON.stringify(work)).toBeLessThanOrEqual(walk.look);
    const step = await measure(() => large.store.replays.advance(walk, null));
    const { queued } = step.result;
    expect(queued).toBeLessThanOrEqual(walk.most);
    expect(queued > 0).toBe(n < 2);
    // The window once, and each row that is queued: to lock its lane, itself and its order, to keep, to change.
    expect(rowsRead(step.statements, "delivery"), JSON.stringify(work)).toBeLessThanOrEqual(
      walk.look + 5 * queued,
    );
    expect(rowsRead(step.statements, "event")).toBeLessThanOrEqual(walk.look);
    await large.store.replays.stop({ kind: "own" }, `rpl_${n}`, {}, null);
  }
});

test("a claim of what a replay queued reads what it takes; so does counting what became of it", async () => {
  // The lanes of the finished rows have no subscription, and nothing live.
  const rooms = new Map(Array.from({ length: 50 }, (_, i) => [`sub_f${i}`, 100]));
  const { result, statements } = await measure(() =>
    large.store.claim({ now: null, limit: 100, leaseMs, rooms, room: 0 }),
  );
  expect(result.deliveries).toHaveLength(100);
  expect(rowsRead(statements, "delivery")).toBeLessThan(450);
  await large.store.record(
    result.deliveries.map(({ id, leaseToken }) => ({
      id,
      leaseToken: leaseToken!,
      kind: "delivered" as const,
      exchange: { startedAt: new Date(), durationMs: 1, statusCode: 200 },
    })),
    null,
  );
  const seen = await measure(() => large.store.replays.get("rpl_0", {}));
  const delivered = seen.result!.delivered;
  expect(seen.result).toMatchObject({ queued: 200, failed: 0 });
  expect(delivered).toBeGreaterThan(10);
  expect(rowsRead(seen.statements)).toBeLessThan(110);
  // One replay is counted at a time: the other one's rows were claimed too.
  for (let turn = 0; turn < 2; turn++) await measure(() => large.store.replays.advance(walk, null));
  const folded = await measure(() => large.store.replays.get("rpl_0", {}));
  expect(folded.result).toMatchObject({ delivered });
  expect(rowsRead(folded.statements)).toBeLessThan(5);
  const listed = await measure(() => large.store.listDeliveries({ replayId: "rpl_0" }, { limit: 50 }));
  expect(rowsRead(listed.statements, "delivery")).toBeLessThan(60);
});

test("a look for what is missing reads its window of events and probes the deliveries", async () => {
  const work = { selection: { subscriptionId: "sub_w000007" }, statuses: ["missing" as const], ...ever };
  await large.store.replays.create({ kind: "own" }, { id: "rpl_m", count: 0, ...work });
  const counted = await measure(() => large.store.replays.count(work, undefined, walk, null));
  expect(counted.result.count).toBe(0);
  expect(rowsRead(counted.statements)).toBeLessThan(2 * walk.look + 20);
  const step = await measure(() => large.store.replays.advance(walk, null));
  expect(step.result).toMatchObject({ again: true });
  expect(rowsRead(step.statements)).toBeLessThan(2 * walk.look + 30);
  const taken = await measure(() => large.store.replays.takeMissing(["user.created", "*"], 100, null));
  expect(rowsRead(taken.statements)).toBeLessThan(20);
  const delivery = { id: "dlv_m", subscriptionId: "sub_w000007", endpointId: "end_1" };
  const key = { replayId: "rpl_m", projectId: "live", eventId: "evt_00000007" };
  const filled = await measure(() => large.store.replays.fillMissing([{ ...key, delivery }], null));
  expect(rowsRead(filled.statements)).toBeLessThan(20);
  await large.store.replays.stop({ kind: "own" }, "rpl_m", {}, null);
});

test("bulk cancel goes along the pending rows, a window at a time, and reads no finished one", async () => {
  const { cancelWindow } = large.store.replays;
  const call = (...given: Parameters<typeof cancelWindow>) => large.store.replays.cancelWindow(...given);
  const dry = { look: 1_000, dryRun: true };
  for (const selection of [
    { subscriptionId: "sub_dead" },
    { type: "user.created" },
    { errorCode: "timeout" },
  ]) {
    const first = await measure(() => call(selection, {}, undefined, dry, null));
    expect(rowsRead(first.statements, "delivery")).toBeLessThanOrEqual(1_000);
    const second = await measure(() => call(selection, {}, first.result.next, dry, null));
    expect(rowsRead(second.statements, "delivery")).toBeLessThanOrEqual(1_000);
  }
  const one = await measure(() => call({ eventId: "evt_00000500" }, {}, undefined, dry, null));
  expect(rowsRead(one.statements, "delivery")).toBeLessThan(20);
  const real = { look: 200, dryRun: false };
  const { result, statements } = await measure(() =>
    call({ subscriptionId: "sub_dead" }, {}, undefined, real, null),
  );
  expect(result.count).toBe(200);
  // The window, the lock, the change.
  expect(rowsRead(statements, "delivery")).toBeLessThanOrEqual(3 * 200);
});
