import type { Program, Row } from "../../adapters/seam.ts";
import { EventMismatchError, RevisionConflictError } from "../../model/errors.ts";
import type { CaptureInput, CaptureResult } from "../../model/event.ts";
import { deliveryId } from "../../model/ids.ts";
import type { Match } from "../contract.ts";
import { wakeLanes } from "./lanes.ts";
import { matchProgram } from "./matching.ts";
import { integer, optionalText, statement, text } from "./rows.ts";

/** Fan-out in capture falls back to dispatch beyond this many matching subscriptions. */
const mostMatches = 1_000;
/** Variant of the body that capture freezes: such types have one body for everybody. */
export const captureVariant = "";

/** Columns of an event that say what it is, in the order of {@link eventValues}. */
const eventColumns = `project_id, id, type, tenant_id, subject, revision, actor, audience, occurred_at, captured_at,
  content_hash, route, data`;
const eventPlaces = Array.from(eventColumns.split(","), (_, place) => place);

const insertText = (source: string): string => `
INSERT INTO hookwell_event (fanned_out, state, due_at, tries, ${eventColumns})
${source}
ON CONFLICT DO NOTHING
RETURNING seq, project_id, id, content_hash`;

// The first statement is a write: in a transaction that began DEFERRED it waits for the lock like any write,
// where a read first could only fail later. It is also the only one of an ordinary capture.
const insertEventText = insertText(`VALUES (0, 'new', 0, 0, ${eventPlaces.map(() => "?").join(", ")})`);

const insertEventsText = insertText(`
SELECT 0, 'new', 0, 0, ${eventPlaces.map((place) => `value ->> ${place}`).join(", ")}
FROM json_each(?)
WHERE true
ORDER BY key`);

const existingEventsText = `
SELECT j.key AS place, e.content_hash, e.state, e.fanned_out
FROM json_each(?) j
LEFT JOIN hookwell_event e INDEXED BY hookwell_event_key ON e.id = j.value ->> 1 AND e.project_id = j.value ->> 0
ORDER BY j.key`;

const forgetText = "DELETE FROM hookwell_event WHERE seq IN (SELECT value FROM json_each(?))";

const bodyText = `
INSERT INTO hookwell_body (project_id, event_id, variant, bytes) VALUES (?, ?, ?, CAST(? AS BLOB))
ON CONFLICT DO NOTHING`;

const deliveriesText = `
INSERT INTO hookwell_delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, status,
  attempts, round, next_attempt_at, due_at, created_at, updated_at)
SELECT j.value ->> 'id', e.project_id, e.id, j.value ->> 'subscription', j.value ->> 'endpoint',
  j.value ->> 'variant', e.type, 'pending', 0, 1, j.value ->> 'now', j.value ->> 'now', j.value ->> 'now',
  j.value ->> 'now'
FROM json_each(?) j
CROSS JOIN hookwell_event e INDEXED BY hookwell_event_key ON e.id = j.value ->> 'event' AND e.project_id = j.value ->> 'project'
WHERE true
ON CONFLICT DO NOTHING
RETURNING subscription_id`;

const fannedOutText = `
UPDATE hookwell_event SET fanned_out = 1, route = '*' WHERE id = ? AND project_id = ? AND state = 'new'`;

/** The event that has the id already; without a hash there is none, so the revision was in the way. */
interface Existing {
  readonly contentHash: string | undefined;
  readonly state: string | undefined;
  readonly fannedOut: boolean;
}

/**
 * Writes events, all or none. A refusal is found before anything but the events themselves is written, and those
 * are taken back, so the transaction can go on.
 */
export function* captureProgram(events: readonly CaptureInput[], now: number): Program<CaptureResult[]> {
  if (events.length === 0) return [];
  const values = events.map((event) => eventValues(event, now));
  const inserted =
    values.length === 1
      ? yield statement(insertEventText, ...values[0]!)
      : yield statement(insertEventsText, JSON.stringify(values));
  // With the hash, because a later event of the call may have been written in the place of one that was refused.
  const fresh = new Set(
    inserted.map((row) => nameOf(text(row.project_id), text(row.id), text(row.content_hash))),
  );
  const results: CaptureResult[] = [];
  const first: boolean[] = [];
  for (const event of events) {
    const made = fresh.delete(nameOf(event.projectId, event.id, event.contentHash));
    first.push(made);
    results.push({ id: event.id, duplicate: !made });
  }
  let existing: readonly (Existing | undefined)[] = [];
  if (first.includes(false)) {
    const rows = yield statement(existingEventsText, JSON.stringify(values));
    existing = rows.map(toExisting);
    const refusal = firstRefusal(events, first, existing);
    if (refusal) {
      yield statement(forgetText, JSON.stringify(inserted.map((row) => integer(row.seq))));
      throw refusal;
    }
  }
  for (const [index, event] of events.entries())
    if (event.fanOut) yield* fanOut(event, event.fanOut, first[index] ? undefined : existing[index], now);
  return results;
}

function nameOf(projectId: string, id: string, contentHash: string): string {
  return [projectId, id, contentHash].join("\u0000");
}

function eventValues(event: CaptureInput, now: number): (string | number | null)[] {
  return [
    event.projectId,
    event.id,
    event.type,
    event.tenantId ?? "",
    event.subject ?? null,
    event.revision ?? null,
    event.actor ? JSON.stringify(event.actor) : null,
    event.audience ? JSON.stringify(event.audience) : null,
    event.occurredAt.getTime(),
    now,
    event.contentHash,
    event.route,
    event.data,
  ];
}

function toExisting(row: Row): Existing {
  return {
    contentHash: optionalText(row.content_hash),
    state: optionalText(row.state),
    fannedOut: integer(row.fanned_out) === 1,
  };
}

function firstRefusal(
  events: readonly CaptureInput[],
  first: readonly boolean[],
  existing: readonly (Existing | undefined)[],
): Error | undefined {
  for (const [index, event] of events.entries()) {
    if (first[index]) continue;
    const found = existing[index]!;
    if (found.contentHash === event.contentHash) continue;
    const isLater = (other: CaptureInput, place: number): boolean =>
      place > index && first[place]! && other.id === event.id && other.projectId === event.projectId;
    if (found.contentHash !== undefined && !events.some(isLater)) return new EventMismatchError(event.id);
    return new RevisionConflictError(event.subject!, event.revision!);
  }
  return undefined;
}

/** Makes the deliveries of a new event, or those that a repeated one lacks. */
function* fanOut(
  event: CaptureInput,
  { body, filters, operational }: NonNullable<CaptureInput["fanOut"]>,
  known: Existing | undefined,
  now: number,
): Program<void> {
  // What capture did not fan out the first time is the dispatcher's.
  if (known && !known.fannedOut) return;
  const limit = known ? Number.MAX_SAFE_INTEGER : mostMatches + 1;
  const matches = yield* matchProgram({ ...event, filters, operational: operational ?? false }, limit);
  if (!known && matches.length > mostMatches) return;
  // What must be put in order is the dispatcher's: capture waits for nobody.
  if (!known && event.subject !== undefined && matches.some(({ ordered }) => ordered)) return;
  // Kept also without a match: a row that a repeat adds later has the bytes of the first emit.
  yield statement(bodyText, event.projectId, event.id, captureVariant, body);
  const made = matches.length > 0 ? yield statement(deliveriesText, deliveriesJson(event, matches, now)) : [];
  if (!known) yield statement(fannedOutText, event.id, event.projectId);
  // Nobody will dispatch it again, so its lanes are woken here: on SQLite that takes no lock we do not have.
  else if (known.state === "dispatched" && made.length > 0)
    yield wakeLanes(
      made.map((row) => text(row.subscription_id)),
      now,
    );
}

function deliveriesJson(event: CaptureInput, matches: readonly Match[], now: number): string {
  return JSON.stringify(
    matches.map(({ subscriptionId, endpointId }) => ({
      id: deliveryId(event.id, subscriptionId),
      project: event.projectId,
      event: event.id,
      subscription: subscriptionId,
      endpoint: endpointId,
      variant: captureVariant,
      now,
    })),
  );
}
