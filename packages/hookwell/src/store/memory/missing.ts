import { blockedAt, orderKey, placeAt } from "../ordering.ts";
import type { MissingDelivery, MissingFill, MissingKey } from "../replay-contract.ts";
import { isWanted, takesEvents } from "../replay-work.ts";
import { storable } from "../storable.ts";
import { emitVariant } from "./capture.ts";
import { copyEvent } from "./copies.ts";
import { settleOrder } from "./ordering.ts";
import {
  bodyKey,
  compareText,
  eventKey,
  type MemoryState,
  type MissingRow,
  missingKey,
  pairKey,
} from "./state.ts";
import { defined } from "./view.ts";

export function takeMissing(
  state: MemoryState,
  routes: readonly string[],
  limit: number,
  now: number,
): MissingDelivery[] {
  return [...state.missing.values()]
    .filter((row) => row.dueAt <= now && routes.includes(row.route))
    .sort(
      (a, b) => a.dueAt - b.dueAt || compareText(a.replayId, b.replayId) || compareText(a.eventId, b.eventId),
    )
    .slice(0, limit)
    .map(({ replayId, projectId, eventId, subscriptionId, tries }) => {
      const event = state.events.get(eventKey({ projectId, id: eventId }))?.record;
      const subscription = state.subscriptions.get(subscriptionId);
      const { record } = subscription ?? {};
      const wanted = event && record && takesEvents(record.status) && isWanted(event, record);
      return defined<MissingDelivery>({
        replayId,
        projectId,
        eventId,
        event: event && copyEvent(event),
        match: wanted
          ? defined({
              subscriptionId,
              endpointId: subscription!.endpointId,
              fields: record.fields && [...record.fields],
              ordered: record.ordering === "subject" ? (true as const) : undefined,
            })
          : undefined,
        tries,
      });
    });
}

export function fillMissing(state: MemoryState, items: readonly MissingFill[], now: number): number {
  let made = 0;
  const ordered: string[] = [];
  for (const item of items) {
    const row = state.missing.get(missingKey(item));
    if (!row) continue;
    const filled = fill(state, item, now);
    if (filled) made++;
    settle(state, row, filled);
    if (filled && item.delivery?.ordered) ordered.push(item.delivery.id);
  }
  for (const id of ordered) settleOrder(state, state.deliveries.get(id)!, now);
  return made;
}

function fill(
  state: MemoryState,
  { replayId, projectId, eventId, delivery, patch }: MissingFill,
  now: number,
): boolean {
  const key = { projectId, id: eventId };
  const event = state.events.get(eventKey(key));
  if (!delivery || !event || state.pairs.has(pairKey(eventId, delivery.subscriptionId))) return false;
  if (state.deliveries.has(delivery.id)) return false;
  const { variant, bytes } = delivery.body ?? { variant: emitVariant, bytes: undefined };
  if (bytes && !state.bodies.has(bodyKey(projectId, eventId, variant)))
    state.putBody(key, variant, Uint8Array.from(bytes));
  if (patch !== undefined && event.record.patch === undefined)
    state.putEvent({ ...event, record: { ...event.record, patch } });
  const place = delivery.ordered ? orderKey(event.record) : undefined;
  state.putDelivery({
    id: delivery.id,
    projectId,
    eventId,
    subscriptionId: delivery.subscriptionId,
    endpointId: delivery.endpointId,
    variant,
    type: event.record.type,
    status: "pending",
    attempts: 0,
    round: 1,
    nextAttemptAt: now,
    dueAt: place === undefined ? placeAt(now, replayId) : blockedAt,
    ...(place !== undefined && { order: { key: place, at: event.record.revision ?? event.seq } }),
    replayId,
    createdAt: now,
    updatedAt: now,
  });
  return true;
}

export function failMissing(
  state: MemoryState,
  key: MissingKey,
  error: string,
  retryInMs: number | null,
  now: number,
): boolean {
  const row = state.missing.get(missingKey(key));
  if (!row) return false;
  if (retryInMs === null) settle(state, row, false, storable(error));
  else
    state.missing.set(missingKey(key), { ...row, tries: row.tries + 1, dueAt: now + Math.round(retryInMs) });
  return true;
}

/** It is noted no more: queued, or skipped. */
function settle(state: MemoryState, row: MissingRow, queued: boolean, error?: string): void {
  state.missing.delete(missingKey(row));
  const replay = state.replays.get(row.replayId)!;
  const { record } = replay;
  const counted = queued ? { queued: record.queued + 1 } : { skipped: record.skipped + 1 };
  state.replays.set(row.replayId, {
    ...replay,
    noted: replay.noted - 1,
    record: { ...record, ...counted, ...(error !== undefined && { error }) },
  });
}
