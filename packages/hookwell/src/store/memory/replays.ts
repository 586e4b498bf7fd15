import { DuplicateIdError, InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { DeliverySelection, ReplayRecord, ReplayWork } from "../../model/replay.ts";
import { canMove, type ReplayStatus, replayTransitions } from "../../model/states.ts";
import type { Page, PageOf, Visibility } from "../contract.ts";
import type {
  NewReplay,
  ReplayAdvance,
  ReplayFilter,
  ReplayLimits,
  WalkPosition,
  WindowCount,
} from "../replay-contract.ts";
import {
  endedBecause,
  finalStatuses,
  isSelectedEvent,
  isWanted,
  missingSince,
  nextPhase,
  takesEvents,
  walkStart,
} from "../replay-work.ts";
import { storable } from "../storable.ts";
import { isDeliveryVisible, reopened } from "./deliveries.ts";
import { isOnHost, pageOf } from "./lists.ts";
import { isSuperseded, settleOrder } from "./ordering.ts";
import {
  compareText,
  type DeliveryRow,
  type EventRow,
  eventKey,
  type MemoryState,
  missingKey,
  pairKey,
  type ReplayRow,
} from "./state.ts";
import { defined } from "./view.ts";

export function createReplay(state: MemoryState, replay: NewReplay, now: number): ReplayRecord {
  if (state.replays.has(replay.id)) throw new DuplicateIdError("replay", replay.id);
  const record: ReplayRecord = {
    ...replay,
    selection: defined(replay.selection),
    status: "running",
    queued: 0,
    skipped: 0,
    delivered: 0,
    failed: 0,
    cancelled: 0,
    createdAt: new Date(now),
  };
  state.replays.set(replay.id, { record, position: walkStart(replay), noted: 0, nextAt: now });
  return structuredClone(record);
}

export function findReplay(state: MemoryState, id: string, visibility: Visibility): ReplayRecord | undefined {
  const row = state.replays.get(id);
  return row && isReplayVisible(row.record, visibility) ? structuredClone(row.record) : undefined;
}

export function listReplays(state: MemoryState, filter: ReplayFilter, page: Page): PageOf<ReplayRecord> {
  const found = [...state.replays.values()]
    .map(({ record }) => record)
    .filter(
      (record) =>
        isReplayVisible(record, filter) &&
        (filter.status === undefined || record.status === filter.status) &&
        (filter.subscriptionId === undefined || record.selection.subscriptionId === filter.subscriptionId),
    );
  return structuredClone(pageOf(found, page, (record) => record.createdAt.getTime()));
}

export function stopReplay(
  state: MemoryState,
  id: string,
  visibility: Visibility,
  now: number,
): ReplayRecord {
  const row = state.replays.get(id);
  if (!row || !isReplayVisible(row.record, visibility)) throw new NotFoundError("replay", id);
  const { status } = row.record;
  if (!canMove(replayTransitions, status, "stopped"))
    throw new InvalidStateError("replay", id, status, "stop");
  end(state, row, "stopped", now);
  return structuredClone(state.replays.get(id)!.record);
}

/** A replay belongs to the project, tenant and owner whose deliveries it is bound to. */
function isReplayVisible({ selection }: ReplayRecord, { projectId, tenantId, ownerId }: Visibility): boolean {
  return (
    (projectId === undefined || selection.projectId === projectId) &&
    (tenantId === undefined || selection.tenantId === tenantId) &&
    (ownerId === undefined || selection.ownerId === ownerId)
  );
}

function end(state: MemoryState, row: ReplayRow, status: ReplayStatus, now: number, error?: string): void {
  const { record } = row;
  for (const missing of state.missing.values())
    if (missing.replayId === record.id) state.missing.delete(missingKey(missing));
  const why = error === undefined ? {} : { error: storable(error) };
  state.replays.set(record.id, {
    ...row,
    noted: 0,
    record: { ...record, ...why, status, finishedAt: new Date(now) },
  });
}

/** A look at the next rows of a walk: those that are to be sent, and where the look ended. */
interface Window<Row> {
  readonly hits: readonly Row[];
  /** Absent: the walk is at its end. */
  readonly last?: { readonly at: number; readonly id: string };
}

export function countReplayable(
  state: MemoryState,
  work: ReplayWork,
  after: WalkPosition | undefined,
  limits: Pick<ReplayLimits, "look" | "missingMs">,
  now: number,
): WindowCount {
  const from = after ?? walkStart(work);
  const { hits, last } =
    from.phase === "deliveries"
      ? deliveryWindow(state, work, from, limits.look)
      : eventWindow(state, work, from, limits, now);
  const next = last ? { phase: from.phase, at: new Date(last.at), id: last.id } : nextPhase(work, from.phase);
  return { count: hits.length, ...(next.phase !== "rendering" && { next }) };
}

export function advanceReplays(state: MemoryState, limits: ReplayLimits, now: number): ReplayAdvance {
  for (const { record } of state.replays.values())
    if (limits.keepMs !== null && record.finishedAt && record.finishedAt.getTime() <= now - limits.keepMs)
      state.replays.delete(record.id);
  const [row] = [...state.replays.values()]
    .filter(({ record, nextAt }) => record.status === "running" && nextAt <= now)
    .sort((a, b) => a.nextAt - b.nextAt || compareText(a.record.id, b.record.id));
  const running = [...state.replays.values()].some(({ record }) => record.status === "running");
  if (!row) return { queued: 0, again: false, running, ended: [] };
  const { id, selection, queued } = row.record;
  const again = step(state, row, limits, now);
  const after = state.replays.get(id)!;
  const { status } = after.record;
  if (status === "running") state.replays.set(id, { ...after, nextAt: again ? now : now + limits.waitMs });
  return {
    queued: after.record.queued - queued,
    again: again || status !== "running",
    running,
    ended: status === "running" ? [] : [defined({ id, status, subscriptionId: selection.subscriptionId })],
  };
}

/** One step of one replay; false when it must wait. */
function step(state: MemoryState, row: ReplayRow, limits: ReplayLimits, now: number): boolean {
  const { record, position, noted } = row;
  const { subscriptionId } = record.selection;
  const status =
    subscriptionId === undefined ? "active" : state.subscriptions.get(subscriptionId)?.record.status;
  if (!takesEvents(status)) {
    end(state, row, "failed", now, endedBecause(subscriptionId!, status));
    return true;
  }
  if (position.phase === "rendering") {
    if (noted > 0) return false;
    end(state, row, "done", now);
    return true;
  }
  const pending = record.queued + noted - record.delivered - record.failed - record.cancelled;
  const most = Math.min(limits.most, limits.pending - pending);
  if (most < 1) return false;
  if (position.phase === "deliveries") {
    const { hits, last } = cut(deliveryWindow(state, record, position, limits.look), most, deliveryPlace);
    // Decided for all of them before any of them changes.
    const queued = hits.filter((hit) => !isSuperseded(state, hit) && !(hit.lease && hit.lease.until > now));
    const rows = queued.map((hit) => reopened(state, hit, now, record.id));
    for (const next of rows) state.putDelivery(next);
    for (const next of rows) settleOrder(state, next, now);
    move(state, row, last, { queued: queued.length, skipped: hits.length - queued.length });
  } else {
    const { hits, last } = cut(eventWindow(state, record, position, limits, now), most, eventPlace);
    for (const { record: event } of hits) {
      const key = { replayId: record.id, projectId: event.projectId, eventId: event.id };
      const missing = { ...key, subscriptionId: subscriptionId!, route: event.route, dueAt: now, tries: 0 };
      state.missing.set(missingKey(key), missing);
    }
    move(state, row, last, { noted: hits.length });
  }
  return true;
}

/** Leaves what is more than `most` for the next step. */
function cut<Row>(
  { hits, last }: Window<Row>,
  most: number,
  placeOf: (row: Row) => { at: number; id: string },
): Window<Row> {
  if (hits.length <= most) return { hits, ...(last && { last }) };
  return { hits: hits.slice(0, most), last: placeOf(hits[most - 1]!) };
}

function move(
  state: MemoryState,
  { record: { id }, position }: ReplayRow,
  last: Window<unknown>["last"],
  { queued = 0, skipped = 0, noted = 0 }: { queued?: number; skipped?: number; noted?: number },
): void {
  const row = state.replays.get(id)!;
  state.replays.set(id, {
    ...row,
    position: last
      ? { phase: position.phase, at: new Date(last.at), id: last.id }
      : nextPhase(row.record, position.phase),
    noted: row.noted + noted,
    record: { ...row.record, queued: row.record.queued + queued, skipped: row.record.skipped + skipped },
  });
}

const deliveryPlace = (row: DeliveryRow) => ({ at: row.createdAt, id: row.id });
const eventPlace = ({ record }: EventRow) => ({ at: record.capturedAt.getTime(), id: record.id });

function deliveryWindow(
  state: MemoryState,
  work: ReplayWork,
  position: WalkPosition,
  look: number,
): Window<DeliveryRow> {
  const statuses: readonly string[] = finalStatuses(work);
  const { subscriptionId } = work.selection;
  const walked = [...state.deliveries.values()].filter(
    (row) => subscriptionId === undefined || row.subscriptionId === subscriptionId,
  );
  const seen = after(walked, deliveryPlace, position, work.until).slice(0, look);
  const hits = seen.filter(
    (row) =>
      statuses.includes(row.status) &&
      isSelected(state, row, work.selection) &&
      takesEvents(state.subscriptions.get(row.subscriptionId)?.record.status ?? "active"),
  );
  return { hits, ...(seen.length === look && { last: deliveryPlace(seen.at(-1)!) }) };
}

function eventWindow(
  state: MemoryState,
  work: ReplayWork,
  position: WalkPosition,
  limits: Pick<ReplayLimits, "look" | "missingMs">,
  now: number,
): Window<EventRow> {
  const { selection } = work;
  const subscription = state.subscriptions.get(selection.subscriptionId ?? "")?.record;
  const since = missingSince(work.since, limits.missingMs, now);
  const seen = after([...state.events.values()], eventPlace, position, work.until)
    .filter(({ record }) => record.capturedAt.getTime() >= since)
    .slice(0, limits.look);
  const hits = seen.filter(
    ({ record }) =>
      subscription !== undefined &&
      record.state === "dispatched" &&
      isSelectedEvent(record, selection) &&
      isWanted(record, subscription) &&
      !state.pairs.has(pairKey(record.id, subscription.id)),
  );
  return { hits, ...(seen.length === limits.look && { last: eventPlace(seen.at(-1)!) }) };
}

/** Rows after the position and before `until`, oldest first by (time, id). */
function after<Row>(
  rows: readonly Row[],
  placeOf: (row: Row) => { readonly at: number; readonly id: string },
  { at, id }: WalkPosition,
  until: Date,
): Row[] {
  const from = at.getTime();
  return rows
    .map((row) => ({ row, ...placeOf(row) }))
    .filter((item) => item.at < until.getTime() && (item.at > from || (item.at === from && item.id > id)))
    .sort((a, b) => a.at - b.at || compareText(a.id, b.id))
    .map(({ row }) => row);
}

/** True when the delivery is one of those that the selection names. */
export function isSelected(state: MemoryState, row: DeliveryRow, selection: DeliverySelection): boolean {
  const { subscriptionId, eventId, type, subject, urlHost, errorCode, replayId } = selection;
  const url = state.subscriptions.get(row.subscriptionId)?.record.url ?? "";
  const event = state.events.get(eventKey({ projectId: row.projectId, id: row.eventId }))?.record;
  return (
    isDeliveryVisible(state, row, selection) &&
    (subscriptionId === undefined || row.subscriptionId === subscriptionId) &&
    (eventId === undefined || row.eventId === eventId) &&
    (type === undefined || row.type === type) &&
    (subject === undefined || event?.subject === subject) &&
    (urlHost === undefined || isOnHost(url, urlHost)) &&
    (errorCode === undefined || row.errorCode === errorCode) &&
    (replayId === undefined || row.replayId === replayId)
  );
}
