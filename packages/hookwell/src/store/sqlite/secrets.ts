import type { Program } from "../../adapters/seam.ts";
import { InvalidStateError } from "../../model/errors.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { rotated, type SecretRotation } from "../secret-rotation.ts";
import { statement, text } from "./rows.ts";
import { toSubscriptionRecord } from "./subscription-rows.ts";
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
