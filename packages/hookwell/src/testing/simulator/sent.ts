import { paymentDelays } from "./application.ts";
import { deliveryOf, type Evidence, eventOf, numberOf } from "./evidence.ts";
import type { Attempt } from "./network.ts";

/** A lease, and the time a claim needs to follow its end. */
const recoveryMs = 36_000;
/** Longest time between claim and send. */
const claimedBeforeMs = 16_000;
/** An outcome is recorded this soon when nothing is wrong. */
const recordedWithinMs = 1_000;
/** A due delivery of a healthy receiver is sent this soon when nothing is wrong. */
const sentWithinMs = 5_000;

/** Promise 4. */
export function uniqueness(evidence: Evidence): void {
  for (const [eventId, attempts] of evidence.byEvent)
    for (const [receiver, own] of Map.groupBy(attempts, (attempt) => attempt.receiver.name)) {
      const ids = new Set(own.map(deliveryOf));
      evidence.hold(
        "4 one pair, one delivery",
        ids.size === 1,
        () => `${receiver} got ${eventId} as ${[...ids].join(" and ")}`,
      );
    }
}

/** No attempt without a reason, and none too early: each is held against the one before it. */
export function restraint(evidence: Evidence): void {
  for (const [deliveryId, attempts] of evidence.byDelivery) {
    let replayed = 0;
    for (let at = 1; at < attempts.length; at++) {
      const before = attempts[at - 1]!;
      const next = attempts[at]!;
      if (evidence.retriedByHand(deliveryId, before.begunAt, next.begunAt)) continue;
      const { promise, wrong } = reasonFor(evidence, before, next);
      // Each replay opens one new round of a delivery at most.
      if (wrong !== undefined && replayed < evidence.replaysBefore(next)) replayed++;
      else
        evidence.hold(
          promise,
          wrong === undefined,
          () => `${deliveryId} was sent again at ${evidence.at(next)} ${wrong}`,
        );
    }
  }
  // An answer that nobody followed up is what usually happens: that is exercised too.
  evidence.world.journal.count("promise", alone, evidence.byDelivery.size);
}

const alone = "4 no attempt beside another or after an answer";
const patient = "5 a failing receiver is left alone until its next attempt";

/** Which promise an attempt after another one touches, and what is wrong with it. */
function reasonFor(
  evidence: Evidence,
  before: Attempt,
  next: Attempt,
): { readonly promise: typeof alone | typeof patient; readonly wrong?: string } {
  const { end, begunAt, process } = before;
  const claimedAt = begunAt - claimedBeforeMs;
  if (!end || end.at > next.begunAt) {
    if (evidence.troubled(process, claimedAt, next.begunAt)) return { promise: alone };
    return { promise: alone, wrong: `while the attempt of ${evidence.at(before)} was under way` };
  }
  // What happened to the process after the answer may have kept it from recording that.
  if (evidence.troubled(process, claimedAt, end.at + recordedWithinMs)) return { promise: alone };
  if (typeof end.result === "number" && end.result < 300)
    return {
      promise: alone,
      wrong: `although the attempt of ${evidence.at(before)} had been answered ${end.result}`,
    };
  const [waited, least] = [next.begunAt - end.at, leastDelay(evidence, before)];
  if (waited >= least) return { promise: patient };
  return { promise: patient, wrong: `${waited} ms after it had failed, not after ${least} ms or more` };
}

/** The delay after that failed attempt; Infinity when it was the last. */
function leastDelay(evidence: Evidence, attempt: Attempt): number {
  const { headers } = attempt;
  const number = numberOf(attempt);
  if (headers.get("x-hookwell-event") === "payment.made")
    return paymentDelays[number - 1] ?? Number.POSITIVE_INFINITY;
  const { delays, jitter = 0 } = evidence.world.climate.retry;
  return Math.floor((delays[number - 1] ?? Number.POSITIVE_INFINITY) * (1 - jitter));
}

/** Promise 5. */
export function promptness(evidence: Evidence): void {
  const witness = evidence.world.subscribers[0]!;
  const calls = evidence.world.replicas.flatMap(({ lives }) => lives.flatMap(({ troubles }) => troubles));
  for (const { eventId, committedAt } of evidence.committed.values()) {
    const until = committedAt + sentWithinMs;
    if (calls.some((trouble) => trouble.from <= until && trouble.until + recoveryMs >= committedAt)) continue;
    const [first] = evidence.of(eventId, witness);
    evidence.hold(
      "5 a healthy receiver waits for nobody",
      first !== undefined && first.begunAt <= until,
      () =>
        `${eventId} was sent to a healthy receiver ${first ? `${first.begunAt - committedAt} ms after its commit` : "never"}`,
    );
  }
}

export function limits(evidence: Evidence): void {
  for (const { receiver, maxInFlight } of evidence.world.subscribers) {
    if (maxInFlight === undefined) continue;
    const own = evidence.world.network.attempts.filter((attempt) => attempt.receiver === receiver);
    for (const [index, { begunAt }] of own.entries()) {
      const open =
        own.slice(0, index).filter(({ overAt }) => (overAt ?? Number.POSITIVE_INFINITY) > begunAt).length + 1;
      evidence.hold(
        "5 no more at once than asked for",
        open <= maxInFlight,
        () => `${receiver.name} had ${open} requests at once and asked for ${maxInFlight}`,
      );
    }
  }
}

export function order(evidence: Evidence): void {
  for (const { receiver, ordered } of evidence.world.subscribers) {
    if (!ordered) continue;
    const highest = new Map<string, number>();
    for (const attempt of evidence.world.network.attempts) {
      const change = evidence.committed.get(eventOf(attempt));
      if (
        attempt.receiver !== receiver ||
        change?.subject === undefined ||
        evidence.world.byHand.has(deliveryOf(attempt))
      )
        continue;
      const { subject, revision = 0 } = change;
      const seen = highest.get(subject) ?? 0;
      evidence.hold(
        "order within a subject",
        revision >= seen,
        () =>
          `${receiver.name} got revision ${revision} of ${subject} after ${seen}, at ${evidence.at(attempt)}`,
      );
      highest.set(subject, Math.max(seen, revision));
    }
  }
}
