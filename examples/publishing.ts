// The example of docs/guides/publishing.md: a service on PostgreSQL with Kysely. examples.test.ts runs it.
import { createHookwell, defineEvents } from "hookwell";
import { kysely } from "hookwell/kysely";
import { postgresStore } from "hookwell/postgres";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { z } from "zod";

interface Database {
  invoice: { id: string; customer_id: string; total: number; status: string; revision: number };
}

const invoice = z.object({
  id: z.string(),
  customer_id: z.string(),
  total: z.number(),
  status: z.enum(["open", "paid"]),
  buyer_email: z.email().optional(),
});

export const events = defineEvents({
  "invoice.created": { schema: invoice, subject: (data) => `invoice:${data.id}` },
  "invoice.paid": {
    schema: invoice,
    subject: (data) => `invoice:${data.id}`,
    fields: {
      always: ["id", "status"],
      default: ["customer_id", "total"],
      optional: { buyer_email: { personal: true } },
    },
  },
});

export function makeService(connectionString: string, encryptionKeys: string) {
  const pool = new pg.Pool({ connectionString });
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  const hooks = createHookwell({
    store: postgresStore({ pool, encryptionKeys }),
    tx: kysely<Database>(),
    project: "live",
    events,
  });

  async function payInvoice(id: string, tenantId: string) {
    return db.transaction().execute(async (trx) => {
      const row = await trx
        .updateTable("invoice")
        .set((eb) => ({ status: "paid", revision: eb("revision", "+", 1) }))
        .where("id", "=", id)
        .where("status", "=", "open")
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined; // nothing changed, so nothing is published
      const { revision, ...published } = row;
      return hooks.emit("invoice.paid", { ...published, status: "paid" }, { tx: trx, tenantId, revision });
    });
  }

  return { pool, db, hooks, payInvoice };
}
