import type { EventRecord } from "../model/event.ts";
import { matchableOf, matches } from "../model/matching.ts";
import type { DeliverySelection, ReplayWork } from "../model/replay.ts";
import type { DeliveryStatus, SubscriptionStatus } from "../model/states.ts";
import type { SubscriptionRecord } from "../model/subscription.ts";
import type { WalkPosition } from "./replay-contract.ts";

/** The delivery states among what a replay sends. */
export function finalStatuses({ statuses }: Pick<ReplayWork, "statuses">): DeliveryStatus[] {
  return statuses.filter((status): status is "failed" | "delivered" | "cancelled" => status !== "missing");
}

/** Where a walk begins: before the first row of its period. */
export function walkStart(work: Pick<ReplayWork, "statuses" | "since">): WalkPosition {
  return { phase: finalStatuses(work).length > 0 ? "deliveries" : "missing", at: work.since, id: "" };
}

/** What follows when a phase has come to its end. */
export function nextPhase(
  work: Pick<ReplayWork, "statuses" | "since">,
  phase: WalkPosition["phase"],
): WalkPosition {
  if (phase === "deliveries" && work.statuses.includes("missing"))
    return { phase: "missing", at: work.since, id: "" };
  return { phase: "rendering", at: work.since, id: "" };
}

/** From when on a walk over events may say that a delivery is missing: before that, rows may be pruned. */
export function missingSince(at: Date, missingMs: number | null, now: number): number {
  return missingMs === null ? at.getTime() : Math.max(at.getTime(), now - missingMs);
}

/** What matching an event to a subscription looks at, as the walk reads it. */
export type Matched = Pick<EventRecord, "projectId" | "tenantId" | "audience" | "type">;

/** True when the event would be sent there, as the subscription is now. */
export function isWanted(
  event: Matched,
  subscription: Pick<SubscriptionRecord, "projectId" | "tenantId" | "ownerId" | "eventTypes">,
): boolean {
  return matches(matchableOf(event), subscription);
}

/** What an event must be, besides wanted, to be found by a selection: the rest of it is about deliveries. */
export function isSelectedEvent(
  { id, type, subject }: Pick<EventRecord, "id" | "type" | "subject">,
  selection: DeliverySelection,
): boolean {
  return (
    (selection.eventId === undefined || id === selection.eventId) &&
    (selection.type === undefined || type === selection.type) &&
    (selection.subject === undefined || subject === selection.subject)
  );
}

/** Matching takes active and paused. */
export function takesEvents(status: SubscriptionStatus | undefined): boolean {
  return status === "active" || status === "paused";
}

/** Why a replay cannot go on. */
export function endedBecause(subscriptionId: string, status: SubscriptionStatus | undefined): string {
  return `Subscription ${subscriptionId} became ${status ?? "unknown"} while the replay ran; enable it and start another replay for what is left.`;
}
