import { randomUUID } from "node:crypto";
import { EncryptionKeyError } from "../../model/errors.ts";
import {
  type RequestBegin,
  type RequestBegun,
  type RequestName,
  requestSealName,
  requestsKeptMs,
} from "../request-contract.ts";
import type { KeyRing } from "../sealing.ts";
import type { Connection } from "./connection.ts";
import { date, integer, optionalText, text } from "./rows.ts";

const lookText = `
SELECT fingerprint, began_at, lease_until, sealed FROM hookwell_idempotent_request WHERE owner = ? AND key = ?`;
const putText = `
INSERT INTO hookwell_idempotent_request (owner, key, fingerprint, token, began_at, lease_until)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, key) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token,
  began_at = excluded.began_at, lease_until = excluded.lease_until, sealed = NULL`;
const finishText = `
UPDATE hookwell_idempotent_request SET sealed = ?
WHERE owner = ? AND key = ? AND token = ? AND sealed IS NULL
RETURNING 1 AS finished`;
const abandonText = `
DELETE FROM hookwell_idempotent_request WHERE owner = ? AND key = ? AND token = ? AND sealed IS NULL`;
const overText = `
SELECT owner, key FROM hookwell_idempotent_request INDEXED BY hookwell_idempotent_request_age
WHERE began_at <= ? ORDER BY began_at LIMIT CAST(? AS INTEGER)`;
const dropText = "DELETE FROM hookwell_idempotent_request WHERE owner = ? AND key = ?";

/** Inside a write. */
export function beginRequest(
  connection: Connection,
  ring: KeyRing,
  request: RequestBegin,
  now: number,
): RequestBegun {
  const { owner, key, fingerprint, leaseMs, repeatable } = request;
  const [known] = connection.all(lookText, [owner, key]);
  const row = known && integer(known.began_at) > now - requestsKeptMs ? known : undefined;
  if (row) {
    if (text(row.fingerprint) !== fingerprint) return { state: "different" };
    const sealed = optionalText(row.sealed);
    if (sealed !== undefined) {
      const answer = opened(ring, sealed, request);
      return answer === undefined
        ? { state: "lost", beganAt: date(row.began_at) }
        : { state: "answered", answer };
    }
    if (integer(row.lease_until) > now) return { state: "running" };
    if (!repeatable) return { state: "lost", beganAt: date(row.began_at) };
  }
  const token = randomUUID();
  const beganAt = row ? integer(row.began_at) : now;
  connection.all(putText, [owner, key, fingerprint, token, beganAt, now + leaseMs]);
  return { state: "begun", token, beganAt: new Date(beganAt) };
}

/** Undefined when the key that sealed it is no longer given: keys may be rotated within a day. */
function opened(ring: KeyRing, sealed: string, name: RequestName): string | undefined {
  try {
    return ring.open(sealed, requestSealName(name));
  } catch (error) {
    if (error instanceof EncryptionKeyError) return undefined;
    throw error;
  }
}

/** Inside a write. */
export function finishRequest(
  connection: Connection,
  ring: KeyRing,
  name: RequestName,
  token: string,
  answer: string,
): boolean {
  const sealed = ring.seal(answer, requestSealName(name));
  return connection.all(finishText, [sealed, name.owner, name.key, token]).length > 0;
}

/** Inside a write. */
export function abandonRequest(connection: Connection, { owner, key }: RequestName, token: string): void {
  connection.all(abandonText, [owner, key, token]);
}

/** The oldest that are over; answers how many went. */
export async function pruneRequests(connection: Connection, limit: number, now: number): Promise<number> {
  const look = (most: number) => connection.all(overText, [now - requestsKeptMs, most]);
  if (look(1).length === 0) return 0;
  return connection.write(() => {
    const rows = look(limit);
    for (const row of rows) connection.all(dropText, [text(row.owner), text(row.key)]);
    return rows.length;
  });
}
