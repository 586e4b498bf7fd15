import { userEnvelope } from "../dispatch/user-envelope.ts";
import { type Clock, systemClock } from "../model/clock.ts";
import type { Delivery } from "../model/delivery.ts";
import {
  DeliveryExistsError,
  EventMismatchError,
  InvalidIdentifierError,
  isHookwellError,
  UnknownEventTypeError,
} from "../model/errors.ts";
import { checkEventId, checkName, checkRevision } from "../model/identifiers.ts";
import { type IdFunc, idFunc, systemRandom } from "../model/ids.ts";
import { stringifyJson } from "../model/json.ts";
import { coveringFilters, matches } from "../model/matching.ts";
import type { Logger } from "../model/observe.ts";
import type { Subscription } from "../model/subscription.ts";
import { type Event, userEventTypes } from "../model/user-event.ts";
import type { OutboxStore, ReferenceStore } from "../store/contract.ts";
import type { Publisher } from "./publisher.ts";

/**
 * The reference publisher: one pending delivery for each active subscription that matches, at once, with the
 * user envelope as body. It joins no transaction; use `createHookwell().emit` for that.
 */
export class OutboxPublisher implements Publisher {
  readonly #store: ReferenceStore;
  readonly #newId: IdFunc;
  readonly #now: Clock;
  readonly #logger: Logger | undefined;
  readonly #types: readonly string[];

  /** @param types The event types it knows; the three user types unless given. */
  constructor(
    store: ReferenceStore,
    newId?: IdFunc,
    now: Clock = systemClock,
    logger?: Logger,
    types: readonly string[] | ReadonlyMap<string, unknown> = userEventTypes,
  ) {
    this.#store = store;
    this.#now = now;
    this.#newId = newId ?? idFunc("dlv_", now, systemRandom);
    this.#logger = logger;
    this.#types = Array.isArray(types) ? types : [...types.keys()].map(String);
  }

  /**
   * The same id and content again adds rows only for subscriptions that have none, with the first rows' bytes.
   * @throws UnknownEventTypeError, InvalidIdentifierError, EventMismatchError, and what the store throws
   */
  async emit(event: Event): Promise<void> {
    this.#check(event);
    const first = await this.#firstBody(event);
    const occurredAt = event.occurredAt ?? first?.occurredAt ?? this.#now();
    const payload = render(event, occurredAt);
    if (first && !Buffer.from(payload).equals(first.bytes)) throw new EventMismatchError(event.id);
    const subscriptions = await this.#store.listActiveSubscriptions(event.projectId);
    let queued = 0;
    for (const subscription of subscriptions)
      if (isFor(event, subscription) && (await this.#enqueue(event, subscription, payload))) queued++;
    this.#logger?.info(`hookwell: event ${event.id} (${event.type}) queued for ${queued} subscriptions`);
  }

  #check(event: Event): void {
    checkEventId(event.id);
    if (!this.#types.includes(event.type)) throw new UnknownEventTypeError(event.type, this.#types);
    checkName(event.projectId, "projectId");
    // The reference's empty tenant is an absent one.
    if (event.tenantId) checkName(event.tenantId, "tenantId");
    if (event.revision !== undefined) checkRevision(event.revision);
    if (event.actor) {
      checkName(event.actor.type, "actor/type");
      checkName(event.actor.id, "actor/id");
    }
    if (event.occurredAt && Number.isNaN(event.occurredAt.getTime()))
      throw new InvalidIdentifierError("occurredAt", "must be a time");
  }

  /** The body that this event has already, where the store can tell. */
  async #firstBody({ id, projectId }: Event): Promise<{ bytes: Uint8Array; occurredAt: Date } | undefined> {
    const store = this.#store as Partial<OutboxStore>;
    if (!store.listDeliveries || !store.getDelivery) return undefined;
    const { items } = await store.listDeliveries({ eventId: id, projectId }, { limit: 1 });
    const delivery = items[0] && (await store.getDelivery(items[0].id, { projectId }));
    if (!delivery) return undefined;
    const { occurred_at: text } = JSON.parse(Buffer.from(delivery.body).toString("utf8")) as {
      occurred_at: string;
    };
    return { bytes: delivery.body, occurredAt: new Date(text) };
  }

  /** False when the pair is queued already, whatever became of it. */
  async #enqueue(event: Event, subscription: Subscription, payload: Uint8Array): Promise<boolean> {
    const now = this.#now();
    const delivery: Delivery = {
      id: this.#newId(),
      eventId: event.id,
      subscriptionId: subscription.id,
      url: subscription.url,
      secret: subscription.secret,
      payload,
      status: "pending",
      attempts: 0,
      nextAttemptAt: now,
      createdAt: now,
      updatedAt: now,
      type: event.type,
      projectId: event.projectId,
      ...(event.tenantId && { tenantId: event.tenantId }),
    };
    try {
      await this.#store.enqueueDelivery(delivery);
      return true;
    } catch (error) {
      if (
        error instanceof DeliveryExistsError ||
        (isHookwellError(error) && error.code === "delivery_exists")
      )
        return false;
      throw error;
    }
  }
}

function isFor(event: Event, subscription: Subscription): boolean {
  const { projectId, tenantId } = event;
  const filters = coveringFilters(event.type);
  return subscription.active && matches({ projectId, ...(tenantId && { tenantId }), filters }, subscription);
}

function render(event: Event, occurredAt: Date): Uint8Array {
  const body = userEnvelope({ ...event, occurredAt }, event.user);
  return Buffer.from(stringifyJson(body), "utf8");
}
