import type { SubscriptionStatus } from "../model/states.ts";
import type { LaneTrouble, StoreStats, Trouble } from "./stats-contract.ts";

/** What a store knows of a lane that may need somebody. Times are epoch milliseconds. */
export interface LaneFacts {
  readonly subscriptionId: string;
  readonly projectId: string;
  readonly status: SubscriptionStatus;
  readonly statusChangedAt: number;
  readonly failures: number;
  readonly failingSince?: number | undefined;
  readonly openedAt?: number | undefined;
  /** It has a rate limit. */
  readonly limited: boolean;
  /** Its oldest pending row, of a lane with a rate limit. */
  readonly oldestDueAt?: number | undefined;
}

const failuresThatShow = 3;
const waitThatShowsMs = 60_000;
const mostShown = 100;

/** The one reason that matters most, or undefined when the lane is well, or not sent to on purpose. */
function troubleOf(lane: LaneFacts, now: number): { reason: Trouble; since: number } | undefined {
  const { status, openedAt, failingSince, failures, limited, oldestDueAt } = lane;
  if (status === "disabled") return { reason: "disabled", since: lane.statusChangedAt };
  if (status !== "active") return undefined;
  if (openedAt !== undefined) return { reason: "circuit_open", since: openedAt };
  if (failingSince !== undefined && failures >= failuresThatShow)
    return { reason: "failing", since: failingSince };
  if (limited && oldestDueAt !== undefined && oldestDueAt <= now - waitThatShowsMs)
    return { reason: "rate_limited", since: oldestDueAt };
  return undefined;
}

/** Which of these lanes need somebody. A lane may be given twice. `more`: not all lanes were looked at. */
export function lanesInTrouble(lanes: Iterable<LaneFacts>, more: boolean, now: number): StoreStats["lanes"] {
  const found = new Map<string, LaneTrouble>();
  const counts: Record<Trouble, number> = { circuit_open: 0, failing: 0, rate_limited: 0, disabled: 0 };
  for (const lane of lanes) {
    const trouble = troubleOf(lane, now);
    if (!trouble || found.has(lane.subscriptionId)) continue;
    const { subscriptionId, projectId, failures } = lane;
    const { reason, since } = trouble;
    found.set(subscriptionId, {
      subscriptionId,
      projectId,
      reason,
      since: new Date(since),
      ...(reason !== "disabled" && { failures }),
    });
    counts[reason]++;
  }
  const items = [...found.values()].sort(
    (a, b) =>
      Number(a.reason === "disabled") - Number(b.reason === "disabled") ||
      b.since.getTime() - a.since.getTime() ||
      (a.subscriptionId < b.subscriptionId ? -1 : 1),
  );
  return { items: items.slice(0, mostShown), counts, more: more || items.length > mostShown };
}
