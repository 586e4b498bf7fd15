import { EventMismatchError, RevisionConflictError } from "../../model/errors.ts";
import type { CaptureInput, CaptureResult, EventRecord } from "../../model/event.ts";
import { deliveryId } from "../../model/ids.ts";
import { type Matchable, matches } from "../../model/matching.ts";
import type { Match } from "../contract.ts";
import { copyEvent } from "./copies.ts";
import {
  bodyKey,
  compareText,
  type EventRow,
  eventKey,
  type MemoryState,
  pairKey,
  revisionKey,
} from "./state.ts";
import { defined } from "./view.ts";

/** Beyond so many matches, fan-out `emit` leaves the event to the dispatcher. */
const mostEmitMatches = 1_000;
/** Name of the one body that capture writes. */
/** Variant of the body that capture freezes. */
export const emitVariant = "";

/** Writes events in order; the first refused one throws. `firstSeq` numbers them. */
export function capture(
  state: MemoryState,
  inputs: readonly CaptureInput[],
  firstSeq: number,
  now: number,
): CaptureResult[] {
  return inputs.map((input, index) => captureOne(state, input, firstSeq + index, now));
}

function captureOne(state: MemoryState, input: CaptureInput, seq: number, now: number): CaptureResult {
  const key = eventKey(input);
  const existing = state.events.get(key);
  if (existing) {
    if (existing.contentHash !== input.contentHash) throw new EventMismatchError(input.id);
    // Only what capture fanned out once is fanned out again; everything else is the dispatcher's.
    if (existing.record.fannedOut) fanOut(state, input, now);
    return { id: input.id, duplicate: true };
  }
  const { subject, revision } = input;
  if (subject !== undefined && revision !== undefined) {
    const used = revisionKey(input.projectId, input.tenantId, subject, revision);
    if (state.revisions.has(used)) throw new RevisionConflictError(subject, revision);
    state.revisions.set(used, key);
  }
  const fannedOut = fanOut(state, input, now);
  state.putEvent({
    record: defined<EventRecord>({
      projectId: input.projectId,
      id: input.id,
      type: input.type,
      tenantId: input.tenantId,
      subject,
      revision,
      actor: input.actor && { ...input.actor },
      audience: input.audience && [...input.audience],
      occurredAt: new Date(input.occurredAt),
      capturedAt: new Date(now),
      data: input.data,
      state: "new",
      route: fannedOut ? "*" : input.route,
      fannedOut,
      tries: 0,
    }),
    contentHash: input.contentHash,
    seq,
    dueAt: now,
  });
  return { id: input.id, duplicate: false };
}

/** Makes the body and the rows that are missing. False when that is left to the dispatcher. */
function fanOut(state: MemoryState, input: CaptureInput, now: number): boolean {
  if (!input.fanOut) return false;
  const { filters, operational } = input.fanOut;
  const found = matchesOf(state, { ...input, filters, operational });
  const body = bodyKey(input.projectId, input.id, emitVariant);
  const first = !state.bodies.has(body);
  if (first && found.length > mostEmitMatches) return false;
  // What must be put in order is the dispatcher's: capture waits for nobody.
  if (first && input.subject !== undefined && found.some(({ ordered }) => ordered)) return false;
  // A repeat keeps the first body, so that a row added later has the first rows' bytes.
  if (first) state.putBody(input, emitVariant, Buffer.from(input.fanOut.body, "utf8"));
  for (const match of found) {
    if (state.pairs.has(pairKey(input.id, match.subscriptionId))) continue;
    state.putDelivery({
      id: deliveryId(input.id, match.subscriptionId),
      projectId: input.projectId,
      eventId: input.id,
      subscriptionId: match.subscriptionId,
      endpointId: match.endpointId,
      variant: emitVariant,
      type: input.type,
      status: "pending",
      attempts: 0,
      round: 1,
      nextAttemptAt: now,
      dueAt: now,
      createdAt: now,
      updatedAt: now,
    });
  }
  return true;
}

/** Active and paused subscriptions that match, by id. */
export function matchesOf(state: MemoryState, query: Matchable): Match[] {
  const found: Match[] = [];
  for (const { record, endpointId } of state.subscriptions.values())
    if (matches(query, record))
      found.push(
        defined<Match>({
          subscriptionId: record.id,
          endpointId,
          fields: record.fields && [...record.fields],
          ordered: record.ordering === "subject" ? true : undefined,
        }),
      );
  return found.sort((a, b) => compareText(a.subscriptionId, b.subscriptionId));
}

/** New events of these routes that are due for a try: those due first, in capture order. */
export function takeNew(
  state: MemoryState,
  routes: readonly string[],
  limit: number,
  now: number,
): EventRecord[] {
  return [...state.newEvents.values()]
    .filter((row) => row.dueAt <= now && routes.includes(row.record.route))
    .sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq)
    .slice(0, limit)
    .sort((a, b) => a.seq - b.seq)
    .map((row: EventRow) => copyEvent(row.record));
}
