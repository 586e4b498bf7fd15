import type { EventKey } from "../../model/event.ts";
import type { DeliveryOfEvent } from "../explain-contract.ts";
import { type MemoryState, pairKey } from "./state.ts";

export function deliveriesOfEvent(
  state: MemoryState,
  event: EventKey,
  subscriptionIds: readonly string[],
): DeliveryOfEvent[] {
  return [...subscriptionIds].sort().flatMap((subscriptionId) => {
    const id = state.pairs.get(pairKey(event.id, subscriptionId));
    const row = id === undefined ? undefined : state.deliveries.get(id);
    return row && row.projectId === event.projectId
      ? [{ id: row.id, subscriptionId, status: row.status }]
      : [];
  });
}
