import type { AttemptRecord, Exchange, Outcome } from "../../model/delivery.ts";
import { NotFoundError } from "../../model/errors.ts";
import type { CaptureInput } from "../../model/event.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { RecordResult } from "../contract.ts";
import { LaneBatch } from "../lane-news.ts";
import { afterMark, freesPlace, isGuarded, laneOutcome } from "../lane-state.ts";
import { countsOf, countsOfMark, Tally } from "../minute-counts.ts";
import { isOperational, operationalInput } from "../operational.ts";
import { placeAt } from "../ordering.ts";
import { storable } from "../storable.ts";
import { settleOrder } from "./ordering.ts";
import { compareText, type DeliveryRow, type MemoryState } from "./state.ts";
import { setStatus } from "./subscriptions.ts";
import { defined } from "./view.ts";

/** Records what counts. An outcome that no store can keep is left out of both lists, and its row stays claimed. */
export function record(
  state: MemoryState,
  outcomes: readonly Outcome[],
  now: number,
  policy: LanePolicy,
  emit: (event: CaptureInput) => void,
): RecordResult {
  const recorded: RecordResult["recorded"][number][] = [];
  const stale: string[] = [];
  let readied = false;
  const batches = new Map<string, LaneBatch>();
  const tally = new Tally();
  for (const outcome of outcomes) {
    const row = state.pending.get(outcome.id);
    if (row?.lease === undefined || row.lease.token !== outcome.leaseToken) {
      stale.push(outcome.id);
      continue;
    }
    if (!isRecordable(outcome)) continue;
    const batch = batches.get(row.subscriptionId) ?? new LaneBatch();
    batches.set(row.subscriptionId, batch);
    if (outcome.kind === "gone" && isOn(state, row.subscriptionId)) batch.gone = true;
    const { id, status, attempts, eventId, type, errorCode = "" } = apply(state, row, outcome, now);
    recorded.push({ id, status, attempts });
    tally.add(row.projectId, countsOf(outcome));
    if (status !== "pending" && settleOrder(state, row, now)) readied = true;
    batch.outcomes.push(laneOutcome(outcome));
    if (status === "failed" && !isOperational(type))
      batch.failed.push({ deliveryId: id, eventId, type, errorCode });
  }
  state.countMinute(tally, now);
  const lanes: RecordResult["lanes"][number][] = [];
  for (const subscriptionId of [...batches.keys()].sort(compareText)) {
    const batch = batches.get(subscriptionId)!;
    const before = state.lane(subscriptionId);
    if (batch.leaves(before)) continue;
    const row = state.subscriptions.get(subscriptionId);
    const active = row?.record.status === "active";
    const limits = state.limits(subscriptionId);
    const { lane, changes, news } = batch.apply(before, limits, policy, active, subscriptionId, now);
    state.lanes.set(subscriptionId, lane);
    readied ||= freesPlace(before, lane);
    if (changes.includes("disabled")) setStatus(state, row!, "disabled", "failing", now);
    for (const change of changes) lanes.push({ subscriptionId, change });
    if (row)
      for (const [type, data] of news)
        emit(operationalInput(row.record.projectId, type, subscriptionId, data, now));
  }
  return { recorded, stale, lanes, ...(readied && { readied }) };
}

/** Active or paused. */
function isOn(state: MemoryState, subscriptionId: string): boolean {
  const status = state.subscriptions.get(subscriptionId)?.record.status;
  return status === "active" || status === "paused";
}

function isRecordable(outcome: Outcome): boolean {
  const numbers: (number | undefined)[] = [];
  if (outcome.kind === "retry") numbers.push(outcome.delayMs);
  if ("holdLaneMs" in outcome) numbers.push(outcome.holdLaneMs);
  const exchange = "exchange" in outcome ? outcome.exchange : undefined;
  if (exchange) numbers.push(exchange.durationMs, exchange.statusCode, exchange.startedAt.getTime());
  return numbers.every((number) => number === undefined || Number.isFinite(number));
}

function apply(state: MemoryState, row: DeliveryRow, outcome: Outcome, now: number): DeliveryRow {
  const next = endOfClaim(state, row, outcome, now);
  state.putDelivery(next);
  if ("holdLaneMs" in outcome && outcome.holdLaneMs !== undefined) {
    const until = now + Math.round(outcome.holdLaneMs);
    const lane = state.lane(row.subscriptionId);
    state.lanes.set(row.subscriptionId, { ...lane, holdUntil: Math.max(until, lane.holdUntil) });
  }
  if (outcome.kind === "gone") {
    const subscription = state.subscriptions.get(row.subscriptionId);
    const status = subscription?.record.status;
    if (status === "active" || status === "paused") setStatus(state, subscription!, "disabled", "gone", now);
  }
  return next;
}

function endOfClaim(state: MemoryState, row: DeliveryRow, outcome: Outcome, now: number): DeliveryRow {
  const free: DeliveryRow = defined({ ...row, lease: undefined, updatedAt: now });
  switch (outcome.kind) {
    case "delivered":
      return { ...free, status: "delivered", success: success(outcome.exchange), deliveredAt: now };
    case "released":
      return { ...free, attempts: row.attempts - 1, dueAt: placeAt(row.nextAttemptAt, row.replayId) };
    case "retry": {
      const nextAttemptAt = now + Math.round(outcome.delayMs);
      log(state, row, outcome.exchange);
      const dueAt = placeAt(nextAttemptAt, row.replayId);
      return { ...free, ...errorOf(outcome.exchange), nextAttemptAt, dueAt };
    }
    case "gone":
      log(state, row, outcome.exchange);
      return { ...free, ...errorOf(outcome.exchange), status: "failed", reason: "gone" };
    case "failed":
      if (outcome.exchange) log(state, row, outcome.exchange);
      return {
        ...free,
        status: "failed",
        reason: storable(outcome.reason),
        errorCode: storable(outcome.errorCode),
        lastError: storable(outcome.error),
        attempts: outcome.exchange ? row.attempts : row.attempts - 1,
      };
  }
}

function errorOf(exchange: Exchange): Pick<DeliveryRow, "errorCode" | "lastError"> {
  return {
    ...(exchange.errorCode === undefined ? {} : { errorCode: storable(exchange.errorCode) }),
    ...(exchange.error === undefined ? {} : { lastError: storable(exchange.error) }),
  };
}

/** An exchange as it is kept: texts storable, whole milliseconds. */
function stored(exchange: Exchange): Exchange {
  return defined<Exchange>({
    startedAt: new Date(exchange.startedAt),
    durationMs: Math.round(exchange.durationMs),
    statusCode: exchange.statusCode,
    errorCode: exchange.errorCode === undefined ? undefined : storable(exchange.errorCode),
    error: exchange.error === undefined ? undefined : storable(exchange.error),
    excerpt: exchange.excerpt === undefined ? undefined : storable(exchange.excerpt),
  });
}

/** What is kept of a success: no excerpt, so that it needs no row of its own. */
function success(exchange: Exchange): Exchange {
  const { startedAt, durationMs, statusCode } = stored(exchange);
  return defined<Exchange>({ startedAt, durationMs, statusCode });
}

function log(state: MemoryState, row: DeliveryRow, exchange: Exchange): void {
  appendAttempt(state, row.id, { ...stored(exchange), number: row.attempts, round: row.round });
}

export function appendAttempt(state: MemoryState, deliveryId: string, attempt: AttemptRecord): void {
  state.attempts.set(deliveryId, [...(state.attempts.get(deliveryId) ?? []), attempt]);
}

/**
 * A reference mark: true when it counted. A row that is final, or claimed with another token, is left alone.
 * Without a claim the send was made outside one, and `unclaimed` counts it.
 */
export function mark(
  state: MemoryState,
  id: string,
  leaseToken: string | undefined,
  change: (row: DeliveryRow) => DeliveryRow,
  now: number,
): boolean {
  const row = state.deliveries.get(id);
  if (!row) throw new NotFoundError("delivery", id);
  if (row.status !== "pending" || row.lease?.token !== leaseToken) return false;
  const changed = defined({ ...change(row), lease: undefined });
  const kind = changed.status === "pending" ? "retry" : (changed.status as "delivered" | "failed");
  const tally = new Tally();
  tally.add(row.projectId, countsOfMark(kind, changed.attempts > row.attempts - (row.lease ? 1 : 0)));
  state.countMinute(tally, now);
  state.putDelivery(changed);
  if (changed.status !== "pending") settleOrder(state, changed, now);
  const lane = state.lane(row.subscriptionId);
  const limits = state.limits(row.subscriptionId);
  if (isGuarded(lane, limits))
    state.lanes.set(row.subscriptionId, afterMark(lane, limits, id, changed.status === "delivered", now));
  return true;
}
