import { DatabaseSync } from "node:sqlite";
import { createHookwell } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import { sqliteStore } from "hookwell/sqlite";
import pg from "pg";
import type { OutboxStore } from "../../src/store/contract.ts";
import type { Migrations } from "../../src/store/migrations.ts";
import { events, network, retry } from "./application.ts";
import type { CrashOrder } from "./points.ts";

/** Where lives are lived, one after the other, and what the parent reads and finishes there. */
export interface World {
  readonly place: Pick<CrashOrder, "store" | "address" | "schema" | "encryptionKeys">;
  /**
   * What is added to the clock of the next life: an hour more than for the one before, so that leases have ended and
   * retries are due, without waiting.
   */
  nextOffsetMs(): number;
  /** Makes the table of the application. */
  prepare(): Promise<void>;
  /** A store of the parent's. */
  store(clockOffsetMs: number): OutboxStore & { readonly migrations: Migrations };
  /** One column of ids. `@` = the beginning of a name of Hookwell's, `#` = that of the application's. */
  ids(sql: string): Promise<string[]>;
  close(): Promise<void>;
}

const encryptionKeys = `k1:${Buffer.alloc(32, 7).toString("base64")}`;

export function sqliteWorld(path: string): World {
  let opened: DatabaseSync | undefined;
  const db = (): DatabaseSync => {
    opened ??= new DatabaseSync(path, { timeout: 5_000 });
    return opened;
  };
  return {
    nextOffsetMs: hours(),
    place: { store: "sqlite", address: path, schema: "", encryptionKeys },
    prepare: async () => db().exec("CREATE TABLE thing (id TEXT PRIMARY KEY)"),
    store: (offset) => sqliteStore({ path, encryptionKeys, migrate: true, now: later(offset) }),
    ids: async (sql) =>
      db()
        .prepare(sql.replaceAll("@", "hookwell_").replaceAll("#", ""))
        .all()
        .map(({ id }) => String(id)),
    close: async () => opened?.close(),
  };
}

export function postgresWorld(address: string, schema: string): World {
  const pool = new pg.Pool({ connectionString: address, max: 3 });
  pool.on("error", () => {});
  return {
    nextOffsetMs: hours(),
    place: { store: "postgres", address, schema, encryptionKeys },
    prepare: async () => {
      await pool.query(`CREATE TABLE ${schema}.thing (id text PRIMARY KEY)`);
    },
    store: (offset) => postgresStore({ pool, schema, encryptionKeys, migrate: true, now: later(offset) }),
    ids: async (sql) => {
      const { rows } = await pool.query<{ id: string }>(sql.replaceAll(/[@#]/g, `${schema}.`));
      return rows.map(({ id }) => id);
    },
    close: () => pool.end(),
  };
}

/** The application, in the parent. */
export function hooksOf(store: OutboxStore, clockOffsetMs: number) {
  const logger = { info() {}, warn() {}, error() {} };
  return createHookwell({
    store,
    project: "live",
    events,
    network,
    retry,
    logger,
    clock: later(clockOffsetMs),
  });
}

const later = (offsetMs: number) => () => new Date(Date.now() + offsetMs);

function hours(): () => number {
  let passed = 0;
  return () => ++passed * 3_600_000;
}
