import type { Row } from "../../adapters/seam.ts";
import type { Delivery } from "../../model/delivery.ts";
import type { DeliveryStatus } from "../../model/states.ts";
import { validSecrets } from "../secret-rotation.ts";
import { type Database, nowSql, textsFor } from "./database.ts";
import type { Endpoint, EndpointBook } from "./endpoints.ts";
import { coveredSql } from "./holds-sql.ts";
import { bytes, date, defined, flag, integer, nonEmpty, optionalDate, optionalText, text } from "./rows.ts";

/** A delivery with everything that sending it needs, and the status of its subscription (absent = there is none). */
export interface Loaded {
  readonly delivery: Delivery;
  readonly subscriptionStatus?: string;
  /** An operator holds it. */
  readonly held?: true;
  /** Its body or endpoint version is missing or damaged: what it would send, and where, is empty. */
  readonly unreadable?: true;
}

// A body is sent once, however many of the deliveries share it.
const texts = textsFor(
  (s) => `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), want AS MATERIALIZED (
  SELECT w.id, w.ord FROM jsonb_array_elements_text($2::text::jsonb) WITH ORDINALITY AS w(id, ord)
), d AS MATERIALIZED (
  SELECT d.*, want.ord,
    row_number() OVER (PARTITION BY d.project_id, d.event_id, d.variant ORDER BY want.ord) AS copy
  FROM want
  CROSS JOIN LATERAL (SELECT d.* FROM ${s}.delivery d WHERE d.id = want.id LIMIT 1) AS d
)
SELECT d.id, d.project_id, d.event_id, d.subscription_id, d.endpoint_id, d.variant, d.type, d.status,
  d.attempts, d.round, d.next_attempt_at, d.lease_token, d.lease_until, d.last_error, d.created_at, d.updated_at,
  e.tenant_id, e.subject, s.status AS subscription_status, p.superseded_by, (SELECT now FROM t) AS now,
  ${coveredSql(`${s}.hold`)}::int AS held,
  CASE WHEN d.copy = 1 THEN (
    SELECT encode(b.bytes, 'base64') FROM ${s}.body b
    WHERE b.project_id = d.project_id AND b.event_id = d.event_id AND b.variant = d.variant
  ) END AS body
FROM d
LEFT JOIN LATERAL (SELECT p.* FROM ${s}.endpoint p WHERE p.id = d.endpoint_id LIMIT 1) AS p ON true
LEFT JOIN LATERAL (SELECT s.* FROM ${s}.subscription s WHERE s.id = d.subscription_id LIMIT 1) AS s ON true
LEFT JOIN LATERAL (
  SELECT e.tenant_id, e.subject FROM ${s}.event e WHERE e.id = d.event_id AND e.project_id = d.project_id LIMIT 1
) AS e ON true
ORDER BY d.ord`,
);

const nowhere: Endpoint = { id: "", url: "", headers: {}, secrets: [{ secret: "" }] };

/** Deliveries by id, in the order asked for; what is not there is left out. */
export async function loadDeliveries(
  db: Database,
  endpoints: EndpointBook,
  ids: readonly string[],
  now: string | null,
): Promise<Loaded[]> {
  const rows = await db.hot({ text: texts(db.schema), params: [now, JSON.stringify(ids)] });
  const wanted = new Set<string>();
  for (const row of rows) {
    wanted.add(text(row, "endpoint_id"));
    wanted.add(currentId(row));
  }
  const known = await endpoints.get(wanted);
  const bodies = new Map<string, Uint8Array>();
  const loaded: Loaded[] = [];
  for (const row of rows) {
    const key = JSON.stringify([text(row, "project_id"), text(row, "event_id"), text(row, "variant")]);
    if (optionalText(row, "body") !== undefined) bodies.set(key, bytes(row, "body"));
    const body = bodies.get(key);
    const own = known.get(text(row, "endpoint_id"));
    const current = known.get(currentId(row));
    const whole = body && own && current && toDelivery(row, own, current, body.slice());
    loaded.push(
      defined<Loaded>({
        delivery: whole ?? { ...toDelivery(row, nowhere, nowhere, new Uint8Array()), secrets: [] },
        subscriptionStatus: optionalText(row, "subscription_status"),
        held: flag(row, "held") ? true : undefined,
        unreadable: whole ? undefined : true,
      }),
    );
  }
  return loaded;
}

/** The version that counts: the newest one for a replaced version, otherwise itself. */
function currentId(row: Row): string {
  return optionalText(row, "superseded_by") ?? text(row, "endpoint_id");
}

/** Url, headers and valid secrets are the newest version's; the bound secret stays while that still lists it. */
function toDelivery(row: Row, own: Endpoint, current: Endpoint, payload: Uint8Array): Delivery {
  const secrets = validSecrets(current.secrets, integer(row, "now"));
  const bound = own.secrets[0]!.secret;
  return defined<Delivery>({
    id: text(row, "id"),
    eventId: text(row, "event_id"),
    subscriptionId: text(row, "subscription_id"),
    url: current.url,
    secret: secrets.includes(bound) ? bound : (secrets[0] ?? bound),
    payload,
    status: text(row, "status") as DeliveryStatus,
    attempts: integer(row, "attempts"),
    lastError: optionalText(row, "last_error"),
    nextAttemptAt: date(row, "next_attempt_at"),
    createdAt: date(row, "created_at"),
    updatedAt: date(row, "updated_at"),
    type: nonEmpty(row, "type"),
    projectId: nonEmpty(row, "project_id"),
    tenantId: nonEmpty(row, "tenant_id"),
    subject: optionalText(row, "subject"),
    secrets,
    headers: Object.keys(current.headers).length > 0 ? { ...current.headers } : undefined,
    round: integer(row, "round"),
    leaseToken: optionalText(row, "lease_token"),
    leaseUntil: optionalDate(row, "lease_until"),
  });
}
