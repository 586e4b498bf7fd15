import { hash } from "node:crypto";
import type { EnvelopeEvent, EventTypeDefinition, FieldRules } from "../model/definition.ts";
import { stringifyJson } from "../model/json.ts";

/** One finished body of an event. `variant` is a short hash of the bytes: equal bodies share a row. */
export interface RenderedBody {
  readonly variant: string;
  readonly bytes: Uint8Array;
}

/**
 * The names of a selection that count, in the order of the rules; undefined when the type has no rules.
 * `always` plus what was selected, or plus the default set when nothing known was selected.
 */
export function selectedNames(
  rules: FieldRules | undefined,
  fields: readonly string[] | undefined,
): readonly string[] | undefined {
  if (rules === undefined) return undefined;
  const known = [...new Set([...rules.always, ...rules.default, ...Object.keys(rules.optional)])];
  const wanted = new Set(fields);
  const selected = known.filter((name) => wanted.has(name));
  const kept = new Set([...rules.always, ...(selected.length > 0 ? selected : rules.default)]);
  return known.filter((name) => kept.has(name));
}

/** The top-level fields of `data` under those names, in the order of the data; what it has not is left out. */
function pick(data: unknown, names: readonly string[] | undefined): unknown {
  if (names === undefined || typeof data !== "object" || data === null || Array.isArray(data)) return data;
  const kept = new Set(names);
  // fromEntries defines properties, so that a key named __proto__ stays an ordinary key.
  return Object.fromEntries(Object.entries(data).filter(([name]) => kept.has(name)));
}

/** `{id, type, timestamp, tenant_id?, subject?, revision?, actor?, data}`. */
export function defaultEnvelope(event: EnvelopeEvent, data: unknown): Record<string, unknown> {
  return {
    id: event.id,
    type: event.type,
    timestamp: event.occurredAt.toISOString(),
    ...(event.tenantId ? { tenant_id: event.tenantId } : {}),
    ...(event.subject ? { subject: event.subject } : {}),
    ...(event.revision === undefined ? {} : { revision: event.revision }),
    ...(event.actor ? { actor: { type: event.actor.type, id: event.actor.id } } : {}),
    data,
  };
}

/**
 * The body of one event for one selection of fields. The same input gives the same bytes, whatever the order
 * of `fields`. Throws what the type's envelope throws, and ValidationError for what JSON cannot say.
 */
export function renderBody(
  event: EnvelopeEvent,
  data: unknown,
  definition: EventTypeDefinition | undefined,
  fields: readonly string[] | undefined,
): RenderedBody {
  const envelope = definition?.envelope ?? defaultEnvelope;
  const picked = pick(data, selectedNames(definition?.fields, fields));
  const bytes = Buffer.from(stringifyJson(envelope(event, picked)), "utf8");
  // 96 bits: a collision inside one event is out of reach, and the key stays short.
  const variant = hash("sha256", bytes, "base64url").slice(0, 16);
  return { variant, bytes };
}
