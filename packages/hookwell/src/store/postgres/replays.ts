import type { Program, Row } from "../../adapters/seam.ts";
import { DuplicateIdError, InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { DeliverySelection, ReplayedStatus, ReplayRecord } from "../../model/replay.ts";
import {
  canMove,
  type ReplayStatus,
  replayTransitions,
  type SubscriptionStatus,
} from "../../model/states.ts";
import type { Visibility } from "../contract.ts";
import type { NewReplay, ReplayAdvance, ReplayLimits, WalkPhase, WalkPosition } from "../replay-contract.ts";
import { endedBecause, nextPhase, takesEvents, walkStart } from "../replay-work.ts";
import { storable } from "../storable.ts";
import type { Database } from "./database.ts";
import { lockOrder, settleOrder } from "./ordering.ts";
import { replayTexts } from "./replay-sql.ts";
import { date, defined, flag, integer, json, nonEmpty, optionalDate, optionalText, text } from "./rows.ts";
import { toSubscription } from "./subscription-rows.ts";
import { deliveryWindow, eventWindow, type Step, toMissing, toWindow, type Window } from "./walk.ts";

export function toReplay(row: Row): ReplayRecord {
  return defined<ReplayRecord>({
    id: text(row, "id"),
    selection: json<DeliverySelection>(row, "selection"),
    statuses: json<ReplayedStatus[]>(row, "statuses"),
    since: date(row, "since"),
    until: date(row, "until"),
    status: text(row, "status") as ReplayStatus,
    count: integer(row, "count"),
    queued: integer(row, "queued"),
    skipped: integer(row, "skipped"),
    delivered: integer(row, "delivered"),
    failed: integer(row, "failed"),
    cancelled: integer(row, "cancelled"),
    error: optionalText(row, "error"),
    createdAt: date(row, "created_at"),
    finishedAt: optionalDate(row, "finished_at"),
  });
}

export function* createReplay(schema: string, replay: NewReplay, now: string | null): Program<ReplayRecord> {
  const { selection } = replay;
  const start = walkStart(replay);
  const parameter = {
    id: replay.id,
    project_id: selection.projectId ?? "",
    tenant_id: selection.tenantId ?? "",
    owner_id: selection.ownerId ?? "",
    subscription_id: selection.subscriptionId ?? null,
    selection: JSON.stringify(selection),
    statuses: JSON.stringify(replay.statuses),
    since: replay.since.getTime(),
    until: replay.until.getTime(),
    phase: start.phase,
    walk_at: start.at.getTime(),
    walk_id: start.id,
    count: replay.count,
  };
  const made = yield { text: replayTexts(schema).create, params: [now, JSON.stringify(parameter)] };
  if (made.length === 0) throw new DuplicateIdError("replay", replay.id);
  return yield* replayOf(schema, replay.id);
}

export function* stopReplay(
  schema: string,
  id: string,
  visibility: Visibility,
  now: string | null,
): Program<ReplayRecord> {
  const [row] = yield { text: replayTexts(schema).lock, params: [id] };
  if (!row || !isReplayVisible(row, visibility)) throw new NotFoundError("replay", id);
  const status = text(row, "status") as ReplayStatus;
  if (!canMove(replayTransitions, status, "stopped"))
    throw new InvalidStateError("replay", id, status, "stop");
  yield { text: replayTexts(schema).end, params: [now, id, "stopped", null] };
  return yield* replayOf(schema, id);
}

function* replayOf(schema: string, id: string): Program<ReplayRecord> {
  const [row] = yield { text: replayTexts(schema).get, params: [id] };
  return toReplay(row!);
}

/** A replay belongs to the project, tenant and owner whose deliveries it is bound to. */
export function isReplayVisible(row: Row, { projectId, tenantId, ownerId }: Visibility): boolean {
  return (
    (projectId === undefined || nonEmpty(row, "project_id") === projectId) &&
    (tenantId === undefined || nonEmpty(row, "tenant_id") === tenantId) &&
    (ownerId === undefined || nonEmpty(row, "owner_id") === ownerId)
  );
}

const idle = { queued: 0, again: false, ended: [] };

/** Counts what was recorded, then takes the replay that has waited longest one step on, in one transaction. */
export async function advanceReplays(
  db: Database,
  limits: ReplayLimits,
  now: string | null,
): Promise<ReplayAdvance> {
  const texts = replayTexts(db.schema);
  const kept = limits.keepMs === null ? null : String(limits.keepMs);
  const [any] = await db.run({ text: texts.any, params: [now, kept] });
  const running = flag(any!, "running");
  if (flag(any!, "tallies")) await db.run({ text: texts.fold, params: [] });
  if (flag(any!, "old")) await db.run({ text: texts.forget, params: [now, kept] });
  if (!flag(any!, "due")) return { ...idle, running };
  return await db.program({ kind: "own" }, () => stepOn(db.schema, limits, running, now));
}

function* stepOn(
  schema: string,
  limits: ReplayLimits,
  running: boolean,
  now: string | null,
): Program<ReplayAdvance> {
  const [row] = yield { text: replayTexts(schema).take, params: [now] };
  // Another process has it in hand.
  if (!row) return { ...idle, running };
  const replay = toReplay(row);
  const { id } = replay;
  const ended = endOf(replay, row);
  if (ended) {
    const error = ended.error === undefined ? null : storable(ended.error);
    yield { text: replayTexts(schema).end, params: [now, id, ended.status, error] };
    const { subscriptionId } = replay.selection;
    const told = { id, status: ended.status, ...(subscriptionId !== undefined && { subscriptionId }) };
    return { queued: 0, again: true, running, ended: [told] };
  }
  const position: WalkPosition = {
    phase: text(row, "phase") as WalkPhase,
    at: date(row, "walk_at"),
    id: text(row, "walk_id"),
  };
  const pending = replay.queued + integer(row, "noted") - replay.delivered - replay.failed - replay.cancelled;
  const most = Math.min(limits.most, limits.pending - pending);
  const at = integer(row, "now");
  if (position.phase === "rendering" || most < 1) {
    yield moved(schema, id, position, [0, 0, 0], at + limits.waitMs);
    return { ...idle, running };
  }
  const queued =
    position.phase === "deliveries"
      ? yield* requeueNext(schema, replay, position, limits.look, most, at, now)
      : yield* noteNext(schema, replay, position, limits, most, at, now);
  return { queued, again: true, running, ended: [] };
}

/** How the replay ends now, if it does. */
function endOf(
  replay: ReplayRecord,
  row: Row,
): { readonly status: ReplayStatus; readonly error?: string } | undefined {
  const { subscriptionId } = replay.selection;
  const status = optionalText(row, "subscription_status") as SubscriptionStatus | undefined;
  if (subscriptionId !== undefined && !takesEvents(status))
    return { status: "failed", error: endedBecause(subscriptionId, status) };
  if (text(row, "phase") === "rendering" && integer(row, "noted") === 0) return { status: "done" };
  return undefined;
}

function* requeueNext(
  schema: string,
  replay: ReplayRecord,
  position: WalkPosition,
  look: number,
  most: number,
  at: number,
  now: string | null,
): Program<number> {
  const { hits, last } = cut(toWindow(yield deliveryWindow(schema, replay, position, look), look), most);
  let queued = 0;
  if (hits.length > 0) {
    const ids = hits.map((hit) => hit.id);
    yield* lockOrder(schema, ids);
    const rows = yield {
      text: replayTexts(schema).requeue(ids.length),
      params: [now, replay.id, JSON.stringify(ids)],
    };
    queued = rows.length;
    const ordered = rows.filter((row) => flag(row, "ordered")).map((row) => text(row, "id"));
    yield* settleOrder(schema, ordered, now);
  }
  yield moved(schema, replay.id, placeAfter(replay, position, last), [queued, hits.length - queued, 0], at);
  return queued;
}

function* noteNext(
  schema: string,
  replay: ReplayRecord,
  position: WalkPosition,
  limits: ReplayLimits,
  most: number,
  at: number,
  now: string | null,
): Program<number> {
  const { selection } = replay;
  const subscriptionId = selection.subscriptionId ?? "";
  const [subscription] = yield readSubscription(schema, subscriptionId);
  const rows = yield eventWindow(schema, replay, position, limits, now);
  const found = toMissing(rows, limits.look, selection, toSubscription(subscription!));
  const { hits, last } = cut(found, most);
  if (hits.length > 0) {
    const notes = hits.map(({ id, projectId, route }) => ({
      replay_id: replay.id,
      event_id: id,
      project_id: projectId,
      subscription_id: subscriptionId,
      route,
    }));
    yield { text: replayTexts(schema).note(notes.length), params: [now, JSON.stringify(notes)] };
  }
  yield moved(schema, replay.id, placeAfter(replay, position, last), [0, 0, hits.length], at);
  return 0;
}

export function readSubscription(schema: string, id: string) {
  return { text: `SELECT s.* FROM ${schema}.subscription s WHERE s.id = $1::text`, params: [id] };
}

/** Leaves what is more than `most` for the next step. */
function cut<Hit extends Step>({ hits, last }: Window<Hit>, most: number): Window<Hit> {
  if (hits.length <= most) return { hits, ...(last && { last }) };
  return { hits: hits.slice(0, most), last: hits[most - 1]! };
}

function placeAfter(replay: ReplayRecord, { phase }: WalkPosition, last: Step | undefined): WalkPosition {
  return last ? { phase, at: new Date(last.at), id: last.id } : nextPhase(replay, phase);
}

function moved(
  schema: string,
  id: string,
  { phase, at, id: placeId }: WalkPosition,
  counts: readonly [queued: number, skipped: number, noted: number],
  nextAt: number,
) {
  return {
    text: replayTexts(schema).move,
    params: [id, phase, String(at.getTime()), placeId, ...counts.map(String), String(nextAt)],
  };
}
