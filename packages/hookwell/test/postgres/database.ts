import pg from "pg";
import type { Row, Statement } from "../../src/adapters/seam.ts";
import type { CaptureInput } from "../../src/model/event.ts";
import { deliveryId } from "../../src/model/ids.ts";
import { coveringFilters } from "../../src/model/matching.ts";
import type { NewSubscription } from "../../src/model/subscription.ts";
import type { Scope } from "../../src/store/contract.ts";
import { type PostgresOptions, type PostgresOutbox, postgresStore } from "../../src/store/postgres/index.ts";
import { generateKey } from "../../src/store/sealing.ts";
import { freshPostgres, migrated } from "../support/databases.ts";

/** A database of its own, and stores over it, each with its own pool: one for each process of a deployment. */
export class TestDatabase {
  readonly url: string;
  readonly #drop: () => Promise<void>;
  readonly #encryptionKeys = `k1:${generateKey()}`;
  readonly #pools: pg.Pool[] = [];
  readonly #stores: PostgresOutbox[] = [];

  private constructor(url: string, drop: () => Promise<void>) {
    this.url = url;
    this.#drop = drop;
  }

  /** `empty`: nothing is migrated yet. */
  static async make({ empty = false } = {}): Promise<TestDatabase> {
    const { url, drop } = await freshPostgres(empty ? undefined : migrated);
    return new TestDatabase(url, drop);
  }

  pool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.url, max: 5, ...options });
    this.#pools.push(pool);
    return pool;
  }

  /** Opened, migrated, with keys. */
  async store(options: Partial<PostgresOptions> = {}): Promise<PostgresOutbox> {
    const store = this.unopened(options);
    await store.open({ withKeys: true });
    return store;
  }

  unopened(options: Partial<PostgresOptions> = {}): PostgresOutbox {
    const store = postgresStore({
      pool: options.pool ?? this.pool(),
      encryptionKeys: this.#encryptionKeys,
      migrate: true,
      ...options,
    });
    this.#stores.push(store);
    return store;
  }

  async drop(): Promise<void> {
    for (const store of this.#stores) await store.close();
    for (const pool of this.#pools) await pool.end();
    await this.#drop();
  }
}

export function eventInput(id: string, extra: Partial<CaptureInput> = {}): CaptureInput {
  return {
    projectId: "live",
    id,
    type: "user.created",
    occurredAt: new Date(1_700_000_000_000),
    data: `{"id":"${id}"}`,
    route: "user.created",
    contentHash: `hash of ${id}`,
    ...extra,
  };
}

/** The same with fan-out in capture. */
export function emitted(id: string, extra: Partial<CaptureInput> = {}): CaptureInput {
  return eventInput(id, {
    fanOut: { body: `{"id":"${id}"}`, filters: coveringFilters("user.created") },
    ...extra,
  });
}

export function subscriptionInput(id: string, extra: Partial<NewSubscription> = {}): NewSubscription {
  return {
    id,
    projectId: "live",
    url: `https://${id.replaceAll("_", "-")}.example/`,
    eventTypes: [],
    ordering: "none",
    secret: "whsec_c2VjcmV0",
    ...extra,
  };
}

export const own = { kind: "own" } as const;

/** Takes what is new and gives it to every match, as the dispatcher does; answers how many events that were. */
export async function dispatchAll(store: PostgresOutbox, limit = 100): Promise<number> {
  const events = await store.takeNew(["user.created", "*"], limit, null);
  const matches = await store.matchSubscriptions(
    events.map((event) => ({ ...event, filters: coveringFilters(event.type) })),
  );
  const { dispatched: done } = await store.dispatch(
    events.map(({ projectId, id, fannedOut, data }, place) => ({
      projectId,
      id,
      bodies: fannedOut ? [] : [{ variant: "v", bytes: Buffer.from(data) }],
      deliveries: fannedOut
        ? []
        : matches[place]!.map(({ subscriptionId, endpointId }) => ({
            id: deliveryId(id, subscriptionId),
            subscriptionId,
            endpointId,
            variant: "v",
          })),
    })),
    null,
  );
  return done.length;
}

/** The application's side: one client with an open transaction, as a scope. */
export async function begin(
  pool: pg.Pool,
  isolation = "READ COMMITTED",
): Promise<{
  client: pg.PoolClient;
  scope: Extract<Scope, { kind: "async" }>;
  pid: number;
  end: (how: "COMMIT" | "ROLLBACK") => Promise<void>;
}> {
  const client = await pool.connect();
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
  const adapter = {
    kind: "async" as const,
    name: "pg",
    dialect: () => "postgres" as const,
    isInTransaction: (tx: unknown): tx is unknown => tx === client,
    run: async (_tx: unknown, { text, params }: Statement): Promise<readonly Row[]> =>
      (await client.query(text, [...params])).rows,
  };
  return {
    client,
    scope: { kind: "async", adapter, tx: client },
    pid: rows[0].pid,
    async end(how) {
      await client.query(how);
      client.release();
    },
  };
}

/** Resolves when that backend waits for a lock of another transaction. */
export async function waitsForLock(pool: pg.Pool, pid: number): Promise<void> {
  for (;;) {
    const { rows } = await pool.query("SELECT wait_event_type FROM pg_stat_activity WHERE pid = $1", [pid]);
    if (rows[0]?.wait_event_type === "Lock") return;
  }
}
