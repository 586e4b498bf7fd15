import { randomUUID } from "node:crypto";
import type { Delivery } from "../../model/delivery.ts";
import { ValidationError } from "../../model/errors.ts";
import type { ClaimRequest, ClaimResult } from "../contract.ts";
import { afterClaim, isGuarded, policyRoom, rateFreeAt, restsUntil } from "../lane-state.ts";
import { dueTime } from "../ordering.ts";
import { isCovered } from "./holds.ts";
import { compareText, type DeliveryRow, type MemoryState } from "./state.ts";
import { isHeld, toDelivery } from "./view.ts";

/** The turn rule, then a lease on each row taken. */
export function claim(state: MemoryState, request: ClaimRequest, now: number): ClaimResult {
  if (!Number.isSafeInteger(request.limit) || request.limit < 1)
    throw new ValidationError([{ pointer: "/limit", message: "must be a whole number, 1 or more" }]);
  const rows = takeTurns(dueLanes(state, request, now), request.limit);
  const deliveries = rows.map((row): Delivery => {
    const until = now + request.leaseMs;
    const claimed: DeliveryRow = {
      ...row,
      attempts: row.attempts + 1,
      lease: { token: randomUUID(), until },
      dueAt: until,
    };
    state.putDelivery(claimed);
    return toDelivery(state, claimed, now);
  });
  const againInMs = spend(state, rows, now + request.leaseMs, now);
  return {
    deliveries,
    // Nobody damages rows behind the back of this store.
    failed: [],
    cursor: rows.at(-1)?.subscriptionId ?? request.cursor ?? "",
    ...(againInMs !== undefined && { againInMs }),
  };
}

/** Counts what was taken against breaker, rate and slots; answers when the soonest rate lets go again. */
function spend(
  state: MemoryState,
  rows: readonly DeliveryRow[],
  leaseUntil: number,
  now: number,
): number | undefined {
  const taken = new Map<string, string[]>();
  for (const { subscriptionId, id } of rows)
    taken.set(subscriptionId, [...(taken.get(subscriptionId) ?? []), id]);
  let again: number | undefined;
  for (const [laneId, ids] of taken) {
    const lane = state.lane(laneId);
    const limits = state.limits(laneId);
    if (!isGuarded(lane, limits)) continue;
    const next = afterClaim(lane, limits, ids, leaseUntil, now);
    state.lanes.set(laneId, next);
    const free = rateFreeAt(next, limits);
    if (free > now) again = Math.min(again ?? free - now, free - now);
  }
  return again;
}

/** Runnable lanes with due rows, in id order after the cursor, each with its rows in order and cut to its room. */
function dueLanes(state: MemoryState, request: ClaimRequest, now: number): DeliveryRow[][] {
  const lanes = new Map<string, DeliveryRow[]>();
  for (const row of state.pending.values())
    if (dueTime(row.dueAt) <= now && !isCovered(state, row)) {
      const lane = lanes.get(row.subscriptionId);
      if (lane) lane.push(row);
      else lanes.set(row.subscriptionId, [row]);
    }
  const { cursor = "", room = request.limit, rooms } = request;
  const ids = [...lanes.keys()].filter((id) => isRunnable(state, id, now)).sort(compareText);
  const roomOf = (id: string): number =>
    Math.min(rooms?.get(id) ?? room, policyRoom(state.lane(id), state.limits(id), now));
  const after = [...ids.filter((id) => id > cursor), ...ids.filter((id) => id <= cursor)];
  return after.map((id) =>
    lanes
      .get(id)!
      .sort((a, b) => a.dueAt - b.dueAt || compareText(a.id, b.id))
      .slice(0, roomOf(id)),
  );
}

/** One row from each lane in each turn, until the limit or nothing is left. */
function takeTurns(lanes: readonly (readonly DeliveryRow[])[], limit: number): DeliveryRow[] {
  const taken: DeliveryRow[] = [];
  const turns = Math.max(0, ...lanes.map((lane) => lane.length));
  for (let turn = 0; turn < turns; turn++)
    for (const lane of lanes) {
      if (taken.length === limit) return taken;
      const row = lane[turn];
      if (row) taken.push(row);
    }
  return taken;
}

/** Held neither by management, nor by a Retry-After, nor by a policy of the lane. */
export function isRunnable(state: MemoryState, subscriptionId: string, now: number): boolean {
  return !isHeld(state, subscriptionId) && restsUntil(state.lane(subscriptionId)) <= now;
}
