import pg from "pg";
import { sealEndpoint } from "../../src/store/postgres/endpoints.ts";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { KeyRing } from "../../src/store/sealing.ts";
import { freshPostgres, type Template } from "../support/databases.ts";
import { MeasuringPool } from "./postgres-plans.ts";

export const day = 86_400_000;

/** A database as it is after a long outage: see {@link fill}. */
export interface LargeDatabase {
  readonly pool: pg.Pool;
  /** Measures each statement of `store`. */
  readonly measuring: MeasuringPool;
  readonly store: PostgresOutbox;
  readonly drop: () => Promise<void>;
}

// The same for every file: the copies are sealed with it.
const encryptionKeys = `k1:${Buffer.alloc(32, 5).toString("base64")}`;

/** Filled once for all files that need it: copying is a tenth of that work. */
const large: Template = {
  name: "large",
  async fill(url) {
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    await postgresStore({ pool, encryptionKeys }).migrations.migrate();
    await fill(pool, KeyRing.parse(encryptionKeys));
    await pool.end();
  },
};

export async function largeDatabase(): Promise<LargeDatabase> {
  const database = await freshPostgres(large);
  const pool = new pg.Pool({ connectionString: database.url, max: 4 });
  const measuring = new MeasuringPool(pool);
  const store = postgresStore({ pool: measuring, encryptionKeys });
  return {
    pool,
    measuring,
    store,
    async drop() {
      await store.close();
      await pool.end();
      await database.drop();
    },
  };
}

/**
 * 200,000 due rows on `sub_dead` and 5,000 on `sub_paused`; 20,000 lanes `sub_w…` that wait for an hour, each with
 * one row; 20 lanes `sub_r…` with 100 due rows each; 20,000 finished rows with attempts, 20,000 events.
 */
async function fill(pool: pg.Pool, keys: KeyRing): Promise<void> {
  const sealed = sealEndpoint(keys, { id: "end_1", headers: {}, secrets: [{ secret: "s" }] });
  const tables = [
    "event",
    "body",
    "delivery",
    "attempt",
    "lane",
    "subscription",
    "subscription_filter",
    "endpoint",
  ];
  const later = "(extract(epoch FROM now()) * 1000)::bigint + 3600000";
  const row = (
    id: string,
    lane: string,
    due: string,
  ): string => `SELECT ${id}, 'live', 'evt_' || lpad(i::text, 8, '0'),
    ${lane}, 'end_1', '', 'user.created', ${due}, ${due}, 1000000 + i, 1000000 + i`;
  await pool.query(`
    SET search_path TO hookwell;
    -- Filled without a write-ahead log: only the time to fill differs.
    ${tables.map((table) => `ALTER TABLE ${table} SET UNLOGGED;`).join("\n")}
    INSERT INTO endpoint (id, subscription_id, url, sealed, created_at) VALUES ('end_1', 'sub_dead', 'https://x.test/', '${sealed}', 1);
    INSERT INTO subscription (id, project_id, tenant_id, url, url_host, event_types, header_names, status, endpoint_id,
      created_at, updated_at, status_changed_at)
    SELECT id, 'live', 'tenant_' || n, 'https://x.test/', 'x.test', '[]', '[]', 'active', 'end_1', n, n, n
    FROM (
      SELECT 'sub_w' || lpad(i::text, 6, '0') AS id, i AS n FROM generate_series(1, 20000) i
      UNION ALL SELECT 'sub_r' || lpad(i::text, 6, '0'), 20000 + i FROM generate_series(1, 20) i
      UNION ALL SELECT 'sub_dead', 0 UNION ALL SELECT 'sub_paused', 0
    ) AS s;
    INSERT INTO endpoint (id, subscription_id, url, sealed, created_at)
    SELECT 'end_' || id, id, url, 'x', 1 FROM subscription;
    INSERT INTO subscription_filter (project_id, filter, owner_id, tenant_id, subscription_id)
    SELECT project_id, '', '', tenant_id, id FROM subscription;
    INSERT INTO lane (subscription_id, ready, next_due) SELECT 'sub_w' || lpad(i::text, 6, '0'), false, ${later} FROM generate_series(1, 20000) i;
    INSERT INTO lane (subscription_id) SELECT 'sub_r' || lpad(i::text, 6, '0') FROM generate_series(1, 20) i;
    INSERT INTO lane (subscription_id, held) VALUES ('sub_dead', 0), ('sub_paused', 1);
    INSERT INTO event (project_id, id, type, tenant_id, subject, revision, occurred_at, captured_at, data, content_hash, route, state, due_at)
    SELECT 'live', 'evt_' || lpad(i::text, 8, '0'), 'user.created', 'tenant_' || i, 'user:' || i, 1, 1, 1000000 + i, '{}', 'h', 'user.created', 'dispatched', 0
    FROM generate_series(1, 20000) i;
    INSERT INTO body (project_id, event_id, variant, bytes)
    SELECT 'live', 'evt_' || lpad(i::text, 8, '0'), '', '{}' FROM generate_series(1, 20000) i;
    INSERT INTO delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, next_attempt_at, due_at,
      created_at, updated_at)
    ${row("'dlv_d' || i", "'sub_dead'", "1000000 + i")} FROM generate_series(1, 200000) i
    UNION ALL ${row("'dlv_p' || i", "'sub_paused'", "1000000 + i")} FROM generate_series(1, 5000) i
    UNION ALL ${row("'dlv_w' || i", "'sub_w' || lpad(i::text, 6, '0')", later)} FROM generate_series(1, 20000) i
    UNION ALL ${row("'dlv_r' || i", "'sub_r' || lpad((i % 20 + 1)::text, 6, '0')", "1000000 + i")} FROM generate_series(1, 2000) i;
    INSERT INTO delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, status, next_attempt_at, due_at,
      created_at, updated_at)
    SELECT 'dlv_f' || i, 'live', 'evt_' || lpad(i::text, 8, '0'), 'sub_f' || i % 50, 'end_1', '', 'user.created',
      (ARRAY['delivered', 'delivered', 'delivered', 'failed'])[i % 4 + 1], 0, 0, 1000000 + i, 1000000 + i
    FROM generate_series(1, 20000) i;
    INSERT INTO attempt (delivery_id, round, number, started_at, duration_ms)
    SELECT 'dlv_f' || i, 1, n, i, 1 FROM generate_series(1, 20000) i, generate_series(1, 2) n WHERE i % 4 = 3;
    ANALYZE ${tables.join(", ")};
    RESET search_path`);
}
