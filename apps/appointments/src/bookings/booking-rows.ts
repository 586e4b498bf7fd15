import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppTables, AppTransaction } from "../database/schema.ts";

export type Dialect = "sqlite" | "postgres";

/** The booking as it is now, and nobody changes it before the transaction ends. */
export async function lockBooking(
  trx: AppTransaction,
  dialect: Dialect,
  id: string,
): Promise<BookingsTable | undefined> {
  const query = trx.selectFrom("bookings").selectAll().where("id", "=", id);
  return await (dialect === "postgres" ? query.forUpdate() : query).executeTakeFirst();
}

/**
 * Locks users in id order, so that what is booked with the same hosts is decided one after the other. On SQLite the
 * transaction, begun IMMEDIATE, is the only writer already.
 */
export async function lockHosts(
  trx: AppTransaction,
  dialect: Dialect,
  ids: readonly string[],
): Promise<void> {
  if (dialect === "sqlite" || ids.length === 0) return;
  await trx
    .selectFrom("users")
    .select("id")
    .where("id", "in", [...ids])
    .orderBy("id")
    .forNoKeyUpdate()
    .execute();
}

/**
 * What the UPDATE that makes a transition sets beside its own columns. `captured`: its revision rises. A location
 * that is current stays so; a link that came late for an older revision stays late.
 */
export function raised(
  column: ExpressionBuilder<AppTables, "bookings">,
  captured: boolean,
  now: string,
): {
  readonly updated_at: string;
  readonly revision?: Expression<number>;
  readonly location_revision?: Expression<number>;
} {
  if (!captured) return { updated_at: now };
  const isCurrent: Expression<SqlBool> = column("location_revision", "=", column.ref("revision"));
  return {
    updated_at: now,
    revision: column("revision", "+", 1),
    location_revision: column
      .case()
      .when(isCurrent)
      .then(column("revision", "+", 1))
      .else(column.ref("location_revision"))
      .end(),
  };
}
