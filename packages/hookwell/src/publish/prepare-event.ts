import { hash } from "node:crypto";
import { defaultEnvelope, renderBody } from "../dispatch/render.ts";
import type { Clock } from "../model/clock.ts";
import type { Catalogue, EnvelopeEvent, EventTypeDefinition, ValidationResult } from "../model/definition.ts";
import {
  AsyncSchemaError,
  EventSchemaError,
  InvalidIdentifierError,
  PayloadTooLargeError,
  UnknownEventTypeError,
} from "../model/errors.ts";
import type { Actor, CaptureInput } from "../model/event.ts";
import { checkEventId, checkEventType, checkName, checkRevision } from "../model/identifiers.ts";
import type { IdFunc } from "../model/ids.ts";
import { canonicalJson, parseJson, stringifyJson } from "../model/json.ts";
import { coveringFilters } from "../model/matching.ts";
import type { EmitOptions } from "./surface.ts";
import { parseTimestamp } from "./timestamp.ts";

/** Bytes of a body, 256 KiB. */
export const bodyLimit = 262_144;

/** Events without a tenant: refused (but for broadcast types), or allowed and meant for every tenant. */
export type TenantMode = "required" | "optional";

export interface EventRules {
  /** Absent = every well-formed type is accepted, with the default envelope. */
  readonly catalogue: Catalogue | undefined;
  readonly project: string | undefined;
  readonly tenants: TenantMode;
  readonly clock: Clock;
  readonly eventId: IdFunc;
}

/** Everything about an event but its transaction. */
export type EventFacts = Omit<EmitOptions<never>, "tx">;

/**
 * Checks and stamps one event: a promise only when its schema validates asynchronously, so that an emit that is
 * not awaited still reaches the connection before a commit that follows it.
 * @throws UnknownEventTypeError, InvalidIdentifierError, EventSchemaError, ValidationError, PayloadTooLargeError
 */
export function prepareEvent(
  rules: EventRules,
  type: string,
  data: unknown,
  facts: EventFacts,
): CaptureInput | Promise<CaptureInput> {
  const definition = definitionOf(rules.catalogue, type);
  const given = checkedFacts(rules, definition, facts);
  if (!definition) return assemble(rules, type, undefined, data, data, given);
  const result = definition.validate(data);
  const finish = (verdict: ValidationResult): CaptureInput => {
    if (!verdict.ok) throw new EventSchemaError(type, verdict.problems);
    return assemble(rules, type, definition, data, verdict.value, given);
  };
  return result instanceof Promise ? result.then(finish) : finish(result);
}

/** The same where nothing may be awaited. @throws AsyncSchemaError when the schema answers with a promise. */
export function prepareEventSync(
  rules: EventRules,
  type: string,
  data: unknown,
  facts: EventFacts,
): CaptureInput {
  const prepared = prepareEvent(rules, type, data, facts);
  if (!(prepared instanceof Promise)) return prepared;
  // Its verdict is not waited for, whatever it is.
  prepared.catch(() => {});
  throw new AsyncSchemaError(type);
}

function definitionOf(catalogue: Catalogue | undefined, type: string): EventTypeDefinition | undefined {
  if (catalogue === undefined) {
    checkEventType(type);
    if (type.startsWith("hookwell."))
      throw new InvalidIdentifierError("type", "names under hookwell.* are Hookwell's own");
    return undefined;
  }
  const definition = catalogue.get(type);
  if (!definition) throw new UnknownEventTypeError(String(type), [...catalogue.keys()]);
  return definition;
}

/** What the caller said, checked; absent parts are left out. */
interface GivenFacts {
  readonly id?: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly occurredAt?: Date;
  readonly subject?: string;
  readonly revision?: number;
  readonly actor?: Actor;
  readonly audience?: readonly string[];
}

function checkedFacts(
  rules: EventRules,
  definition: EventTypeDefinition | undefined,
  facts: EventFacts,
): GivenFacts {
  const { id, tenantId, subject, revision, actor, audience } = facts;
  const projectId = facts.projectId ?? rules.project;
  if (id !== undefined) checkEventId(id);
  checkName(projectId, "projectId");
  if (tenantId !== undefined) checkName(tenantId, "tenantId");
  else if (rules.tenants === "required" && !definition?.broadcast)
    throw new InvalidIdentifierError(
      "tenantId",
      "is required here; give the tenant of the change, or mark the event type broadcast",
    );
  if (subject !== undefined) checkName(subject, "subject");
  if (revision !== undefined) checkRevision(revision);
  if (actor !== undefined) {
    checkName(actor.type, "actor/type");
    checkName(actor.id, "actor/id");
  }
  audience?.forEach((owner, index) => {
    checkName(owner, `audience/${index}`);
  });
  return {
    projectId,
    ...(id !== undefined && { id }),
    ...(tenantId !== undefined && { tenantId }),
    ...(facts.occurredAt !== undefined && { occurredAt: parseTimestamp(facts.occurredAt, "occurredAt") }),
    ...(subject !== undefined && { subject }),
    ...(revision !== undefined && { revision }),
    ...(actor && { actor: { type: actor.type, id: actor.id } }),
    ...(audience && { audience: [...new Set(audience)].sort() }),
  };
}

function assemble(
  rules: EventRules,
  type: string,
  definition: EventTypeDefinition | undefined,
  input: unknown,
  output: unknown,
  given: GivenFacts,
): CaptureInput {
  const { projectId, ...hashed } = given;
  const id = given.id ?? rules.eventId();
  const text = stringifyJson(output);
  const subject = given.subject ?? definition?.subject?.(output);
  if (subject !== undefined) checkName(subject, "subject");
  const event: EnvelopeEvent = {
    ...given,
    id,
    type,
    occurredAt: given.occurredAt ?? rules.clock(),
    ...(subject !== undefined && { subject }),
  };
  // A character is three bytes of UTF-8 at most, and all else in the envelope is bounded: most events need no counting.
  if (text.length * 3 > bodyLimit / 2)
    checkSize(id, Buffer.byteLength(text) + Buffer.byteLength(stringifyJson(defaultEnvelope(event, 0))) - 1);
  const base = {
    ...event,
    projectId,
    ...(given.audience && { audience: given.audience }),
    data: text,
    // The data as given: a schema may stamp its output with a time or an id of its own.
    contentHash: hash("sha256", canonicalJson({ ...hashed, type, data: input }), "hex"),
  };
  if (definition?.fanOut !== "emit") return { ...base, route: definition ? type : "*" };
  const { bytes } = renderBody(event, parseJson(text), definition, undefined);
  checkSize(id, bytes.length);
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  return { ...base, route: type, fanOut: { body, filters: coveringFilters(type) } };
}

/** @throws PayloadTooLargeError */
export function checkSize(id: string, bytes: number): void {
  if (bytes > bodyLimit) throw new PayloadTooLargeError(id, bytes, bodyLimit);
}
