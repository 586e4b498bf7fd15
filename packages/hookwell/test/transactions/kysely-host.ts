import { createHookwell, type OutboxStore } from "hookwell";
import { kysely } from "hookwell/kysely";
import { type Kysely, sql, type Transaction } from "kysely";
import { events, type Host, quiet, type Tables } from "./host.ts";

/** A host on Kysely, over either database. */
export function kyselyParts(db: Kysely<Tables>, store: OutboxStore): Omit<Host, "close"> {
  const hooks = createHookwell({ store, tx: kysely<Tables>(), project: "live", events, logger: quiet });
  return {
    store,
    emit: (tx, type, data, facts) => hooks.emit(type, data, { tx: tx as Transaction<Tables>, ...facts }),
    transaction: (fn) => db.transaction().execute(fn),
    async savepoint(tx, fn) {
      const trx = tx as Transaction<Tables>;
      await sql`savepoint inner_part`.execute(trx);
      try {
        await fn(trx);
        await sql`release savepoint inner_part`.execute(trx);
      } catch (error) {
        await sql`rollback to savepoint inner_part`.execute(trx);
        throw error;
      }
    },
    async insert(tx, id) {
      await (tx as Transaction<Tables>).insertInto("account").values({ id }).execute();
    },
    async exec(tx, text) {
      await sql.raw(text).execute(tx as Transaction<Tables>);
    },
    accounts: async () =>
      (await db.selectFrom("account").select("id").orderBy("id").execute()).map(({ id }) => id),
    async outside() {
      let kept: unknown;
      await db.transaction().execute(async (trx) => {
        kept = trx;
      });
      const committed = await db.startTransaction().execute();
      await committed.commit().execute();
      const rolledBack = await db.startTransaction().execute();
      await rolledBack.rollback().execute();
      return [db, kept, committed, rolledBack];
    },
  };
}
