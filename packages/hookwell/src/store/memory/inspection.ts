import { mostRoutes, type Undispatched } from "../inspection-contract.ts";
import type { MemoryState } from "./state.ts";

/** Undispatched events by route. */
export function undispatched(state: MemoryState): Undispatched[] {
  const oldest = new Map<string, number>();
  for (const { record } of state.events.values()) {
    if (record.state !== "new") continue;
    const at = record.capturedAt.getTime();
    oldest.set(record.route, Math.min(at, oldest.get(record.route) ?? at));
  }
  return [...oldest]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, mostRoutes)
    .map(([route, at]) => ({ route, oldestAt: new Date(at) }));
}
