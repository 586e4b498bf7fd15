import { runProgramSync } from "../../adapters/seam.ts";
import type { Match } from "../contract.ts";
import { behindLive, blockedAt, orderKey } from "../ordering.ts";
import type { MissingDelivery, MissingFill, MissingKey } from "../replay-contract.ts";
import { isWanted, takesEvents } from "../replay-work.ts";
import { storable } from "../storable.ts";
import { captureVariant } from "./capture.ts";
import type { Connection } from "./connection.ts";
import { eventColumns, toEventRecord } from "./event-rows.ts";
import { wakeLanes } from "./lanes.ts";
import { settleOrder } from "./ordering.ts";
import { integer, optionalInteger, optionalText, present, text } from "./rows.ts";
import { readSubscription } from "./walk.ts";

const takeText = `
SELECT replay_id, project_id, event_id, subscription_id, tries, due_at
FROM hookwell_replay_missing INDEXED BY hookwell_replay_missing_due
WHERE route = ? AND due_at <= ? ORDER BY due_at, replay_id, event_id LIMIT CAST(? AS INTEGER)`;
const eventText = `
SELECT ${eventColumns} FROM hookwell_event e INDEXED BY hookwell_event_key WHERE e.id = ? AND e.project_id = ?`;

export function takeMissing(
  connection: Connection,
  routes: readonly string[],
  limit: number,
  now: number,
): MissingDelivery[] {
  const rows = [...new Set(routes)].flatMap((route) => connection.all(takeText, [route, now, limit]));
  return rows
    .sort(
      (a, b) =>
        integer(a.due_at) - integer(b.due_at) ||
        compare(text(a.replay_id), text(b.replay_id)) ||
        compare(text(a.event_id), text(b.event_id)),
    )
    .slice(0, limit)
    .map((row) => {
      const [stored] = connection.all(eventText, [text(row.event_id), text(row.project_id)]);
      const event = stored && toEventRecord(stored);
      const subscription = readSubscription(connection, text(row.subscription_id));
      const wanted =
        event && subscription && takesEvents(subscription.status) && isWanted(event, subscription);
      return present<MissingDelivery>({
        replayId: text(row.replay_id),
        projectId: text(row.project_id),
        eventId: text(row.event_id),
        event,
        match: wanted
          ? present<Match>({
              subscriptionId: subscription.id,
              endpointId: subscription.endpointId,
              fields: subscription.fields,
              ordered: subscription.ordering === "subject" ? true : undefined,
            })
          : undefined,
        tries: integer(row.tries),
      });
    });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const dropText =
  "DELETE FROM hookwell_replay_missing WHERE replay_id = ? AND event_id = ? RETURNING replay_id";
const countText = `
UPDATE hookwell_replay SET noted = noted - 1, queued = queued + ?, skipped = skipped + ?, error = coalesce(?, error)
WHERE id = ?`;
const factsText = `
SELECT e.type, e.tenant_id, e.subject, e.revision, e.seq FROM hookwell_event e INDEXED BY hookwell_event_key
WHERE e.id = ? AND e.project_id = ?`;
const patchText = "UPDATE hookwell_event SET patch = coalesce(patch, ?) WHERE id = ? AND project_id = ?";
const bodyText = `
INSERT INTO hookwell_body (project_id, event_id, variant, bytes) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING`;
const deliveryText = `
INSERT INTO hookwell_delivery (id, project_id, event_id, subscription_id, endpoint_id, variant, type, status,
  attempts, round, next_attempt_at, due_at, created_at, updated_at, order_key, order_at, replay_id)
VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', 0, 1, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
RETURNING id`;

/** Inside a write: those still noted get body and delivery. */
export function fillMissing(connection: Connection, items: readonly MissingFill[], now: number): number {
  const lanes = new Set<string>();
  const ordered: string[] = [];
  let made = 0;
  for (const item of items) {
    if (connection.all(dropText, [item.replayId, item.eventId]).length === 0) continue;
    const filled = fill(connection, item, now);
    connection.all(countText, [filled ? 1 : 0, filled ? 0 : 1, null, item.replayId]);
    if (!filled || !item.delivery) continue;
    made++;
    lanes.add(item.delivery.subscriptionId);
    if (item.delivery.ordered) ordered.push(item.delivery.id);
  }
  for (const id of ordered) runProgramSync(settleOrder(id, now), connection.run);
  if (lanes.size > 0) connection.run(wakeLanes(lanes, now));
  return made;
}

function fill(
  connection: Connection,
  { replayId, projectId, eventId, delivery, patch }: MissingFill,
  now: number,
): boolean {
  const [event] = connection.all(factsText, [eventId, projectId]);
  if (!delivery || !event) return false;
  const { id, subscriptionId, endpointId, body } = delivery;
  const revision = optionalInteger(event.revision);
  const key = delivery.ordered
    ? orderKey({ tenantId: text(event.tenant_id), subject: optionalText(event.subject), revision })
    : undefined;
  const made = connection.all(deliveryText, [
    id,
    projectId,
    eventId,
    subscriptionId,
    endpointId,
    body?.variant ?? captureVariant,
    text(event.type),
    now,
    key === undefined ? behindLive + now : blockedAt,
    now,
    now,
    key ?? null,
    key === undefined ? null : (revision ?? integer(event.seq)),
    replayId,
  ]);
  if (made.length === 0) return false;
  if (body) connection.all(bodyText, [projectId, eventId, body.variant, body.bytes]);
  if (patch !== undefined) connection.all(patchText, [patch, eventId, projectId]);
  return true;
}

const againText = `
UPDATE hookwell_replay_missing SET tries = tries + 1, due_at = ? WHERE replay_id = ? AND event_id = ?
RETURNING replay_id`;

/** Inside a write: counts a failed try. */
export function failMissing(
  connection: Connection,
  { replayId, eventId }: MissingKey,
  error: string,
  retryInMs: number | null,
  now: number,
): boolean {
  if (retryInMs !== null)
    return connection.all(againText, [now + Math.round(retryInMs), replayId, eventId]).length > 0;
  if (connection.all(dropText, [replayId, eventId]).length === 0) return false;
  connection.all(countText, [0, 1, storable(error), replayId]);
  return true;
}
