import type { Program } from "../../adapters/seam.ts";
import { behindLive, blockedAt, isRevised } from "../ordering.ts";
import { wakeLanes } from "./lanes.ts";
import { integer, optionalInteger, optionalText, statement, text } from "./rows.ts";

const blocked = String(blockedAt);

/** What a row's `due_at` has besides the time it waits for: a replayed one stands behind what is live. */
export const behindReplayed = `CASE WHEN replay_id IS NULL THEN 0 ELSE ${behindLive} END`;

const groupText =
  "SELECT subscription_id, order_key FROM hookwell_delivery INDEXED BY hookwell_delivery_id WHERE id = ?";
const markText = `
SELECT order_at FROM hookwell_delivery INDEXED BY hookwell_delivery_seen
WHERE subscription_id = ? AND order_key = ? AND order_key IS NOT NULL AND (attempts > 0 OR round > 1)
ORDER BY order_at DESC LIMIT 1`;
const supersedeText = `
UPDATE hookwell_delivery INDEXED BY hookwell_delivery_queue
SET status = 'cancelled', reason = 'superseded', updated_at = CAST(? AS INTEGER)
WHERE subscription_id = ? AND order_key = ? AND order_key IS NOT NULL AND status = 'pending'
  AND order_at < CAST(? AS INTEGER) AND attempts = 0 AND round = 1`;
const headText = `
SELECT id, attempts, round FROM hookwell_delivery INDEXED BY hookwell_delivery_head
WHERE subscription_id = ? AND order_key = ? AND order_key IS NOT NULL AND status = 'pending' AND due_at < ${blocked}
LIMIT 1`;
const firstText = `
SELECT id FROM hookwell_delivery INDEXED BY hookwell_delivery_queue
WHERE subscription_id = ? AND order_key = ? AND order_key IS NOT NULL AND status = 'pending'
ORDER BY order_at, id LIMIT 1`;
const blockText = `UPDATE hookwell_delivery SET due_at = ${blocked} WHERE id = ?`;
const freeText = `UPDATE hookwell_delivery SET due_at = next_attempt_at + ${behindReplayed} WHERE id = ?`;
const waitingText = `
SELECT id FROM hookwell_delivery INDEXED BY hookwell_delivery_queue
WHERE subscription_id = ? AND order_key IS NOT NULL AND status = 'pending' AND due_at = ${blocked}`;
const dropText = `
UPDATE hookwell_delivery INDEXED BY hookwell_delivery_queue
SET due_at = CASE due_at WHEN ${blocked} THEN next_attempt_at + ${behindReplayed} ELSE due_at END, order_key = NULL
WHERE subscription_id = ? AND order_key IS NOT NULL AND status = 'pending'`;

/** After any change in the group of this row: cancels what came too late, and lets the first one go. */
export function* settleOrder(id: string, now: number): Program<boolean> {
  const [row] = yield statement(groupText, id);
  const key = optionalText(row?.order_key);
  if (key === undefined) return false;
  const lane = text(row!.subscription_id);
  if (isRevised(key)) {
    const [mark] = yield statement(markText, lane, key);
    if (mark) yield statement(supersedeText, now, lane, key, integer(mark.order_at));
  }
  const [head] = yield statement(headText, lane, key);
  if (head && (integer(head.attempts) > 0 || integer(head.round) > 1)) return false;
  const [first] = yield statement(firstText, lane, key);
  if (!first || first.id === head?.id) return false;
  if (head) yield statement(blockText, text(head.id));
  yield statement(freeText, text(first.id));
  yield wakeLanes([lane], now);
  return true;
}

/** True when a higher revision of its subject may have been seen. */
export function* isSuperseded(
  lane: string,
  key: string | undefined,
  at: number | undefined,
): Program<boolean> {
  if (key === undefined || at === undefined || !isRevised(key)) return false;
  const [mark] = yield statement(markText, lane, key);
  return at < (optionalInteger(mark?.order_at) ?? Number.NEGATIVE_INFINITY);
}

/** After its subscription was enabled: rows that were cancelled or failed meanwhile may have been heads. */
export function* settleLane(lane: string, now: number): Program<void> {
  for (const row of yield statement(waitingText, lane)) yield* settleOrder(text(row.id), now);
}

/** After the subscription gave up its order: nothing waits for anything. */
export function* dropOrder(lane: string, now: number): Program<void> {
  yield statement(dropText, lane);
  yield wakeLanes([lane], now);
}
