import type { Event } from "../model/user-event.ts";

/** Publishes events about users; what a service is given so that it need not know how they travel. */
export interface Publisher {
  /** Resolves when the event is queued for every subscription that gets it. @throws for a malformed event */
  emit(event: Event): Promise<void>;
}

/** Publishes nothing: for tools and tests that must not notify anybody. */
export class Discard implements Publisher {
  async emit(_event: Event): Promise<void> {}
}
