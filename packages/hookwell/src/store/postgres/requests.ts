import { randomUUID } from "node:crypto";
import { EncryptionKeyError, StorageError } from "../../model/errors.ts";
import type { Now } from "../contract.ts";
import {
  type RequestBegin,
  type RequestBegun,
  type RequestName,
  requestSealName,
  requestsKeptMs,
} from "../request-contract.ts";
import type { KeyRing } from "../sealing.ts";
import { type Database, nowSql, textsFor } from "./database.ts";
import { date, flag, optionalText, text } from "./rows.ts";

const texts = textsFor((s) => ({
  /** $1 now, $2 owner, $3 key, $4 fingerprint, $5 token, $6 ms of the lease, $7 repeatable. Answers began_at, or nothing. */
  begin: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS owner, $3::text AS key, $4::text AS fingerprint, $5::text AS token,
    $6::text::bigint AS lease, $7::text::boolean AS repeatable
)
INSERT INTO ${s}.idempotent_request AS r (owner, key, fingerprint, token, began_at, lease_until)
SELECT t.owner, t.key, t.fingerprint, t.token, t.now, t.now + t.lease FROM t
ON CONFLICT (owner, key) DO UPDATE SET
  fingerprint = excluded.fingerprint, token = excluded.token, lease_until = excluded.lease_until, sealed = NULL,
  began_at = CASE WHEN r.began_at <= excluded.began_at - ${requestsKeptMs} THEN excluded.began_at ELSE r.began_at END
WHERE r.began_at <= excluded.began_at - ${requestsKeptMs}
  OR (r.sealed IS NULL AND r.lease_until <= excluded.began_at AND r.fingerprint = excluded.fingerprint
    AND (SELECT repeatable FROM t))
RETURNING r.began_at`,

  /** $1 now, $2 owner, $3 key. */
  look: `SELECT r.fingerprint, r.began_at, r.sealed, (r.lease_until > ${nowSql("$1")})::int AS running
FROM ${s}.idempotent_request r WHERE r.owner = $2::text AND r.key = $3::text`,

  /** $1 sealed answer, $2 owner, $3 key, $4 token. */
  finish: `UPDATE ${s}.idempotent_request r SET sealed = $1::text
WHERE r.owner = $2::text AND r.key = $3::text AND r.token = $4::text AND r.sealed IS NULL
RETURNING 1 AS finished`,

  /** $1 owner, $2 key, $3 token. */
  abandon: `DELETE FROM ${s}.idempotent_request r
WHERE r.owner = $1::text AND r.key = $2::text AND r.token = $3::text AND r.sealed IS NULL`,

  /** $1 now, $2 most. */
  prune: `WITH over AS MATERIALIZED (
  SELECT r.owner, r.key FROM ${s}.idempotent_request r
  WHERE r.began_at <= ${nowSql("$1")} - ${requestsKeptMs}
  ORDER BY r.began_at LIMIT $2::text::int
  FOR UPDATE SKIP LOCKED
)
DELETE FROM ${s}.idempotent_request r USING over
WHERE r.owner = over.owner AND r.key = over.key
RETURNING 1 AS pruned`,
}));

export async function beginRequest(
  db: Database,
  keys: KeyRing,
  request: RequestBegin,
  now: Now,
): Promise<RequestBegun> {
  const { owner, key, fingerprint, leaseMs, repeatable } = request;
  const token = randomUUID();
  const at = db.now(now);
  // What stands in the way may be gone by the second statement: then nothing does.
  for (let tries = 0; tries < 5; tries++) {
    const [begun] = await db.run({
      text: texts(db.schema).begin,
      params: [at, owner, key, fingerprint, token, String(leaseMs), String(repeatable)],
    });
    if (begun) return { state: "begun", token, beganAt: date(begun, "began_at") };
    const [row] = await db.run({ text: texts(db.schema).look, params: [at, owner, key] });
    if (!row) continue;
    if (text(row, "fingerprint") !== fingerprint) return { state: "different" };
    const sealed = optionalText(row, "sealed");
    if (sealed !== undefined) {
      const answer = opened(keys, sealed, request);
      return answer === undefined
        ? { state: "lost", beganAt: date(row, "began_at") }
        : { state: "answered", answer };
    }
    if (flag(row, "running")) return { state: "running" };
    if (!repeatable) return { state: "lost", beganAt: date(row, "began_at") };
  }
  throw new StorageError(
    "A request with an idempotency key could not be begun: others came and went each time.",
  );
}

/** Undefined when the key that sealed it is no longer given: keys may be rotated within a day. */
function opened(keys: KeyRing, sealed: string, name: RequestName): string | undefined {
  try {
    return keys.open(sealed, requestSealName(name));
  } catch (error) {
    if (error instanceof EncryptionKeyError) return undefined;
    throw error;
  }
}

export async function finishRequest(
  db: Database,
  keys: KeyRing,
  name: RequestName,
  token: string,
  answer: string,
): Promise<boolean> {
  const sealed = keys.seal(answer, requestSealName(name));
  const rows = await db.run({
    text: texts(db.schema).finish,
    params: [sealed, name.owner, name.key, token],
  });
  return rows.length > 0;
}

export async function abandonRequest(
  db: Database,
  { owner, key }: RequestName,
  token: string,
): Promise<void> {
  await db.run({ text: texts(db.schema).abandon, params: [owner, key, token] });
}

/** The oldest that are over; answers how many went. */
export async function pruneRequests(db: Database, limit: number, now: string | null): Promise<number> {
  return (await db.run({ text: texts(db.schema).prune, params: [now, String(limit)] })).length;
}
