import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { StorageError } from "../../src/model/errors.ts";
import { coveringFilters } from "../../src/model/matching.ts";
import type { PgPool } from "../../src/store/postgres/index.ts";
import { idleStatementsPerSecond, StatementCount } from "../deliver/idle.ts";
import { dispatchAll, emitted, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.make();
});
afterAll(() => database.drop());

const exchange = { startedAt: new Date(), durationMs: 1, statusCode: 200 };

test("field-faults H7: with a pool of one and fifty sends under way, no connection is held and writes go on", async () => {
  const pool = database.pool({ max: 1 });
  const admin = database.pool({ max: 1 });
  const store = await database.store({ pool });
  await store.createSubscription(own, subscriptionInput("sub_slow"));
  await store.capture(
    own,
    Array.from({ length: 50 }, (_, i) => emitted(`evt_${i}`)),
  );
  await dispatchAll(store);
  const { deliveries } = await store.claim({ now: null, limit: 50, leaseMs: 60_000 });
  expect(deliveries).toHaveLength(50);

  // The sends are under way now: everything else has the connection for itself.
  expect([pool.totalCount - pool.idleCount, pool.waitingCount]).toEqual([0, 0]);
  const { rows } = await admin.query(
    "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'",
  );
  expect(rows).toEqual([]);
  await store.capture(own, [eventInput("evt_meanwhile")]);
  await store.createSubscription(own, subscriptionInput("sub_meanwhile", { projectId: "other" }));
  await store.setSubscriptionStatus(own, "sub_meanwhile", "paused", undefined, {});
  expect((await store.listDeliveries({}, { limit: 10 })).items).toHaveLength(10);
  expect((await store.lag(null)).oldestNewAt).toBeInstanceOf(Date);

  await store.record(
    deliveries.map(({ id, leaseToken = "" }) => ({ id, leaseToken, kind: "delivered", exchange })),
    null,
  );
  expect([pool.totalCount - pool.idleCount, pool.waitingCount]).toEqual([0, 0]);
});

test("field-faults H7: a transaction that fails gives its connection back, whole", async () => {
  const pool = database.pool({ max: 1 });
  const store = await database.store({ pool });
  for (let i = 0; i < 3; i++)
    await expect(
      store.setSubscriptionStatus(own, "sub_unknown", "paused", undefined, {}),
    ).rejects.toMatchObject({ code: "not_found" });
  expect(pool.totalCount - pool.idleCount).toBe(0);
  expect(await store.getSubscription("sub_unknown", {})).toBeUndefined();
});

test("a statement is sent without session state, so that a pooler in transaction mode may sit between", async () => {
  const pool = database.pool();
  const texts: string[] = [];
  const noting: PgPool = {
    query: (statement, values) => {
      texts.push(typeof statement === "string" ? statement : `named: ${statement.name}`);
      return pool.query(statement, values);
    },
    async connect() {
      const client = await pool.connect();
      return {
        query: (text, values) => {
          texts.push(text);
          return client.query(text, values);
        },
        release: (error) => client.release(error),
      };
    },
  };
  const store = await database.store({ pool: noting });
  await store.createSubscription(own, subscriptionInput("sub_pooled", { projectId: "pooled" }));
  await store.capture(own, [
    emitted("evt_p1", { projectId: "pooled" }),
    eventInput("evt_p2", { projectId: "pooled" }),
  ]);
  await dispatchAll(store);
  const { deliveries } = await store.claim({ now: null, limit: 10, leaseMs: 1_000 });
  await store.record(
    [{ id: deliveries[0]!.id, leaseToken: deliveries[0]!.leaseToken!, kind: "released" }],
    null,
  );
  await store.maintain({ deliveredMs: 1, failedMs: 1, eventsMs: 1, heldMs: 1 }, 10, null);
  expect(texts.length).toBeGreaterThan(15);
  for (const text of texts) {
    expect(text).not.toMatch(/^\s*(SET|RESET|LISTEN|PREPARE|DECLARE|DISCARD)\b/i);
    expect(text).not.toMatch(/pg_(try_)?advisory_(un)?lock\b|TEMP(ORARY)? TABLE/i);
    expect(text).not.toContain("?");
  }
});

test("what a claim took when its connection went away is given back by the next claim, with its attempt; not twice in a row", async () => {
  const pool = database.pool();
  const admin = database.pool({ max: 1 });
  let breaks = 0;
  const breaking: PgPool = {
    async query(statement, values) {
      // The look at what was claimed, and at it alone.
      if (!String(statement).includes("encode(b.bytes") || breaks === 0)
        return await pool.query(statement as string, values);
      breaks--;
      const client = await pool.connect();
      client.on("error", () => {});
      const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
      await admin.query("SELECT pg_terminate_backend($1, 10000)", [rows[0].pid]);
      try {
        return await client.query(statement as string, values);
      } finally {
        client.release(true);
      }
    },
    connect: () => pool.connect(),
  };
  const store = await database.store({ pool: breaking });
  await store.createSubscription(own, subscriptionInput("sub_cut", { projectId: "cut" }));
  await store.capture(own, [emitted("evt_cut", { projectId: "cut" })]);
  await dispatchAll(store);
  const claim = () => store.claim({ now: null, limit: 50, leaseMs: 30_000 });
  const ours = async () =>
    (await claim()).deliveries.filter(({ subscriptionId }) => subscriptionId === "sub_cut");

  breaks = 1;
  await expect(claim()).rejects.toThrow(StorageError);
  const [again] = await ours();
  expect(again).toMatchObject({ eventId: "evt_cut", attempts: 1 });

  await store.record([{ id: again!.id, leaseToken: again!.leaseToken!, kind: "released" }], null);
  breaks = 2;
  for (let tries = 0; tries < 2; tries++) await expect(claim()).rejects.toThrow(StorageError);
  expect(await ours()).toEqual([]);
  expect(await store.get(again!.id)).toMatchObject({ status: "pending", attempts: 1 });
});

test("events are dispatched although what their dispatch claimed could not be read; the next claim gives that", async () => {
  const pool = database.pool();
  const warned: string[] = [];
  let isAway = true;
  const store = await database.store({
    pool: {
      async query(statement, values) {
        if (isAway && String(statement).includes("encode(b.bytes")) throw new Error("the server went away");
        return await pool.query(statement as string, values);
      },
      connect: () => pool.connect(),
    },
    logger: { info: () => {}, warn: (message) => warned.push(message), error: () => {} },
  });
  const key = { projectId: "unread", id: "evt_unread" };
  await store.createSubscription(own, subscriptionInput("sub_unread", { projectId: "unread" }));
  await store.capture(own, [eventInput(key.id, { projectId: "unread" })]);
  const [[match] = []] = await store.matchSubscriptions([
    { ...key, filters: coveringFilters("user.created") },
  ]);
  const bodies = [{ variant: "v", bytes: Buffer.from("{}") }];
  const deliveries = [{ id: "dlv_unread", variant: "v", ...match! }];
  expect(
    await store.dispatch([{ ...key, bodies, deliveries }], null, { limit: 10, leaseMs: 30_000 }),
  ).toEqual({ dispatched: [key], deliveries: [], failed: [] });
  expect(warned.join()).toContain("the server went away");
  isAway = false;
  const claimed = await store.claim({ now: null, limit: 50, leaseMs: 30_000 });
  expect(claimed.deliveries.filter(({ id }) => id === "dlv_unread")).toMatchObject([{ attempts: 1 }]);
});

test.each(["repeatable read", "serializable"])(
  "where the server's default isolation is %s, outcomes of one lane are recorded side by side",
  async (isolation) => {
    const strict = await TestDatabase.make();
    onTestFinished(() => strict.drop());
    await strict
      .pool({ max: 1 })
      .query(
        `ALTER DATABASE ${new URL(strict.url).pathname.slice(1)} SET default_transaction_isolation = '${isolation}'`,
      );
    const store = await strict.store({ pool: strict.pool({ max: 16 }) });
    await store.createSubscription(own, subscriptionInput("sub_strict"));
    const ids = Array.from({ length: 32 }, (_, i) => `evt_${i}`);
    await store.capture(
      own,
      ids.map((id) => emitted(id)),
    );
    await dispatchAll(store);
    const { deliveries } = await store.claim({ now: null, limit: 50, leaseMs: 60_000 });
    const results = await Promise.all(
      deliveries.map(({ id, leaseToken = "" }) =>
        store.record([{ id, leaseToken, kind: "retry", exchange, delayMs: 1_000 }], null),
      ),
    );
    expect(results.flatMap(({ recorded }) => recorded)).toHaveLength(ids.length);
  },
);

test("a process that dispatches and delivers asks less than five questions a second while nothing happens", async () => {
  const pool = database.pool();
  const count = new StatementCount();
  const counting: PgPool = {
    query: (statement, values) => count.of(String(statement), pool.query(statement as string, values)),
    async connect() {
      const client = await pool.connect();
      return {
        query: (text, values) => count.of(text, client.query(text, values)),
        release: (error) => client.release(error),
      };
    },
  };
  const store = await database.store({ pool: counting });
  const perSecond = await idleStatementsPerSecond(store, count);
  expect(perSecond).toBeGreaterThan(1);
  expect(perSecond).toBeLessThan(5);
});

test("asked for, the statements of the hot paths are prepared, each text under one name; nothing else is", async () => {
  const pool = database.pool({ max: 1 });
  const store = await database.store({ pool, preparedStatements: true });
  await store.createSubscription(own, subscriptionInput("sub_prepared", { projectId: "prepared" }));
  for (const id of ["evt_n1", "evt_n2", "evt_n3"]) {
    await store.capture(own, [eventInput(id, { projectId: "prepared" })]);
    await dispatchAll(store);
    const { deliveries } = await store.claim({ now: null, limit: 10, leaseMs: 1_000 });
    expect(deliveries.length).toBeGreaterThan(0);
    const { recorded } = await store.record(
      deliveries.map(({ id: row, leaseToken = "" }) => ({
        id: row,
        leaseToken,
        kind: "delivered",
        exchange,
      })),
      null,
    );
    expect(recorded).toHaveLength(deliveries.length);
  }
  const { rows } = await pool.query("SELECT name, statement FROM pg_prepared_statements ORDER BY name");
  expect(rows.length).toBeGreaterThan(4);
  expect(new Set(rows.map(({ statement }) => statement)).size).toBe(rows.length);
  for (const { name } of rows) expect(name).toMatch(/^hookwell_[A-Za-z0-9_-]{24}$/);
  // Capture and management are statements of one text and many places; they stay unnamed.
  expect(rows.filter(({ statement }) => /^INSERT/.test(String(statement)))).toEqual([]);
});

test("field-faults D2: a connection that is lost inside a transaction fails that call, not the process", async () => {
  // The first store of a database notes its keys, in a transaction that is to go well.
  await database.store();
  const pool = database.pool({ max: 1 });
  const admin = database.pool({ max: 1 });
  const store = await database.store({
    pool: {
      query: (text, values) => pool.query(text, values),
      async connect() {
        const client = await pool.connect();
        const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
        return {
          async query(text, values) {
            const result = await client.query(text, values);
            // Between two statements of a transaction nobody waits for an answer that could say it.
            const ended = new Promise((resolve) => client.once("end", resolve));
            await admin.query("SELECT pg_terminate_backend($1)", [rows[0].pid]);
            await ended;
            return result;
          },
          release: (error) => client.release(error),
          on: (event, listener) => client.on(event, listener),
          off: (event, listener) => client.off(event, listener),
        };
      },
    },
    migrate: false,
  });
  const refused = store.createSubscription(own, subscriptionInput("sub_lost", { projectId: "lost" }));
  await expect(refused).rejects.toBeInstanceOf(StorageError);
  expect(pool.totalCount).toBe(0);
  expect(await store.getSubscription("sub_lost", {})).toBeUndefined();
});

test("a server that is away is a StorageError with the cause, and the store works again when it is back", async () => {
  const gone = new pg.Pool({ connectionString: "postgres://nobody:secretword@127.0.0.1:1/none", max: 1 });
  const store = database.unopened({ pool: gone, migrate: false });
  const failure = await store.claim({ now: null, limit: 1, leaseMs: 1 }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StorageError);
  expect((failure as StorageError).cause).toMatchObject({ code: "ECONNREFUSED" });
  expect(String(failure)).not.toContain("secretword");
  await gone.end();

  const pool = database.pool({ max: 1, application_name: "live" });
  const warned: string[] = [];
  const logger = { info: () => {}, warn: (message: string) => warned.push(message), error: () => {} };
  const live = await database.store({ pool, logger });
  const lost = new Promise((resolve) => pool.once("error", resolve));
  await database
    .pool({ max: 1 })
    .query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'live'",
    );
  await lost;
  expect(warned.join()).toContain("idle connection");
  expect(await live.takeNew(["nothing"], 1, null)).toEqual([]);
});
