import { createHash, randomBytes } from "node:crypto";
import type { AppDatabase } from "../database/schema.ts";

const tokenShape = /^[0-9a-f]{64}$/;
const validMs = 60 * 86_400_000;

/** What is stored of a token. */
export function hashManageToken(token: string): string {
  return createHash("sha256").update(token, "utf8").digest("hex");
}

/**
 * A new token that lets the customer move and cancel a booking, valid for 60 days; earlier ones stay valid. It is
 * in the answer and nowhere else: only its SHA-256 is stored.
 */
export async function issueManageToken(db: AppDatabase, bookingId: string, now: Date): Promise<string> {
  const token = randomBytes(32).toString("hex");
  const expiresAt = new Date(now.getTime() + validMs).toISOString();
  await db
    .insertInto("booking_manage_tokens")
    .values({ hash: hashManageToken(token), booking_id: bookingId, expires_at: expiresAt })
    .execute();
  return token;
}

/** The booking that a token manages; undefined for one that is malformed, unknown or too old. */
export async function managedBookingId(
  db: AppDatabase,
  token: string,
  now: Date,
): Promise<string | undefined> {
  if (!tokenShape.test(token)) return undefined;
  const row = await db
    .selectFrom("booking_manage_tokens")
    .select("booking_id")
    .where("hash", "=", hashManageToken(token))
    .where("expires_at", ">", now.toISOString())
    .executeTakeFirst();
  return row?.booking_id;
}
