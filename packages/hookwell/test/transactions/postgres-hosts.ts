import { createHookwell, type OutboxStore } from "hookwell";
import { pgTx } from "hookwell/pg";
import { postgresStore } from "hookwell/postgres";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { freshPostgres, migrated } from "../support/databases.ts";
import { createTable, encryptionKeys, events, type HostKind, insertAccount, quiet } from "./host.ts";
import { kyselyParts } from "./kysely-host.ts";

async function postgres(): Promise<{ pool: pg.Pool; store: OutboxStore; close: () => Promise<void> }> {
  const { url, drop } = await freshPostgres(migrated);
  const pool = new pg.Pool({ connectionString: url, max: 12 });
  // A client that is in use tells its loss by an event too, besides the error of its query.
  pool.on("connect", (client) => client.on("error", () => {}));
  const store = postgresStore({ pool, encryptionKeys, migrate: true });
  await store.open({ withKeys: true });
  await pool.query(createTable);
  const close = async (): Promise<void> => {
    await store.close();
    await pool.end();
    await drop();
  };
  return { pool, store, close };
}

export const onPg: HostKind = {
  name: "pg",
  concurrent: true,
  async open() {
    const { pool, store, close } = await postgres();
    const hooks = createHookwell({ store, tx: pgTx(), project: "live", events, logger: quiet });
    const query = async (tx: unknown, text: string, values?: string[]): Promise<unknown> =>
      (tx as pg.PoolClient).query(text, values);
    return {
      store,
      emit: (tx, type, data, facts) => hooks.emit(type, data, { tx: tx as pg.PoolClient, ...facts }),
      async transaction(fn) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          const result = await fn(client);
          await client.query("COMMIT");
          return result;
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      async savepoint(tx, fn) {
        await query(tx, "SAVEPOINT inner_part");
        try {
          await fn(tx);
          await query(tx, "RELEASE SAVEPOINT inner_part");
        } catch (error) {
          await query(tx, "ROLLBACK TO SAVEPOINT inner_part");
          throw error;
        }
      },
      insert: async (tx, id) => void (await query(tx, `${insertAccount}($1)`, [id])),
      exec: async (tx, text) => void (await query(tx, text)),
      accounts: async () => (await pool.query("SELECT id FROM account ORDER BY id")).rows.map(({ id }) => id),
      async outside() {
        const idle = await pool.connect();
        const failed = await pool.connect();
        const over = await pool.connect();
        await failed.query("BEGIN");
        await failed.query("SELECT 1 / 0").catch(() => {});
        // The error comes before the word that the transaction has failed; a second answer comes after it.
        await failed.query("SELECT 1").catch(() => {});
        await over.query("BEGIN");
        await over.query("COMMIT");
        for (const client of [idle, failed, over]) client.release(true);
        return [pool, idle, failed, over];
      },
      close,
    };
  },
};

export const onKyselyPostgres: HostKind = {
  name: "Kysely on PostgreSQL",
  concurrent: true,
  async open() {
    const { pool, store, close } = await postgres();
    return { ...kyselyParts(new Kysely({ dialect: new PostgresDialect({ pool }) }), store), close };
  },
};
