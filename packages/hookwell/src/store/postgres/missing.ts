import type { Row } from "../../adapters/seam.ts";
import type { Match } from "../contract.ts";
import type { MissingDelivery, MissingFill, MissingKey } from "../replay-contract.ts";
import { isWanted, takesEvents } from "../replay-work.ts";
import { storable } from "../storable.ts";
import type { Database } from "./database.ts";
import { toEvent } from "./event-rows.ts";
import { missingTexts } from "./missing-sql.ts";
import { lockLanes, settleOrder } from "./ordering.ts";
import { readSubscription } from "./replays.ts";
import { defined, flag, integer, optionalText, text } from "./rows.ts";
import { toSubscription } from "./subscription-rows.ts";

/** Variant of the body that capture freezes. */
const captureVariant = "";

export async function takeMissing(
  db: Database,
  routes: readonly string[],
  limit: number,
  now: string | null,
): Promise<MissingDelivery[]> {
  const rows = await db.run({
    text: missingTexts(db.schema).take,
    params: [now, JSON.stringify(routes), String(limit)],
  });
  const subscriptions = new Map<string, Row | undefined>();
  for (const id of new Set(rows.map((row) => text(row, "note_subscription"))))
    subscriptions.set(id, (await db.run(readSubscription(db.schema, id)))[0]);
  return rows.map((row) => {
    const event = optionalText(row, "id") === undefined ? undefined : toEvent(row);
    const subscription = subscriptions.get(text(row, "note_subscription"));
    return defined<MissingDelivery>({
      replayId: text(row, "note_replay"),
      projectId: text(row, "note_project"),
      eventId: text(row, "note_event"),
      event,
      match: event && subscription && matchOf(event, subscription),
      tries: integer(row, "note_tries"),
    });
  });
}

function matchOf(event: NonNullable<MissingDelivery["event"]>, row: Row): Match | undefined {
  const subscription = toSubscription(row);
  if (!takesEvents(subscription.status) || !isWanted(event, subscription)) return undefined;
  return defined<Match>({
    subscriptionId: subscription.id,
    endpointId: text(row, "endpoint_id"),
    fields: subscription.fields,
    ordered: subscription.ordering === "subject" ? true : undefined,
  });
}

export async function fillMissing(
  db: Database,
  items: readonly MissingFill[],
  now: string | null,
): Promise<number> {
  if (items.length === 0) return 0;
  const texts = missingTexts(db.schema);
  const lanes = items.flatMap(({ delivery }) => (delivery?.ordered ? [delivery.subscriptionId] : []));
  return await db.program({ kind: "own" }, function* () {
    const replays = [...new Set(items.map(({ replayId }) => replayId))];
    yield { text: texts.lock, params: [JSON.stringify(replays)] };
    if (lanes.length > 0) yield* lockLanes(db.schema, [...new Set(lanes)]);
    const made = yield {
      text: texts.fill(items.length),
      params: [now, JSON.stringify(items.map(fillJson))],
    };
    const ordered = made.filter((row) => flag(row, "ordered")).map((row) => text(row, "id"));
    yield* settleOrder(db.schema, ordered, now);
    return made.length;
  });
}

function fillJson({ replayId, projectId, eventId, delivery, patch }: MissingFill) {
  const { body } = delivery ?? {};
  return {
    replay_id: replayId,
    project_id: projectId,
    event_id: eventId,
    id: delivery?.id,
    subscription_id: delivery?.subscriptionId,
    endpoint_id: delivery?.endpointId,
    variant: body?.variant ?? captureVariant,
    body:
      body && Buffer.from(body.bytes.buffer, body.bytes.byteOffset, body.bytes.byteLength).toString("base64"),
    ordered: delivery?.ordered === true,
    patch,
  };
}

export async function failMissing(
  db: Database,
  { replayId, eventId }: MissingKey,
  error: string,
  retryInMs: number | null,
  now: string | null,
): Promise<boolean> {
  const texts = missingTexts(db.schema);
  return await db.program({ kind: "own" }, function* () {
    yield { text: texts.lock, params: [JSON.stringify([replayId])] };
    const counted =
      retryInMs === null
        ? yield { text: texts.giveUp, params: [replayId, eventId, storable(error)] }
        : yield { text: texts.again, params: [now, replayId, eventId, String(Math.round(retryInMs))] };
    return counted.length > 0;
  });
}
