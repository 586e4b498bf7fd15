import { existsSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeSqlite } from "../../src/adapters/node-sqlite.ts";
import type { SyncTxAdapter } from "../../src/adapters/seam.ts";
import type { CaptureInput } from "../../src/model/event.ts";
import { deliveryId } from "../../src/model/ids.ts";
import type { DispatchRoom, RetentionPolicy, Scope } from "../../src/store/contract.ts";
import { claimRows } from "../../src/store/sqlite/claim.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { generateKey, type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { mostCounted } from "../../src/store/stats-contract.ts";
import { freshSqlite } from "../support/databases.ts";
import { largeNow, largeSqlite, pendingOnOneLane, readyLanes, waitingLanes } from "./sqlite-large.ts";

const now = new Date(largeNow);
const own: Scope & { kind: "own" } = { kind: "own" };
const day = 86_400_000;
const retention: RetentionPolicy = {
  deliveredMs: 30 * day,
  failedMs: 90 * day,
  eventsMs: 30 * day,
  heldMs: 30 * day,
};

let file: { path: string; drop: () => void };
let store: SqliteOutbox;
let host: DatabaseSync;
/** The statements of the first tests. */
const hot: string[] = [];

beforeAll(async () => {
  file = await largeSqlite();
  store = sqliteStore({ path: file.path, encryptionKeys: `k1:${generateKey()}`, now: () => now });
  await store.open({ withKeys: true });
  host = new DatabaseSync(file.path, { timeout: 5_000 });
});

afterAll(async () => {
  host.close();
  await store.close();
  file.drop();
});

/** Every statement that SQLite is given while `work` runs, on any connection. */
async function statementsOf(work: () => Promise<void>): Promise<string[]> {
  const prototype = DatabaseSync.prototype;
  const original = prototype.prepare;
  const texts = new Set<string>();
  prototype.prepare = function (this: DatabaseSync, ...args: Parameters<typeof original>) {
    texts.add(args[0]);
    return original.apply(this, args);
  };
  try {
    await work();
  } finally {
    prototype.prepare = original;
  }
  return [...texts].filter((text) => /hookwell_/.test(text));
}

function planOf(text: string, database = host): string[] {
  return database
    .prepare(`EXPLAIN QUERY PLAN ${text}`)
    .all()
    .map((row) => String(row.detail));
}

/** Steps of a plan that look at every row of a table. Reading a partial index from its end is not one of them. */
function scans(plan: readonly string[]): string[] {
  return plan.filter(
    (step) =>
      /^SCAN /.test(step) &&
      // Holds are a handful, and most of the time none.
      !/^SCAN (json_each|j|a|r|p|m|routes|h$|hookwell_hold|CONSTANT ROW|\(subquery|\d)/.test(step) &&
      // (recursive step, or a page read in the order of its index)
      !/USING (COVERING )?INDEX hookwell_(lane_ready|lane_waiting|lane_closing|lane_limited|event_new)/.test(
        step,
      ),
  );
}

function sorts(plan: readonly string[]): string[] {
  return plan.filter((step) => /USE TEMP B-TREE/.test(step));
}

/** Statements that sort what one event, one subject, one claim or one match gives: a handful each. */
const handfuls = [
  "INDEXED BY hookwell_delivery_pair",
  "INDEXED BY hookwell_event_key",
  "FROM hookwell_event e WHERE e.id = ?",
  "s.status = 'active' ORDER BY s.id",
  "FROM hookwell_subscription_filter f",
  "FROM json_each(?)",
];

function expectIndexed(texts: readonly string[], database = host): void {
  const problems = texts.flatMap((text) => {
    const plan = planOf(text, database);
    const sorting = handfuls.some((part) => text.includes(part)) ? [] : sorts(plan);
    // SQLite plans with the value of a bound limit, and so compiles the statement anew each time it is bound.
    const recompiled = /LIMIT \?/.test(text) ? ["LIMIT ?"] : [];
    // A count that stops walks its index as far as it counts.
    const walks = text.includes(`LIMIT ${mostCounted + 1}`);
    const scanning = scans(plan).filter(
      (step) => !walks || !step.includes("INDEX hookwell_delivery_pending"),
    );
    const wrong = [...scanning, ...sorting, ...recompiled];
    return wrong.length > 0 ? [`${wrong.join("; ")} in ${text}\n${plan.join("\n")}`] : [];
  });
  expect(problems.join("\n\n")).toBe("");
}

const pageBytes = 4_096;
/** Where Linux counts the bytes that this process has read. */
const bytesRead = "/proc/self/io";

/** Pages that SQLite read from its files during `work`, on a connection that has none of them. */
async function pagesRead(work: () => Promise<unknown>): Promise<number> {
  const count = (): number => Number(/rchar: (\d+)/.exec(readFileSync(bytesRead, "utf8"))?.[1]);
  const before = count();
  await work();
  return (count() - before) / pageBytes;
}

/** Counts what is asked of SQLite and what comes back. */
class CountingConnection extends Connection {
  statements = 0;
  rows = 0;
  override all(...args: Parameters<Connection["all"]>): ReturnType<Connection["all"]> {
    const rows = super.all(...args);
    this.statements++;
    this.rows += rows.length;
    return rows;
  }
}

function event(id: string, overrides: Partial<CaptureInput> = {}): CaptureInput {
  return {
    projectId: "live",
    id,
    type: "real.made",
    subject: `real:${id}`,
    revision: 1,
    occurredAt: now,
    data: "{}",
    route: "real.made",
    contentHash: "h",
    ...overrides,
  };
}

async function subscribe(id: string, to: SqliteOutbox = store): Promise<void> {
  await to.createSubscription(own, {
    id,
    projectId: "live",
    url: "https://real.example/",
    eventTypes: ["real.*"],
    ordering: "none",
    secret: "whsec_x",
  });
}

async function publish(id: string, to: SqliteOutbox = store, room?: DispatchRoom): Promise<number> {
  await to.capture(own, [event(id)]);
  const [matches = []] = await to.matchSubscriptions([
    { projectId: "live", filters: ["real.made", "real.*", ""] },
  ]);
  const deliveries = matches.map(({ subscriptionId, endpointId }) => ({
    id: deliveryId(id, subscriptionId),
    subscriptionId,
    endpointId,
    variant: "v",
  }));
  const result = await to.dispatch(
    [{ projectId: "live", id, bodies: [{ variant: "v", bytes: Buffer.from("{}") }], deliveries }],
    now,
    room,
  );
  return result.deliveries.length;
}

describe(`SQLite plans with ${pendingOnOneLane} rows pending on a dead lane and ${waitingLanes} lanes that wait`, () => {
  test("capture, matching, dispatch, claim and record are served by indexes, without a sort", async () => {
    const texts = await statementsOf(async () => {
      await subscribe("real_a");
      await subscribe("real_b");
      await store.takeNew(["real.made", "user.updated"], 100, now);
      expect(await publish("evt_real_claimed", store, { limit: 10, leaseMs: 30_000 })).toBe(2);
      for (let i = 0; i < 5; i++) await publish(`evt_real_${i}`);
      await store.capture(own, [
        event("evt_emitted", { fanOut: { body: "{}", filters: ["real.made", "real.*", ""] } }),
      ]);
      await store.failDispatch({ projectId: "live", id: "evt_none" }, "e", 5, now);
      const rooms = new Map([
        ["real_a", 4],
        ["real_b", 4],
      ]);
      const { deliveries } = await store.claim({
        now,
        limit: 6,
        leaseMs: 30_000,
        cursor: "r",
        rooms,
        room: 0,
      });
      expect(deliveries).toHaveLength(6);
      const exchange = { startedAt: now, durationMs: 1, statusCode: 200 };
      const failure = { ...exchange, statusCode: 500, errorCode: "http_500", error: "500" };
      const [a, b, c, d, e] = deliveries.map(({ id, leaseToken = "" }) => ({ id, leaseToken }));
      await store.record(
        [
          { ...a!, kind: "delivered", exchange },
          { ...b!, kind: "retry", exchange: failure, delayMs: 5 },
          { ...c!, kind: "retry", exchange: failure, delayMs: 5, holdLaneMs: 9 },
          { ...d!, kind: "failed", reason: "r", errorCode: "http_500", error: "500" },
          { ...e!, kind: "released" },
        ],
        now,
      );
      await store.markDelivered(deliveries[5]!.id, now, deliveries[5]!.leaseToken);
      await store.lag(now);
      await store.inspect(now);
      await store.countRemaining(10_000);
      await store.stats(undefined, now);
      await store.stats("live", now);
    });
    expect(texts.length).toBeGreaterThan(25);
    expectIndexed(texts);
    hot.push(...texts);
  });

  test("lists, single reads and upkeep are served by indexes", async () => {
    const page = { limit: 50, after: { at: now, id: "x" } };
    const texts = await statementsOf(async () => {
      await store.listEvents({}, page);
      await store.listEvents({ projectId: "live", since: new Date(0), until: now }, page);
      await store.listEvents({ type: "real.made", outcome: "pending", ownerId: "nobody" }, page);
      await store.listEvents({ outcome: "parked" }, page);
      await store.listEvents({ subject: "user:7" }, page);
      await store.listEvents({ id: "evt_7" }, page);
      await store.getEvent("evt_7", {});
      await store.deliveriesOfEvent({ projectId: "live", id: "evt_7" }, ["sub_a"]);
      await store.listDeliveries({}, page);
      await store.listDeliveries({ projectId: "live", type: "real.made", urlHost: "real.example" }, page);
      await store.listDeliveries({ subscriptionId: "sub_dead", status: "pending" }, page);
      await store.listDeliveries({ status: "failed", errorCode: "timeout" }, page);
      await store.listDeliveries({ status: "cancelled" }, page);
      await store.listDeliveries({ eventId: "evt_7" }, page);
      await store.listDeliveries({ subject: "user:7", tenantId: "t" }, page);
      await store.getDelivery("dlv_done_0000100", {});
      await store.listAttempts("dlv_done_0000100");
      await store.listSubscriptions({}, page);
      await store.listSubscriptions({ projectId: "live", urlHost: "real.example" }, page);
      await store.listSubscriptions({ externalId: "7" }, page);
      await store.listActiveSubscriptions("other");
      await store.listApiKeys(page);
      await store.listApiKeys(page, "live");
      const request = { owner: "o", key: "k" };
      for (const key of ["k", "old"])
        await store.beginRequest(
          { ...request, key, fingerprint: "f", leaseMs: 1, repeatable: false },
          new Date(largeNow - (key === "old" ? day : 0)),
        );
      await store.finishRequest(request, "t", "a");
      await store.abandonRequest(request, "t");
      await store.findApiKey("hash");
      const [adapter, tx] = [nodeSqlite() as SyncTxAdapter<unknown>, host];
      host.exec("BEGIN");
      const scope: Scope = { kind: "sync", adapter, tx };
      await store.updateSubscription(scope, "real_a", { url: "https://two.example/", eventTypes: [] }, {});
      await store.setSubscriptionStatus(scope, "real_a", "deleted", undefined, {});
      await store.retryDelivery(scope, "dlv_done_0000100", {}, now);
      await store.cancelDelivery(scope, "dlv_wait_0000100", {}, now);
      host.exec("COMMIT");
      await store.setSubscriptionStatus(own, "real_b", "disabled", undefined, {});
      await store.maintain(retention, 100, new Date(largeNow + 40 * day));
      await store.maintain(retention, 100, new Date(largeNow + 100 * day));
    });
    expect(texts.length).toBeGreaterThan(40);
    expectIndexed(texts);
    hot.push(...texts);
  });

  test("replays, what is missing, and bulk cancel are served by indexes", async () => {
    const walk = { look: 100, most: 20, pending: 10_000, waitMs: 0, missingMs: day, keepMs: 0 };
    const period = { since: new Date(0), until: new Date(largeNow + 1) };
    await subscribe("real_c");
    await publish("evt_real_c");
    const { replays } = store;
    const texts = await statementsOf(async () => {
      for (const [n, [selection, statuses]] of (
        [
          [{ type: "user.created", tenantId: "t", ownerId: "o", urlHost: "h" }, ["failed", "delivered"]],
          [{ projectId: "live", errorCode: "timeout" }, ["failed"]],
          [{ type: "user.created" }, ["cancelled"]],
          [{ subscriptionId: "real_c" }, ["delivered", "missing"]],
          [{ subscriptionId: "real_c", subject: "user:7" }, ["missing"]],
          [{ subscriptionId: "real_c", eventId: "evt_7" }, ["missing"]],
          [{ eventId: "evt_7" }, ["delivered"]],
          [{ subject: "user:7" }, ["delivered"]],
          [{ replayId: "rpl_1" }, ["failed"]],
        ] as const
      ).entries()) {
        const work = { selection, statuses: [...statuses], ...period };
        await replays.count(work, undefined, walk, now);
        await replays.create(own, { id: `rpl_${n}`, count: 0, ...work });
        for (let step = 0; step < 3; step++) await replays.advance(walk, now);
        await replays.get(`rpl_${n}`, {});
      }
      await replays.list({ projectId: "live", status: "running" }, { limit: 10 });
      await store.listDeliveries({ replayId: "rpl_1" }, { limit: 10 });
      await replays.takeMissing(["user.created", "*"], 10, now);
      const key = { replayId: "rpl_3", projectId: "live", eventId: "evt_7" };
      await replays.failMissing(key, "e", 5, now);
      await replays.failMissing(key, "e", null, now);
      const delivery = { id: "dlv_real_m", subscriptionId: "real_c", endpointId: "e" };
      const notes = host.prepare(
        "INSERT INTO hookwell_replay_missing VALUES ('rpl_3', 'evt_9', 'live', 'real_c', '*', 0, 0)",
      );
      notes.run();
      await replays.fillMissing([{ ...key, eventId: "evt_9", delivery, patch: "{}" }], now);
      for (const selection of [
        { subscriptionId: "real_c" },
        { type: "no.such" },
        { eventId: "evt_7" },
        { replayId: "r" },
      ]) {
        const { next } = await replays.cancelWindow(
          selection,
          {},
          undefined,
          { look: 50, dryRun: false },
          now,
        );
        await replays.cancelWindow(selection, period, next, { look: 50, dryRun: true }, now);
      }
      await replays.stop(own, "rpl_4", {}, now).catch(() => {});
      await replays.advance({ ...walk, keepMs: -1 }, now);
    });
    expect(texts.length).toBeGreaterThan(30);
    expectIndexed(texts);
    hot.push(...texts);
  });

  test("a claim looks at ready lanes and their first rows only", async () => {
    const connection = new CountingConnection(file.path);
    await connection.connect();
    const rooms = new Map([["sub_dead", 1]]);
    const request = { now, limit: 50, leaseMs: 30_000, cursor: "sub_ready_007", rooms };
    const claimed = await connection.write(() => claimRows(connection, request, "token", largeNow));
    expect(claimed.ids).toHaveLength(50);
    expect(claimed.ids.filter((id) => id.startsWith("dlv_dead"))).toHaveLength(1);
    // BEGIN, wake, two pages of lanes, up to three reads of each lane, a lease of each row, COMMIT.
    expect(connection.statements).toBeLessThan(3 * readyLanes + 50);
    expect(connection.rows).toBeLessThan(4 * 50);
    const before = connection.statements;
    const asleep = await connection.write(() =>
      claimRows(connection, { ...request, room: 0, rooms: new Map() }, "token", largeNow),
    );
    expect(asleep.ids).toEqual([]);
    expect(connection.statements - before).toBeLessThan(10);
    connection.close();
  });

  test.runIf(existsSync(bytesRead))(
    "a claim reads a few pages for each row it takes, whatever waits, is paused, open or due on a dead lane",
    async () => {
      const connection = new Connection(file.path);
      await connection.connect();
      const request = { now, limit: 50, leaseMs: 30_000, cursor: "sub_ready_007" };
      let claimed = 0;
      const pages = await pagesRead(() =>
        connection.write(() => {
          claimed = claimRows(connection, request, "token", largeNow).ids.length;
        }),
      );
      connection.close();
      expect(claimed).toBe(50);
      expect(pages).toBeGreaterThan(10);
      expect(pages).toBeLessThan(200);
      // A look at each row of the dead lane would show.
      const count = "SELECT count(due_at) FROM hookwell_delivery WHERE subscription_id = 'sub_dead'";
      expect(await pagesRead(async () => host.prepare(count).get())).toBeGreaterThan(2_000);
    },
  );

  test("a hold costs a claim a bounded number of rows, each once, and nothing is looked for while all is held", async () => {
    const connection = new CountingConnection(file.path);
    await connection.connect();
    const rooms = new Map([["sub_dead", 10]]);
    const request = { now, limit: 10, leaseMs: 30_000, room: 0, rooms };
    const claim = () => connection.write(() => claimRows(connection, request, "token", largeNow));
    await store.setHold(own, { id: "hld_type", selector: { type: "user.*" } }, now);
    let statements = connection.statements;
    expect(await claim()).toMatchObject({ ids: [], again: true });
    expect(connection.statements - statements).toBeLessThan(350);
    const texts = await statementsOf(async () => {
      await store.lag(now);
      await store.countRemaining(100, now);
      await store.listHolds();
      await store.releaseHold(own, { type: "user.*" });
      expect(await store.countToGiveBack(1_000)).toBe(250);
      expect(await store.giveBackHeld(1_000, now)).toEqual({ deliveries: 250, more: false });
    });
    expectIndexed(texts);
    hot.push(...texts);
    await store.setHold(own, { id: "hld_all", selector: { all: true } }, now);
    statements = connection.statements;
    expect((await claim()).ids).toEqual([]);
    expect(connection.statements - statements).toBeLessThan(5);
    await store.releaseHold(own, { all: true });
    expect((await claim()).ids).toHaveLength(10);
    connection.close();
  });

  test("the same plans are taken when the application has run ANALYZE", () => {
    host.exec("ANALYZE");
    expect(hot.length).toBeGreaterThan(60);
    expectIndexed(hot);
  });

  test("and also when it ran ANALYZE while the tables had a few rows", async () => {
    const small = freshSqlite();
    const young = sqliteStore({ path: small.path, encryptionKeys: `k1:${generateKey()}`, migrate: true });
    await subscribe("real_a", young);
    for (let i = 0; i < 3; i++) await publish(`evt_real_${i}`, young);
    const database = new DatabaseSync(small.path, { timeout: 5_000 });
    database.exec("ANALYZE");
    // What is known of table sizes is read when a connection is made.
    const later = new DatabaseSync(small.path);
    expectIndexed(hot, later);
    later.close();
    database.close();
    await young.close();
    small.drop();
  });

  test("the check sees a scan and a sort", () => {
    expect(() => expectIndexed(["SELECT id FROM hookwell_delivery WHERE last_error = ?"])).toThrow("SCAN");
    expect(() => expectIndexed(["SELECT id FROM hookwell_event WHERE subject = ? ORDER BY type"])).toThrow(
      "TEMP B-TREE",
    );
    expect(() => expectIndexed(["SELECT id FROM hookwell_delivery WHERE id = ? LIMIT ?"])).toThrow("LIMIT");
  });
});
