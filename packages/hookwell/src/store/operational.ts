import { hash } from "node:crypto";
import type { CaptureInput, EventKey } from "../model/event.ts";

/** The types that Hookwell itself emits. */
export type OperationalType =
  | "hookwell.subscription.failing"
  | "hookwell.subscription.recovered"
  | "hookwell.subscription.disabled"
  | "hookwell.delivery.failed"
  | "hookwell.event.parked";

/** Failed deliveries of a lane are told at most once in this time, with their count. */
export const reportEveryMs = 60_000;

/** True for deliveries and events that nothing operational is said about. */
export function isOperational(type: string): boolean {
  return type.startsWith("hookwell.");
}

/**
 * An operational event as it is captured, in the transaction of what it tells. The id follows from type, subject
 * and time, so that every store makes the same.
 *
 * @param about id of the subscription or event it is about
 */
export function operationalInput(
  projectId: string,
  type: OperationalType,
  about: string,
  data: Readonly<Record<string, string | number>>,
  now: number,
): CaptureInput {
  const digest = hash("sha256", `${type}\u001f${about}\u001f${now}`, "hex");
  return {
    projectId,
    id: `evt_${digest.slice(0, 32)}`,
    type,
    occurredAt: new Date(now),
    data: JSON.stringify(data),
    route: "*",
    contentHash: "operational",
  };
}

/** The event that tells of a subscription that somebody disabled. */
export function disabledByHandInput(projectId: string, subscriptionId: string, now: number): CaptureInput {
  const data = { subscription_id: subscriptionId, reason: "by_hand" };
  return operationalInput(projectId, "hookwell.subscription.disabled", subscriptionId, data, now);
}

/** The event that tells of a parked one. */
export function parkedInput(
  { projectId, id }: EventKey,
  type: string,
  error: string,
  now: number,
): CaptureInput {
  const data = { event_id: id, event_type: type, error };
  return operationalInput(projectId, "hookwell.event.parked", id, data, now);
}
