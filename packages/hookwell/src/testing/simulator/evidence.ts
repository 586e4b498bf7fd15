import type { Committed } from "./application.ts";
import type { Attempt } from "./network.ts";
import type { SimProcess } from "./process.ts";
import type { Subscriber } from "./subscriber.ts";
import type { World } from "./world.ts";

/** What is checked, by the number of the promise in the design. */
export const promises = [
  "1 an event exists if, and only if, its change was committed",
  "2 it says what was true at the transition",
  "3 same bytes, event id, delivery id on every attempt",
  "3 every signature verifies",
  "4 one pair, one delivery",
  "4 no attempt beside another or after an answer",
  "4 only what matches is sent",
  "5 a failing receiver is left alone until its next attempt",
  "5 a healthy receiver waits for nobody",
  "5 no more at once than asked for",
  "6 what was not delivered is visible",
  "6 an abandoned delivery is reported once",
  "6 an abandoned delivery can be tried again",
  "order within a subject",
] as const;
export type Promised = (typeof promises)[number];

/**
 * What receivers saw, and what was committed: all that a verdict rests on. It also knows what may excuse an attempt:
 * what befell processes, and what operators asked for.
 */
export class Evidence {
  readonly violations: string[] = [];
  readonly world: World;
  readonly committed = new Map<string, Committed>();
  byDelivery: ReadonlyMap<string, readonly Attempt[]> = new Map();
  byEvent: ReadonlyMap<string, readonly Attempt[]> = new Map();

  constructor(world: World) {
    this.world = world;
    for (const change of world.application.committed()) this.committed.set(change.eventId, change);
    this.look();
  }

  /** Takes in what was sent since. */
  look(): void {
    const { attempts } = this.world.network;
    this.byDelivery = Map.groupBy(attempts, deliveryOf);
    this.byEvent = Map.groupBy(attempts, eventOf);
  }

  hold(promise: Promised, holds: boolean, message: () => string): void {
    this.world.journal.count("promise", promise);
    if (!holds) this.broken(promise, message());
  }

  broken(promise: Promised, message: string): void {
    this.violations.push(`${promise}: ${message}`);
  }

  /** The attempts of an event to one subscription. */
  of(eventId: string, { receiver }: Subscriber): readonly Attempt[] {
    return (this.byEvent.get(eventId) ?? []).filter((attempt) => attempt.receiver === receiver);
  }

  troubled({ troubles }: SimProcess, from: number, until: number): boolean {
    const within = (trouble: { readonly from: number; readonly until: number }): boolean =>
      trouble.from <= until && trouble.until >= from;
    return troubles.some(within) || this.world.application.locks.some(within);
  }

  retriedByHand(deliveryId: string, from: number, until: number): boolean {
    return (
      this.world.byHand.get(deliveryId)?.some((deed) => deed.from <= until && deed.until >= from) ?? false
    );
  }

  replaysBefore({ receiver, begunAt }: Attempt): number {
    const subscriber = this.world.subscribers.find((each) => each.receiver === receiver);
    return subscriber?.replays.filter(({ from }) => from <= begunAt).length ?? 0;
  }

  /** At most: each retry by hand and each replay may have opened one. */
  rounds(deliveryId: string): number {
    const retries = this.world.byHand.get(deliveryId)?.filter(({ what }) => what === "retry").length ?? 0;
    const last = this.byDelivery.get(deliveryId)?.at(-1);
    return 1 + retries + (last ? this.replaysBefore(last) : 0);
  }

  at({ begunAt }: Attempt): string {
    return `${((begunAt - this.world.time.start) / 1_000).toFixed(3)} s`;
  }
}

export function deliveryOf({ headers }: Attempt): string {
  return headers.get("x-hookwell-delivery")!;
}

export function eventOf({ headers }: Attempt): string {
  return headers.get("webhook-id")!;
}

/** Of the body alone. */
export function signatureOf({ headers }: Attempt): string | undefined {
  return headers.get("x-hookwell-signature");
}

/** Counts the sends of a round. */
export function numberOf({ headers }: Attempt): number {
  return Number(headers.get("x-hookwell-attempt"));
}

export function isOperational({ headers }: Attempt): boolean {
  return headers.get("x-hookwell-event")!.startsWith("hookwell.");
}

/** The receiver has it, whether or not the sender learnt of that. */
export function isAnswered({ status }: Attempt): boolean {
  return status !== undefined && status < 300;
}
