import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import pg from "pg";
import { afterAll, beforeAll } from "vitest";
import { kysely, sqliteDialect } from "../../src/adapters/kysely.ts";
import { pgTx } from "../../src/adapters/pg.ts";
import { deliveryId } from "../../src/model/ids.ts";
import type { NewSubscription } from "../../src/model/subscription.ts";
import { systemTimers } from "../../src/model/timers.ts";
import type { OutboxStore, Scope } from "../../src/store/contract.ts";
import { type KeyRotation, type KeyRotationOptions, rotateKeys } from "../../src/store/key-rotation.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshPostgres, freshSqlite } from "../support/databases.ts";

type Rows = readonly Readonly<Record<string, unknown>>[];

/** One database, and a store for each process that has keys of its own. */
export interface KeyWorld {
  /** A process that has begun; without `begun` one that has not opened the database yet. */
  process(keys: string, begun?: boolean): Promise<OutboxStore>;
  /** One statement; `@` stands for the schema or the prefix of the tables. */
  sql(text: string): Promise<Rows>;
  /** A transaction of an application's own client, left open. */
  begin(): Promise<{
    readonly scope: Scope;
    /** Somebody waits for it. Where nobody can tell: at once. */
    waitedFor(): Promise<void>;
    commit(): Promise<void>;
  }>;
  close(): Promise<void>;
}

export interface KeyWorlds {
  readonly name: string;
  use(): void;
  make(): Promise<KeyWorld>;
}

const sqlite: KeyWorlds = {
  name: "SQLite",
  use() {},
  async make() {
    const file = freshSqlite();
    const stores: OutboxStore[] = [];
    const handle = new DatabaseSync(file.path, { timeout: 5_000 });
    const application = new Kysely<unknown>({
      dialect: sqliteDialect({ database: new DatabaseSync(file.path, { timeout: 5_000 }) }),
    });
    return {
      async process(encryptionKeys, begun = true) {
        const store = sqliteStore({ path: file.path, migrate: true, encryptionKeys });
        stores.push(store);
        if (begun) await store.open({ withKeys: true });
        return store;
      },
      sql: async (text) => handle.prepare(text.replaceAll("@.", "hookwell_")).all(),
      async begin() {
        const tx = await application.startTransaction().execute();
        return {
          scope: { kind: "async", adapter: kysely<unknown>() as never, tx },
          async waitedFor() {},
          commit: () => tx.commit().execute(),
        };
      },
      async close() {
        for (const store of stores) await store.close();
        handle.close();
        await application.destroy();
        file.drop();
      },
    };
  },
};

let database: { url: string; drop: () => Promise<void> };
let pool: pg.Pool;
let schemas = 0;

const postgres: KeyWorlds = {
  name: "PostgreSQL",
  use() {
    beforeAll(async () => {
      database = await freshPostgres();
      pool = new pg.Pool({ connectionString: database.url, max: 12 });
    });
    afterAll(async () => {
      await pool.end();
      await database.drop();
    });
  },
  async make() {
    const schema = `keys_${++schemas}`;
    const stores: OutboxStore[] = [];
    return {
      async process(encryptionKeys, begun = true) {
        const store = postgresStore({ pool, schema, migrate: true, encryptionKeys });
        stores.push(store);
        if (begun) await store.open({ withKeys: true });
        return store;
      },
      sql: async (text) => (await pool.query(text.replaceAll("@.", `${schema}.`))).rows,
      async begin() {
        const client = await pool.connect();
        await client.query("BEGIN");
        const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
        return {
          scope: { kind: "async", adapter: pgTx() as never, tx: client },
          async waitedFor() {
            const waiters = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
            while ((await pool.query(waiters, [rows[0].pid])).rows.length === 0);
          },
          async commit() {
            await client.query("COMMIT");
            client.release();
          },
        };
      },
      async close() {
        for (const store of stores) await store.close();
      },
    };
  },
};

export const keyWorlds: readonly KeyWorlds[] = [sqlite, postgres];

export const own = { kind: "own" } as const;

export function subscription(id: string, more: Partial<NewSubscription> = {}): NewSubscription {
  return {
    id,
    projectId: "live",
    url: `https://${id.replaceAll("_", "-")}.example/`,
    eventTypes: [],
    ordering: "none",
    secret: `secret of ${id}`,
    headers: { "x-of": id },
    ...more,
  };
}

/** Rotates in batches so small that there are several. */
export function rotate(store: OutboxStore, more: Partial<KeyRotationOptions> = {}): Promise<KeyRotation> {
  return rotateKeys(store, { timers: systemTimers, batch: 4, ...more });
}

/** Makes one event and its deliveries to every subscription. */
export async function publish(store: OutboxStore, id: string): Promise<void> {
  const event = { projectId: "live", id, type: "a.b", occurredAt: new Date(0), data: "{}" };
  await store.capture(own, [{ ...event, route: "*", contentHash: id }]);
  const [matches = []] = await store.matchSubscriptions([{ projectId: "live", filters: [""] }]);
  await store.dispatch(
    [
      {
        projectId: "live",
        id,
        bodies: [{ variant: "v", bytes: Buffer.from("{}") }],
        deliveries: matches.map(({ subscriptionId, endpointId }) => ({
          id: deliveryId(id, subscriptionId),
          subscriptionId,
          endpointId,
          variant: "v",
        })),
      },
    ],
    null,
  );
}

/** What a worker would send now, by subscription: where to, with which secrets and headers. */
export async function due(store: OutboxStore) {
  const { deliveries } = await store.claim({ now: null, limit: 100, leaseMs: 1 });
  return Object.fromEntries(
    deliveries.map(({ subscriptionId, url, secret, secrets, headers }) => [
      subscriptionId,
      { url, secret, secrets, headers },
    ]),
  );
}
