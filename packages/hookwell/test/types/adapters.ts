import type { DatabaseSync } from "node:sqlite";
import type BetterSqlite3 from "better-sqlite3";
import { betterSqlite3 } from "hookwell/better-sqlite3";
import { kysely, sqliteDialect } from "hookwell/kysely";
import { nodeSqlite } from "hookwell/node-sqlite";
import { pgTx } from "hookwell/pg";
import { Kysely, type Transaction } from "kysely";
import type pg from "pg";

// Which client objects each adapter takes: checked by tsc, never run.
interface DB {
  users: { id: string };
}
declare const pool: pg.Pool;
declare const client: pg.Client;
declare const poolClient: pg.PoolClient;
declare const db: Kysely<DB>;
declare const trx: Transaction<DB>;
declare const other: Transaction<{ orders: { id: string } }>;
declare const nodeDatabase: DatabaseSync;
declare const betterDatabase: BetterSqlite3.Database;
const statement = { text: "select 1", params: [] };

void pgTx().run(client, statement);
void pgTx().run(poolClient, statement);
// @ts-expect-error a Pool is not a transaction
void pgTx().run(pool, statement);

void kysely<DB>().run(trx, statement);
// @ts-expect-error a Kysely database is not a transaction
void kysely<DB>().run(db, statement);
// @ts-expect-error a transaction of another database
void kysely<DB>().run(other, statement);

nodeSqlite().run(nodeDatabase, statement);
// @ts-expect-error the handle of the other driver
nodeSqlite().run(betterDatabase, statement);
betterSqlite3().run(betterDatabase, statement);
// @ts-expect-error the handle of the other driver
betterSqlite3().run(nodeDatabase, statement);

new Kysely<DB>({ dialect: sqliteDialect({ database: nodeDatabase }) });
new Kysely<DB>({ dialect: sqliteDialect({ database: betterDatabase }) });
// @ts-expect-error a pool is no SQLite handle
sqliteDialect({ database: pool });
