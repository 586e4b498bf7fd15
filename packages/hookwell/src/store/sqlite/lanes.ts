import type { Program, Statement } from "../../adapters/seam.ts";
import { statement } from "./rows.ts";

/** `lane.held` that follows from a subscription `s` (none = a lane without a subscription). */
const heldBySubscription = `CASE
    WHEN s.status = 'deleted' OR (s.status = 'disabled' AND s.status_reason = 'gone') THEN 2
    WHEN s.status IN ('paused', 'disabled') THEN 1
    ELSE 0 END`;

/**
 * Says that each of these lanes may have due rows. Under Retry-After it is looked at again when that ends.
 * Parameters: now, subscription ids (JSON), now, now.
 */
const wakeText = `
INSERT INTO hookwell_lane (subscription_id, ready, held, next_due)
SELECT j.value, 1, ${heldBySubscription}, NULL
FROM json_each(?) j LEFT JOIN hookwell_subscription s ON s.id = j.value
WHERE true
ON CONFLICT (subscription_id) DO UPDATE SET
  ready = coalesce(hold_until, 0) <= CAST(? AS INTEGER),
  next_due = CASE WHEN coalesce(hold_until, 0) > CAST(? AS INTEGER) THEN hold_until END`;

export function wakeLanes(subscriptionIds: Iterable<string>, now: number): Statement {
  return statement(wakeText, JSON.stringify([...subscriptionIds]), now, now);
}

// A lane that is ready needs no hint: the claim that finds nothing in it reads the next due time itself.
const dueText = `
UPDATE hookwell_lane
SET next_due = max(coalesce(hold_until, 0), min(coalesce(next_due, CAST(? AS INTEGER)), CAST(? AS INTEGER)))
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

/** After a change of the subscription's status: holds the lane, or lets it go and has it looked at. */
export function* followStatus(subscriptionId: string, now: number): Program<void> {
  yield wakeLanes([subscriptionId], now);
  yield statement(statusText, subscriptionId);
}
