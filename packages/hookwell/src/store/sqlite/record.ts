import { runProgramSync } from "../../adapters/seam.ts";
import type { Exchange, Outcome } from "../../model/delivery.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { DeliveryStatus, DisabledReason } from "../../model/states.ts";
import type { RecordResult } from "../contract.ts";
import { LaneBatch } from "../lane-news.ts";
import { freesPlace, type LaneState, laneOutcome } from "../lane-state.ts";
import { countsOf, Tally } from "../minute-counts.ts";
import { isOperational, operationalInput } from "../operational.ts";
import { dueTime } from "../ordering.ts";
import { storable } from "../storable.ts";
import { captureProgram } from "./capture.ts";
import type { Connection, SqliteValue } from "./connection.ts";
import { readLane, writeLane } from "./lane-rows.ts";
import { followStatus, laneDue, restsUntil, wakeLanes } from "./lanes.ts";
import { countMinute } from "./minute-counts.ts";
import { behindReplayed, settleOrder } from "./ordering.ts";
import { integer, optionalText, text } from "./rows.ts";

const claimed = "WHERE id = ? AND status = 'pending' AND lease_token = ?";
const answer =
  "RETURNING id, event_id, project_id, subscription_id, type, status, attempts, round, due_at, error_code, order_key";
const free = "lease_token = NULL, lease_until = NULL, updated_at = ?";

const deliveredText = `
UPDATE hookwell_delivery SET status = 'delivered', ${free}, delivered_at = ?, last_started_at = ?,
  last_duration_ms = ?, last_status_code = ?
${claimed} RETURNING project_id, subscription_id, 'delivered' AS status, attempts, order_key`;

const releasedText = `
UPDATE hookwell_delivery SET ${free}, attempts = attempts - 1, due_at = next_attempt_at + ${behindReplayed}
${claimed} ${answer}`;

const retryText = `
UPDATE hookwell_delivery SET ${free}, error_code = coalesce(?, error_code), last_error = coalesce(?, last_error),
  next_attempt_at = ?, due_at = CAST(? AS INTEGER) + ${behindReplayed}
${claimed} ${answer}`;

const failedText = `
UPDATE hookwell_delivery SET status = 'failed', ${free}, error_code = coalesce(?, error_code),
  last_error = coalesce(?, last_error), reason = ?, attempts = attempts - ?
${claimed} ${answer}`;

const attemptText = `
INSERT INTO hookwell_attempt (delivery_id, round, number, started_at, duration_ms, status_code, error_code,
  error, response_excerpt)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (delivery_id, round, number) DO UPDATE SET started_at = excluded.started_at,
  duration_ms = excluded.duration_ms, status_code = excluded.status_code, error_code = excluded.error_code,
  error = excluded.error, response_excerpt = excluded.response_excerpt`;

const disableText = `
UPDATE hookwell_subscription
SET status = 'disabled', status_reason = ?, updated_at = ?, status_changed_at = ?
WHERE id = ? AND status IN ('active', 'paused')
RETURNING id`;

const laneHoldText = `
UPDATE hookwell_lane SET ready = 0, hold_until = max(coalesce(hold_until, 0), ?),
  next_due = max(${restsUntil}, ?)
WHERE subscription_id = ?`;

const currentText = `SELECT id FROM hookwell_delivery ${claimed}`;

/** What was recorded, and what cannot be: ids of outcomes with a time or a number that is none. */
interface BatchResult extends RecordResult {
  readonly bad: readonly string[];
}

/** Inside a write: records each outcome whose token is current. */
export function recordOutcomes(
  connection: Connection,
  outcomes: readonly Outcome[],
  now: number,
  policy: LanePolicy,
): BatchResult {
  const recorded: RecordResult["recorded"][number][] = [];
  const stale: string[] = [];
  const bad: string[] = [];
  const woken = new Set<string>();
  const finished: string[] = [];
  const batches = new Map<string, LaneBatch>();
  const tally = new Tally();
  for (const outcome of outcomes) {
    if (!hasNumbers(outcome)) {
      const { id, leaseToken } = outcome;
      (connection.all(currentText, [id, leaseToken]).length > 0 ? bad : stale).push(id);
      continue;
    }
    const row = applyOutcome(connection, outcome, now);
    if (!row) {
      stale.push(outcome.id);
      continue;
    }
    const lane = text(row.subscription_id);
    const status = text(row.status) as DeliveryStatus;
    recorded.push({ id: outcome.id, status, attempts: integer(row.attempts) });
    tally.add(text(row.project_id), countsOf(outcome));
    const batch = batches.get(lane) ?? new LaneBatch();
    batches.set(lane, batch);
    batch.outcomes.push(laneOutcome(outcome));
    if (status === "failed" && !isOperational(text(row.type)))
      batch.failed.push({
        deliveryId: outcome.id,
        eventId: text(row.event_id),
        type: text(row.type),
        errorCode: optionalText(row.error_code) ?? "",
      });
    if (status !== "pending" && row.order_key !== null) finished.push(outcome.id);
    if (outcome.kind === "released") woken.add(lane);
    else if (outcome.kind === "gone") batch.gone ||= disable(connection, lane, "gone", now);
    else if ("holdLaneMs" in outcome && outcome.holdLaneMs !== undefined) {
      const until = now + Math.round(outcome.holdLaneMs);
      connection.all(laneHoldText, [until, until, lane]);
    } else if (outcome.kind === "retry") connection.run(laneDue(lane, dueTime(integer(row.due_at))));
  }
  let readied = false;
  for (const id of finished) if (runProgramSync(settleOrder(id, now), connection.run)) readied = true;
  const changed = changeLanes(connection, batches, policy, now);
  const { lanes } = changed;
  readied ||= changed.freed;
  if (woken.size > 0) connection.run(wakeLanes(woken, now));
  countMinute(connection, tally, now);
  return { recorded, stale, bad, lanes, ...(readied && { readied }) };
}

const ownerText = "SELECT project_id, status FROM hookwell_subscription WHERE id = ?";

/** What the outcomes mean for their lanes. A lane that is well, and got no failure, is only read. */
function changeLanes(
  connection: Connection,
  batches: ReadonlyMap<string, LaneBatch>,
  policy: LanePolicy,
  now: number,
): { readonly lanes: RecordResult["lanes"]; readonly freed: boolean } {
  let freed = false;
  const lanes: RecordResult["lanes"][number][] = [];
  for (const subscriptionId of [...batches.keys()].sort()) {
    const batch = batches.get(subscriptionId)!;
    const before = readLane(connection, subscriptionId);
    if (!before || batch.leaves(before.state)) continue;
    const [owner] = connection.all(ownerText, [subscriptionId]);
    const active = owner?.status === "active";
    const { lane, changes, news } = batch.apply(
      before.state,
      before.limits,
      policy,
      active,
      subscriptionId,
      now,
    );
    if (!sameLane(lane, before.state)) writeLane(connection, subscriptionId, lane, now);
    freed ||= freesPlace(before.state, lane);
    if (changes.includes("disabled")) disable(connection, subscriptionId, "failing", now);
    for (const change of changes) lanes.push({ subscriptionId, change });
    if (!owner || news.length === 0) continue;
    const projectId = text(owner.project_id);
    const events = news.map(([type, data]) => operationalInput(projectId, type, subscriptionId, data, now));
    runProgramSync(captureProgram(events, now), connection.run);
  }
  return { lanes, freed };
}

/** Without a policy most failures leave a lane as it is. */
function sameLane(a: LaneState, b: LaneState): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

/** SQLite would take some of them for NULL. */
function hasNumbers(outcome: Outcome): boolean {
  const numbers: (number | undefined)[] = [];
  if (outcome.kind === "retry") numbers.push(outcome.delayMs);
  if ("holdLaneMs" in outcome) numbers.push(outcome.holdLaneMs);
  const exchange = "exchange" in outcome ? outcome.exchange : undefined;
  if (exchange) numbers.push(exchange.durationMs, exchange.statusCode, exchange.startedAt.getTime());
  return numbers.every((number) => number === undefined || Number.isFinite(number));
}

function applyOutcome(
  connection: Connection,
  outcome: Outcome,
  now: number,
): Record<string, unknown> | undefined {
  const { id, leaseToken } = outcome;
  const run = (sql: string, ...params: SqliteValue[]): Record<string, unknown> | undefined =>
    connection.all(sql, [now, ...params, id, leaseToken])[0];
  switch (outcome.kind) {
    case "delivered": {
      const { startedAt, durationMs, statusCode } = outcome.exchange;
      return run(deliveredText, now, startedAt.getTime(), Math.round(durationMs), statusCode ?? null);
    }
    case "released":
      return run(releasedText);
    case "retry": {
      const due = now + Math.round(outcome.delayMs);
      const row = run(retryText, ...errorOf(outcome.exchange), due, due);
      return row && log(connection, id, row, outcome.exchange);
    }
    case "gone": {
      const row = run(failedText, ...errorOf(outcome.exchange), "gone", 0);
      return row && log(connection, id, row, outcome.exchange);
    }
    case "failed": {
      const { exchange, errorCode, error, reason } = outcome;
      const row = run(failedText, storable(errorCode), storable(error), storable(reason), exchange ? 0 : 1);
      return row && exchange ? log(connection, id, row, exchange) : row;
    }
  }
}

function log<Row extends Record<string, unknown>>(
  connection: Connection,
  id: string,
  row: Row,
  exchange: Exchange,
): Row {
  connection.all(attemptText, [
    id,
    integer(row.round),
    integer(row.attempts),
    exchange.startedAt.getTime(),
    Math.round(exchange.durationMs),
    exchange.statusCode ?? null,
    ...errorOf(exchange),
    storableOrNull(exchange.excerpt),
  ]);
  return row;
}

function errorOf(exchange: Exchange): [string | null, string | null] {
  return [storableOrNull(exchange.errorCode), storableOrNull(exchange.error)];
}

function storableOrNull(value: string | undefined): string | null {
  return value === undefined ? null : storable(value);
}

/** Nothing else is sent there. False when the subscription was off already. */
function disable(
  connection: Connection,
  subscriptionId: string,
  reason: DisabledReason,
  now: number,
): boolean {
  if (connection.all(disableText, [reason, now, now, subscriptionId]).length === 0) return false;
  runProgramSync(followStatus(subscriptionId, now), connection.run);
  return true;
}
