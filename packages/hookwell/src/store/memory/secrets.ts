import { InvalidStateError } from "../../model/errors.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { rotated, type SecretRotation } from "../secret-rotation.ts";
import type { MemoryState } from "./state.ts";
import { supersedeWith, visibleSubscription } from "./subscriptions.ts";

export function rotateSecret(
  state: MemoryState,
  id: string,
  rotation: SecretRotation,
  visibility: Visibility,
  newEndpointId: string,
  now: number,
): SubscriptionRecord {
  const row = visibleSubscription(state, id, visibility);
  if (row.record.status === "deleted")
    throw new InvalidStateError("subscription", id, "deleted", "rotate the secret of");
  const current = state.endpoints.get(row.endpointId)!;
  const secrets = rotated(id, current.secrets, rotation, now);
  supersedeWith(state, { ...current, id: newEndpointId, secrets });
  const record = { ...row.record, updatedAt: new Date(now) };
  state.subscriptions.set(id, { ...row, record, endpointId: newEndpointId });
  return structuredClone(record);
}
