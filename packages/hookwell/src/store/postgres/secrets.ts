import type { Program } from "../../adapters/seam.ts";
import { InvalidStateError } from "../../model/errors.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import type { KeyRing } from "../sealing.ts";
import { type OpenEndpoint, rotated, type SecretRotation, validSecrets } from "../secret-rotation.ts";
import { type Database, nowSql, textsFor } from "./database.ts";
import { openEndpoint as openVersion, sealEndpoint } from "./endpoints.ts";
import { integer, text } from "./rows.ts";
import { toSubscription } from "./subscription-rows.ts";
import { currentEndpoint, isVisible, lockVisible } from "./subscriptions.ts";

/** $1 subscription, $2 id of the new version, $3 its url, $4 sealed, $5 now. Answers the subscription. */
const rotateTexts = textsFor(
  (s) => `WITH e AS MATERIALIZED (
  SELECT $1::text AS subscription_id, $2::text AS id, $3::text AS url, $4::text AS sealed, $5::bigint AS now
), superseded AS (
  UPDATE ${s}.endpoint older SET superseded_by = e.id
  FROM e WHERE older.subscription_id = e.subscription_id AND older.id <> e.id
), made AS (
  INSERT INTO ${s}.endpoint (id, subscription_id, url, sealed, created_at)
  SELECT e.id, e.subscription_id, e.url, e.sealed, e.now FROM e
)
UPDATE ${s}.subscription sub SET endpoint_id = e.id, updated_at = e.now
FROM e WHERE sub.id = e.subscription_id
RETURNING sub.*`,
);

/** @throws NotFoundError, InvalidStateError, TooManySecretsError, EncryptionKeyError */
export function* rotateSecret(
  schema: string,
  keys: KeyRing,
  id: string,
  rotation: SecretRotation,
  visibility: Visibility,
  newEndpointId: string,
  given: string | null,
): Program<SubscriptionRecord> {
  const row = yield* lockVisible(schema, id, visibility);
  if (toSubscription(row).status === "deleted")
    throw new InvalidStateError("subscription", id, "deleted", "rotate the secret of");
  const { endpoint, now } = yield* currentEndpoint(schema, keys, row, given);
  const version = {
    ...endpoint,
    id: newEndpointId,
    secrets: rotated(id, endpoint.secrets, rotation, now),
  };
  const [written] = yield {
    text: rotateTexts(schema),
    params: [id, version.id, version.url, sealEndpoint(keys, version), String(now)],
  };
  return toSubscription(written!);
}

/** $1 subscription, $2 now. */
const openTexts = textsFor(
  (s) => `SELECT sub.*, e.sealed, ${nowSql("$2")} AS now
FROM ${s}.subscription sub JOIN ${s}.endpoint e ON e.id = sub.endpoint_id
WHERE sub.id = $1::text`,
);

/** @throws EncryptionKeyError */
export async function openEndpoint(
  db: Database,
  keys: KeyRing,
  id: string,
  visibility: Visibility,
  now: string | null,
): Promise<OpenEndpoint | undefined> {
  const [row] = await db.run({ text: openTexts(db.schema), params: [id, now] });
  const subscription = row && toSubscription(row);
  if (!subscription || !isVisible(subscription, visibility)) return undefined;
  const version = openVersion(keys, text(row, "endpoint_id"), subscription.url, text(row, "sealed"));
  return {
    subscription,
    headers: version.headers,
    secrets: validSecrets(version.secrets, integer(row, "now")),
  };
}
