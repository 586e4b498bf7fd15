import { ValidationError } from "../../model/errors.ts";
import type { ClaimRequest } from "../contract.ts";
import { afterClaim, isGuarded, policyRoom, rateFreeAt } from "../lane-state.ts";
import { behindLive, blockedAt } from "../ordering.ts";
import type { Connection } from "./connection.ts";
import { activeHolds, holdsAll } from "./holds.ts";
import { type LaneRow, laneColumns, toLane, writeLane } from "./lane-rows.ts";
import { integer, text } from "./rows.ts";
import { HeldRows } from "./set-aside.ts";

/** Most lanes that one claim wakes: a herd that becomes due together is let in over several claims. */
const mostWoken = 1_000;

/** Whether a claim could find anything: lanes that are ready, or whose time has come. Takes no lock. */
export const anyWorkText = `
SELECT EXISTS (SELECT 1 FROM hookwell_lane INDEXED BY hookwell_lane_ready WHERE ready = 1 AND held = 0)
  OR EXISTS (SELECT 1 FROM hookwell_lane INDEXED BY hookwell_lane_waiting
    WHERE ready = 0 AND held = 0 AND next_due <= ?) AS work`;

const wakeDueText = `
UPDATE hookwell_lane SET ready = 1, next_due = NULL
WHERE subscription_id IN (
  SELECT subscription_id FROM hookwell_lane INDEXED BY hookwell_lane_waiting
  WHERE ready = 0 AND held = 0 AND next_due <= ? ORDER BY next_due LIMIT CAST(? AS INTEGER))`;

const readyLanes = `SELECT ${laneColumns} FROM hookwell_lane l INDEXED BY hookwell_lane_ready
WHERE l.ready = 1 AND l.held = 0`;
const lanesAfterText = `${readyLanes} AND l.subscription_id > ? ORDER BY l.subscription_id LIMIT CAST(? AS INTEGER)`;
const lanesUpToText = `${readyLanes} AND l.subscription_id > ? AND l.subscription_id <= ?
ORDER BY l.subscription_id LIMIT CAST(? AS INTEGER)`;

const dueRowsText = `
SELECT id, due_at FROM hookwell_delivery INDEXED BY hookwell_delivery_pending
WHERE subscription_id = ? AND status = 'pending' AND due_at <= ? AND (due_at, id) > (?, ?)
ORDER BY due_at, id LIMIT CAST(? AS INTEGER)`;

// While something is held, the rows themselves are read.
const heldRowsText = `
SELECT id, due_at, type, project_id FROM hookwell_delivery INDEXED BY hookwell_delivery_pending
WHERE subscription_id = ? AND status = 'pending' AND due_at <= ? AND (due_at, id) > (?, ?)
ORDER BY due_at, id LIMIT CAST(? AS INTEGER)`;

const firstDue = (value: string, range: string): string => `
  SELECT due FROM (SELECT ${value} AS due FROM hookwell_delivery INDEXED BY hookwell_delivery_pending
    WHERE subscription_id = ? AND status = 'pending' AND ${range} ORDER BY due_at LIMIT 1)`;

// The lane is ready, so that it rests no more. What a replay queued stands behind what is live.
const sleepText = `
UPDATE hookwell_lane SET ready = 0, next_due = (SELECT min(due) FROM (${firstDue("due_at", `due_at < ${behindLive}`)}
  UNION ALL ${firstDue(`due_at - ${behindLive}`, `due_at >= ${behindLive} AND due_at < ${blockedAt}`)}))
WHERE subscription_id = ?`;

const leaseText = `
UPDATE hookwell_delivery INDEXED BY hookwell_delivery_id
SET lease_token = ?, lease_until = ?, due_at = ?, attempts = attempts + 1
WHERE id = ?`;

interface ClaimedRows {
  /** In the order of the turns. */
  readonly ids: readonly string[];
  readonly cursor: string;
  readonly againInMs?: number;
  readonly again?: true;
}

interface Place {
  readonly id: string;
  readonly dueAt: number;
}

interface Lane {
  readonly row: LaneRow;
  readonly id: string;
  readonly room: number;
  readonly rows: Place[];
  /** Held rows are left before what this claim could find. */
  clogged?: true;
}

/** @throws ValidationError */
export function checkLimit(limit: number): void {
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new ValidationError([{ pointer: "/limit", message: "must be a whole number, 1 or more" }]);
}

/** Inside a write: takes rows by the turn rule and leases them, each with a token of its own made of `token`. */
export function claimRows(
  connection: Connection,
  request: ClaimRequest,
  token: string,
  now: number,
): ClaimedRows {
  const none = { ids: [], cursor: request.cursor ?? "" };
  const holds = activeHolds(connection);
  if (holdsAll(holds)) return none;
  const held = new HeldRows(connection, holds);
  connection.all(wakeDueText, [now, mostWoken]);
  const lanes = lanesWithWork(connection, request, held, now);
  const taken = takeTurns(connection, lanes, request.limit, held, now);
  const again = held.moved ? { again: true as const } : {};
  if (taken.length === 0) return { ...none, ...again };
  const until = now + request.leaseMs;
  const ids = taken.map((row) => row.id);
  for (const [place, id] of ids.entries()) connection.all(leaseText, [`${token}.${place}`, until, until, id]);
  const againInMs = spend(connection, lanes, taken, until, now);
  return { ids, cursor: taken.at(-1)!.lane, ...again, ...(againInMs !== undefined && { againInMs }) };
}

/** Counts what was taken against breaker, rate and slots; answers when the soonest rate lets go again. */
function spend(
  connection: Connection,
  lanes: readonly Lane[],
  taken: readonly { readonly id: string; readonly lane: string }[],
  leaseUntil: number,
  now: number,
): number | undefined {
  let again: number | undefined;
  for (const { id: laneId, row } of lanes) {
    if (!isGuarded(row.state, row.limits)) continue;
    const ids = taken.filter(({ lane }) => lane === laneId).map(({ id }) => id);
    if (ids.length === 0) continue;
    const next = afterClaim(row.state, row.limits, ids, leaseUntil, now);
    writeLane(connection, laneId, next, now);
    const free = rateFreeAt(next, row.limits);
    if (free > now) again = Math.min(again ?? free - now, free - now);
  }
  return again;
}

/** Ready lanes after the cursor, and round again, each with its first due row; those without one go to sleep. */
function lanesWithWork(connection: Connection, request: ClaimRequest, held: HeldRows, now: number): Lane[] {
  const { cursor = "", limit, rooms, room = limit } = request;
  const lanes: Lane[] = [];
  let enough = false;
  const look = (id: string, row: LaneRow): void => {
    const free = Math.min(rooms?.get(id) ?? room, limit, policyRoom(row.state, row.limits, now));
    if (free < 1) return;
    const lane: Lane = { id, row, room: free, rows: [] };
    if (fetchRows(connection, lane, 1, held, now) > 0) {
      lanes.push(lane);
      return;
    }
    if (!lane.clogged) connection.all(sleepText, [id, id, id]);
    enough = held.lookedInVain();
  };
  const walk = (text_: string, from: string, ...bound: string[]): void => {
    for (let after = from; lanes.length < limit && !enough; ) {
      const size = Math.min(limit, 200);
      const page = connection.all(text_, [after, ...bound, size]);
      for (const row of page) {
        if (lanes.length >= limit || enough) return;
        look(text(row.subscription_id), toLane(row));
      }
      if (page.length < size) return;
      after = text(page.at(-1)!.subscription_id);
    }
  };
  walk(lanesAfterText, cursor);
  if (cursor !== "") walk(lanesUpToText, "", cursor);
  return lanes;
}

/** Reads up to `count` more due rows of a lane, first live ones; answers how many there were. */
function fetchRows(connection: Connection, lane: Lane, count: number, held: HeldRows, now: number): number {
  const before = lane.rows.length;
  const left = (): number => count - (lane.rows.length - before);
  const read = (from: number, until: number): void => {
    const last = lane.rows.at(-1);
    const place = last && last.dueAt >= from ? last : { dueAt: from, id: "" };
    if (held.any) readUnheld(connection, lane, { place, until, count: left() }, held);
    else
      for (const row of connection.all(dueRowsText, [lane.id, until, place.dueAt, place.id, left()]))
        lane.rows.push({ id: text(row.id), dueAt: integer(row.due_at) });
  };
  if ((lane.rows.at(-1)?.dueAt ?? 0) < behindLive) read(Number.MIN_SAFE_INTEGER, now);
  if (left() > 0) read(behindLive, behindLive + now);
  return lane.rows.length - before;
}

const leastHeldPage = 50;

/** The same, of rows that no hold covers; the others are set aside, as many as one claim may. */
function readUnheld(
  connection: Connection,
  lane: Lane,
  { place, until, count }: { readonly place: Place; readonly until: number; readonly count: number },
  held: HeldRows,
): void {
  const most = lane.rows.length + count;
  for (let last = place; lane.rows.length < most && !lane.clogged; ) {
    const size = Math.max(most - lane.rows.length, leastHeldPage);
    const rows = connection.all(heldRowsText, [lane.id, until, last.dueAt, last.id, size]);
    for (const row of rows) {
      last = { id: text(row.id), dueAt: integer(row.due_at) };
      const met = held.meet(lane.id, { id: last.id, projectId: text(row.project_id), type: text(row.type) });
      if (met === "left") lane.clogged = true;
      if (met === "free") lane.rows.push(last);
      if (lane.clogged || lane.rows.length === most) break;
    }
    if (rows.length < size) break;
  }
}

/**
 * One row from each lane in each turn. Rows are read a few at a time, as many from each lane as the missing ones
 * divided among them, so that no lane is read much further than it is taken from.
 */
function takeTurns(
  connection: Connection,
  lanes: readonly Lane[],
  limit: number,
  held: HeldRows,
  now: number,
): { readonly id: string; readonly lane: string }[] {
  let open = lanes.filter((lane) => lane.room > lane.rows.length);
  let missing = limit - lanes.length;
  while (missing > 0 && open.length > 0) {
    const share = Math.ceil(missing / open.length);
    const still: Lane[] = [];
    for (const lane of open) {
      const wanted = Math.min(share, lane.room - lane.rows.length);
      const found = fetchRows(connection, lane, wanted, held, now);
      missing -= found;
      if (found === share && lane.rows.length < lane.room) still.push(lane);
    }
    open = still;
  }
  const taken: { id: string; lane: string }[] = [];
  for (let turn = 0; taken.length < limit; turn++) {
    const before = taken.length;
    for (const lane of lanes) {
      const row = lane.rows[turn];
      if (row && taken.length < limit) taken.push({ id: row.id, lane: lane.id });
    }
    if (taken.length === before) break;
  }
  return taken;
}
