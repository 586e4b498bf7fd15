import type { Delivery, Exchange, Outcome } from "../../model/delivery.ts";
import type { CaptureInput, CaptureResult } from "../../model/event.ts";
import { deliveryId } from "../../model/ids.ts";
import { coveringFilters, type Matchable } from "../../model/matching.ts";
import type { NewSubscription, SubscriptionRecord } from "../../model/subscription.ts";
import type { ClaimRequest, OutboxStore, RetentionPolicy, Scope } from "../../store/contract.ts";
import type { StoreUnderTest } from "./harness.ts";

/** Where virtual time begins: whole milliseconds, not a whole second. */
export const start = Date.UTC(2026, 0, 5, 12, 0, 0, 123);
export const second = 1_000;
export const minute = 60 * second;
export const day = 24 * 60 * minute;
export const leaseMs = 30 * second;
export const own: Scope & { kind: "own" } = { kind: "own" };
export const project = "live";
/** The documented defaults of retention. */
export const retention: RetentionPolicy = {
  deliveredMs: 30 * day,
  failedMs: 90 * day,
  eventsMs: 30 * day,
  heldMs: 30 * day,
};

/** A store with a clock that only moves when told, and short words for what the tests do with it. */
export class StoreWorld {
  #time = start;
  #subject: StoreUnderTest | undefined;

  readonly now = (): Date => new Date(this.#time);

  use(subject: StoreUnderTest): void {
    this.#subject = subject;
  }

  get subject(): StoreUnderTest {
    return this.#subject!;
  }

  get store(): OutboxStore {
    return this.subject.store;
  }

  step(ms: number): Date {
    this.#time += ms;
    return this.now();
  }

  /** The current time plus some milliseconds. */
  in(ms: number): Date {
    return new Date(this.#time + ms);
  }

  subscribe(id: string, overrides: Partial<NewSubscription> = {}): Promise<SubscriptionRecord> {
    return this.store.createSubscription(own, newSubscription(id, overrides));
  }

  /** Captures events in a transaction of the store's own. */
  capture(...events: readonly CaptureInput[]): Promise<CaptureResult[]> {
    return this.store.capture(own, events);
  }

  event(id: string, overrides: Partial<CaptureInput> = {}): CaptureInput {
    return {
      projectId: project,
      id,
      type: "user.created",
      occurredAt: this.now(),
      data: `{"id":"${id}"}`,
      route: overrides.type ?? "user.created",
      contentHash: `hash of ${id}`,
      ...overrides,
    };
  }

  /** An event whose deliveries capture makes itself. */
  emitted(id: string, overrides: Partial<CaptureInput> = {}): CaptureInput {
    const input = this.event(id, overrides);
    return { ...input, fanOut: { body: `{"event":"${id}"}`, filters: coveringFilters(input.type) } };
  }

  /** Captures an event and dispatches it to what matches; answers the delivery ids in order of subscription. */
  async publish(id: string, overrides: Partial<CaptureInput> = {}): Promise<string[]> {
    const event = this.event(id, overrides);
    await this.capture(event);
    return this.dispatch(event);
  }

  /** Dispatches a new event to what matches, one body for all. */
  async dispatch(event: CaptureInput): Promise<string[]> {
    const [matches = []] = await this.store.matchSubscriptions([query(event)]);
    const deliveries = matches.map(({ subscriptionId, endpointId, ordered }) => ({
      id: deliveryId(event.id, subscriptionId),
      subscriptionId,
      endpointId,
      variant: "default",
      ...(ordered && { ordered }),
    }));
    const bodies = [{ variant: "default", bytes: Buffer.from(`{"event":"${event.id}"}`) }];
    await this.store.dispatch([{ projectId: event.projectId, id: event.id, bodies, deliveries }], null);
    return deliveries.map((delivery) => delivery.id);
  }

  delivery(id: string, overrides: Partial<Delivery> = {}): Delivery {
    return {
      id,
      eventId: `evt_of_${id}`,
      subscriptionId: "sub_a",
      url: "https://receiver.example/hook",
      secret: "whsec_bound",
      payload: Buffer.from(`{"row":"${id}"}`),
      status: "pending",
      attempts: 0,
      nextAttemptAt: this.now(),
      createdAt: this.now(),
      updatedAt: this.now(),
      type: "user.created",
      projectId: project,
      ...overrides,
    };
  }

  async enqueue(id: string, overrides: Partial<Delivery> = {}): Promise<void> {
    await this.store.enqueueDelivery(this.delivery(id, overrides));
  }

  /** Claims by the store's clock. */
  async claim(
    limit = 100,
    request: Partial<ClaimRequest> = {},
  ): Promise<readonly (Delivery & { readonly leaseToken: string })[]> {
    const { deliveries } = await this.store.claim({ now: null, limit, leaseMs, ...request });
    return deliveries as readonly (Delivery & { readonly leaseToken: string })[];
  }

  /** Claims and gives the ids in the order of the claim. */
  async claimIds(limit?: number, request?: Partial<ClaimRequest>): Promise<string[]> {
    return (await this.claim(limit, request)).map((delivery) => delivery.id);
  }

  /** Claims one row, which must be the only one due. */
  async claimOne(): Promise<Delivery & { readonly leaseToken: string }> {
    const claimed = await this.claim();
    if (claimed.length !== 1) throw new Error(`expected one due row, claimed ${claimed.length}`);
    return claimed[0]!;
  }

  exchange(overrides: Partial<Exchange> = {}): Exchange {
    return { startedAt: this.now(), durationMs: 12, statusCode: 200, ...overrides };
  }

  failure(overrides: Partial<Exchange> = {}): Exchange {
    return this.exchange({
      statusCode: 500,
      errorCode: "http_500",
      error: "The receiver answered 500.",
      ...overrides,
    });
  }

  delivered(claimed: Delivery): Outcome {
    return { ...proof(claimed), kind: "delivered", exchange: this.exchange() };
  }

  retry(claimed: Delivery, delayMs: number, holdLaneMs?: number): Outcome {
    const hold = holdLaneMs === undefined ? {} : { holdLaneMs };
    return { ...proof(claimed), kind: "retry", exchange: this.failure(), delayMs, ...hold };
  }

  /** A failure that counts towards the circuit breaker. */
  broken(claimed: Delivery, delayMs: number, holdLaneMs?: number): Outcome {
    return { ...this.retry(claimed, delayMs, holdLaneMs), breakable: true } as Outcome;
  }

  failed(claimed: Delivery, holdLaneMs?: number): Outcome {
    const hold = holdLaneMs === undefined ? {} : { holdLaneMs };
    const error = {
      reason: "attempts_exhausted",
      errorCode: "http_500",
      error: "The receiver answered 500.",
    };
    return { ...proof(claimed), kind: "failed", exchange: this.failure(), ...error, ...hold };
  }

  gone(claimed: Delivery): Outcome {
    const exchange = this.failure({
      statusCode: 410,
      errorCode: "http_410",
      error: "The receiver answered 410.",
    });
    return { ...proof(claimed), kind: "gone", exchange };
  }

  released(claimed: Delivery): Outcome {
    return { ...proof(claimed), kind: "released" };
  }
}

/** Id and token of a claimed row. */
export function proof(claimed: Delivery): { readonly id: string; readonly leaseToken: string } {
  return { id: claimed.id, leaseToken: claimed.leaseToken! };
}

/** A subscription as management makes it. */
export function newSubscription(id: string, overrides: Partial<NewSubscription> = {}): NewSubscription {
  return {
    id,
    projectId: project,
    url: `https://${id.replaceAll("_", "-")}.example/hook`,
    eventTypes: [],
    ordering: "none",
    secret: `whsec_of_${id}`,
    ...overrides,
  };
}

/** What the dispatcher asks about an event. */
export function query(event: CaptureInput): Matchable {
  const { projectId, tenantId, audience, type } = event;
  return {
    projectId,
    tenantId,
    audience,
    filters: coveringFilters(type),
    operational: type.startsWith("hookwell."),
  };
}
