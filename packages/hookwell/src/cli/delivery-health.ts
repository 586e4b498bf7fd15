import type { HookwellCore } from "../publish/surface.ts";

export interface DeliveryHealth {
  /** When the oldest due delivery on a runnable lane became due; a dead subscriber's lane that waits is none. */
  readonly oldestDueAt?: Date;
  /** When the oldest event that is not dispatched yet was captured. */
  readonly oldestNewAt?: Date;
  /** Holds of an operator that are in force: what they cover is not late. */
  readonly holds: number;
  /** What is late, in a sentence. Absent = nothing is. */
  readonly late?: string;
}

/** How late webhooks are leaving. @throws StorageError when the database cannot say */
export async function deliveryHealth(
  hooks: Pick<HookwellCore, "store">,
  maxLagMs: number,
): Promise<DeliveryHealth> {
  const { at, oldestDueAt, oldestNewAt } = await hooks.store.lag(null);
  const holds = (await hooks.store.listHolds()).length;
  const faults: string[] = [];
  const judge = (what: string, since: Date | undefined): void => {
    const ageMs = since ? at.getTime() - since.getTime() : 0;
    if (ageMs > maxLagMs)
      faults.push(
        `${what} has waited ${Math.round(ageMs / 1000)} s, and HOOKWELL_MAX_LAG is ${maxLagMs / 1000} s.`,
      );
  };
  judge("The oldest due delivery", oldestDueAt);
  judge("The oldest undispatched event", oldestNewAt);
  return { oldestDueAt, oldestNewAt, holds, ...(faults.length > 0 && { late: faults.join(" ") }) };
}
