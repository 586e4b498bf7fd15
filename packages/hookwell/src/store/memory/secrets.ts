import { InvalidStateError } from "../../model/errors.ts";
import type { SubscriptionRecord } from "../../model/subscription.ts";
import type { Visibility } from "../contract.ts";
import { type OpenEndpoint, rotated, type SecretRotation, validSecrets } from "../secret-rotation.ts";
import type { MemoryState, SubscriptionRow } from "./state.ts";
import { isVisible, supersedeWith, visibleSubscription } from "./subscriptions.ts";
import { toSubscriptionRecord } from "./view.ts";

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
  const changed: SubscriptionRow = { ...row, record, endpointId: newEndpointId };
  state.subscriptions.set(id, changed);
  return toSubscriptionRecord(changed);
}

export function openEndpoint(
  state: MemoryState,
  id: string,
  visibility: Visibility,
  now: number,
): OpenEndpoint | undefined {
  const row = state.subscriptions.get(id);
  if (!row || !isVisible(row.record, visibility)) return undefined;
  const { headers, secrets } = state.endpoints.get(row.endpointId)!;
  return {
    subscription: toSubscriptionRecord(row),
    headers: { ...headers },
    secrets: validSecrets(secrets, now),
  };
}
