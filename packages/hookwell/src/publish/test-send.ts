import { exchangeOf, type SendResult } from "../deliver/decide.ts";
import { renderBody } from "../dispatch/render.ts";
import type { Clock } from "../model/clock.ts";
import type { Catalogue, EnvelopeEvent, EventTypeDefinition } from "../model/definition.ts";
import type { Delivery } from "../model/delivery.ts";
import { InvalidStateError, NoExampleError, NotFoundError, UnknownEventTypeError } from "../model/errors.ts";
import { checkEventType } from "../model/identifiers.ts";
import { deliveryId, type IdFunc } from "../model/ids.ts";
import { coveringFilters, storedFilters } from "../model/matching.ts";
import { SendAbortedError, type Sender } from "../send/sender.ts";
import { headerPrefixOf, type WireOptions } from "../send/wire.ts";
import type { Now, OutboxStore } from "../store/contract.ts";
import type { OpenEndpoint } from "../store/secret-rotation.ts";
import { checkSize } from "./prepare-event.ts";
import type { TestSend, TestSendOptions } from "./surface.ts";

export interface TestSendParts {
  readonly store: OutboxStore;
  readonly catalogue: Catalogue | undefined;
  readonly clock: Clock;
  readonly now: () => Now;
  readonly eventId: IdFunc;
  readonly wire: WireOptions | undefined;
  readonly sender: () => Sender;
}

/** What is sent where no example fits. The name is Hookwell's own, so it is no event of the application. */
const plainTest = { type: "hookwell.test", data: { message: "This is a test. Nothing happened." } };

/** Makes one send that nothing remembers: see {@link Subscriptions.test}. */
export async function sendTest(
  parts: TestSendParts,
  id: string,
  { eventType, visibility = {} }: TestSendOptions,
): Promise<TestSend> {
  const endpoint = await parts.store.openEndpoint(id, visibility, parts.now());
  if (!endpoint) throw new NotFoundError("subscription", id);
  if (endpoint.subscription.status === "deleted")
    throw new InvalidStateError("subscription", id, "deleted", "send a test to");
  const definition =
    eventType === undefined
      ? fittingType(parts.catalogue, endpoint.subscription.eventTypes)
      : namedType(parts.catalogue, eventType);
  const delivery = testDelivery(parts, endpoint, definition);
  const startedAt = parts.clock();
  const result = await sent(parts.sender(), delivery);
  const times = { startedAt, durationMs: Math.max(0, parts.clock().getTime() - startedAt.getTime()) };
  return {
    eventId: delivery.eventId,
    eventType: delivery.type!,
    attempt: { ...exchangeOf(delivery, result, times), number: 1, round: 1 },
  };
}

async function sent(sender: Sender, delivery: Delivery): Promise<SendResult> {
  try {
    return { receipt: await sender.deliver(delivery) };
  } catch (error) {
    if (error instanceof SendAbortedError) throw error;
    return { error, aborted: false };
  }
}

function fittingType(
  catalogue: Catalogue | undefined,
  eventTypes: readonly string[],
): EventTypeDefinition | undefined {
  const entries = storedFilters(eventTypes);
  return withExample(catalogue).find(({ type }) =>
    coveringFilters(type).some((filter) => entries.includes(filter)),
  );
}

function namedType(catalogue: Catalogue | undefined, type: string): EventTypeDefinition | undefined {
  if (type === plainTest.type) return undefined;
  checkEventType(type, "eventType");
  if (!catalogue)
    throw new NoExampleError(
      "cannot be named here: this instance has no catalogue, so it knows no examples; leave it out",
    );
  const definition = catalogue.get(type);
  if (!definition) throw new UnknownEventTypeError(type, [...catalogue.keys()], "/eventType");
  if (definition.example !== undefined) return definition;
  const others = withExample(catalogue).map((other) => other.type);
  throw new NoExampleError(
    `${type} has no example; give its definition one, or name a type that has one: ${others.join(", ") || "none has"}`,
  );
}

function withExample(catalogue: Catalogue | undefined): EventTypeDefinition[] {
  return [...(catalogue?.values() ?? [])].filter(({ example }) => example !== undefined);
}

function testDelivery(
  { clock, eventId, wire = {} }: TestSendParts,
  { subscription, headers, secrets }: OpenEndpoint,
  definition: EventTypeDefinition | undefined,
): Delivery {
  const { id, projectId, tenantId, url, fields } = subscription;
  const data = definition ? definition.example : plainTest.data;
  const subject = definition?.subject?.(data);
  const at = clock();
  const event: EnvelopeEvent = {
    id: eventId(),
    type: definition?.type ?? plainTest.type,
    projectId,
    occurredAt: at,
    ...(tenantId !== undefined && { tenantId }),
    ...(subject !== undefined && { subject }),
  };
  const { bytes } = renderBody(event, data, definition, fields);
  checkSize(event.id, bytes.length);
  return {
    id: deliveryId(event.id, id),
    eventId: event.id,
    subscriptionId: id,
    url,
    secret: secrets[0]!,
    secrets,
    payload: bytes,
    status: "pending",
    attempts: 1,
    nextAttemptAt: at,
    createdAt: at,
    updatedAt: at,
    type: event.type,
    projectId,
    headers: { ...headers, [`${headerPrefixOf(wire)}test`]: "true" },
  };
}
