import { blockedAt, isRevised, placeAt } from "../ordering.ts";
import { compareText, type DeliveryRow, type MemoryState } from "./state.ts";

/** True when the receiver may have seen it. */
function wasSent(row: DeliveryRow): boolean {
  return row.attempts > 0 || row.round > 1;
}

/** The highest place that may have been seen in the group of this row. */
function sentMark(state: MemoryState, of: DeliveryRow): number {
  let mark = Number.NEGATIVE_INFINITY;
  for (const row of state.deliveries.values())
    if (isSameGroup(row, of) && wasSent(row)) mark = Math.max(mark, row.order!.at);
  return mark;
}

function isSameGroup(a: DeliveryRow, b: DeliveryRow): boolean {
  return a.order !== undefined && a.order.key === b.order?.key && a.subscriptionId === b.subscriptionId;
}

/** True when a higher revision of its subject may have been seen. */
export function isSuperseded(state: MemoryState, row: DeliveryRow): boolean {
  return row.order !== undefined && isRevised(row.order.key) && row.order.at < sentMark(state, row);
}

/** After any change in the group of this row: cancels what came too late, and lets the first one go. */
export function settleOrder(state: MemoryState, of: DeliveryRow, now: number): boolean {
  if (!of.order) return false;
  const mark = isRevised(of.order.key) ? sentMark(state, of) : Number.NEGATIVE_INFINITY;
  const group: DeliveryRow[] = [];
  for (const row of [...state.pending.values()]) {
    if (!isSameGroup(row, of)) continue;
    if (row.order!.at < mark && !wasSent(row))
      state.putDelivery({ ...row, status: "cancelled", reason: "superseded", updatedAt: now });
    else group.push(row);
  }
  const head = group.find((row) => row.dueAt < blockedAt);
  if (head && wasSent(head)) return false;
  const [first] = group.sort((a, b) => a.order!.at - b.order!.at || compareText(a.id, b.id));
  if (!first || first === head) return false;
  if (head) state.putDelivery({ ...head, dueAt: blockedAt });
  state.putDelivery({ ...first, dueAt: placeAt(first.nextAttemptAt, first.replayId) });
  return true;
}

/** After its subscription was enabled: rows that were cancelled or failed meanwhile may have been heads. */
export function settleLane(state: MemoryState, subscriptionId: string, now: number): void {
  for (const row of [...state.pending.values()])
    if (row.subscriptionId === subscriptionId && row.dueAt === blockedAt) settleOrder(state, row, now);
}

/** After the subscription gave up its order: nothing waits for anything. */
export function dropOrder(state: MemoryState, subscriptionId: string): void {
  for (const row of [...state.pending.values()]) {
    if (row.subscriptionId !== subscriptionId || !row.order) continue;
    const { order: _order, ...rest } = row;
    const dueAt = row.dueAt === blockedAt ? placeAt(row.nextAttemptAt, row.replayId) : row.dueAt;
    state.putDelivery({ ...rest, dueAt });
  }
}
