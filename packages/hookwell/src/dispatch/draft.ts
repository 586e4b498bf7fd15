import type { EnvelopeEvent, EventTypeDefinition } from "../model/definition.ts";
import type { EventRecord } from "../model/event.ts";
import { deliveryId } from "../model/ids.ts";
import { type JsonValue, parseJson } from "../model/json.ts";
import type { DispatchItem, Match } from "../store/contract.ts";
import { type RenderedBody, renderBody, selectedNames } from "./render.ts";

/** One event on its way: what is known of it before the transaction. */
export interface Draft {
  readonly event: EventRecord;
  readonly definition: EventTypeDefinition | undefined;
  readonly matches: readonly Match[];
  readonly data: JsonValue;
}

/** The bodies and deliveries of a draft, one body for each distinct selection. `enriched`: its patch as JSON text, or "". */
export function itemOf(
  { event, definition, matches, data }: Draft,
  enriched: string | undefined,
): DispatchItem {
  const patch = event.patch ?? enriched;
  const whole = patch ? overlay(data, parseJson(patch)) : data;
  const seen = envelopeEvent(event);
  const bySelection = new Map<string, RenderedBody>();
  const bodies = new Map<string, RenderedBody>();
  const deliveries = matches.map(({ subscriptionId, endpointId, fields, ordered }) => {
    const selection = selectedNames(definition?.fields, fields)?.join("\n") ?? "";
    let body = bySelection.get(selection);
    if (!body) {
      body = renderBody(seen, whole, definition, fields);
      bySelection.set(selection, body);
      bodies.set(body.variant, body);
    }
    const id = deliveryId(event.id, subscriptionId);
    return { id, subscriptionId, endpointId, variant: body.variant, ...(ordered && { ordered }) };
  });
  const { projectId, id } = event;
  return {
    projectId,
    id,
    bodies: [...bodies.values()],
    deliveries,
    ...(enriched ? { patch: enriched } : {}),
  };
}

/** The event as envelopes and enrichments see it. */
export function envelopeEvent({
  id,
  type,
  projectId,
  tenantId,
  subject,
  revision,
  actor,
  occurredAt,
}: EventRecord): EnvelopeEvent {
  return {
    id,
    type,
    projectId,
    occurredAt,
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(subject === undefined ? {} : { subject }),
    ...(revision === undefined ? {} : { revision }),
    ...(actor === undefined ? {} : { actor }),
  };
}

/** The patch's fields over the data's top level; data that is no object stays as it is. */
function overlay(data: JsonValue, patch: JsonValue): JsonValue {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data;
  return {
    ...(data as Readonly<Record<string, JsonValue>>),
    ...(patch as Readonly<Record<string, JsonValue>>),
  };
}
