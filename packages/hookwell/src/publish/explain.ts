import type { EventOutcome, EventRecord } from "../model/event.ts";
import { type MismatchRule, matchableOf, mismatch } from "../model/matching.ts";
import type { SubscriptionRecord } from "../model/subscription.ts";
import type { DeliveryOfEvent } from "../store/explain-contract.ts";

/**
 * Why an event has no delivery to a subscription: the first rule of matching that kept it off, or
 * `created_after` (the subscription is younger than the dispatch), `changed_after` (it matches as it is now, and was
 * changed since the dispatch), `pruned` (its delivery is no longer kept).
 */
export type ExplainRule = Exclude<MismatchRule, "project"> | "created_after" | "changed_after" | "pruned";

/** What one event is to one subscription. */
export interface Explanation {
  readonly subscriptionId: string;
  /** It has a delivery, or gets one when it is dispatched. */
  readonly matched: boolean;
  /** Set where it did not match. */
  readonly rule?: ExplainRule;
  /** A sentence for people, with the values that decided. */
  readonly detail: string;
  readonly delivery?: Pick<DeliveryOfEvent, "id" | "status">;
}

type Event = EventRecord & { readonly outcome: EventOutcome };

/** The subscription is looked at as it is now; what is known of then are its times and its delivery. */
export function explain(
  event: Event,
  subscription: SubscriptionRecord,
  delivery: DeliveryOfEvent | undefined,
): Explanation {
  const subscriptionId = subscription.id;
  const rule = mismatch(matchableOf(event), subscription);
  const kept = rule === undefined || rule === "project" ? undefined : rule;
  if (delivery) {
    const since = kept ? ` It would not match any more: ${reason[kept](event, subscription)}` : "";
    const { id, status } = delivery;
    return { subscriptionId, matched: true, detail: `It was queued.${since}`, delivery: { id, status } };
  }
  const no = (why: ExplainRule, detail: string): Explanation => ({
    subscriptionId,
    matched: false,
    rule: why,
    detail,
  });
  if (kept) return no(kept, reason[kept](event, subscription));
  if (event.state !== "dispatched") return { subscriptionId, matched: true, detail: waiting(event) };
  // With fan-out `emit` it is capture that matches.
  const at = (event.fannedOut ? undefined : event.dispatchedAt) ?? event.capturedAt;
  const when = at.toISOString();
  if (subscription.createdAt > at)
    return no(
      "created_after",
      `It was created at ${subscription.createdAt.toISOString()}, after the event was dispatched at ${when}.`,
    );
  if (subscription.updatedAt > at)
    return no(
      "changed_after",
      `It matches as it is now, and was changed at ${subscription.updatedAt.toISOString()}, after the event was dispatched at ${when}.`,
    );
  return no("pruned", `It matches and was not changed since ${when}; the delivery is no longer kept.`);
}

function waiting({ state, tries, error }: Event): string {
  const why = error === undefined ? "" : ` (${error})`;
  if (state === "parked") return `It matches; the event is parked and was not dispatched${why}.`;
  return tries > 0
    ? `It matches; the event waits for another try of its dispatch${why}.`
    : "It matches; the event waits for its dispatch.";
}

type Reason = (event: Event, subscription: SubscriptionRecord) => string;

const reason: Readonly<Record<Exclude<MismatchRule, "project">, Reason>> = {
  type: ({ type }, { eventTypes }) =>
    eventTypes.length === 0
      ? `It takes every type but those of Hookwell; ${type} needs an entry that begins with hookwell.`
      : `Its event types (${eventTypes.join(", ")}) do not cover ${type}.`,
  operational: () => "Events of hookwell.* go only to subscriptions without a tenant and an owner.",
  tenant: ({ tenantId }, subscription) =>
    `It is for the tenant ${subscription.tenantId}, and the event is of the tenant ${tenantId}.`,
  owner: ({ audience }, { ownerId }) => {
    if (!audience) return `It is the owner ${ownerId}'s, and the event has no audience.`;
    return ownerId === undefined
      ? "The event has an audience, and the subscription has no owner."
      : `Its owner ${ownerId} is not in the audience of the event.`;
  },
  status: (_event, { status, statusReason }) =>
    `It is ${status}${statusReason ? ` (${statusReason})` : ""}: events are not queued for it.`,
};
