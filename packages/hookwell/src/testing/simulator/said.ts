import type { Committed } from "./application.ts";
import { type Evidence, eventOf, isOperational, signatureOf } from "./evidence.ts";
import type { Attempt } from "./network.ts";

/** Promise 1: nothing is sent of what was not committed, and not before it was. */
export function existence(evidence: Evidence): void {
  for (const [eventId, [first]] of evidence.byEvent) {
    if (isOperational(first!)) continue;
    const change = evidence.committed.get(eventId);
    evidence.hold(
      "1 an event exists if, and only if, its change was committed",
      change !== undefined && first!.begunAt >= change.committedAt,
      () =>
        `${eventId} was sent ${change ? "before its change was committed" : "and no such change was ever committed"}`,
    );
  }
}

/** Promises 2 and 3. */
export function contents(evidence: Evidence): void {
  for (const [deliveryId, attempts] of evidence.byDelivery) {
    const [first, ...others] = attempts as [Attempt, ...Attempt[]];
    for (const other of others) {
      const same = other.body.equals(first.body) && eventOf(other) === eventOf(first);
      evidence.hold(
        "3 same bytes, event id, delivery id on every attempt",
        same && (first.receiver.hasRotated || signatureOf(other) === signatureOf(first)),
        () => `${deliveryId} first said ${first.body} and then ${other.body}`,
      );
    }
    const change = evidence.committed.get(eventOf(first));
    if (change)
      evidence.hold(
        "2 it says what was true at the transition",
        says(first, change),
        () => `${eventOf(first)} says ${first.body} of ${JSON.stringify(change)}`,
      );
  }
}

export function signatures(evidence: Evidence): void {
  for (const { receiver, key } of evidence.world.subscribers) {
    const count = evidence.world.network.attempts.filter(
      (attempt) => attempt.receiver === receiver && attempt.arrivedAt !== undefined,
    ).length;
    evidence.world.journal.count("promise", "3 every signature verifies", count);
    for (const forged of receiver.forged)
      evidence.broken("3 every signature verifies", `${key} got ${forged}`);
  }
}

/** True when the body is the default envelope of exactly this change. */
function says({ body, headers }: Attempt, change: Committed): boolean {
  const { type, subject, revision, data } = change;
  const { timestamp, ...said } = JSON.parse(body.toString()) as { timestamp: string };
  const at = Date.parse(timestamp);
  const wanted = {
    id: change.eventId,
    type,
    ...(subject && { subject }),
    ...(revision !== undefined && { revision }),
    data,
  };
  return (
    headers.get("x-hookwell-event") === type &&
    JSON.stringify(said) === JSON.stringify(wanted) &&
    at >= change.begunAt &&
    at <= change.committedAt
  );
}
