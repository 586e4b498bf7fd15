import { InvalidStateError, VersionConflictError } from "../model/errors.ts";
import { canMove, type SubscriptionStatus, subscriptionTransitions } from "../model/states.ts";
import type { SubscriptionRecord } from "../model/subscription.ts";

/** What must hold of a subscription for a change to be made. Looked at on the locked row, before the write. */
export interface SubscriptionGuard {
  /** The status that the move begins at. Being there already is no fault. */
  readonly from?: SubscriptionStatus;
  /** It is one of these versions. */
  readonly versions?: readonly string[];
}

/** @throws VersionConflictError */
export function checkVersion(
  record: SubscriptionRecord,
  { versions }: Pick<SubscriptionGuard, "versions"> = {},
): void {
  if (versions && !versions.includes(record.version))
    throw new VersionConflictError("Subscription", record.id);
}

/** False when it has the status already. @throws VersionConflictError, InvalidStateError */
export function mustMove(
  record: SubscriptionRecord,
  status: SubscriptionStatus,
  guard: SubscriptionGuard = {},
): boolean {
  checkVersion(record, guard);
  if (record.status === status) return false;
  const isFrom = guard.from === undefined || guard.from === record.status;
  if (isFrom && canMove(subscriptionTransitions, record.status, status)) return true;
  throw new InvalidStateError(
    "subscription",
    record.id,
    record.status,
    verbs[status](guard.from),
    advice(record.status, status),
  );
}

const verbs: Readonly<Record<SubscriptionStatus, (from?: SubscriptionStatus) => string>> = {
  active: (from) => (from === "paused" ? "resume" : "enable"),
  paused: () => "pause",
  disabled: () => "disable",
  deleted: () => "delete",
};

/** The verb that leads on from a status. */
function advice(from: SubscriptionStatus, to: SubscriptionStatus): string | undefined {
  if (from === "deleted") return "a deleted one stays deleted, create another";
  const way = from === "paused" ? "resume" : "enable";
  return `${way} it ${to === "active" ? "instead" : "first"}`;
}
