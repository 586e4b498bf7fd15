// One life of a process that takes replays on. After so many statements it reports, and stands still to be killed.
import { writeSync } from "node:fs";
import { MissingFiller } from "../../src/dispatch/missing-filler.ts";
import { systemClock } from "../../src/model/clock.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import type { ReplayOrder } from "./order.ts";

const order = JSON.parse(process.env.CRASH_ORDER ?? "") as ReplayOrder;
let left = Number.POSITIVE_INFINITY;

/** Blocks the whole process: what the database has been told is all that it is ever told. */
function count(): void {
  if (--left > 0) return;
  writeSync(1, "POINT\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

async function onSqlite(path: string): Promise<OutboxStore> {
  const { DatabaseSync } = await import("node:sqlite");
  const { sqliteStore } = await import("hookwell/sqlite");
  return sqliteStore({
    path,
    open: (file, { readonly }) => {
      const handle = new DatabaseSync(file, { readOnly: readonly });
      return {
        exec: (sql) => handle.exec(sql),
        close: () => handle.close(),
        prepare: (sql) => {
          const statement = handle.prepare(sql);
          return {
            all: (...params) => {
              const rows = statement.all(...params);
              count();
              return rows;
            },
            run: (...params) => statement.run(...params),
          };
        },
      };
    },
  });
}

async function onPostgres(url: string): Promise<OutboxStore> {
  const { default: pg } = await import("pg");
  const { postgresStore } = await import("hookwell/postgres");
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const counted =
    <
      Client extends {
        query(text: string, values?: (string | null)[]): Promise<{ rows: Record<string, unknown>[] }>;
      },
    >(
      client: Client,
    ) =>
    async (text: string, values?: (string | null)[]) => {
      const result = await client.query(text, values);
      count();
      return result;
    };
  return postgresStore({
    encryptionKeys: order.encryptionKeys,
    pool: {
      query: counted(pool),
      connect: async () => {
        const client = await pool.connect();
        return { query: counted(client), release: (error) => client.release(error) };
      },
    },
  });
}

const store = await (order.store === "sqlite" ? onSqlite(order.address) : onPostgres(order.address));
await store.open({ withKeys: false });
const filler = new MissingFiller({ store, clock: systemClock, batch: 3 });
const limits = { look: 10, most: 3, pending: 10_000, waitMs: 0, missingMs: null, keepMs: null };
left = order.statements;
for (;;) {
  const step = await store.replays.advance(limits, null);
  await filler.fillOnce();
  if (!step.running) break;
}
process.exit(0);
