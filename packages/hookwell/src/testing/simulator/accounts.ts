import type { DeliveryRecord } from "../../model/delivery.ts";
import { type Evidence, isAnswered } from "./evidence.ts";

/** What operators can see of deliveries that were given up. */
export interface Visible {
  readonly failed: readonly DeliveryRecord[];
  readonly cancelled: readonly DeliveryRecord[];
}

/** Each event, for each subscription: got, visible as given up, or not for it. */
export function accounts(evidence: Evidence, { failed, cancelled }: Visible): void {
  const { subscribers } = evidence.world;
  const listed = new Set([...failed, ...cancelled].map(pairOf));
  for (const change of evidence.committed.values()) {
    const { eventId, type, begunAt } = change;
    const seen = evidence.byEvent.get(eventId)?.[0]?.begunAt ?? Number.POSITIVE_INFINITY;
    for (const subscriber of subscribers) {
      if (subscriber.id === undefined) continue;
      const own = evidence.of(eventId, subscriber);
      // Who subscribes later gets what capture fanned out when the same is emitted again, and what a replay misses.
      const mayGetLater = type === "payment.made" || subscriber.replays.some(({ missing }) => missing);
      const until = mayGetLater && own.length > 0 ? own[0]!.begunAt : seen;
      const takes = subscriber.takes(type, begunAt, until);
      const pair = pairOf({ eventId, subscriptionId: subscriber.id });
      if (takes === "surely")
        evidence.hold(
          "6 what was not delivered is visible",
          own.some(isAnswered) || listed.has(pair),
          () => `${subscriber.key} never got ${eventId}, and no list shows it`,
        );
      if (own.length > 0)
        evidence.hold(
          "4 only what matches is sent",
          takes !== "no",
          () => `${subscriber.key} got ${eventId}, which it had not asked for`,
        );
    }
  }
  for (const row of cancelled)
    evidence.hold(
      "6 what was not delivered is visible",
      mayBeCancelled(evidence, row),
      () => `${row.id} was cancelled (${row.reason}) and nobody had asked for that`,
    );
}

function mayBeCancelled(evidence: Evidence, { id, subscriptionId, reason }: DeliveryRecord): boolean {
  const subscriber = evidence.world.subscribers.find((each) => each.id === subscriptionId);
  if (reason === "deleted") return subscriber?.deleted ?? true;
  if (reason === "gone")
    return evidence.world.network.attempts.some(
      ({ receiver, status }) => receiver === subscriber?.receiver && status === 410,
    );
  if (reason === "superseded") return subscriber?.ordered ?? false;
  return evidence.world.byHand.get(id)?.some(({ what }) => what === "cancel") ?? false;
}

export function reports(evidence: Evidence, { failed }: Visible): void {
  const { reported, byHand, subscribers } = evidence.world;
  for (const [deliveryId, count] of reported)
    evidence.hold(
      "6 an abandoned delivery is reported once",
      count <= evidence.rounds(deliveryId),
      () => `the failure hook was called ${count} times for ${deliveryId}`,
    );
  const told = new Map<string, number>();
  for (const [first] of evidence.byEvent.values()) {
    if (first?.headers.get("x-hookwell-event") !== "hookwell.delivery.failed") continue;
    const { subscription_id, count } = (
      JSON.parse(first.body.toString()) as { data: { subscription_id: string; count: number } }
    ).data;
    told.set(subscription_id, (told.get(subscription_id) ?? 0) + count);
  }
  for (const { id, key, receiver } of subscribers) {
    if (id === undefined) continue;
    const own = [...evidence.byDelivery]
      .filter(([, [first]]) => first!.receiver === receiver)
      .map(([deliveryId]) => deliveryId);
    const most = own.reduce((sum, deliveryId) => sum + evidence.rounds(deliveryId), 0);
    const count = told.get(id) ?? 0;
    const givenUp = failed.some((row) => row.subscriptionId === id && !byHand.has(row.id));
    evidence.hold(
      "6 an abandoned delivery is reported once",
      count <= most && (count > 0 || !givenUp),
      () =>
        `${count} deliveries of ${key} were told of as failed, and it had ${most} rounds${givenUp ? ", some of which failed" : ""}`,
    );
  }
}

function pairOf({
  eventId,
  subscriptionId,
}: {
  readonly eventId: string;
  readonly subscriptionId: string;
}): string {
  return `${eventId} ${subscriptionId}`;
}
