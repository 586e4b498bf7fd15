import type { OutboxStore } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import pg from "pg";
import type { Shape, World } from "../contestants/contract.ts";
import { benchKeys, hookwellPostgres } from "../contestants/hookwell.ts";
import { emitAsPlanned } from "../emitting.ts";
import { type Latency, quantile, steadyMs } from "../measuring.ts";
import { freePort } from "../postgres.ts";
import type { Receiver } from "../receiver-process.ts";
import { WorkerHandle } from "../worker-handle.ts";
import { measureLatency } from "./latency.ts";

/** What the other lanes and the worker feel of rows that wait on one dead lane. */
export interface BacklogResult {
  readonly rows: number;
  /** Emits to twenty live lanes, worker in another process. */
  readonly latency: Latency;
  readonly rssMb: number;
  readonly queriesPerSecond: number;
}

export interface ClaimResult {
  readonly beside: string;
  /** Milliseconds of claims of 100 rows, in their order. */
  readonly ms: readonly number[];
}

export interface BacklogSettings {
  /** Sizes of the backlog, rising. */
  readonly sizes: readonly number[];
  readonly waitingLanes: number;
  readonly claims: number;
  readonly emits: number;
}

const lanes = 20;
/** Rows of the dead lane that have an event and a body, so that probes of it could be sent. */
const readable = 10_000;
const shape: Shape = { subscriptions: lanes, bodyBytes: 700 };

/** One database whose dead lane grows from step to step. */
export async function measureBacklog(
  world: World,
  receiver: Receiver,
  settings: BacklogSettings,
  report: (line: string) => void,
): Promise<{ readonly backlog: BacklogResult[]; readonly claims: ClaimResult[] }> {
  const side = await hookwellPostgres.prepare(world, shape);
  const pool = new pg.Pool({ connectionString: side.config.storage, max: 2 });
  const store = postgresStore({ pool, encryptionKeys: benchKeys });
  const dead = new DeadLane(pool, await freePort());
  const backlog: BacklogResult[] = [];
  const claims: ClaimResult[] = [];
  try {
    await store.open({ withKeys: true });
    const measureClaims = async (beside: string): Promise<void> => {
      const ms = await timeClaims(pool, store, settings.claims);
      claims.push({ beside, ms });
      const sorted = [...ms].sort((a, b) => a - b);
      report(`claim of 100 beside ${beside}: ${quantile(sorted, 0.5).toFixed(2)} ms`);
    };
    await measureClaims("nothing else");
    for (const rows of settings.sizes) {
      const begun = steadyMs();
      await dead.growTo(rows);
      report(`dead lane of ${rows} rows filled in ${((steadyMs() - begun) / 1_000).toFixed(1)} s`);
      const worker = await WorkerHandle.open({ ...side.config, listens: true });
      await worker.start();
      const plan = { count: settings.emits, everyMs: 40, to: lanes };
      await measureLatency((each) => emitAsPlanned(side, each), receiver, { ...plan, count: lanes }, 1);
      const latency = await measureLatency((each) => emitAsPlanned(side, each), receiver, plan, 1);
      const queriesPerSecond = await idleQueries(worker);
      const { rssBytes } = await worker.usage();
      await worker.stop();
      await worker.close();
      backlog.push({ rows, latency, rssMb: rssBytes / 2 ** 20, queriesPerSecond });
      report(
        `beside ${rows}: p99 ${latency.p99.toFixed(1)} ms, ${(rssBytes / 2 ** 20).toFixed(0)} MB, ${queriesPerSecond.toFixed(1)} queries/s idle`,
      );
      if (rows > 0) await measureClaims(`${rows.toLocaleString("en")} rows of one dead lane`);
    }
    await fillWaitingLanes(pool, settings.waitingLanes);
    await measureClaims(`${settings.waitingLanes.toLocaleString("en")} more lanes that wait`);
    return { backlog, claims };
  } finally {
    await store.close();
    await pool.end();
    await side.close();
  }
}

/** A subscription whose endpoint refuses connections, with rows made by the server itself. */
class DeadLane {
  readonly #pool: pg.Pool;
  readonly #port: number;
  #rows = 0;

  constructor(pool: pg.Pool, port: number) {
    this.#pool = pool;
    this.#port = port;
  }

  async growTo(rows: number): Promise<void> {
    if (rows <= this.#rows) return;
    const url = `http://127.0.0.1:${this.#port}/dead`;
    const id = "sub_00000000-0000-7000-8000-00000000dead";
    const now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    // Its endpoint version is a copy of another's, sealed for that one: it is opened under that one's name.
    if (this.#rows === 0) {
      await this.#pool.query(
        `INSERT INTO hookwell.subscription (id, project_id, url, url_host, event_types, header_names, status,
          endpoint_id, created_at, updated_at, status_changed_at)
        SELECT $1, 'bench', $2, '127.0.0.1', '["bench.dead"]', '[]', 'active', s.endpoint_id, 0, 0, 0
        FROM hookwell.subscription s LIMIT 1`,
        [id, url],
      );
      await this.#pool.query(
        `INSERT INTO hookwell.lane (subscription_id, ready, opened_at, probe_step, probe_at, blocked_until, next_due, breaks)
        VALUES ($1, false, ${now}, 300000, ${now} + 300000, ${now} + 300000, ${now} + 300000, 10)`,
        [id],
      );
    }
    const made = `FROM generate_series($2::int, $3::int) AS n`;
    const key = "'evt_dead_' || lpad(n::text, 12, '0')";
    await this.#pool.query(
      `WITH e AS (
        INSERT INTO hookwell.event (project_id, id, type, occurred_at, captured_at, data, content_hash, route, state, due_at)
        SELECT 'bench', ${key}, 'bench.dead', ${now}, ${now}, '{}', 'x', 'bench.dead', 'dispatched', 0
        FROM generate_series($1::int, $2::int) AS n
      )
      INSERT INTO hookwell.body (project_id, event_id, variant, bytes)
      SELECT 'bench', ${key}, '', '{}'::bytea FROM generate_series($1::int, $2::int) AS n`,
      // Rows beyond these are never read before they are sent, and none of this lane is.
      [this.#rows + 1, Math.min(rows, readable)],
    );
    await this.#pool.query(
      `INSERT INTO hookwell.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
        next_attempt_at, due_at, created_at, updated_at)
      SELECT 'dlv_dead_' || md5(n::text), 'bench', ${key}, $1, (SELECT endpoint_id FROM hookwell.subscription WHERE id = $1),
        '', 'bench.dead', 1, 1, ${now}, ${now}
      ${made}`,
      [id, this.#rows + 1, rows],
    );
    await this.#pool.query("VACUUM (ANALYZE) hookwell.delivery, hookwell.event, hookwell.body");
    // What filling left to do is not to be done while others are measured.
    await this.#pool.query("CHECKPOINT");
    this.#rows = rows;
  }
}

/** Lanes with one row each that is due in an hour. */
async function fillWaitingLanes(pool: pg.Pool, count: number): Promise<void> {
  const soon = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000";
  await pool.query(
    `INSERT INTO hookwell.lane (subscription_id, ready, next_due)
    SELECT 'sub_waiting_' || n, false, ${soon} FROM generate_series(1, $1::int) AS n`,
    [count],
  );
  await pool.query(
    `INSERT INTO hookwell.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
      next_attempt_at, due_at, created_at, updated_at)
    SELECT 'dlv_wait_' || n, 'bench', 'evt_wait_' || n, 'sub_waiting_' || n, 'end_none', '', 'bench.wait',
      ${soon}, ${soon}, 0, 0
    FROM generate_series(1, $1::int) AS n`,
    [count],
  );
  await pool.query("VACUUM (ANALYZE) hookwell.delivery, hookwell.lane");
}

/** Claims of 100 out of 2,000 rows on the live lanes, each given back before the next. */
async function timeClaims(pool: pg.Pool, store: OutboxStore, count: number): Promise<number[]> {
  await pool.query(
    `INSERT INTO hookwell.event (project_id, id, type, occurred_at, captured_at, data, content_hash, route, state, due_at)
    SELECT 'bench', 'evt_claim_' || n, 'bench.happened', 0, 0, '{}', 'x', 'bench.happened', 'dispatched', 0
    FROM generate_series(1, 100) AS n ON CONFLICT DO NOTHING`,
  );
  await pool.query(
    `INSERT INTO hookwell.body (project_id, event_id, variant, bytes)
    SELECT 'bench', 'evt_claim_' || n, '', '{}'::bytea FROM generate_series(1, 100) AS n ON CONFLICT DO NOTHING`,
  );
  await pool.query(
    `INSERT INTO hookwell.delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type,
      next_attempt_at, due_at, created_at, updated_at)
    SELECT 'dlv_claim_' || md5(s.id || n), 'bench', 'evt_claim_' || n, s.id, s.endpoint_id, '', 'bench.happened', 1, 1, 0, 0
    FROM generate_series(1, 100) AS n, hookwell.subscription s WHERE s.url LIKE '%/s/%'`,
  );
  await pool.query(
    "UPDATE hookwell.lane SET ready = true, next_due = NULL WHERE opened_at IS NULL AND subscription_id LIKE 'sub_0%'",
  );
  await pool.query("VACUUM (ANALYZE) hookwell.delivery");
  const times: number[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < count + 5; n++) {
    const begun = steadyMs();
    const { deliveries, cursor: next } = await store.claim({
      now: null,
      limit: 100,
      leaseMs: 30_000,
      ...(cursor !== undefined && { cursor }),
    });
    const took = steadyMs() - begun;
    if (deliveries.length !== 100) throw new Error(`A claim of 100 gave ${deliveries.length}`);
    if (n >= 5) times.push(took);
    cursor = next;
    const released = deliveries.map(({ id, leaseToken }) => ({
      id,
      leaseToken: leaseToken ?? "",
      kind: "released" as const,
    }));
    await store.record(released, null);
  }
  await pool.query("DELETE FROM hookwell.delivery WHERE id LIKE 'dlv_claim_%'");
  return times;
}

/** Statements a second that the worker sends while nothing happens, over long enough that one round of upkeep is not all of it. */
async function idleQueries(worker: WorkerHandle): Promise<number> {
  // Lanes that have just been busy are put to sleep first.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const before = await worker.usage();
  const begun = steadyMs();
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const after = await worker.usage();
  return (after.statements - before.statements) / ((steadyMs() - begun) / 1_000);
}
