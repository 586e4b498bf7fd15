import { randomUUID } from "node:crypto";
import type { Delivery } from "../../model/delivery.ts";
import { ValidationError } from "../../model/errors.ts";
import type { ClaimRequest, ClaimResult } from "../contract.ts";
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
  // Nobody damages rows behind the back of this store.
  return { deliveries, failed: [], cursor: rows.at(-1)?.subscriptionId ?? request.cursor ?? "" };
}

/** Runnable lanes with due rows, in id order after the cursor, each with its rows in order and cut to its room. */
function dueLanes(state: MemoryState, request: ClaimRequest, now: number): DeliveryRow[][] {
  const lanes = new Map<string, DeliveryRow[]>();
  for (const row of state.pending.values())
    if (row.dueAt <= now) {
      const lane = lanes.get(row.subscriptionId);
      if (lane) lane.push(row);
      else lanes.set(row.subscriptionId, [row]);
    }
  const { cursor = "", room = request.limit, rooms } = request;
  const ids = [...lanes.keys()].filter((id) => isRunnable(state, id, now)).sort(compareText);
  const after = [...ids.filter((id) => id > cursor), ...ids.filter((id) => id <= cursor)];
  return after.map((id) =>
    lanes
      .get(id)!
      .sort((a, b) => a.dueAt - b.dueAt || compareText(a.id, b.id))
      .slice(0, rooms?.get(id) ?? room),
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

/** Neither held by management nor by a Retry-After. */
export function isRunnable(state: MemoryState, subscriptionId: string, now: number): boolean {
  return !isHeld(state, subscriptionId) && (state.laneHolds.get(subscriptionId) ?? 0) <= now;
}
