import type { EventState } from "./states.ts";

/** Who caused the change, so that a receiver can drop the echo of its own. */
export interface Actor {
  readonly type: string;
  readonly id: string;
}

/** Names one event: ids are unique inside a project. */
export interface EventKey {
  readonly projectId: string;
  readonly id: string;
}

/** An immutable fact, as stored. Absent tenant, subject, revision, actor and audience are undefined. */
export interface EventRecord extends EventKey {
  readonly type: string;
  readonly tenantId?: string;
  readonly subject?: string;
  readonly revision?: number;
  readonly actor?: Actor;
  /** Owner ids that may get it, without repeats, in code unit order. */
  readonly audience?: readonly string[];
  readonly occurredAt: Date;
  readonly capturedAt: Date;
  /** Exact JSON text of the validated data. */
  readonly data: string;
  /** JSON text of what `enrich` gave at first dispatch. */
  readonly patch?: string;
  readonly state: EventState;
  /** Which process may render it: the type, or `"*"` for an event captured without a catalogue or rendered already. */
  readonly route: string;
  /** True when capture made the deliveries itself (fan-out `emit`). */
  readonly fannedOut: boolean;
  /** Failed tries to dispatch it. */
  readonly tries: number;
  /** Why the last try failed. */
  readonly error?: string;
  readonly dispatchedAt?: Date;
  /** Why the stored row cannot be read whole; such an event is not dispatched, but put off and parked. */
  readonly damage?: string;
}

/** What became of an event, derived from its deliveries. */
export type EventOutcome = "unmatched" | "held" | "pending" | "delivered" | "failed" | "cancelled" | "parked";

/** An event about to be captured: everything checked, stamped and rendered by the publisher. */
export interface CaptureInput extends EventKey {
  readonly type: string;
  readonly tenantId?: string;
  readonly subject?: string;
  readonly revision?: number;
  readonly actor?: Actor;
  readonly audience?: readonly string[];
  readonly occurredAt: Date;
  readonly data: string;
  readonly route: string;
  /** SHA-256 (hex) of what the caller gave, before stamping. */
  readonly contentHash: string;
  /** Set for fan-out `emit`: the finished body and the filter entries that cover the type. */
  readonly fanOut?: {
    readonly body: string;
    readonly filters: readonly string[];
    readonly operational?: boolean;
  };
}

/** What capture did with one event. */
export interface CaptureResult {
  readonly id: string;
  /** True: the same event was there already, and nothing new was written. */
  readonly duplicate: boolean;
}
