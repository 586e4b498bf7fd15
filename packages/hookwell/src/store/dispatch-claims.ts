import type { DispatchItem, DispatchRoom } from "./contract.ts";

/**
 * The rows of these events that their dispatch claims at once: one of each open lane per turn, lanes in id order, at
 * most its room for each lane, until the limit. PostgreSQL has the same rule in SQL for many events.
 *
 * @param isOpen whether a claim would take the next row of the lane at once, asked once for each lane
 */
export function claimedAtOnce(
  items: readonly DispatchItem[],
  room: DispatchRoom | undefined,
  isOpen: (subscriptionId: string) => boolean,
): ReadonlySet<string> {
  const taken = new Set<string>();
  if (!room) return taken;
  const lanes = new Map<string, string[]>();
  const roomOf = (lane: string): number =>
    Math.min(room.rooms?.get(lane) ?? room.room ?? room.limit, room.limit);
  for (const { id, subscriptionId, ordered } of items.flatMap(({ deliveries }) => deliveries)) {
    if (ordered) continue;
    let rows = lanes.get(subscriptionId);
    if (!rows) {
      rows = [];
      lanes.set(subscriptionId, rows);
    }
    rows.push(id);
  }
  const open = [...lanes]
    .filter(([lane]) => roomOf(lane) > 0 && isOpen(lane))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([lane, rows]) => rows.slice(0, roomOf(lane)));
  for (let turn = 0; open.some((rows) => turn < rows.length); turn++)
    for (const rows of open) {
      const id = rows[turn];
      if (taken.size === room.limit) return taken;
      if (id !== undefined) taken.add(id);
    }
  return taken;
}
