import { type Program, type Row, runProgramSync } from "../../adapters/seam.ts";
import { DuplicateIdError, InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { DeliverySelection, ReplayedStatus, ReplayRecord } from "../../model/replay.ts";
import { canMove, type ReplayStatus, replayTransitions } from "../../model/states.ts";
import type { Visibility } from "../contract.ts";
import { behindLive, blockedAt } from "../ordering.ts";
import type { NewReplay, ReplayAdvance, ReplayLimits, WalkPhase, WalkPosition } from "../replay-contract.ts";
import { endedBecause, nextPhase, takesEvents, walkStart } from "../replay-work.ts";
import { storable } from "../storable.ts";
import type { Connection } from "./connection.ts";
import { keepSuccessText } from "./deliveries.ts";
import { wakeLanes } from "./lanes.ts";
import { isSuperseded, settleOrder } from "./ordering.ts";
import {
  date,
  integer,
  optionalDate,
  optionalInteger,
  optionalText,
  present,
  statement,
  text,
} from "./rows.ts";
import { deliveryWindow, eventWindow, type Step, type Window } from "./walk.ts";

/** The columns {@link toReplay} reads, of `r`. */
export const replayColumns = `r.id, r.selection, r.statuses, r.since, r.until, r.status, r.count, r.queued, r.skipped,
  r.delivered, r.failed, r.cancelled, r.error, r.created_at, r.finished_at`;

export function toReplay(row: Row): ReplayRecord {
  return present<ReplayRecord>({
    id: text(row.id),
    selection: JSON.parse(text(row.selection)) as DeliverySelection,
    statuses: JSON.parse(text(row.statuses)) as ReplayedStatus[],
    since: date(row.since),
    until: date(row.until),
    status: text(row.status) as ReplayStatus,
    count: integer(row.count),
    queued: integer(row.queued),
    skipped: integer(row.skipped),
    delivered: integer(row.delivered),
    failed: integer(row.failed),
    cancelled: integer(row.cancelled),
    error: optionalText(row.error),
    createdAt: date(row.created_at),
    finishedAt: optionalDate(row.finished_at),
  });
}

const createText = `
INSERT INTO hookwell_replay (id, project_id, tenant_id, owner_id, subscription_id, selection, statuses, since, until,
  status, phase, walk_at, walk_id, next_at, count, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, CAST(? AS INTEGER), CAST(? AS INTEGER), 'running', ?, CAST(? AS INTEGER), ?,
  CAST(? AS INTEGER), CAST(? AS INTEGER), CAST(? AS INTEGER))
ON CONFLICT DO NOTHING
RETURNING id`;
const readText = `SELECT ${replayColumns} FROM hookwell_replay r WHERE r.id = ?`;

export function* createProgram(replay: NewReplay, now: number): Program<ReplayRecord> {
  const { id, selection, statuses, since, until, count } = replay;
  const start = walkStart(replay);
  const owner = [selection.projectId ?? "", selection.tenantId ?? "", selection.ownerId ?? ""] as const;
  const made = yield statement(
    createText,
    id,
    ...owner,
    selection.subscriptionId ?? null,
    JSON.stringify(selection),
    JSON.stringify(statuses),
    since.getTime(),
    until.getTime(),
    start.phase,
    start.at.getTime(),
    start.id,
    now,
    count,
    now,
  );
  if (made.length === 0) throw new DuplicateIdError("replay", id);
  const [row] = yield statement(readText, id);
  return toReplay(row!);
}

// Written before it is read, so that a transaction begun DEFERRED waits for the write lock here.
const lockText = `UPDATE hookwell_replay SET noted = noted WHERE id = ? RETURNING project_id, tenant_id, owner_id, status`;
const endText = `
UPDATE hookwell_replay SET status = ?, error = coalesce(?, error), noted = 0, finished_at = CAST(? AS INTEGER)
WHERE id = ?`;
const dropMissingText = "DELETE FROM hookwell_replay_missing WHERE replay_id = ?";

/** @throws NotFoundError, InvalidStateError */
export function* stopProgram(id: string, visibility: Visibility, now: number): Program<ReplayRecord> {
  const [row] = yield statement(lockText, id);
  if (!row || !isReplayVisible(row, visibility)) throw new NotFoundError("replay", id);
  const status = text(row.status) as ReplayStatus;
  if (!canMove(replayTransitions, status, "stopped"))
    throw new InvalidStateError("replay", id, status, "stop");
  yield* endProgram(id, "stopped", now);
  const [after] = yield statement(readText, id);
  return toReplay(after!);
}

/** A replay belongs to the project, tenant and owner whose deliveries it is bound to. */
export function isReplayVisible(row: Row, { projectId, tenantId, ownerId }: Visibility): boolean {
  return (
    (projectId === undefined || row.project_id === projectId) &&
    (tenantId === undefined || row.tenant_id === tenantId) &&
    (ownerId === undefined || row.owner_id === ownerId)
  );
}

function* endProgram(
  id: string,
  status: ReplayStatus,
  now: number,
  error: string | null = null,
): Program<void> {
  yield statement(dropMissingText, id);
  yield statement(endText, status, error === null ? null : storable(error), now, id);
}

export const anyReplayText = `
SELECT EXISTS (SELECT 1 FROM hookwell_replay INDEXED BY hookwell_replay_running
    WHERE status = 'running' AND next_at >= 0) AS running,
  EXISTS (SELECT 1 FROM hookwell_replay INDEXED BY hookwell_replay_running
    WHERE status = 'running' AND next_at <= ?) AS due,
  EXISTS (SELECT 1 FROM hookwell_replay INDEXED BY hookwell_replay_ended
    WHERE finished_at IS NOT NULL AND finished_at <= ?) AS old`;
const forgetText = `
DELETE FROM hookwell_replay WHERE id IN (
  SELECT id FROM hookwell_replay INDEXED BY hookwell_replay_ended
  WHERE finished_at IS NOT NULL AND finished_at <= ? ORDER BY finished_at LIMIT 100)`;
const dueText = `
SELECT ${replayColumns}, r.subscription_id, r.phase, r.walk_at, r.walk_id, r.noted, s.status AS subscription_status
FROM hookwell_replay r INDEXED BY hookwell_replay_running
LEFT JOIN hookwell_subscription s ON s.id = r.subscription_id
WHERE r.status = 'running' AND r.next_at <= ? ORDER BY r.next_at, r.id LIMIT 1`;
const waitText = "UPDATE hookwell_replay SET next_at = ? WHERE id = ? RETURNING queued";
const moveText = `
UPDATE hookwell_replay SET phase = ?, walk_at = ?, walk_id = ?, queued = queued + ?, skipped = skipped + ?,
  noted = noted + ?
WHERE id = ?`;

const idle = { queued: 0, again: false, ended: [] };

/** Takes the replay that has waited longest one step on, in one write. */
export async function advanceReplays(
  connection: Connection,
  limits: ReplayLimits,
  nowAt: () => number,
): Promise<ReplayAdvance> {
  const before = limits.keepMs === null ? Number.MIN_SAFE_INTEGER : nowAt() - limits.keepMs;
  const [any] = connection.all(anyReplayText, [nowAt(), before]);
  const running = integer(any!.running) === 1;
  if (integer(any!.old) === 1) await connection.write(() => connection.all(forgetText, [before]));
  if (integer(any!.due) === 0) return { ...idle, running };
  return connection.write(() => {
    const now = nowAt();
    const [row] = connection.all(dueText, [now]);
    if (!row) return { ...idle, running };
    const replay = toReplay(row);
    const { id } = replay;
    const ended = endOf(replay, row);
    if (ended) {
      runProgramSync(endProgram(id, ended.status, now, ended.error), connection.run);
      const { subscriptionId } = replay.selection;
      const told = { id, status: ended.status, ...(subscriptionId !== undefined && { subscriptionId }) };
      return { queued: 0, again: true, running, ended: [told] };
    }
    const queued = stepOn(connection, replay, row, limits, now);
    connection.all(waitText, [queued === undefined ? now + limits.waitMs : now, id]);
    return { queued: queued ?? 0, again: queued !== undefined, running, ended: [] };
  });
}

/** How the replay ends now, if it does. */
function endOf(
  replay: ReplayRecord,
  row: Row,
): { readonly status: ReplayStatus; readonly error?: string } | undefined {
  const { subscriptionId } = replay.selection;
  const status = optionalText(row.subscription_status) as Parameters<typeof takesEvents>[0];
  if (subscriptionId !== undefined && !takesEvents(status))
    return { status: "failed", error: endedBecause(subscriptionId, status) };
  if (row.phase === "rendering" && integer(row.noted) === 0) return { status: "done" };
  return undefined;
}

/** Rows queued by one step; undefined when the replay must wait. */
function stepOn(
  connection: Connection,
  replay: ReplayRecord,
  row: Row,
  limits: ReplayLimits,
  now: number,
): number | undefined {
  const position: WalkPosition = {
    phase: text(row.phase) as WalkPhase,
    at: date(row.walk_at),
    id: text(row.walk_id),
  };
  const pending = replay.queued + integer(row.noted) - replay.delivered - replay.failed - replay.cancelled;
  const most = Math.min(limits.most, limits.pending - pending);
  if (position.phase === "rendering" || most < 1) return undefined;
  if (position.phase === "deliveries") {
    const { hits, last } = cut(deliveryWindow(connection, replay, position, limits.look), most);
    const queued = requeue(connection, hits, replay.id, now);
    move(connection, replay, position, last, [queued, hits.length - queued, 0]);
    return queued;
  }
  const { hits, last } = cut(eventWindow(connection, replay, position, limits, now), most);
  for (const { id, projectId, route } of hits)
    connection.all(noteText, [replay.id, id, projectId, replay.selection.subscriptionId!, route, now]);
  move(connection, replay, position, last, [0, 0, hits.length]);
  return 0;
}

const noteText = `
INSERT INTO hookwell_replay_missing (replay_id, event_id, project_id, subscription_id, route, due_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`;

/** Leaves what is more than `most` for the next step. */
function cut<Hit extends Step>({ hits, last }: Window<Hit>, most: number): Window<Hit> {
  if (hits.length <= most) return { hits, ...(last && { last }) };
  return { hits: hits.slice(0, most), last: hits[most - 1]! };
}

function move(
  connection: Connection,
  replay: ReplayRecord,
  { phase }: WalkPosition,
  last: Step | undefined,
  counts: readonly [queued: number, skipped: number, noted: number],
): void {
  const next = last ? { phase, at: new Date(last.at), id: last.id } : nextPhase(replay, phase);
  connection.all(moveText, [next.phase, next.at.getTime(), next.id, ...counts, replay.id]);
}

const rowText = `
SELECT subscription_id, order_key, order_at FROM hookwell_delivery INDEXED BY hookwell_delivery_id
WHERE id = ? AND status <> 'pending' AND (lease_until IS NULL OR lease_until <= ?)`;
const requeueText = `
UPDATE hookwell_delivery INDEXED BY hookwell_delivery_id
SET status = 'pending', reason = NULL, attempts = 0, round = round + 1, replay_id = ?, next_attempt_at = ?,
  due_at = CASE WHEN order_key IS NULL THEN ${behindLive} + CAST(? AS INTEGER) ELSE ${blockedAt} END, updated_at = ?,
  lease_token = NULL, lease_until = NULL, delivered_at = NULL, last_started_at = NULL, last_duration_ms = NULL,
  last_status_code = NULL
WHERE id = ?`;

/** Opens the next round of those that may be sent again; answers how many. */
function requeue(connection: Connection, hits: readonly Step[], replayId: string, now: number): number {
  // Decided for all of them before any of them changes.
  const rows = hits.flatMap(({ id }) => {
    const [row] = connection.all(rowText, [id, now]);
    if (!row) return [];
    const lane = text(row.subscription_id);
    const late = isSuperseded(lane, optionalText(row.order_key), optionalInteger(row.order_at));
    return runProgramSync(late, connection.run) ? [] : [{ id, lane, ordered: row.order_key !== null }];
  });
  for (const { id } of rows) {
    connection.all(keepSuccessText, [id]);
    connection.all(requeueText, [replayId, now, now, now, id]);
  }
  for (const { id, ordered } of rows) if (ordered) runProgramSync(settleOrder(id, now), connection.run);
  if (rows.length > 0) connection.run(wakeLanes(new Set(rows.map(({ lane }) => lane)), now));
  return rows.length;
}
