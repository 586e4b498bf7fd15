import { DatabaseSync } from "node:sqlite";
import BetterSqlite3 from "better-sqlite3";
import { createHookwell, type EmitResult, type OutboxStore } from "hookwell";
import { betterSqlite3 } from "hookwell/better-sqlite3";
import { sqliteDialect } from "hookwell/kysely";
import { nodeSqlite } from "hookwell/node-sqlite";
import { type OpenSqlite, sqliteStore } from "hookwell/sqlite";
import { Kysely } from "kysely";
import { freshSqlite } from "../support/databases.ts";
import {
  createTable,
  type Emit,
  encryptionKeys,
  events,
  type Host,
  type HostKind,
  insertAccount,
  quiet,
  type Tables,
} from "./host.ts";
import { kyselyParts } from "./kysely-host.ts";

async function sqlite(open?: OpenSqlite): Promise<{ path: string; store: OutboxStore; drop: () => void }> {
  const { path, drop } = freshSqlite();
  const store = sqliteStore({ path, encryptionKeys, migrate: true, ...(open && { open }) });
  await store.open({ withKeys: true });
  // With the store's own copy of SQLite, like everything else that touches the file.
  const database = open ? open(path, { readonly: false }) : new DatabaseSync(path);
  database.exec(createTable);
  database.close();
  return { path, store, drop };
}

export const onKyselySqlite: HostKind = {
  name: "Kysely on SQLite",
  concurrent: true,
  async open() {
    const { path, store, drop } = await sqlite();
    const database = new DatabaseSync(path, { timeout: 5_000 });
    const db = new Kysely<Tables>({ dialect: sqliteDialect({ database }) });
    const close = async (): Promise<void> => {
      await store.close();
      await db.destroy();
      drop();
    };
    return { ...kyselyParts(db, store), close };
  },
};

/** What the two synchronous clients have in common. */
interface SyncDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): { run(...values: string[]): unknown; all(...values: string[]): unknown[] };
  close(): unknown;
}

function syncHost<Database extends SyncDatabase>(
  store: OutboxStore,
  connect: () => Database,
  emitSync: (
    tx: Database,
    ...event: Parameters<Emit> extends [unknown, ...infer Rest] ? Rest : never
  ) => EmitResult,
  drop: () => void,
): Host {
  const reader = connect();
  return {
    store,
    emit: async (tx, ...event) => emitSync(tx as Database, ...event),
    async transaction(fn) {
      const database = connect();
      try {
        database.exec("BEGIN IMMEDIATE");
        const result = await fn(database);
        database.exec("COMMIT");
        return result;
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      } finally {
        database.close();
      }
    },
    async savepoint(tx, fn) {
      const database = tx as Database;
      database.exec("SAVEPOINT inner_part");
      try {
        await fn(database);
      } catch (error) {
        database.exec("ROLLBACK TO inner_part");
        throw error;
      } finally {
        database.exec("RELEASE inner_part");
      }
    },
    insert: async (tx, id) => void (tx as Database).prepare(`${insertAccount}(?)`).run(id),
    exec: async (tx, text) => void (tx as Database).exec(text),
    accounts: async () =>
      (reader.prepare("SELECT id FROM account ORDER BY id").all() as { id: string }[]).map(({ id }) => id),
    async outside() {
      const over = connect();
      over.exec("BEGIN");
      over.exec("COMMIT");
      return [reader, over];
    },
    async close() {
      await store.close();
      reader.close();
      drop();
    },
  };
}

export const onNodeSqlite: HostKind = {
  name: "node:sqlite",
  concurrent: false,
  async open() {
    const { path, store, drop } = await sqlite();
    const hooks = createHookwell({ store, tx: nodeSqlite(), project: "live", events, logger: quiet });
    const connect = () => new DatabaseSync(path, { timeout: 5_000 });
    return syncHost(
      store,
      connect,
      (tx, type, data, facts) => hooks.emitSync(type, data, { tx, ...facts }),
      drop,
    );
  },
};

export const onBetterSqlite3: HostKind = {
  name: "better-sqlite3",
  concurrent: false,
  async open() {
    const { path, store, drop } = await sqlite((file, options) => new BetterSqlite3(file, options));
    const hooks = createHookwell({ store, tx: betterSqlite3(), project: "live", events, logger: quiet });
    const connect = () => new BetterSqlite3(path);
    return syncHost(
      store,
      connect,
      (tx, type, data, facts) => hooks.emitSync(type, data, { tx, ...facts }),
      drop,
    );
  },
};
