import type { Actor } from "./event.ts";

/** The types of the user-lifecycle events. Wire identifiers: append only. */
export const userEventTypes = ["user.created", "user.updated", "user.deactivated"] as const;
export type UserEventType = (typeof userEventTypes)[number];
/** A wire identifier of an event type. */
export type EventType = UserEventType | (string & {});

/** The subset of a user record that a lifecycle event carries; it has no secrets. */
export interface User {
  readonly id: string;
  readonly email: string;
  readonly name?: string;
  readonly status?: string;
  readonly emailVerified: boolean;
}

/** The reference event: a change of one user. */
export interface Event {
  /** Unique, given by the caller: receivers recognise a repeat by it. */
  readonly id: string;
  readonly type: EventType;
  readonly projectId: string;
  readonly tenantId?: string;
  /** When it happened; absent = stamped once from the publisher's clock. */
  readonly occurredAt?: Date;
  readonly user: User;
  readonly revision?: number;
  readonly actor?: Actor;
}
