import type { Row } from "../../adapters/seam.ts";
import type { SubscriptionStatus } from "../../model/states.ts";
import { type LaneFacts, lanesInTrouble } from "../lane-trouble.ts";
import { everyProject, minuteMs, minuteOf, minutesShown } from "../minute-counts.ts";
import { type Counted, mostCounted, type StoreStats } from "../stats-contract.ts";
import type { Connection } from "./connection.ts";
import { firstUnheldSql } from "./holds.ts";
import { restsUntil } from "./lanes.ts";
import { integer, optionalDate, optionalInteger, present, text } from "./rows.ts";
import { oldestNewText } from "./upkeep.ts";

/** Lanes of each kind that are looked at when no project is asked for. */
const mostLanes = 1_000;

const minutesText = `
WITH RECURSIVE m (minute) AS (SELECT CAST(? AS INTEGER) UNION ALL SELECT minute + 1 FROM m WHERE minute < ?)
SELECT c.* FROM m CROSS JOIN hookwell_minute_count c ON c.minute = m.minute AND c.project_id = ?`;

const pendingText = `
SELECT count(*) AS count FROM (
  SELECT 1 FROM hookwell_delivery INDEXED BY hookwell_delivery_pending WHERE status = 'pending' LIMIT ${mostCounted + 1})`;
const newText = `
SELECT count(*) AS count FROM (
  SELECT 1 FROM hookwell_event INDEXED BY hookwell_event_new WHERE state = 'new' LIMIT ${mostCounted + 1})`;

const runnable = `
SELECT * FROM (SELECT subscription_id, ${restsUntil} AS rests_until
  FROM hookwell_lane INDEXED BY hookwell_lane_ready WHERE ready = 1 AND held = 0 LIMIT ${mostCounted})
UNION ALL
SELECT * FROM (SELECT subscription_id, ${restsUntil} AS rests_until
  FROM hookwell_lane INDEXED BY hookwell_lane_waiting WHERE ready = 0 AND held = 0 AND next_due <= ?
  ORDER BY next_due LIMIT ${mostCounted})`;
/** Of lanes `r` with subscription_id and rests_until. Parameters: those of the lanes, now. */
const oldestDue = (lanes: string): string => `
SELECT min(max(due, rests_until)) AS oldest FROM (
  SELECT r.rests_until, ${firstUnheldSql("r.subscription_id")} AS due
  FROM (${lanes}) r WHERE r.rests_until <= ?)
WHERE due <= ?`;
const oldestDueText = oldestDue(runnable);

const laneColumns = `l.subscription_id, l.failures, l.failing_since, l.opened_at, l.rate_limit IS NOT NULL AS limited,
  CASE WHEN l.rate_limit IS NOT NULL THEN ${firstUnheldSql("l.subscription_id")} END AS oldest_due`;
const withSubscription = "CROSS JOIN hookwell_subscription s ON s.id = l.subscription_id";
const failingText = `
SELECT ${laneColumns}, s.project_id, s.status, s.status_changed_at
FROM hookwell_lane l INDEXED BY hookwell_lane_failing ${withSubscription}
WHERE l.failing_since IS NOT NULL AND l.held = 0 ORDER BY l.failing_since DESC LIMIT ${mostLanes}`;
const limitedText = `
SELECT ${laneColumns}, s.project_id, s.status, s.status_changed_at
FROM hookwell_lane l INDEXED BY hookwell_lane_limited ${withSubscription}
WHERE l.rate_limit IS NOT NULL AND l.held = 0 ORDER BY l.subscription_id LIMIT ${mostLanes}`;
const disabledText = `
SELECT s.id AS subscription_id, 0 AS failures, 0 AS limited, s.project_id, s.status, s.status_changed_at
FROM hookwell_subscription s INDEXED BY hookwell_subscription_off
WHERE s.status NOT IN ('active', 'paused') AND s.status = 'disabled'
ORDER BY s.status_changed_at DESC LIMIT ${mostLanes}`;

// Of one project: what belongs to its subscriptions, the first ten thousand.
const ofProject = `
SELECT s.id, s.project_id, s.status, s.status_changed_at
FROM hookwell_subscription s INDEXED BY hookwell_subscription_project
WHERE s.project_id = ? ORDER BY s.created_at, s.id LIMIT ${mostCounted + 1}`;
const subscriptionsText = `SELECT count(*) AS count FROM (${ofProject})`;
const projectPendingText = `
SELECT count(*) AS count FROM (
  SELECT 1 FROM (${ofProject}) p
  CROSS JOIN hookwell_delivery d INDEXED BY hookwell_delivery_pending ON d.subscription_id = p.id
  WHERE d.status = 'pending' LIMIT ${mostCounted + 1})`;
const projectNewText = `
SELECT count(*) AS looked, count(*) FILTER (WHERE project_id = ?) AS count,
  min(captured_at) FILTER (WHERE project_id = ?) AS oldest
FROM (
  SELECT project_id, captured_at FROM hookwell_event INDEXED BY hookwell_event_new WHERE state = 'new'
  LIMIT ${mostCounted + 1})`;
const projectDueText = oldestDue(`
SELECT l.subscription_id, ${restsUntil} AS rests_until FROM (${ofProject}) p
CROSS JOIN hookwell_lane l ON l.subscription_id = p.id
WHERE l.held = 0 AND (l.ready = 1 OR l.next_due <= ?)`);
const projectLanesText = `
SELECT ${laneColumns}, p.project_id, p.status, p.status_changed_at FROM (${ofProject}) p
CROSS JOIN hookwell_lane l ON l.subscription_id = p.id
WHERE l.failing_since IS NOT NULL OR (l.rate_limit IS NOT NULL AND l.held = 0)
UNION ALL
SELECT p.id, 0, NULL, NULL, 0, NULL, p.project_id, p.status, p.status_changed_at FROM (${ofProject}) p
WHERE p.status = 'disabled'`;

/** What happens, in a few short reads. */
export function readStats(connection: Connection, projectId: string | undefined, now: number): StoreStats {
  const minute = minuteOf(now);
  const minutes = connection.all(minutesText, [minute - minutesShown, minute, projectId ?? everyProject]);
  const backlog =
    projectId === undefined ? backlogOfAll(connection, now) : backlogOf(connection, projectId, now);
  return present<StoreStats>({
    at: new Date(now),
    minutes: minutes.map(toMinute).sort((a, b) => a.minute.getTime() - b.minute.getTime()),
    ...backlog,
  });
}

function backlogOfAll(connection: Connection, now: number): Omit<StoreStats, "at" | "minutes"> {
  const failing = connection.all(failingText);
  const limited = connection.all(limitedText);
  const disabled = connection.all(disabledText);
  const more = [failing, limited, disabled].some((rows) => rows.length === mostLanes);
  const facts = [...failing, ...limited, ...disabled].map(toFacts);
  return {
    pending: counted(connection.all(pendingText)[0]!, false),
    newEvents: counted(connection.all(newText)[0]!, false),
    ...oldest(connection.all(oldestDueText, [now, now, now])[0], connection.all(oldestNewText)[0]),
    lanes: lanesInTrouble(facts, more, now),
  };
}

function backlogOf(
  connection: Connection,
  projectId: string,
  now: number,
): Omit<StoreStats, "at" | "minutes"> {
  const more = integer(connection.all(subscriptionsText, [projectId])[0]!.count) > mostCounted;
  const events = connection.all(projectNewText, [projectId, projectId])[0]!;
  const facts = connection.all(projectLanesText, [projectId, projectId]).map(toFacts);
  return {
    pending: counted(connection.all(projectPendingText, [projectId])[0]!, more),
    newEvents: counted(events, integer(events.looked) > mostCounted),
    ...oldest(connection.all(projectDueText, [projectId, now, now, now])[0], events),
    lanes: lanesInTrouble(facts, more, now),
  };
}

function oldest(
  due: Row | undefined,
  event: Row | undefined,
): Pick<StoreStats, "oldestDueAt" | "oldestNewAt"> {
  return present({ oldestDueAt: optionalDate(due?.oldest), oldestNewAt: optionalDate(event?.oldest) });
}

function counted({ count }: Row, more: boolean): Counted {
  return { count: Math.min(integer(count), mostCounted), capped: more || integer(count) > mostCounted };
}

function toMinute(row: Row): StoreStats["minutes"][number] {
  return {
    minute: new Date(integer(row.minute) * minuteMs),
    dispatched: integer(row.dispatched),
    delivered: integer(row.delivered),
    failedAttempts: integer(row.failed_attempts),
    failed: integer(row.failed),
  };
}

function toFacts(row: Row): LaneFacts {
  return {
    subscriptionId: text(row.subscription_id),
    projectId: text(row.project_id),
    status: text(row.status) as SubscriptionStatus,
    statusChangedAt: integer(row.status_changed_at),
    failures: integer(row.failures),
    failingSince: optionalInteger(row.failing_since),
    openedAt: optionalInteger(row.opened_at),
    limited: integer(row.limited) === 1,
    oldestDueAt: optionalInteger(row.oldest_due),
  };
}
