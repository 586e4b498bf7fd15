import type { Program, Statement } from "../../adapters/seam.ts";
import { statement } from "./rows.ts";

/** `lane.held` that follows from a subscription `s` (none = a lane without a subscription). */
export const heldBySubscription = `CASE
    WHEN s.status = 'deleted' OR (s.status = 'disabled' AND s.status_reason = 'gone') THEN 2
    WHEN s.status IN ('paused', 'disabled') THEN 1
    ELSE 0 END`;

/** A lane sends nothing before this: Retry-After, or a policy of the lane. */
export const restsUntil = "max(coalesce(hold_until, 0), coalesce(blocked_until, 0))";

/**
 * Says that each of these lanes may have due rows. Under Retry-After it is looked at again when that ends.
 * Parameters: now, subscription ids (JSON), now, now.
 */
const wakeText = `
INSERT INTO hookwell_lane (subscription_id, ready, held, next_due, rate_limit, max_in_flight)
SELECT j.value, 1, ${heldBySubscription}, NULL, s.rate_limit, s.max_in_flight
FROM json_each(?) j LEFT JOIN hookwell_subscription s ON s.id = j.value
WHERE true
ON CONFLICT (subscription_id) DO UPDATE SET
  ready = ${restsUntil} <= CAST(? AS INTEGER),
  next_due = CASE WHEN ${restsUntil} > CAST(? AS INTEGER) THEN ${restsUntil} END`;

export function wakeLanes(subscriptionIds: Iterable<string>, now: number): Statement {
  return statement(wakeText, JSON.stringify([...subscriptionIds]), now, now);
}

// A lane that is ready needs no hint: the claim that finds nothing in it reads the next due time itself.
const dueText = `
UPDATE hookwell_lane
SET next_due = max(${restsUntil}, min(coalesce(next_due, CAST(? AS INTEGER)), CAST(? AS INTEGER)))
WHERE subscription_id = ? AND ready = 0`;

/** Says that the lane has a row due at `dueAt`. */
export function laneDue(subscriptionId: string, dueAt: number): Statement {
  return statement(dueText, dueAt, dueAt, subscriptionId);
}

// A gone subscription's rows are to be cancelled also when they came after it went.
const statusText = `
UPDATE hookwell_lane AS l
SET held = (SELECT ${heldBySubscription} FROM hookwell_subscription s WHERE s.id = l.subscription_id)
WHERE subscription_id = ?`;

// The state of a lane is changed by a status only when it becomes active.
const pausedText = `
UPDATE hookwell_lane SET failing_since = failing_since + CAST(? AS INTEGER) WHERE subscription_id = ?`;
const forgiveText = `
UPDATE hookwell_lane SET failures = 0, failing_since = NULL, breaks = 0, opened_at = NULL, probe_step = NULL,
  probe_at = NULL, probe_id = NULL, blocked_until = 0
WHERE subscription_id = ?`;
const limitsText = `
UPDATE hookwell_lane SET rate_limit = ?, max_in_flight = CAST(? AS INTEGER), rate_tat = 0,
  blocked_until = coalesce(probe_at, 0)
WHERE subscription_id = ?`;

/** The time that its subscription was paused does not count towards its disabling. */
export function afterPause(subscriptionId: string, pausedMs: number): Statement {
  return statement(pausedText, pausedMs, subscriptionId);
}

/** Nothing is known of the receiver: its subscription was enabled, or has another url. */
export function* forgive(subscriptionId: string, now: number): Program<void> {
  yield statement(forgiveText, subscriptionId);
  yield wakeLanes([subscriptionId], now);
}

/** The limits of the subscription begin anew. */
export function* newLimits(
  subscriptionId: string,
  rateLimit: string | null,
  maxInFlight: number | null,
  now: number,
): Program<void> {
  yield statement(limitsText, rateLimit, maxInFlight, subscriptionId);
  yield wakeLanes([subscriptionId], now);
}

/** After a change of the subscription's status: holds the lane, or lets it go and has it looked at. */
export function* followStatus(subscriptionId: string, now: number): Program<void> {
  yield wakeLanes([subscriptionId], now);
  yield statement(statusText, subscriptionId);
}
