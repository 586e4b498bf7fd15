import type { Program, Row, Statement } from "../../adapters/seam.ts";
import { InvalidStateError, NotFoundError } from "../../model/errors.ts";
import type { EventKey, EventRecord } from "../../model/event.ts";
import type { Matchable } from "../../model/matching.ts";
import { canMove, type EventState, eventTransitions } from "../../model/states.ts";
import type { DispatchItem, DispatchRoom, Match } from "../contract.ts";
import { storable } from "../storable.ts";
import { tokenStart } from "./claim.ts";
import { type Database, roundedCount } from "./database.ts";
import { dispatchOne } from "./dispatch-one.ts";
import { bodiesJson, deliveriesJson } from "./dispatch-parameters.ts";
import { dispatchTexts } from "./dispatch-sql.ts";
import { toEvent } from "./event-rows.ts";
import { lockLanes, settleOrder } from "./ordering.ts";
import { defined, integer, optionalJson, optionalText, text } from "./rows.ts";

export async function takeNew(
  db: Database,
  routes: readonly string[],
  limit: number,
  now: string | null,
): Promise<EventRecord[]> {
  const rows = await db.hot({
    text: dispatchTexts(db.schema).takeNew,
    params: [now, JSON.stringify(routes), String(limit)],
  });
  return rows.map(toEvent);
}

/** Asks each different question once: the events of a batch mostly ask the same. */
export async function matchSubscriptions(db: Database, queries: readonly Matchable[]): Promise<Match[][]> {
  const asked = new Map<string, number>();
  const places = queries.map((query) => {
    const key = JSON.stringify({
      project_id: query.projectId,
      tenant_id: query.tenantId ?? "",
      audience: query.audience ?? null,
      filters: query.filters,
      operational: query.operational === true,
    });
    const place = asked.get(key) ?? asked.size;
    asked.set(key, place);
    return place;
  });
  if (asked.size === 0) return [];
  const parameter = [...asked].map(([key, ord]) => ({ ord, ...(JSON.parse(key) as object) }));
  const rows = await db.hot({
    text: dispatchTexts(db.schema).match,
    params: [JSON.stringify(parameter)],
  });
  const found: Match[][] = [...asked].map(() => []);
  for (const row of rows)
    found[integer(row, "ord")]!.push(
      defined<Match>({
        subscriptionId: text(row, "subscription_id"),
        endpointId: text(row, "endpoint_id"),
        fields: optionalJson<string[]>(row, "fields"),
        ordered: text(row, "ordering") === "subject" ? true : undefined,
      }),
    );
  return places.map((place) => found[place]!.map((match) => ({ ...match })));
}

interface Dispatched {
  readonly dispatched: readonly EventKey[];
  /** Rows that were claimed as they were made, in the order given. */
  readonly claimed: readonly { readonly id: string; readonly leaseToken: string }[];
}

export async function dispatchEvents(
  db: Database,
  items: readonly DispatchItem[],
  now: string | null,
  room?: DispatchRoom,
): Promise<Dispatched> {
  if (items.length === 0) return { dispatched: [], claimed: [] };
  const [first] = items;
  const short = room && items.length === 1 ? await dispatchOne(db, first!, now, room) : undefined;
  const rows = short ?? (await dispatchAll(db, items, now, room));
  const dispatched: EventKey[] = [];
  const tokens = new Map<string, string>();
  for (const row of rows) {
    const leaseToken = optionalText(row, "lease_token");
    const id = text(row, "id");
    if (leaseToken === undefined) dispatched.push({ projectId: text(row, "project_id"), id });
    else tokens.set(id, leaseToken);
  }
  const claimed = items.flatMap(({ deliveries }) =>
    deliveries.flatMap(({ id }) => {
      const leaseToken = tokens.get(id);
      return leaseToken === undefined ? [] : [{ id, leaseToken }];
    }),
  );
  return { dispatched, claimed };
}

async function dispatchAll(
  db: Database,
  items: readonly DispatchItem[],
  now: string | null,
  room: DispatchRoom | undefined,
): Promise<readonly Row[]> {
  const events = items.map(({ projectId, id, patch }, ord) => ({ ord, project_id: projectId, id, patch }));
  const texts = dispatchTexts(db.schema);
  const count = roundedCount(events.length);
  const statement = (slot: string): Statement => {
    const params = [now, JSON.stringify(events), bodiesJson(items), deliveriesJson(items), slot];
    return room
      ? { text: texts.dispatchClaiming(count), params: [...params, ...roomParams(room)] }
      : { text: texts.dispatch(count), params };
  };
  const deliveries = items.flatMap((item) => item.deliveries);
  const ordered = deliveries.filter((delivery) => delivery.ordered);
  return await db.slots.use((slot) =>
    ordered.length === 0
      ? db.hot(statement(slot))
      : db.program({ kind: "own" }, function* () {
          yield* lockLanes(
            db.schema,
            deliveries.map((delivery) => delivery.subscriptionId),
          );
          const moved = yield statement(slot);
          yield* settleOrder(
            db.schema,
            ordered.map((delivery) => delivery.id),
            now,
          );
          return moved;
        }),
  );
}

function roomParams({ limit, leaseMs, room = limit, rooms }: DispatchRoom): string[] {
  return [
    String(limit),
    String(Math.min(room, limit)),
    JSON.stringify(Object.fromEntries(rooms ?? [])),
    String(leaseMs),
    tokenStart(),
  ];
}

export async function failDispatch(
  db: Database,
  key: EventKey,
  error: string,
  retryInMs: number | null,
  now: string | null,
): Promise<boolean> {
  const rows = await db.run({
    text: dispatchTexts(db.schema).fail,
    params: [
      now,
      key.projectId,
      key.id,
      storable(error),
      retryInMs === null ? null : String(Math.round(retryInMs)),
    ],
  });
  return rows.length > 0;
}

/** Sends a parked event through dispatch again. */
export function* releaseEvent(schema: string, key: EventKey, now: string | null): Program<void> {
  const texts = dispatchTexts(schema);
  const [row] = yield { text: texts.state, params: [key.projectId, key.id] };
  if (!row) throw new NotFoundError("event", key.id);
  const state = text(row, "state") as EventState;
  if (!canMove(eventTransitions, state, "new"))
    throw new InvalidStateError("event", key.id, state, "release");
  yield { text: texts.release, params: [now, key.projectId, key.id] };
}
