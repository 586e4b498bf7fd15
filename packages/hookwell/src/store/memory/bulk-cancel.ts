import type { DeliverySelection } from "../../model/replay.ts";
import type { TimeRange } from "../contract.ts";
import type { CancelPosition, CancelWindow } from "../replay-contract.ts";
import { isWithin } from "./lists.ts";
import { settleOrder } from "./ordering.ts";
import { isSelected } from "./replays.ts";
import { compareText, type DeliveryRow, type MemoryState } from "./state.ts";

/** Cancels what it selects among the next `look` pending rows, in the order of lane, place in the lane, id. */
export function cancelWindow(
  state: MemoryState,
  selection: DeliverySelection,
  period: TimeRange,
  after: CancelPosition | undefined,
  { look, dryRun }: { readonly look: number; readonly dryRun: boolean },
  now: number,
): CancelWindow {
  const seen = [...state.pending.values()]
    .filter((row) => after === undefined || compareRows(row, after) > 0)
    .sort(compareRows)
    .slice(0, look);
  const hits = seen.filter((row) => isWithin(row.createdAt, period) && isSelected(state, row, selection));
  if (!dryRun) {
    for (const row of hits)
      state.putDelivery({ ...row, status: "cancelled", reason: "by_hand", updatedAt: now });
    for (const row of hits) settleOrder(state, row, now);
  }
  const last = seen.length === look ? seen.at(-1)! : undefined;
  return {
    count: hits.length,
    ...(last && { next: { subscriptionId: last.subscriptionId, dueAt: last.dueAt, id: last.id } }),
  };
}

function compareRows(a: Pick<DeliveryRow, "subscriptionId" | "dueAt" | "id">, b: CancelPosition): number {
  return compareText(a.subscriptionId, b.subscriptionId) || a.dueAt - b.dueAt || compareText(a.id, b.id);
}
