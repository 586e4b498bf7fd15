import { type Program, type Row, runProgramSync } from "../../adapters/seam.ts";
import { InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { EventKey, EventRecord } from "../../model/event.ts";
import { canMove, eventTransitions } from "../../model/states.ts";
import type { DispatchItem, DispatchRoom } from "../contract.ts";
import { claimedAtOnce } from "../dispatch-claims.ts";
import { isGuarded, restsUntil } from "../lane-state.ts";
import { Tally } from "../minute-counts.ts";
import { isOperational, parkedInput } from "../operational.ts";
import { blockedAt, orderKey } from "../ordering.ts";
import { storable } from "../storable.ts";
import { captureProgram } from "./capture.ts";
import type { Connection } from "./connection.ts";
import { eventColumns, toEventRecord } from "./event-rows.ts";
import { activeHolds } from "./holds.ts";
import { type LaneRow, laneColumns, toLane } from "./lane-rows.ts";
import { heldBySubscription, wakeLanes } from "./lanes.ts";
import { countMinute } from "./minute-counts.ts";
import { settleOrder } from "./ordering.ts";
import { integer, optionalInteger, optionalText, statement, text } from "./rows.ts";

/** Those of the routes (JSON) where something waits: of a large catalogue all but a few, and mostly all, have nothing. */
export const waitingRoutesText = `
SELECT j.value AS route FROM json_each(?) j WHERE EXISTS (
  SELECT 1 FROM hookwell_event e INDEXED BY hookwell_event_new
  WHERE e.state = 'new' AND e.route = j.value AND e.due_at <= CAST(? AS INTEGER))`;

// Two looks a route, each served by (route, due_at, seq) where state = 'new'. An event never tried has due_at 0,
// so that a clock set back hides none, and those come in capture order whatever the backlog.
const fromNew = `SELECT ${eventColumns}, e.due_at FROM hookwell_event e INDEXED BY hookwell_event_new
WHERE e.state = 'new' AND e.route = ?`;
const takeUntriedText = `${fromNew} AND e.due_at = 0 ORDER BY e.seq LIMIT CAST(? AS INTEGER)`;
const takeRetriedText = `${fromNew} AND e.due_at > 0 AND e.due_at <= ? ORDER BY e.due_at, e.seq LIMIT CAST(? AS INTEGER)`;

export function takeNew(
  connection: Connection,
  routes: readonly string[],
  limit: number,
  now: number,
): EventRecord[] {
  const waiting = connection.all(waitingRoutesText, [JSON.stringify([...new Set(routes)]), now]);
  const rows = waiting.flatMap(({ route }) => [
    ...connection.all(takeUntriedText, [text(route), limit]),
    ...connection.all(takeRetriedText, [text(route), now, limit]),
  ]);
  const dueAt = (row: Row): number => integer(row.due_at) || integer(row.captured_at);
  const bySeq = (a: Row, b: Row): number => integer(a.seq) - integer(b.seq);
  return rows
    .sort((a, b) => dueAt(a) - dueAt(b) || bySeq(a, b))
    .slice(0, limit)
    .sort(bySeq)
    .map(toEventRecord);
}

export const markText = `
UPDATE hookwell_event SET state = 'dispatched', dispatched_at = ?, patch = coalesce(?, patch)
WHERE id = ? AND project_id = ? AND state = 'new'
RETURNING type, fanned_out, tenant_id, subject, revision, seq`;

const bodyText = `
INSERT INTO hookwell_body (project_id, event_id, variant, bytes) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING`;

const deliveryText = `
INSERT INTO hookwell_delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, status,
  attempts, round, next_attempt_at, due_at, created_at, updated_at, order_key, order_at, lease_token, lease_until)
VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
RETURNING lease_token`;

const capturedLanesText = `
SELECT subscription_id FROM hookwell_delivery WHERE event_id = ? AND project_id = ? AND status = 'pending'`;

interface Dispatched {
  readonly dispatched: readonly EventKey[];
  /** Rows that were claimed as they were made. */
  readonly claimed: readonly string[];
}

/** An event that was still new. */
interface Marked {
  readonly item: DispatchItem;
  readonly event: Row;
}

/**
 * Inside a write: marks those still new, writes their bodies and deliveries, and wakes the lanes. What there is room
 * for is claimed, each row with a token of its own made of `token`.
 */
export function dispatch(
  connection: Connection,
  items: readonly DispatchItem[],
  now: number,
  token: string,
  room?: DispatchRoom,
): Dispatched {
  const marked = items.flatMap((item): Marked[] => {
    const [event] = connection.all(markText, [now, item.patch ?? null, item.id, item.projectId]);
    return event ? [{ item, event }] : [];
  });
  const atOnce = claimedAtOnce(
    marked.map(({ item }) => item),
    room,
    openLanes(connection, now),
  );
  const claimed: string[] = [];
  const tally = new Tally();
  const lanes = new Set<string>();
  const ordered: string[] = [];
  for (const { item, event } of marked) {
    const { projectId, id, bodies, deliveries } = item;
    tally.add(projectId, { dispatched: 1 });
    for (const { variant, bytes } of bodies) connection.all(bodyText, [projectId, id, variant, bytes]);
    const key = orderKey({
      tenantId: text(event.tenant_id),
      subject: optionalText(event.subject),
      revision: optionalInteger(event.revision),
    });
    const at = optionalInteger(event.revision) ?? integer(event.seq);
    for (const { id: deliveryId, subscriptionId, endpointId, variant, ordered: isOrdered } of deliveries) {
      const order = isOrdered ? key : undefined;
      const until = room && atOnce.has(deliveryId) ? now + room.leaseMs : undefined;
      const place = [deliveryId, projectId, id, subscriptionId, endpointId, variant, text(event.type)];
      const [made] = connection.all(deliveryText, [
        ...place,
        until === undefined ? 0 : 1,
        now,
        until ?? (order === undefined ? now : blockedAt),
        now,
        now,
        order ?? null,
        order === undefined ? null : at,
        until === undefined ? null : `${token}.${claimed.length}`,
        until ?? null,
      ]);
      if (made?.lease_token != null) claimed.push(deliveryId);
      if (order !== undefined) ordered.push(deliveryId);
      lanes.add(subscriptionId);
    }
    if (integer(event.fanned_out) === 1)
      for (const row of connection.all(capturedLanesText, [id, projectId]))
        lanes.add(text(row.subscription_id));
  }
  for (const id of ordered) runProgramSync(settleOrder(id, now), connection.run);
  if (lanes.size > 0) connection.run(wakeLanes(lanes, now));
  countMinute(connection, tally, now);
  const dispatched = marked.map(({ item: { projectId, id } }): EventKey => ({ projectId, id }));
  return { dispatched, claimed };
}

const openLaneText = `
SELECT ${laneColumns}, l.held FROM hookwell_lane l WHERE l.subscription_id = ?`;
const newLaneText = `
SELECT ${heldBySubscription} AS held, s.rate_limit IS NOT NULL OR s.max_in_flight IS NOT NULL AS guarded
FROM hookwell_subscription s WHERE s.id = ?`;
const anyDueText = `
SELECT 1 FROM hookwell_delivery INDEXED BY hookwell_delivery_pending
WHERE subscription_id = ? AND status = 'pending' AND due_at <= ? LIMIT 1`;

/** Whether a claim would take the next row of a lane at once. */
function openLanes(connection: Connection, now: number): (lane: string) => boolean {
  let held: boolean | undefined;
  return (id) => {
    held ??= activeHolds(connection).length > 0;
    if (held) return false;
    const [row] = connection.all(openLaneText, [id]);
    if (row) {
      const { state, limits }: LaneRow = toLane(row);
      if (integer(row.held) !== 0 || isGuarded(state, limits) || restsUntil(state) > now) return false;
    } else {
      const [subscription] = connection.all(newLaneText, [id]);
      if (subscription && (integer(subscription.held) !== 0 || integer(subscription.guarded) !== 0))
        return false;
    }
    return connection.all(anyDueText, [id, now]).length === 0;
  };
}

const failText = `
UPDATE hookwell_event SET tries = tries + 1, error = ?, state = ?, due_at = ?
WHERE id = ? AND project_id = ? AND state = 'new'
RETURNING type`;

/** Inside a write: counts a failed try, and parks the event when there is to be no other. */
export function failDispatch(
  connection: Connection,
  { projectId, id }: EventKey,
  error: string,
  retryInMs: number | null,
  now: number,
): boolean {
  const state = retryInMs === null ? "parked" : "new";
  const dueAt = retryInMs === null ? 0 : Math.max(1, now + Math.round(retryInMs));
  const [event] = connection.all(failText, [storable(error), state, dueAt, id, projectId]);
  if (event && retryInMs === null && !isOperational(text(event.type))) {
    const parked = parkedInput({ projectId, id }, text(event.type), storable(error), now);
    runProgramSync(captureProgram([parked], now), connection.run);
  }
  return event !== undefined;
}

/** Sends a parked event through dispatch again. */
export function* releaseProgram({ projectId, id }: EventKey): Program<void> {
  // Written before it is read, so that a transaction begun DEFERRED waits for the write lock here.
  const [event] = yield statement(
    "UPDATE hookwell_event SET tries = tries WHERE id = ? AND project_id = ? RETURNING state",
    id,
    projectId,
  );
  if (!event) throw new NotFoundError("event", id);
  const state = text(event.state) as EventRecord["state"];
  if (!canMove(eventTransitions, state, "new")) throw new InvalidStateError("event", id, state, "release");
  yield statement(
    "UPDATE hookwell_event SET state = 'new', tries = 0, error = NULL, due_at = 0 WHERE id = ? AND project_id = ?",
    id,
    projectId,
  );
}
