import type { AsyncTxAdapter, SyncTxAdapter } from "../adapters/seam.ts";
import type { AttemptRecord, Delivery, DeliveryDetail, DeliveryRecord, Outcome } from "../model/delivery.ts";
import type { CaptureInput, CaptureResult, EventKey, EventOutcome, EventRecord } from "../model/event.ts";
import type { LanePolicy } from "../model/lane-policy.ts";
import type { Matchable } from "../model/matching.ts";
import type { DeliveryStatus, DisabledReason, SubscriptionStatus } from "../model/states.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionPatch,
  SubscriptionRecord,
} from "../model/subscription.ts";
import type { ExplainStore } from "./explain-contract.ts";
import type { HoldStore } from "./hold-contract.ts";
import type { InspectionStore } from "./inspection-contract.ts";
import type { KeyRotationStore } from "./key-rotation.ts";
import type { ReplayStore } from "./replay-contract.ts";
import type { RequestStore } from "./request-contract.ts";
import type { SecretStore } from "./secret-rotation.ts";
import type { StatsStore } from "./stats-contract.ts";
import type { SubscriptionGuard } from "./subscription-guard.ts";

/**
 * The reference contract: what a bare OutboxPublisher and Worker need. Marks take the claim's token last.
 * A mark on an unknown id is an error; one with a stale or missing token on a claimed row, or on a row that is
 * final, is ignored and counted (`staleOutcomes`).
 */
export interface ReferenceStore {
  /**
   * Stores a pending delivery with a copy of its payload.
   * @throws DeliveryExistsError when the (event, subscription) pair is stored, whatever its state or id.
   * @throws DuplicateIdError when another pair has this id.
   */
  enqueueDelivery(delivery: Delivery): Promise<void>;
  /** Claims up to `limit` deliveries due at `now` (inclusive). @throws ValidationError when limit < 1. */
  claimDue(now: Date, limit: number): Promise<Delivery[]>;
  markDelivered(id: string, at: Date, leaseToken?: string): Promise<void>;
  reschedule(
    id: string,
    attempts: number,
    lastError: string,
    nextAttemptAt: Date,
    leaseToken?: string,
  ): Promise<void>;
  markFailed(id: string, attempts: number, lastError: string, leaseToken?: string): Promise<void>;
  /** Active subscriptions of the project, by id, secrets in the clear. */
  listActiveSubscriptions(projectId: string): Promise<Subscription[]>;
}

/** How late the oldest work is. */
export interface Lag {
  readonly at: Date;
  readonly oldestDueAt?: Date;
  readonly oldestNewAt?: Date;
}

/** Null = the database's clock (the memory store: its own). A date = that instant, for virtual time. */
export type Now = Date | null;

/** Whose transaction a write joins. */
export type Scope =
  | { readonly kind: "own" }
  | { readonly kind: "async"; readonly adapter: AsyncTxAdapter<unknown>; readonly tx: unknown }
  | { readonly kind: "sync"; readonly adapter: SyncTxAdapter<unknown>; readonly tx: unknown };

export interface ClaimRequest {
  readonly now: Now;
  readonly limit: number;
  /** The lane the last claim ended with; lanes are taken in id order after it, wrapping round. */
  readonly cursor?: string;
  readonly leaseMs: number;
  /** Most rows for a lane not named in `rooms`. Default: limit. */
  readonly room?: number;
  /** Most rows for the named lanes; 0 leaves the lane out. */
  readonly rooms?: ReadonlyMap<string, number>;
}

export interface ClaimResult {
  readonly deliveries: readonly Delivery[];
  /**
   * Rows that failed in this claim, unsent, because their body or endpoint version is missing or damaged; for the
   * failure hook. What could not be read of them is empty.
   */
  readonly failed: readonly Delivery[];
  readonly cursor: string;
  /** Milliseconds until a lane that this claim left at its rate limit may send again: the soonest of them. */
  readonly againInMs?: number;
  /** Held rows were in the way and are set aside now: another claim at once finds what is behind them. */
  readonly again?: true;
}

export interface RecordResult {
  /** Rows whose outcome counted, as they are now. */
  readonly recorded: readonly {
    readonly id: string;
    readonly status: DeliveryStatus;
    readonly attempts: number;
  }[];
  /** Ids whose token was no longer current: the lease was lost, or the row was cancelled meanwhile. */
  readonly stale: readonly string[];
  /** What these outcomes did to lanes, by subscription id. `disabled`: as failing; for gone see the outcome. */
  readonly lanes: readonly {
    readonly subscriptionId: string;
    readonly change: "opened" | "closed" | "disabled";
  }[];
  /** They let other rows go (the next of an order, a place in flight): a claim is worth while. */
  readonly readied?: true;
}

/** A subscription that matches an event. */
export interface Match {
  readonly subscriptionId: string;
  readonly endpointId: string;
  readonly fields?: readonly string[];
  /** The subscription has ordering `subject`. */
  readonly ordered?: true;
}

export interface DispatchItem extends EventKey {
  /** One body per distinct selection; `variant` names it inside the event. */
  readonly bodies: readonly { readonly variant: string; readonly bytes: Uint8Array }[];
  readonly deliveries: readonly {
    readonly id: string;
    readonly subscriptionId: string;
    readonly endpointId: string;
    readonly variant: string;
    /**
     * One at a time for the event's subject, by revision (by capture without revisions): it waits for those before
     * it. One that comes after a higher revision was claimed is cancelled as `superseded`.
     */
    readonly ordered?: true;
  }[];
  /** JSON text of the enrichment, stored with the event. */
  readonly patch?: string;
}

/** Room of a worker in the dispatcher's process: what a dispatch may claim of the rows it makes. */
export type DispatchRoom = Pick<ClaimRequest, "limit" | "leaseMs" | "room" | "rooms">;

export interface DispatchResult extends Pick<ClaimResult, "deliveries" | "failed"> {
  /** The events that were still new. */
  readonly dispatched: readonly EventKey[];
}

/** Position in a list that runs newest first by (time, id). */
export interface PagePosition {
  readonly at: Date;
  readonly id: string;
}

export interface Page {
  /** 1 to 100. */
  readonly limit: number;
  readonly after?: PagePosition;
}

/** Rows of the page and the position to go on from, absent on the last page. */
export interface PageOf<T> {
  readonly items: readonly T[];
  readonly next?: PagePosition;
}

/** Who is asking: rows of another project, tenant or owner do not exist for them. Absent parts do not limit. */
export interface Visibility {
  readonly projectId?: string;
  readonly tenantId?: string;
  readonly ownerId?: string;
}

/** Half-open: since <= time < until. */
export interface TimeRange {
  readonly since?: Date;
  readonly until?: Date;
}

export interface SubscriptionFilter extends Visibility {
  /** Absent = every status but deleted. */
  readonly status?: SubscriptionStatus;
  readonly urlHost?: string;
  readonly externalId?: string;
}

export interface EventFilter extends Visibility, TimeRange {
  readonly id?: string;
  readonly type?: string;
  readonly subject?: string;
  readonly outcome?: EventOutcome;
}

export interface DeliveryFilter extends Visibility, TimeRange {
  readonly status?: DeliveryStatus;
  readonly subscriptionId?: string;
  readonly eventId?: string;
  readonly type?: string;
  readonly subject?: string;
  readonly urlHost?: string;
  readonly errorCode?: string;
  /** Those whose present round was opened by this replay. */
  readonly replayId?: string;
}

/** An API key of the server; only the SHA-256 of it is stored. */
export interface ApiKeyRecord {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly projectId?: string;
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly lastUsedAt?: Date;
}

export interface RetentionPolicy {
  /** Delivered and cancelled deliveries are kept this long after their end. */
  readonly deliveredMs: number;
  readonly failedMs: number;
  /** Events are kept this long from capture, and until their last delivery is gone. */
  readonly eventsMs: number;
  /** Deliveries held by a disabled subscription longer than this fail with its reason. */
  readonly heldMs: number;
}

export interface MaintenanceResult {
  /** Pending rows of deleted and gone subscriptions that were cancelled. */
  readonly cancelled: number;
  /** Rows that failed because their subscription stayed disabled; for the failure hook. */
  readonly failed: readonly Delivery[];
  readonly prunedDeliveries: number;
  readonly prunedEvents: number;
  /** True when a batch was full: call again soon. */
  readonly more: boolean;
}

/**
 * Everything Hookwell asks of a database. Memory, SQLite and PostgreSQL give the same results for the same
 * sequence of calls (src/testing/contract). Times are whole milliseconds. Returned objects are copies.
 */
export interface OutboxStore
  extends ReferenceStore,
    ExplainStore,
    HoldStore,
    InspectionStore,
    KeyRotationStore,
    RequestStore,
    SecretStore,
    StatsStore {
  readonly dialect: "memory" | "sqlite" | "postgres";

  // --- opening and closing -------------------------------------------------
  /**
   * Checks schema version and, with `withKeys`, that the encryption keys open what is stored. SQLite and memory
   * may create their schema here when the store was made with `migrate: true`.
   * @throws SchemaVersionError, EncryptionKeyError, StorageError
   */
  open(options: { readonly withKeys: boolean }): Promise<void>;
  close(): Promise<void>;

  // --- capture (publish/) --------------------------------------------------
  /**
   * Writes events in the scope's transaction: all of them, or none with the error of the first refused one.
   * The caller's transaction stays usable after a refusal.
   * @throws RevisionConflictError, EventMismatchError
   */
  capture(scope: Exclude<Scope, { kind: "sync" }>, events: readonly CaptureInput[]): Promise<CaptureResult[]>;
  captureSync(scope: Extract<Scope, { kind: "sync" }>, events: readonly CaptureInput[]): CaptureResult[];

  // --- dispatch (dispatch/) ------------------------------------------------
  /** Up to `limit` new events whose route is among `routes`, due for a try at `now`, in capture order. No lock. */
  takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]>;
  /** For each query the matching subscriptions that are active or paused, by id. */
  matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]>;
  /**
   * One transaction: those events that are still new get their bodies and deliveries (existing pairs are left
   * alone) and become dispatched; lanes with pending rows become ready. Events whose deliveries capture made
   * are given without any.
   * With `room`, rows are claimed as they are made, one of each lane per turn as by `claim`, where a claim would take
   * them at once: no older row of their lane is due, the lane has no limit or open circuit and does not rest, nothing
   * is held by an operator, and they have no place in an order. They are read after the commit, as by `claim`.
   */
  dispatch(items: readonly DispatchItem[], now: Now, room?: DispatchRoom): Promise<DispatchResult>;
  /** Counts a failed try of a new event: due again after `retryInMs`, or parked when that is null. False = no longer new. */
  failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean>;
  /** parked -> new, tries 0. @throws NotFoundError, InvalidStateError */
  releaseEvent(scope: Scope, key: EventKey): Promise<void>;

  // --- claim and record (deliver/) -----------------------------------------
  /**
   * The turn rule: lanes in id order after the cursor, one row each per turn (oldest due time, then id), at
   * most its room for each lane, until the limit or nothing is due. A row is due at its next attempt; a claimed
   * one when its lease ends. A claim sets a new token, leaseUntil = now + leaseMs, attempts + 1.
   * Bodies, endpoint and subscription are read after the claim is committed (the last look): rows of a
   * subscription that is no longer active are given back and left out, those that cannot be read fail. The cursor
   * is the lane of the last row.
   * Over all replicas: a lane gives no more than its `max_in_flight` has free and its `rate_limit` allows now, and
   * one whose circuit is open only its oldest due row, when a probe is due and none is in flight. No row that a hold
   * covers (hold-contract.ts) is taken; one that was taken just before the hold is given back by the last look.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /**
   * Records outcomes in one transaction; a bad one is found by halving and reported, the rest are recorded.
   * Failures in a row are counted as `policy` says; without one nothing is counted, but a success closes an open
   * circuit and the outcome of its probe sets the next. With `report` operational events are captured in the same
   * transaction; a parked event (`failDispatch`) is always told of.
   */
  record(outcomes: readonly Outcome[], now: Now, policy?: LanePolicy): Promise<RecordResult>;
  /** Outcomes and marks ignored because their token was not current, since this store object was made. */
  readonly staleOutcomes: number;

  // --- reference helpers ---------------------------------------------------
  /** Inserts or replaces a subscription behind the publisher's back: queued rows keep their endpoint. */
  addSubscription(subscription: Subscription): void | Promise<void>;
  get(deliveryId: string): Delivery | undefined | Promise<Delivery | undefined>;

  // --- management ----------------------------------------------------------
  createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord>;
  /**
   * A url or headers change makes a new endpoint version and points the older ones at it. Guard, merge and write are
   * one transaction on the locked row.
   * @throws NotFoundError, InvalidStateError (deleted), VersionConflictError, ValidationError (what merging gave)
   */
  updateSubscription(
    scope: Scope,
    id: string,
    patch: SubscriptionPatch,
    visibility: Visibility,
    guard?: Pick<SubscriptionGuard, "versions">,
  ): Promise<SubscriptionRecord>;
  /** Follows subscriptionTransitions; the same status again changes nothing. @throws NotFoundError, InvalidStateError, VersionConflictError */
  setSubscriptionStatus(
    scope: Scope,
    id: string,
    status: SubscriptionStatus,
    reason: DisabledReason | undefined,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord>;
  getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined>;
  listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>>;

  getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined>;
  listEvents(filter: EventFilter, page: Page): Promise<PageOf<EventRecord & { outcome: EventOutcome }>>;

  getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined>;
  listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>>;
  listAttempts(deliveryId: string): Promise<AttemptRecord[]>;
  /**
   * A final row becomes pending in a new round with attempts 0; a pending one becomes due now.
   * @throws NotFoundError; InvalidStateError when in flight (leased, also when it was cancelled meanwhile) or its
   * subscription is deleted, or disabled as gone: such a one's pending rows are cancelled
   */
  retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord>;
  /** pending -> cancelled, also while in flight (its outcome is then stale). @throws NotFoundError, InvalidStateError */
  cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord>;

  /** Many deliveries at once: sent again, or cancelled. */
  readonly replays: ReplayStore;

  createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void>;
  findApiKey(hash: string): Promise<ApiKeyRecord | undefined>;
  touchApiKey(id: string, at: Date): Promise<void>;
  /** Of one project, or all. */
  listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>>;
  /** False when there is none with this id, or it is another project's than the given one. */
  deleteApiKey(id: string, projectId?: string): Promise<boolean>;

  // --- upkeep --------------------------------------------------------------
  /** Cancels, fails and prunes in batches of `limit`; `retention: null` prunes nothing. */
  maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult>;
  /**
   * When the oldest due delivery on a runnable lane became due, and when the oldest undispatched event was captured.
   * What an operator holds is not late. Their ages are those at `at`: the store's now, by which they were written.
   */
  lag(now: Now): Promise<Lag>;
  /** Pending and due rows on runnable lanes that no hold covers, counted up to `max`: what `drain` reports as remaining. */
  countRemaining(max: number, now?: Now): Promise<{ readonly pending: number; readonly newEvents: number }>;
  /** Calls `onWake` when another connection or process has committed work; returns how to stop. Best effort. */
  watch(onWake: () => void): () => void;
  /** Tells other processes that work was, or is about to be, committed. Never waits, never throws. */
  notify(): void;
}
