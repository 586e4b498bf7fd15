import {
  type EmitResult,
  type HookwellCore,
  type IdFunc,
  NotFoundError,
  type UnknownEvent,
  type Visibility,
} from "hookwell";
import type { z } from "zod";
import type { Api } from "../http/api.ts";
import { type Caller, narrowed, ownParts } from "../http/caller.ts";
import { emptyPage, encodeCursor, pageAnswer, pageFrom, pageOf } from "../http/paging.ts";
import { apiProblem } from "../http/problems.ts";
import { idParams } from "../shapes/common.ts";
import { deliveryToJson } from "../shapes/delivery.ts";
import {
  emittedOneOrMany,
  event,
  eventDetail,
  eventQuery,
  eventToJson,
  explainQuery,
  explanation,
  explanationToJson,
  type newEvent,
  newEvents,
  oneEventQuery,
} from "../shapes/event.ts";

const tag = "Events";
/** Room for 100 events near their limit of 256 KiB would be 25 MiB; a batch of large events is sent in parts. */
const maxBatchBytes = 8 * 1_048_576;

export function addEventRoutes(api: Api, hooks: HookwellCore): void {
  api.route(
    {
      method: "post",
      path: "/v1/events",
      id: "emitEvents",
      tag,
      summary: "Emit one event, or up to 100",
      description: "Of several, all are written or none.",
      scopes: ["emit"],
      // Ids that were not given are made from the Idempotency-Key.
      repeatable: true,
      body: newEvents,
      maxBytes: maxBatchBytes,
      answers: {
        202: {
          description: "Written; `duplicate` when it was there already. A list answers a list.",
          schema: emittedOneOrMany,
        },
      },
      errors: [
        "unknown_event_type",
        "event_schema_failed",
        "event_mismatch",
        "revision_conflict",
        "payload_too_large",
      ],
      example: {
        id: "order-42-paid",
        project_id: "live",
        type: "order.paid",
        subject: "order:42",
        revision: 3,
        data: { id: "42", total: 1250 },
      },
    },
    async ({ caller, body, first }) => {
      if (caller.ownerId !== undefined)
        throw apiProblem("missing_scope", "Events are not emitted on behalf of one owner.");
      return { status: 202, body: await emitAll(hooks, caller, body, first?.eventIds()) };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/events",
      id: "listEvents",
      tag,
      summary: "List events, newest first",
      scopes: ["read"],
      query: eventQuery,
      answers: { 200: { description: "One page.", schema: pageOf(event) } },
    },
    async ({ caller, query }) => {
      const filter = narrowed(caller, {
        id: query.id,
        type: query.type,
        subject: query.subject,
        projectId: query.project_id,
        tenantId: query.tenant_id,
        outcome: query.outcome,
        since: query.since,
        until: query.until,
      });
      if (!filter) return { status: 200, body: emptyPage };
      const page = await hooks.events.list(filter, pageFrom(query));
      return { status: 200, body: pageAnswer(page, eventToJson) };
    },
  );

  api.route(
    {
      method: "get",
      path: "/v1/events/{id}",
      id: "getEvent",
      tag,
      summary: "Get one event with its deliveries",
      scopes: ["read"],
      params: idParams,
      query: oneEventQuery,
      answers: { 200: { description: "The event.", schema: eventDetail } },
    },
    async ({ caller, params, query }) => ({
      status: 200,
      body: await eventWithDeliveries(hooks, caller, params.id, query.project_id),
    }),
  );

  api.route(
    {
      method: "get",
      path: "/v1/events/{id}/explain",
      id: "explainEvent",
      tag,
      summary: "Why each subscription got an event, or did not",
      description:
        "For each subscription of the event's project, newest first, as it is now: that it matched, with the delivery, or the first rule that kept it off.",
      scopes: ["read"],
      params: idParams,
      query: explainQuery,
      answers: { 200: { description: "One page.", schema: pageOf(explanation) } },
    },
    async ({ caller, params, query }) => {
      const visibility = eventVisibility(caller, params.id, query.project_id);
      const page = await hooks.events.explain(params.id, {
        visibility,
        subscriptionId: query.subscription_id,
        ...pageFrom(query),
      });
      return { status: 200, body: pageAnswer(page, explanationToJson) };
    },
  );

  api.route(
    {
      method: "post",
      path: "/v1/events/{id}/release",
      id: "releaseEvent",
      tag,
      summary: "Send a parked event through dispatch again",
      scopes: ["operate"],
      params: idParams,
      query: oneEventQuery,
      answers: { 200: { description: "As it is now.", schema: eventDetail } },
      errors: ["invalid_state"],
    },
    async ({ caller, params, query }) => {
      const visibility = eventVisibility(caller, params.id, query.project_id);
      await hooks.events.release(params.id, { visibility });
      return { status: 200, body: await eventWithDeliveries(hooks, caller, params.id, query.project_id) };
    },
  );
}

type NewEvent = z.output<typeof newEvent>;

async function emitAll(
  hooks: HookwellCore,
  caller: Caller,
  body: NewEvent | readonly NewEvent[],
  newId?: IdFunc,
): Promise<EmitResult | readonly EmitResult[]> {
  if (!isList(body)) {
    const { type, data, ...facts } = unknownEvent(caller, body, "", newId);
    return hooks.emitUnknown(type, data, { ...facts, tx: "own" });
  }
  const events = body.map((event, index) => unknownEvent(caller, event, `/${index}`, newId));
  return hooks.emitManyUnknown(events, { tx: "own" });
}

function isList(body: NewEvent | readonly NewEvent[]): body is readonly NewEvent[] {
  return Array.isArray(body);
}

function unknownEvent(
  caller: Caller,
  event: NewEvent,
  pointer: string,
  newId: IdFunc | undefined,
): UnknownEvent<unknown> {
  const { projectId, tenantId } = ownParts(caller, event, pointer);
  return {
    type: event.type,
    data: event.data,
    id: event.id ?? newId?.(),
    projectId,
    tenantId,
    occurredAt: event.occurred_at,
    subject: event.subject,
    revision: event.revision,
    actor: event.actor,
    audience: event.audience,
  };
}

/** What the caller sees, in the project that it names. Another project than its own has nothing for it. */
function eventVisibility(caller: Caller, id: string, projectId: string | undefined): Visibility {
  const visibility = narrowed<Visibility>(caller, { projectId });
  if (!visibility) throw new NotFoundError("event", id);
  return visibility;
}

async function eventWithDeliveries(
  hooks: HookwellCore,
  caller: Caller,
  id: string,
  projectId: string | undefined,
): Promise<z.input<typeof eventDetail>> {
  const visibility = eventVisibility(caller, id, projectId);
  const record = await hooks.events.get(id, visibility);
  const page = await hooks.deliveries.list(
    { ...visibility, projectId: record.projectId, eventId: id },
    { limit: 100 },
  );
  return {
    ...eventToJson(record),
    deliveries: page.items.map(deliveryToJson),
    deliveries_cursor: page.next ? encodeCursor(page.next) : null,
  };
}
