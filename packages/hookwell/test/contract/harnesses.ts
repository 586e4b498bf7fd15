import { DatabaseSync } from "node:sqlite";
import type { StoreHarness } from "hookwell/testing";
import { Kysely } from "kysely";
import pg from "pg";
import { kysely, sqliteDialect } from "../../src/adapters/kysely.ts";
import { pgTx } from "../../src/adapters/pg.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { MemoryOutbox, memoryTx } from "../../src/store/memory/index.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { generateKey, sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshPostgres, freshSqlite, migrated } from "../support/databases.ts";

export const memoryHarness: StoreHarness = {
  async make({ now, idFunc }) {
    const store = new MemoryOutbox({ now, idFunc });
    return {
      store,
      transaction: (fn) => store.transaction((tx) => fn({ kind: "async", adapter: memoryTx() as never, tx })),
      close: () => store.close(),
    };
  },
};

/** A new file for each store; the application is Kysely on a connection of its own. */
export const sqliteHarness: StoreHarness = {
  async make({ now, idFunc }) {
    const file = freshSqlite();
    const encryptionKeys = `k1:${generateKey()}`;
    const open = async (): Promise<OutboxStore> => {
      const store = sqliteStore({ path: file.path, encryptionKeys, migrate: true, now, idFunc });
      await store.open({ withKeys: true });
      return store;
    };
    const stores = [await open()];
    const application = new Kysely<unknown>({
      dialect: sqliteDialect({ database: new DatabaseSync(file.path, { timeout: 5_000 }) }),
    });
    const adapter = kysely<unknown>() as never;
    return {
      store: stores[0]!,
      transaction: (fn) => application.transaction().execute((tx) => fn({ kind: "async", adapter, tx })),
      async reopen() {
        const store = await open();
        stores.push(store);
        return store;
      },
      async close() {
        await application.destroy();
        for (const store of stores) await store.close();
        file.drop();
      },
    };
  },
};

/** One database for all stores of a file, emptied for each; the application is a `pg` client. */
export class PostgresHarness implements StoreHarness {
  readonly #encryptionKeys = `k1:${generateKey()}`;
  #database: { url: string; drop: () => Promise<void> } | undefined;
  #pool: pg.Pool | undefined;

  async start(): Promise<void> {
    this.#database = await freshPostgres(migrated);
    this.#pool = new pg.Pool({ connectionString: this.#database.url, max: 20 });
  }

  async stop(): Promise<void> {
    await this.#pool?.end();
    await this.#database?.drop();
  }

  async make({ now, idFunc }: Parameters<StoreHarness["make"]>[0]): ReturnType<StoreHarness["make"]> {
    const pool = this.#pool!;
    const open = async (): Promise<OutboxStore> => {
      const encryptionKeys = this.#encryptionKeys;
      const store = postgresStore({ pool, encryptionKeys, migrate: true, now, idFunc });
      await store.open({ withKeys: true });
      return store;
    };
    const stores = [await open()];
    await this.#empty();
    return {
      store: stores[0]!,
      async transaction(fn) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          const result = await fn({ kind: "async", adapter: pgTx() as never, tx: client });
          await client.query("COMMIT");
          return result;
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      async reopen() {
        const store = await open();
        stores.push(store);
        return store;
      },
      async close() {
        for (const store of stores) await store.close();
      },
    };
  }

  /** Every row but those that describe the schema; DELETE, because TRUNCATE of small tables is slow. */
  async #empty(): Promise<void> {
    const { rows } = await this.#pool!.query<{ sql: string }>(
      `SELECT string_agg(format('DELETE FROM %I.%I', schemaname, tablename), '; ') AS sql
       FROM pg_tables WHERE schemaname = 'hookwell' AND tablename NOT IN ('meta', 'migration')`,
    );
    await this.#pool!.query(rows[0]!.sql);
  }
}
