import type { Program } from "../../adapters/seam.ts";
import { InvalidStateError, StorageError } from "../../model/errors.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { type OpenEndpoint, rotated, type SecretRotation, validSecrets } from "../secret-rotation.ts";
import type { Connection } from "./connection.ts";
import type { Endpoints } from "./last-look.ts";
import { statement, text } from "./rows.ts";
import { isVisible, toSubscriptionRecord } from "./subscription-rows.ts";
import { lockVisible, type Making, supersede } from "./subscriptions.ts";

const rotateText = `
UPDATE hookwell_subscription SET endpoint_id = ?, updated_at = CAST(? AS INTEGER)
WHERE id = ?
RETURNING *`;

/** @throws NotFoundError, InvalidStateError, TooManySecretsError, EncryptionKeyError */
export function* rotateProgram(
  making: Making,
  id: string,
  rotation: SecretRotation,
  visibility: Visibility,
): Program<SubscriptionRecord> {
  const row = yield* lockVisible(id, visibility);
  if (row.status === "deleted")
    throw new InvalidStateError("subscription", id, "deleted", "rotate the secret of");
  yield* supersede(making, id, text(row.endpoint_id), (current) => ({
    ...current,
    secrets: rotated(id, current.secrets, rotation, making.now),
  }));
  const [stored] = yield statement(rotateText, making.endpointId, making.now, id);
  return toSubscriptionRecord(stored!);
}

/** @throws EncryptionKeyError; StorageError when the endpoint version is missing or damaged */
export function openEndpoint(
  connection: Connection,
  endpoints: Endpoints,
  id: string,
  visibility: Visibility,
  now: number,
): OpenEndpoint | undefined {
  const [row] = connection.all("SELECT * FROM hookwell_subscription WHERE id = ?", [id]);
  const subscription = row && toSubscriptionRecord(row);
  if (!subscription || !isVisible(subscription, visibility)) return undefined;
  const endpoint = endpoints.get(text(row.endpoint_id));
  if (!endpoint) throw new StorageError(`The endpoint version of subscription ${id} is missing or damaged.`);
  const { headers, secrets } = endpoint;
  return { subscription, headers: { ...headers }, secrets: validSecrets(secrets, now) };
}
