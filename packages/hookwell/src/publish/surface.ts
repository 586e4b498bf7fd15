import type { DrainResult } from "../deliver/drain.ts";
import type { FailureHook } from "../deliver/failure-hook.ts";
import type { Clock } from "../model/clock.ts";
import type { DeliveryDetail, DeliveryRecord } from "../model/delivery.ts";
import type { Actor, EventOutcome, EventRecord } from "../model/event.ts";
import type { HoldRecord, HoldSelector } from "../model/hold.ts";
import type { Logger, Observer } from "../model/observe.ts";
import type { DeliverySelection, ReplayedStatus, ReplayRecord } from "../model/replay.ts";
import type { ConnectionTrial } from "../send/try-connection.ts";
import type {
  ApiKeyRecord,
  DeliveryFilter,
  EventFilter,
  OutboxStore,
  Page,
  PageOf,
  RetentionPolicy,
  TimeRange,
  Visibility,
} from "../store/contract.ts";
import type { ReplayFilter } from "../store/replay-contract.ts";
import type { Explanation } from "./explain.ts";
import type { Stats } from "./stats.ts";
import type { Subscriptions } from "./subscription-surface.ts";
import type { WriteOptions } from "./write-options.ts";

export interface EmitOptions<Tx> {
  /** The transaction of the change, or "own": on purpose, one for the event alone. */
  readonly tx: Tx | "own";
  /** Absent = `evt_` + UUIDv7, returned. */
  readonly id?: string;
  readonly projectId?: string;
  readonly tenantId?: string;
  /** RFC 3339 text or a Date. Absent = now. */
  readonly occurredAt?: Date | string;
  readonly subject?: string;
  readonly revision?: number;
  readonly actor?: Actor;
  /** Ids of the owners whose subscriptions may get it. */
  readonly audience?: readonly string[];
}

/** One of several events whose type is known at run time only. */
export type UnknownEvent<Tx> = Omit<EmitOptions<Tx>, "tx"> & {
  readonly type: string;
  readonly data: unknown;
};

export interface EmitResult {
  readonly id: string;
  /** The same event was there already; nothing new was written. */
  readonly duplicate: boolean;
}

export interface Events<Tx> {
  get(id: string, visibility?: Visibility): Promise<EventRecord & { readonly outcome: EventOutcome }>;
  list(
    filter?: EventFilter,
    page?: Partial<Page>,
  ): Promise<PageOf<EventRecord & { readonly outcome: EventOutcome }>>;
  /**
   * Why each subscription of the event's project got it or did not: those of one page, newest first, or the one named,
   * which may be deleted. Subscriptions are looked at as they are now.
   * @throws NotFoundError for the event, and for the named subscription
   */
  explain(
    id: string,
    options?: Partial<Page> & { readonly visibility?: Visibility; readonly subscriptionId?: string },
  ): Promise<PageOf<Explanation>>;
  /** Sends a parked event through dispatch again. */
  release(id: string, options?: WriteOptions<Tx>): Promise<void>;
}

export interface Deliveries<Tx> {
  get(id: string, visibility?: Visibility): Promise<DeliveryDetail>;
  list(filter?: DeliveryFilter, page?: Partial<Page>): Promise<PageOf<DeliveryRecord>>;
  retry(id: string, options?: WriteOptions<Tx>): Promise<DeliveryRecord>;
  cancel(id: string, options?: WriteOptions<Tx>): Promise<DeliveryRecord>;
  /**
   * Cancels pending deliveries, however many, in short transactions of its own; one that is being sent is cancelled
   * too, and its outcome ignored. `dryRun` counts and changes nothing. `signal` ends it between two transactions: the
   * count is then of what was done. `onProgress` is told the count so far.
   */
  cancelMany(
    filter: CancelFilter,
    options?: {
      readonly visibility?: Visibility;
      readonly dryRun?: boolean;
      readonly signal?: AbortSignal;
      readonly onProgress?: (count: number) => void;
    },
  ): Promise<{ readonly count: number }>;
}

/** What a replay sends again, and to whom: exactly one of `subscriptionId` and `filter`. */
export interface ReplayInput {
  readonly subscriptionId?: string;
  /** At least one of its parts. */
  readonly filter?: DeliverySelection;
  /** From here on: when deliveries were made and, for `missing`, events were captured. Not longer ago than they are kept. */
  readonly since: Date;
  /** Before this. Absent, or in the future: until now. */
  readonly until?: Date;
  /**
   * Which deliveries are sent again, by what became of them. `missing`: events of the period that match the
   * subscription as it is now and have no delivery to it; it needs a subscription, alone or in the filter.
   */
  readonly status: readonly ReplayedStatus[];
}

/**
 * Sending many deliveries again, as a job that whoever runs dispatcher or worker takes on. Each delivery is queued
 * at most once, as a new round with the same id and bytes, and goes behind live deliveries of its subscription; one
 * that is pending is left alone. At most 10,000 deliveries of a replay are pending at a time.
 */
export interface Replays<Tx> {
  /**
   * A paused subscription queues what is replayed, and sends it when it is resumed.
   * @throws NotFoundError, ValidationError; InvalidStateError when the subscription is disabled or deleted
   */
  create(input: ReplayInput, options?: WriteOptions<Tx>): Promise<ReplayRecord>;
  /** What `create` would find, and nothing is made. Refuses what `create` refuses. */
  count(input: ReplayInput, visibility?: Visibility): Promise<{ readonly count: number }>;
  get(id: string, visibility?: Visibility): Promise<ReplayRecord>;
  list(filter?: ReplayFilter, page?: Partial<Page>): Promise<PageOf<ReplayRecord>>;
  /**
   * Queues nothing more. What it has queued stays; `deliveries.cancelMany({ replayId })` cancels that.
   * @throws NotFoundError; InvalidStateError when it has ended
   */
  cancel(id: string, options?: WriteOptions<Tx>): Promise<ReplayRecord>;
}

/** Which pending deliveries a bulk cancel is about: at least one part. Times are those of their making. */
export interface CancelFilter extends DeliverySelection, TimeRange {}

export interface HoldOptions<Tx> extends WriteOptions<Tx> {
  /** Why, for whoever finds it. At most 1,000 characters. */
  readonly reason?: string;
  /** Who sets it. At most 1,000 characters. */
  readonly heldBy?: string;
}

/**
 * What an operator holds: events are captured and dispatched, their bodies are frozen, and nothing of it is sent, by
 * any process, until it is released. It takes effect with the next claim; a send in flight is finished. What two holds
 * cover goes when both are released. A caller bound to a project holds and sees that project alone.
 */
export interface Holds<Tx> {
  /** Holds in force, oldest first: at most 100. */
  list(visibility?: Visibility): Promise<HoldRecord[]>;
  /** `created: false`: it is held already, and stays as it is. @throws ValidationError */
  set(
    selector: HoldSelector,
    options?: HoldOptions<Tx>,
  ): Promise<{ readonly hold: HoldRecord; readonly created: boolean }>;
  /**
   * Undefined = that is not held. Held deliveries that stood in the way of others were set aside; they are due again
   * a batch at a time, here for `patienceMs` (1,000) and then by the upkeep of any worker, which also does it all when
   * `tx` is given. `left`: how many are still to come, counted up to 10,000.
   */
  release(
    which: HoldSelector | { readonly id: string },
    options?: WriteOptions<Tx> & { readonly patienceMs?: number },
  ): Promise<{ readonly hold: HoldRecord; readonly left: number } | undefined>;
  /** Makes due again what is set aside for holds that were released: all of it, or for so long. */
  giveBack(options?: {
    readonly patienceMs?: number;
    /** Told after each batch how many there were. */
    readonly onBatch?: (deliveries: number) => void;
  }): Promise<{ readonly deliveries: number; readonly left: number }>;
}

/** Keys of the server. The key is in the answer of create only; the store keeps its SHA-256. */
export interface ApiKeys {
  create(input: {
    readonly name: string;
    readonly scopes: readonly string[];
    readonly projectId?: string;
    readonly expiresAt?: Date;
    /** A key chosen by the operator (HOOKWELL_API_KEY); absent = `hwk_` + 32 random bytes. */
    readonly key?: string;
  }): Promise<ApiKeyRecord & { readonly key: string }>;
  /** The record of a key that exists and has not expired. */
  authenticate(key: string): Promise<ApiKeyRecord | undefined>;
  /** Of one project, or all. */
  list(page?: Partial<Page> & { readonly projectId?: string }): Promise<PageOf<ApiKeyRecord>>;
  /** @throws NotFoundError also for one of another project than `visibility` says */
  delete(id: string, visibility?: Pick<Visibility, "projectId">): Promise<void>;
}

export type { DrainResult } from "../deliver/drain.ts";
export type { FailureHook } from "../deliver/failure-hook.ts";
export type { ConnectionTrial } from "../send/try-connection.ts";
export type { ExplainRule, Explanation } from "./explain.ts";
export type * from "./subscription-surface.ts";
export type { WriteOptions } from "./write-options.ts";

export interface Run {
  /** Stops claiming, lets sends finish for `graceMs` (5,000), gives back what was not sent. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** Looks for work now. */
  wake(): void;
}

export interface StartOptions {
  readonly dispatcher?: boolean;
  readonly worker?: boolean;
  /** Called at most once per round, when a delivery is recorded as failed. One that throws is reported. */
  readonly failureHook?: FailureHook;
}

/** What one batch of upkeep did. */
export interface UpkeepResult {
  /** Pending deliveries of deleted and gone subscriptions that were cancelled. */
  readonly cancelled: number;
  /** Deliveries that failed because their subscription stayed disabled. */
  readonly failed: number;
  readonly prunedDeliveries: number;
  readonly prunedEvents: number;
  /** A batch was full: there is more to do. */
  readonly more: boolean;
}

/** How one event type appears in the catalogue (`GET /v1/catalogue`). */
export interface CatalogueEntry {
  readonly type: string;
  readonly description?: string;
  readonly jsonSchema: Readonly<Record<string, unknown>>;
  readonly fields?: {
    readonly always: readonly string[];
    readonly default: readonly string[];
    readonly optional: Readonly<Record<string, { readonly personal?: boolean }>>;
  };
  readonly example?: unknown;
  readonly fanOut: "dispatch" | "emit";
  readonly broadcast: boolean;
}

/** What the server, the CLI and the application share: everything but the typed emit. */
export interface HookwellCore<Tx = unknown> {
  readonly store: OutboxStore;
  readonly project: string | undefined;
  readonly catalogue: readonly CatalogueEntry[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observe: Observer;
  readonly subscriptions: Subscriptions<Tx>;
  readonly events: Events<Tx>;
  readonly deliveries: Deliveries<Tx>;
  readonly replays: Replays<Tx>;
  readonly holds: Holds<Tx>;
  readonly keys: ApiKeys;
  /** Untyped emit, checked at run time like the typed one: for the server and scripts. An id that is in no catalogue is accepted only when the instance was made without one. */
  emitUnknown(type: string, data: unknown, options: EmitOptions<Tx>): Promise<EmitResult>;
  /** The same for several events in one transaction: all are written, or none. */
  emitManyUnknown(
    events: readonly UnknownEvent<Tx>[],
    options: { readonly tx: Tx | "own" },
  ): Promise<EmitResult[]>;
  /** What happens, of one project or of all: rates, backlog, and lanes that need somebody. */
  stats(filter?: { readonly projectId?: string }): Promise<Stats>;
  /**
   * What this process counted and how the database stands, in the Prometheus text format
   * (docs/reference/metrics.md). Never rejects: without the database its own counts are there.
   */
  metrics(): Promise<string>;
  /** Checks database, schema and keys. @throws SchemaVersionError, EncryptionKeyError, StorageError */
  ready(): Promise<void>;
  start(options?: StartOptions): Run;
  drain(options: { readonly deadlineMs: number; readonly max?: number }): Promise<DrainResult>;
  /**
   * Whether a send to this url would get a connection from here: look-up, address guard, TCP and TLS, without a request.
   * Undefined = a sender was given to the instance, which makes its own connections.
   */
  tryConnection(url: string): Promise<ConnectionTrial | undefined>;
  /** How long things are kept; undefined = nothing is pruned. */
  readonly retention: RetentionPolicy | undefined;
  /**
   * One batch of the upkeep that a started worker does each minute: cancels what waits for deleted subscriptions, fails
   * what disabled ones have held too long, and deletes what is older than its retention. `limit` bounds the rows of each
   * kind, 1 to 10,000, default 1,000. Call it again while `more`.
   */
  maintain(options?: { readonly limit?: number }): Promise<UpkeepResult>;
  /** Stops what runs and closes the store (not a pool that was passed in). */
  close(): Promise<void>;
}

export interface NetworkOptions {
  /** Networks in CIDR form that are allowed although they are not public (HOOKWELL_ALLOW_NETWORKS). */
  readonly allow?: readonly string[];
  /** Allows http: urls. Development only. */
  readonly http?: boolean;
}

/** How long things are kept; `false` turns pruning off. */
export type Retention = Partial<RetentionPolicy> | false;
