import type { ReplayStatus } from "./states.ts";

/** What a replay sends: deliveries that ended so, or events that never became a delivery (`missing`). */
export type ReplayedStatus = "failed" | "delivered" | "cancelled" | "missing";

/** Which deliveries an operation is about; absent parts do not limit. */
export interface DeliverySelection {
  readonly projectId?: string;
  /** Tenant and owner are those of the subscription. */
  readonly tenantId?: string;
  readonly ownerId?: string;
  readonly subscriptionId?: string;
  readonly eventId?: string;
  readonly type?: string;
  readonly subject?: string;
  /** Host of the endpoint, with its port or without. */
  readonly urlHost?: string;
  readonly errorCode?: string;
  /** Those whose present round was opened by this replay. */
  readonly replayId?: string;
}

/** What a replay is to go through. */
export interface ReplayWork {
  readonly selection: DeliverySelection;
  readonly statuses: readonly ReplayedStatus[];
  /** Half-open: deliveries made, and for `missing` events captured, from `since` on and before `until`. */
  readonly since: Date;
  readonly until: Date;
}

/** A replay as management shows it. */
export interface ReplayRecord extends ReplayWork {
  readonly id: string;
  readonly status: ReplayStatus;
  /** What it found to do when it was made. */
  readonly count: number;
  /** Deliveries it has queued. */
  readonly queued: number;
  /** What it left alone: superseded, queued or sent by somebody else meanwhile, or no longer to be sent there. */
  readonly skipped: number;
  /** What became of those it queued. The rest of them is pending. */
  readonly delivered: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Why it failed, or the last event that could not be rendered. */
  readonly error?: string;
  readonly createdAt: Date;
  /** When all was queued, or when it was stopped or failed. */
  readonly finishedAt?: Date;
}
