import type { AttemptRecord, Exchange } from "../../model/delivery.ts";
import type { EventKey, EventRecord } from "../../model/event.ts";
import type { HoldRecord, StoredSelector } from "../../model/hold.ts";
import type { ReplayRecord } from "../../model/replay.ts";
import type { DeliveryStatus } from "../../model/states.ts";
import type { EndpointSecret, SubscriptionRecord } from "../../model/subscription.ts";
import type { ApiKeyRecord } from "../contract.ts";
import { freshLane, type LaneLimits, type LaneState } from "../lane-state.ts";
import { added, minuteOf, type Tally } from "../minute-counts.ts";
import type { MissingKey, WalkPosition } from "../replay-contract.ts";
import type { MinuteCounts } from "../stats-contract.ts";
import type { RequestRow } from "./requests.ts";
import { Table } from "./table.ts";

/** The version is made when the row is shown. */
export type StoredSubscription = Omit<SubscriptionRecord, "version">;

/** A subscription and the endpoint version that new deliveries get. Times of rows are epoch milliseconds. */
export interface SubscriptionRow {
  readonly record: StoredSubscription;
  readonly endpointId: string;
  readonly statusChangedAt: number;
}

/** Where a delivery goes and what signs it, as it was when the version was made. */
export interface EndpointRow {
  readonly id: string;
  readonly subscriptionId: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The first one is the key of the body signature. */
  readonly secrets: readonly EndpointSecret[];
  /** The newest version, when this one was replaced by management. */
  readonly supersededBy?: string;
}

export interface EventRow {
  readonly record: EventRecord;
  readonly contentHash: string;
  /** Capture order. */
  readonly seq: number;
  /** Next try to dispatch it. */
  readonly dueAt: number;
}

export interface DeliveryRow {
  readonly id: string;
  readonly projectId: string;
  readonly eventId: string;
  readonly subscriptionId: string;
  readonly endpointId: string;
  readonly variant: string;
  readonly type: string;
  readonly status: DeliveryStatus;
  readonly reason?: string;
  readonly attempts: number;
  readonly round: number;
  readonly nextAttemptAt: number;
  /** What the claim orders by: the next attempt while it waits, the end of the lease while it is claimed. */
  readonly dueAt: number;
  /** Place among the deliveries of its subject; absent = sent in no order. */
  readonly order?: { readonly key: string; readonly at: number };
  readonly lease?: { readonly token: string; readonly until: number };
  /** The replay that opened its present round. */
  readonly replayId?: string;
  readonly errorCode?: string;
  readonly lastError?: string;
  /** The exchange that delivered it; failed ones are rows of `attempts`. */
  readonly success?: Exchange;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deliveredAt?: number;
}

/** One selection of an event's data, rendered: shared by the deliveries that have it. */
export interface BodyRow extends EventKey {
  readonly variant: string;
  readonly bytes: Uint8Array;
}

export interface ReplayRow {
  readonly record: ReplayRecord;
  readonly position: WalkPosition;
  /** Events noted for rendering. */
  readonly noted: number;
  /** When it is next looked at. */
  readonly nextAt: number;
}

/** An event that a replay found without a delivery. */
export interface MissingRow extends MissingKey {
  readonly subscriptionId: string;
  readonly route: string;
  readonly dueAt: number;
  readonly tries: number;
}

/** What happened in one minute; project "" = in every project. */
export interface MinuteRow {
  readonly minute: number;
  readonly projectId: string;
  readonly counts: MinuteCounts;
}

/** A hold, and its selector as the rule reads it. */
export interface HoldRow {
  readonly record: HoldRecord;
  readonly stored: StoredSelector;
}

export type ApiKeyRow = ApiKeyRecord & { readonly hash: string };

/** All tables, as one layer over another state or as the lowest one. */
export class MemoryState {
  readonly subscriptions: Table<SubscriptionRow>;
  readonly endpoints: Table<EndpointRow>;
  readonly events: Table<EventRow>;
  /** Events with state new, by the same key. */
  readonly newEvents: Table<EventRow>;
  /** Event key that holds a subject's revision. */
  readonly revisions: Table<string>;
  readonly bodies: Table<BodyRow>;
  readonly deliveries: Table<DeliveryRow>;
  /** Deliveries with status pending, by the same key. */
  readonly pending: Table<DeliveryRow>;
  /** Delivery id of an (event, subscription) pair. */
  readonly pairs: Table<string>;
  /** Failed attempts by delivery id, oldest first. */
  readonly attempts: Table<readonly AttemptRecord[]>;
  /** What lanes remember; absent = nothing. */
  readonly lanes: Table<LaneState>;
  readonly apiKeys: Table<ApiKeyRow>;
  /** Requests with an idempotency key. */
  readonly requests: Table<RequestRow>;
  readonly replays: Table<ReplayRow>;
  readonly missing: Table<MissingRow>;
  /** What happened, by minute and project. */
  readonly minutes: Table<MinuteRow>;
  /** What the operator holds, by selector. */
  readonly holds: Table<HoldRow>;

  constructor(under?: MemoryState) {
    this.subscriptions = new Table(under?.subscriptions);
    this.endpoints = new Table(under?.endpoints);
    this.events = new Table(under?.events);
    this.newEvents = new Table(under?.newEvents);
    this.revisions = new Table(under?.revisions);
    this.bodies = new Table(under?.bodies);
    this.deliveries = new Table(under?.deliveries);
    this.pending = new Table(under?.pending);
    this.pairs = new Table(under?.pairs);
    this.attempts = new Table(under?.attempts);
    this.lanes = new Table(under?.lanes);
    this.apiKeys = new Table(under?.apiKeys);
    this.requests = new Table(under?.requests);
    this.replays = new Table(under?.replays);
    this.missing = new Table(under?.missing);
    this.minutes = new Table(under?.minutes);
    this.holds = new Table(under?.holds);
  }

  /** Adds what a write did to the minute it is in. */
  countMinute(tally: Tally, now: number): void {
    const minute = minuteOf(now);
    for (const [projectId, counts] of tally.entries()) {
      const key = minuteKey(minute, projectId);
      const row = this.minutes.get(key);
      this.minutes.set(key, { minute, projectId, counts: row ? added(row.counts, counts) : counts });
    }
  }

  lane(subscriptionId: string): LaneState {
    return this.lanes.get(subscriptionId) ?? freshLane;
  }

  limits(subscriptionId: string): LaneLimits {
    return this.subscriptions.get(subscriptionId)?.record ?? {};
  }

  putEvent(row: EventRow): void {
    const key = eventKey(row.record);
    this.events.set(key, row);
    if (row.record.state === "new") this.newEvents.set(key, row);
    else this.newEvents.delete(key);
  }

  putDelivery(row: DeliveryRow): void {
    this.#countReplayed(row);
    this.deliveries.set(row.id, row);
    this.pairs.set(pairKey(row.eventId, row.subscriptionId), row.id);
    if (row.status === "pending") this.pending.set(row.id, row);
    else this.pending.delete(row.id);
  }

  /** The one place where a pending row becomes final: its replay learns what became of it. */
  #countReplayed({ id, status }: DeliveryRow): void {
    const { replayId } = this.pending.get(id) ?? {};
    const replay = status === "pending" || replayId === undefined ? undefined : this.replays.get(replayId);
    if (replay === undefined || status === "pending") return;
    const { record } = replay;
    this.replays.set(record.id, { ...replay, record: { ...record, [status]: record[status] + 1 } });
  }

  dropDelivery(row: DeliveryRow): void {
    this.deliveries.delete(row.id);
    this.pairs.delete(pairKey(row.eventId, row.subscriptionId));
    this.pending.delete(row.id);
    this.attempts.delete(row.id);
  }

  putBody(key: EventKey, variant: string, bytes: Uint8Array): void {
    this.bodies.set(bodyKey(key.projectId, key.id, variant), {
      projectId: key.projectId,
      id: key.id,
      variant,
      bytes,
    });
  }

  /** Moves this layer's changes into the one under it. */
  merge(): void {
    for (const table of Object.values(this)) if (table instanceof Table) table.merge();
  }
}

const separator = "\u0000";

export function eventKey(key: EventKey): string {
  return key.projectId + separator + key.id;
}

export function minuteKey(minute: number, projectId: string): string {
  return `${minute}${separator}${projectId}`;
}

export function bodyKey(projectId: string, eventId: string, variant: string): string {
  return [projectId, eventId, variant].join(separator);
}

export function missingKey({ replayId, eventId }: MissingKey): string {
  return replayId + separator + eventId;
}

export function pairKey(eventId: string, subscriptionId: string): string {
  return eventId + separator + subscriptionId;
}

export function revisionKey(projectId: string, tenantId = "", subject = "", revision = 0): string {
  return [projectId, tenantId, subject, revision].join(separator);
}

/** Order of ids: by code unit. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
