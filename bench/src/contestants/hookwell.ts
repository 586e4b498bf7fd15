import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createHookwell, defineEvents, type HookwellCore, type OutboxStore, type Run } from "hookwell";
import { nodeSqlite } from "hookwell/node-sqlite";
import { pgTx } from "hookwell/pg";
import { postgresStore } from "hookwell/postgres";
import { sqliteStore } from "hookwell/sqlite";
import pg from "pg";
import { z } from "zod";
import { makeData, pathOf, secretOf } from "../webhook.ts";
import type { Contestant, Shape, WorkConfig, World } from "./contract.ts";

export const benchKeys = `k1:${Buffer.alloc(32, 9).toString("base64")}`;
const schema = z.object({ id: z.string(), email: z.string(), note: z.string() });
/** Subscriptions that have an event type of their own, beside the one that all get. */
const ownTypes = 20;
/** Events that one transaction of the preparation emits. */
const emitBatch = 100;

/** What tells two stores apart: how an instance is made, how events are emitted, how rows are counted. */
interface Flavour {
  readonly hooks: HookwellCore;
  /** Emits these types in one transaction; answers the ids. */
  emit(types: readonly string[], data: Record<string, unknown>): Promise<string[]>;
  delivered(): Promise<number>;
  recordDelay(since: number): Promise<number>;
  close(): Promise<void>;
}

/** The 99th percentile of the waits from the answer to its record; the clock of both is this machine's. */
const recordDelaySql = (
  table: string,
): string => `SELECT delivered_at - last_started_at - last_duration_ms AS ms
FROM ${table} WHERE status = 'delivered' AND delivered_at >= @since
ORDER BY ms DESC LIMIT 1
OFFSET (SELECT count(*) / 100 FROM ${table} WHERE status = 'delivered' AND delivered_at >= @since)`;

const events = () =>
  defineEvents({
    "bench.happened": { schema },
    ...Object.fromEntries(Array.from({ length: ownTypes }, (_, index) => [`bench.one_${index}`, { schema }])),
  });

function common(store: OutboxStore) {
  return {
    store,
    project: "bench",
    events: events(),
    network: { allow: ["127.0.0.0/8"], http: true },
    logger: { info: () => {}, warn: console.error, error: console.error },
  } as const;
}

interface PostgresConfig extends Pick<WorkConfig, "storage" | "listens"> {
  readonly prepared?: boolean;
}

/** An instance on PostgreSQL that joins transactions of `pg`. */
export function postgresInstance({ storage, listens, prepared = false }: PostgresConfig) {
  const pool = new pg.Pool({ connectionString: storage, max: 8 });
  const listen = listens ? { listen: { connectionString: storage } } : {};
  const store = postgresStore({
    pool,
    encryptionKeys: benchKeys,
    migrate: true,
    preparedStatements: prepared,
    ...listen,
  });
  const hooks = createHookwell({ ...common(store), tx: pgTx() });
  return { hooks, pool };
}

/** An instance on a SQLite file that joins transactions of `node:sqlite`. */
export function sqliteInstance(storage: string) {
  const store = sqliteStore({ path: storage, encryptionKeys: benchKeys, migrate: true });
  return createHookwell({ ...common(store), tx: nodeSqlite() });
}

function postgresFlavour(config: WorkConfig, prepared: boolean): Flavour {
  const { hooks, pool } = postgresInstance({ ...config, prepared });
  return {
    hooks,
    async emit(types, data) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        const ids: string[] = [];
        for (const type of types)
          ids.push((await hooks.emit(type as "bench.happened", data as Data, { tx: client })).id);
        await client.query("COMMIT");
        return ids;
      } finally {
        client.release();
      }
    },
    async delivered() {
      const sql = "SELECT count(*)::int AS n FROM hookwell.delivery WHERE status = 'delivered'";
      return Number((await pool.query(sql)).rows[0].n);
    },
    async recordDelay(since) {
      const sql = recordDelaySql("hookwell.delivery").replaceAll("@since", String(since));
      return Number((await pool.query(sql)).rows[0].ms);
    },
    async close() {
      await hooks.close();
      await pool.end();
    },
  };
}

type Data = z.infer<typeof schema>;

function sqliteFlavour({ storage }: WorkConfig): Flavour {
  const hooks = sqliteInstance(storage);
  const db = new DatabaseSync(storage, { timeout: 5_000 });
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  return {
    hooks,
    emit: async (types, data) =>
      hooks.transaction(db, (tx) =>
        types.map((type) => hooks.emitSync(type as "bench.happened", data as Data, { tx }).id),
      ),
    async delivered() {
      const row = db.prepare("SELECT count(*) AS n FROM hookwell_delivery WHERE status = 'delivered'").get();
      return Number(row?.n);
    },
    async recordDelay(since) {
      return Number(
        db.prepare(recordDelaySql("hookwell_delivery").replaceAll("@since", String(since))).get()?.ms,
      );
    },
    async close() {
      db.close();
      await hooks.close();
    },
  };
}

/** Each subscription gets every "bench.happened", and the first twenty one type of their own. */
async function subscribe(hooks: HookwellCore, origin: string, count: number): Promise<void> {
  await hooks.ready();
  for (let from = 0; from < count; from += 20)
    await Promise.all(
      Array.from({ length: Math.min(20, count - from) }, (_, offset) => {
        const index = from + offset;
        return hooks.subscriptions.create({
          url: `${origin}${pathOf(index)}`,
          secret: secretOf(index),
          eventTypes: index < ownTypes ? ["bench.happened", `bench.one_${index}`] : ["bench.happened"],
        });
      }),
    );
}

function emitters(flavour: Flavour, { bodyBytes }: Shape) {
  const data = makeData(bodyBytes);
  const one = async (type: string): Promise<string> => (await flavour.emit([type], data))[0] ?? "";
  return {
    emit: (subscription: number) => one(`bench.one_${subscription}`),
    emitToAll: () => one("bench.happened"),
  };
}

function contestant(
  name: string,
  make: (config: WorkConfig) => Flavour,
  storageOf: (world: World) => Promise<string>,
): Contestant {
  return {
    name,
    async prepare(world, shape) {
      const storage = await storageOf(world);
      const config: WorkConfig = { ...shape, contestant: name, origin: world.origin, storage };
      // The controlling process emits for workers in others, so it sends notices.
      const flavour = make({ ...config, listens: true });
      await subscribe(flavour.hooks, world.origin, shape.subscriptions);
      const data = makeData(shape.bodyBytes);
      return {
        config,
        ...emitters(flavour, shape),
        async enqueue(deliveries) {
          const count = Math.ceil(deliveries / shape.subscriptions);
          for (let from = 0; from < count; from += emitBatch)
            await flavour.emit(Array(Math.min(emitBatch, count - from)).fill("bench.happened"), data);
          return count * shape.subscriptions;
        },
        recorded: () => flavour.delivered(),
        recordDelay: (since) => flavour.recordDelay(since),
        close: () => flavour.close(),
      };
    },
    async work(config) {
      const flavour = make(config);
      await flavour.hooks.ready();
      let run: Run | undefined;
      return {
        ...emitters(flavour, config),
        async start() {
          run = flavour.hooks.start();
        },
        async stop() {
          await run?.stop();
          run = undefined;
        },
        close: () => flavour.close(),
      };
    },
  };
}

const newDatabase = ({ postgres }: World): Promise<string> => postgres.database();

/** As it comes. */
export const hookwellPostgres = contestant(
  "Hookwell on PostgreSQL",
  (config) => postgresFlavour(config, false),
  newDatabase,
);

/** Where the pool connects directly, its statements may be prepared, as graphile-worker does unasked. */
export const hookwellPrepared = contestant(
  "Hookwell on PostgreSQL, prepared",
  (config) => postgresFlavour(config, true),
  newDatabase,
);

export const hookwellSqlite = contestant("Hookwell on SQLite", sqliteFlavour, async ({ directory }) =>
  join(directory, `hookwell-${randomUUID()}.db`),
);
