import type { EventKey } from "../model/event.ts";
import type { DeliveryStatus } from "../model/states.ts";

/** The delivery of an event to one subscription. */
export interface DeliveryOfEvent {
  readonly id: string;
  readonly subscriptionId: string;
  readonly status: DeliveryStatus;
}

/** What `events.explain` asks of a store. */
export interface ExplainStore {
  /** The deliveries of an event to these subscriptions, at most 100 of them; those that have none are left out. */
  deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]>;
}
