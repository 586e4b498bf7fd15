import type { Lag } from "../contract.ts";
import { behindLive } from "../ordering.ts";
import type { Connection } from "./connection.ts";
import { activeHolds, coveredSql, firstUnheldSql } from "./holds.ts";
import { restsUntil } from "./lanes.ts";
import { integer, optionalInteger } from "./rows.ts";

// Runnable lanes: those a claim would look at, and those whose time has come.
const runnable = `
SELECT subscription_id, rests_until FROM (
  SELECT subscription_id, ${restsUntil} AS rests_until FROM hookwell_lane INDEXED BY hookwell_lane_ready
  WHERE ready = 1 AND held = 0
  UNION ALL
  SELECT subscription_id, ${restsUntil} AS rests_until FROM hookwell_lane INDEXED BY hookwell_lane_waiting
  WHERE ready = 0 AND held = 0 AND next_due <= ?)`;

const oldestDueText = `
SELECT min(max(due, rests_until)) AS oldest FROM (
  SELECT r.rests_until, ${firstUnheldSql("r.subscription_id")} AS due
  FROM (${runnable}) r)
WHERE due <= ?`;

// Routes one after the other by the index; in each the oldest never tried, and the oldest of the first of those
// that wait for another try.
export const oldestNewText = `
WITH RECURSIVE routes (route) AS (
  SELECT min(route) FROM hookwell_event INDEXED BY hookwell_event_new WHERE state = 'new'
  UNION ALL
  SELECT (SELECT min(e.route) FROM hookwell_event e INDEXED BY hookwell_event_new
    WHERE e.state = 'new' AND e.route > routes.route)
  FROM routes WHERE routes.route IS NOT NULL)
SELECT min(min(
  coalesce((SELECT e.captured_at FROM hookwell_event e INDEXED BY hookwell_event_new
    WHERE e.state = 'new' AND e.route = routes.route AND e.due_at = 0 ORDER BY e.seq LIMIT 1), 9e15),
  coalesce((SELECT min(captured_at) FROM (
    SELECT e.captured_at FROM hookwell_event e INDEXED BY hookwell_event_new
    WHERE e.state = 'new' AND e.route = routes.route AND e.due_at > 0 LIMIT 1000)), 9e15))) AS oldest
FROM routes WHERE route IS NOT NULL`;

export function lag(connection: Connection, now: number): Lag {
  const due = optionalInteger(connection.all(oldestDueText, [now, now])[0]?.oldest);
  const captured = optionalInteger(connection.all(oldestNewText)[0]?.oldest);
  return {
    at: new Date(now),
    ...(due !== undefined && { oldestDueAt: new Date(due) }),
    ...(captured !== undefined && { oldestNewAt: new Date(captured) }),
  };
}

const dueRows = (range: string): string => `
  SELECT 1 FROM (${runnable}) r
  CROSS JOIN hookwell_delivery d INDEXED BY hookwell_delivery_pending ON d.subscription_id = r.subscription_id
  WHERE d.status = 'pending' AND ${range}`;
// Live ones, then what replays queued.
const countText = (and: string): string => `
SELECT count(*) AS count FROM (${dueRows(`d.due_at <= ?${and}`)}
  UNION ALL ${dueRows(`d.due_at BETWEEN ${behindLive} AND ${behindLive} + CAST(? AS INTEGER)${and}`)}
  LIMIT CAST(? AS INTEGER))`;
const countPendingText = countText("");
// Held rows that no claim has set aside yet are passed over.
const countUnheldText = countText(` AND NOT ${coveredSql}`);
const countNewText = `
SELECT count(*) AS count FROM (
  SELECT 1 FROM hookwell_event INDEXED BY hookwell_event_new WHERE state = 'new' LIMIT CAST(? AS INTEGER))`;

export function countRemaining(
  connection: Connection,
  max: number,
  now: number,
): { readonly pending: number; readonly newEvents: number } {
  const pending = activeHolds(connection).length > 0 ? countUnheldText : countPendingText;
  return {
    pending: integer(connection.all(pending, [now, now, now, now, max])[0]!.count),
    newEvents: integer(connection.all(countNewText, [max])[0]!.count),
  };
}
