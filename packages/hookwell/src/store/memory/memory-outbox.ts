import { type Clock, systemClock } from "../../model/clock.ts";
import type {
  AttemptRecord,
  Delivery,
  DeliveryDetail,
  DeliveryRecord,
  Outcome,
} from "../../model/delivery.ts";
import { ConfigurationError, NotInTransactionError } from "../../model/errors.ts";
import type { CaptureInput, CaptureResult, EventKey, EventOutcome, EventRecord } from "../../model/event.ts";
import type { HoldRecord } from "../../model/hold.ts";
import { type IdFunc, idFunc, systemRandom } from "../../model/ids.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Matchable } from "../../model/matching.ts";
import type { DisabledReason, SubscriptionStatus } from "../../model/states.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionPatch,
  SubscriptionRecord,
} from "../../model/subscription.ts";
import type {
  ApiKeyRecord,
  ClaimRequest,
  ClaimResult,
  DeliveryFilter,
  DispatchItem,
  EventFilter,
  MaintenanceResult,
  Match,
  Now,
  OutboxStore,
  Page,
  PageOf,
  RecordResult,
  RetentionPolicy,
  Scope,
  SubscriptionFilter,
  Visibility,
} from "../contract.ts";
import type { DeliveryOfEvent } from "../explain-contract.ts";
import type { HoldStore, NewHold } from "../hold-contract.ts";
import type { StoreInspection } from "../inspection-contract.ts";
import type { ResealResult, SealedCounts } from "../key-rotation.ts";
import { placeAt } from "../ordering.ts";
import type { RequestBegin, RequestBegun, RequestName } from "../request-contract.ts";
import type { OpenEndpoint, SecretRotation } from "../secret-rotation.ts";
import type { StoreStats } from "../stats-contract.ts";
import { storable } from "../storable.ts";
import type { SubscriptionGuard } from "../subscription-guard.ts";
import { createApiKey, deleteApiKey, findApiKey, touchApiKey } from "./api-keys.ts";
import { capture, matchesOf, takeNew } from "./capture.ts";
import { claim } from "./claim.ts";
import { cancelDelivery, enqueue, isDeliveryVisible, retryDelivery } from "./deliveries.ts";
import { dispatch, failDispatch, releaseEvent } from "./dispatch.ts";
import { deliveriesOfEvent } from "./explain.ts";
import { listHolds, releaseHold, setHold } from "./holds.ts";
import { undispatched } from "./inspection.ts";
import { findEvent, listApiKeys, listDeliveries, listEvents, listSubscriptions } from "./lists.ts";
import { countRemaining, lag, maintain } from "./maintain.ts";
import { MemoryReplays } from "./memory-replays.ts";
import { mark, record } from "./record.ts";
import { abandonRequest, beginRequest, finishRequest } from "./requests.ts";
import { openEndpoint, rotateSecret } from "./secrets.ts";
import { compareText, type DeliveryRow, MemoryState } from "./state.ts";
import { readStats } from "./stats.ts";
import {
  addSubscription,
  createSubscription,
  isVisible,
  setSubscriptionStatus,
  updateSubscription,
} from "./subscriptions.ts";
import { MemoryTransaction, type Write, writeTo } from "./transaction.ts";
import { attemptLog, toDelivery, toDeliveryDetail, toSubscription, toSubscriptionRecord } from "./view.ts";

/** Milliseconds of a claim by the reference method. */
const referenceLeaseMs = 30_000;

/**
 * The outbox in memory: for tests, examples and programs whose events may die with them. It is also the
 * executable form of the store contract, which the SQL stores are compared with.
 */
export class MemoryOutbox implements OutboxStore {
  readonly dialect = "memory";
  readonly #state = new MemoryState();
  readonly #clock: Clock;
  readonly #newEndpointId: IdFunc;
  readonly #watchers = new Set<() => void>();
  readonly replays: MemoryReplays;
  #seq = 0;
  #stale = 0;

  /** `now` is the store's own clock; `idFunc` makes the ids of endpoint versions. */
  constructor(options: { readonly now?: Clock; readonly idFunc?: IdFunc } = {}) {
    this.#clock = options.now ?? systemClock;
    this.#newEndpointId = options.idFunc ?? idFunc("end_", this.#clock, systemRandom);
    this.replays = new MemoryReplays(
      this.#state,
      (now) => this.#now(now),
      (scope, write) => this.#join(scope, write),
    );
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {
    this.#watchers.clear();
  }

  /**
   * Runs `fn` in a transaction: pass `tx` on to `emit` and to the management methods. Its writes become visible
   * all together when `fn` resolves, and are dropped when it rejects.
   */
  async transaction<T>(fn: (tx: MemoryTransaction) => Promise<T>): Promise<T> {
    const tx = new MemoryTransaction(this, this.#state);
    try {
      const result = await fn(tx);
      tx.commit(this.#state);
      return result;
    } finally {
      tx.rollback();
    }
  }

  async inspect(now: Now): Promise<StoreInspection> {
    const clock = now ?? this.#clock();
    return { clock, undispatched: undispatched(this.#state), findings: [] };
  }

  async checkKeys(): Promise<"unused"> {
    return "unused";
  }

  // --- the reference methods ---------------------------------------------------------------------------------

  async enqueueDelivery(delivery: Delivery): Promise<void> {
    const endpointId = this.#newEndpointId();
    this.#write((state) => enqueue(state, delivery, endpointId));
  }

  async claimDue(now: Date, limit: number): Promise<Delivery[]> {
    const { deliveries } = await this.claim({ now, limit, leaseMs: referenceLeaseMs });
    return [...deliveries];
  }

  async markDelivered(id: string, at: Date, leaseToken?: string): Promise<void> {
    const time = at.getTime();
    this.#mark(id, leaseToken, (row) => ({
      ...row,
      status: "delivered",
      // Without a claim nothing has counted the send yet.
      attempts: row.lease ? row.attempts : row.attempts + 1,
      updatedAt: time,
      deliveredAt: time,
    }));
  }

  async reschedule(
    id: string,
    attempts: number,
    lastError: string,
    nextAttemptAt: Date,
    leaseToken?: string,
  ): Promise<void> {
    const at = nextAttemptAt.getTime();
    this.#mark(id, leaseToken, (row) => ({
      ...row,
      attempts,
      lastError: storable(lastError),
      nextAttemptAt: at,
      dueAt: placeAt(at, row.replayId),
      updatedAt: this.#now(null),
    }));
  }

  async markFailed(id: string, attempts: number, lastError: string, leaseToken?: string): Promise<void> {
    this.#mark(id, leaseToken, (row) => ({
      ...row,
      status: "failed",
      reason: "attempts_exhausted",
      attempts,
      lastError: storable(lastError),
      updatedAt: this.#now(null),
    }));
  }

  async listActiveSubscriptions(projectId: string): Promise<Subscription[]> {
    return [...this.#state.subscriptions.values()]
      .filter(({ record }) => record.projectId === projectId && record.status === "active")
      .map((row) => toSubscription(this.#state, row))
      .sort((a, b) => compareText(a.id, b.id));
  }

  addSubscription(subscription: Subscription): void {
    const endpointId = this.#newEndpointId();
    this.#write((state) => addSubscription(state, subscription, endpointId, this.#now(null)));
  }

  get(deliveryId: string): Delivery | undefined {
    const row = this.#state.deliveries.get(deliveryId);
    return row && toDelivery(this.#state, row, this.#now(null));
  }

  // --- capture and dispatch ----------------------------------------------------------------------------------

  async capture(
    scope: Exclude<Scope, { kind: "sync" }>,
    events: readonly CaptureInput[],
  ): Promise<CaptureResult[]> {
    const inputs = structuredClone(events);
    const now = this.#now(null);
    const firstSeq = this.#seq + 1;
    this.#seq += inputs.length;
    return this.#join(scope, (state) => capture(state, inputs, firstSeq, now));
  }

  captureSync(): CaptureResult[] {
    throw noSyncTransactions();
  }

  async takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]> {
    return takeNew(this.#state, routes, limit, this.#now(now));
  }

  async matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]> {
    return queries.map((query) => matchesOf(this.#state, query));
  }

  async dispatch(items: readonly DispatchItem[], now: Now): Promise<EventKey[]> {
    return this.#write((state) => dispatch(state, items, this.#now(now)));
  }

  async failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    return this.#write((state) => {
      const at = this.#now(now);
      return failDispatch(state, key, error, retryInMs, at, (event) =>
        capture(state, [event], ++this.#seq, at),
      );
    });
  }

  async releaseEvent(scope: Scope, key: EventKey): Promise<void> {
    this.#join(scope, (state) => releaseEvent(state, key));
  }

  // --- claim and record --------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    return this.#write((state) => claim(state, request, this.#now(request.now)));
  }

  async record(outcomes: readonly Outcome[], now: Now, policy: LanePolicy = {}): Promise<RecordResult> {
    const result = this.#write((state) => {
      const at = this.#now(now);
      return record(state, outcomes, at, policy, (event) => capture(state, [event], ++this.#seq, at));
    });
    this.#stale += result.stale.length;
    return result;
  }

  get staleOutcomes(): number {
    return this.#stale;
  }

  // --- management --------------------------------------------------------------------------------------------

  async createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord> {
    const input = structuredClone(subscription);
    const endpointId = this.#newEndpointId();
    const now = this.#now(null);
    return this.#join(scope, (state) => createSubscription(state, input, endpointId, now));
  }

  async updateSubscription(
    scope: Scope,
    id: string,
    patch: SubscriptionPatch,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    const changes = structuredClone(patch);
    const endpointId = this.#newEndpointId();
    const now = this.#now(null);
    return this.#join(scope, (state) =>
      updateSubscription(state, id, changes, visibility, guard, endpointId, now),
    );
  }

  async setSubscriptionStatus(
    scope: Scope,
    id: string,
    status: SubscriptionStatus,
    reason: DisabledReason | undefined,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    const now = this.#now(null);
    return this.#join(scope, (state) =>
      setSubscriptionStatus(state, id, status, reason, visibility, guard, now, (event) =>
        capture(state, [event], ++this.#seq, now),
      ),
    );
  }

  async rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord> {
    const endpointId = this.#newEndpointId();
    const now = this.#now(null);
    return this.#join(scope, (state) => rotateSecret(state, id, rotation, visibility, endpointId, now));
  }

  async openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined> {
    return openEndpoint(this.#state, id, visibility, this.#now(now));
  }

  async getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined> {
    const row = this.#state.subscriptions.get(id);
    return row && isVisible(row.record, visibility) ? toSubscriptionRecord(row) : undefined;
  }

  async listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>> {
    return listSubscriptions(this.#state, filter, page);
  }

  async getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined> {
    return findEvent(this.#state, id, visibility);
  }

  async listEvents(
    filter: EventFilter,
    page: Page,
  ): Promise<PageOf<EventRecord & { outcome: EventOutcome }>> {
    return listEvents(this.#state, filter, page);
  }

  async deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]> {
    return deliveriesOfEvent(this.#state, event, subscriptionIds);
  }

  async getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined> {
    const row = this.#state.deliveries.get(id);
    return row && isDeliveryVisible(this.#state, row, visibility)
      ? toDeliveryDetail(this.#state, row, this.#now(null))
      : undefined;
  }

  async listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>> {
    return listDeliveries(this.#state, filter, page, this.#now(null));
  }

  async listAttempts(deliveryId: string): Promise<AttemptRecord[]> {
    const row = this.#state.deliveries.get(deliveryId);
    return row ? attemptLog(this.#state, row) : [];
  }

  async retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    const time = this.#now(now);
    return this.#join(scope, (state) => retryDelivery(state, id, visibility, time));
  }

  async cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    const time = this.#now(now);
    return this.#join(scope, (state) => cancelDelivery(state, id, visibility, time));
  }

  async createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void> {
    this.#write((state) => createApiKey(state, key));
  }

  async findApiKey(hash: string): Promise<ApiKeyRecord | undefined> {
    return findApiKey(this.#state, hash);
  }

  async touchApiKey(id: string, at: Date): Promise<void> {
    touchApiKey(this.#state, id, at);
  }

  async listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>> {
    return listApiKeys(this.#state, page, projectId);
  }

  async deleteApiKey(id: string, projectId?: string): Promise<boolean> {
    return this.#write((state) => deleteApiKey(state, id, projectId));
  }

  async beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun> {
    return this.#write((state) => beginRequest(state, request, this.#now(now)));
  }

  async finishRequest(name: RequestName, token: string, answer: string): Promise<boolean> {
    return this.#write((state) => finishRequest(state, name, token, answer));
  }

  async abandonRequest(name: RequestName, token: string): Promise<void> {
    this.#write((state) => abandonRequest(state, name, token));
  }

  // --- holds -------------------------------------------------------------------------------------------------

  async setHold(scope: Scope, hold: NewHold, now: Now): ReturnType<HoldStore["setHold"]> {
    const given = structuredClone(hold);
    const at = this.#now(now);
    return this.#join(scope, (state) => setHold(state, given, at));
  }

  async releaseHold(
    scope: Scope,
    which: Parameters<HoldStore["releaseHold"]>[1],
  ): Promise<HoldRecord | undefined> {
    return this.#join(scope, (state) => releaseHold(state, which));
  }

  async listHolds(visibility: Pick<Visibility, "projectId"> = {}): Promise<HoldRecord[]> {
    return listHolds(this.#state, visibility);
  }

  /** Nothing is set aside here. */
  async giveBackHeld(): ReturnType<HoldStore["giveBackHeld"]> {
    return { deliveries: 0, more: false };
  }

  async countToGiveBack(): Promise<number> {
    return 0;
  }

  // --- upkeep ------------------------------------------------------------------------------------------------

  async maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult> {
    return this.#write((state) => {
      const at = this.#now(now);
      return maintain(state, retention, limit, at, (event) => capture(state, [event], ++this.#seq, at));
    });
  }

  async countSealed(): Promise<SealedCounts> {
    return { byKey: new Map() };
  }

  async reseal(): Promise<ResealResult> {
    return { resealed: 0, damaged: [] };
  }

  async retireKeys(): Promise<readonly string[]> {
    return [];
  }

  async lag(now: Now): Promise<{ readonly oldestDueAt?: Date; readonly oldestNewAt?: Date }> {
    return lag(this.#state, this.#now(now));
  }

  async countRemaining(
    max: number,
    now: Now = null,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    return countRemaining(this.#state, max, this.#now(now));
  }

  async stats(projectId: string | undefined, now: Now): Promise<StoreStats> {
    return readStats(this.#state, projectId, this.#now(now));
  }

  watch(onWake: () => void): () => void {
    const watcher = (): void => onWake();
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  notify(): void {
    for (const watcher of this.#watchers)
      queueMicrotask(() => {
        if (this.#watchers.has(watcher)) watcher();
      });
  }

  // --- inside ------------------------------------------------------------------------------------------------

  #now(now: Now): number {
    return (now ?? this.#clock()).getTime();
  }

  #write<T>(write: Write<T>): T {
    return writeTo(this.#state, write);
  }

  #join<T>(scope: Scope, write: Write<T>): T {
    if (scope.kind === "own") return this.#write(write);
    if (scope.kind === "sync") throw noSyncTransactions();
    const { tx } = scope;
    if (!(tx instanceof MemoryTransaction) || tx.owner !== this)
      throw new NotInTransactionError("The given tx is not a transaction of this MemoryOutbox.");
    return tx.write(write);
  }

  #mark(id: string, leaseToken: string | undefined, change: (row: DeliveryRow) => DeliveryRow): void {
    if (!this.#write((state) => mark(state, id, leaseToken, change, this.#now(null)))) this.#stale++;
  }
}

function noSyncTransactions(): ConfigurationError {
  return new ConfigurationError(
    "A MemoryOutbox has no synchronous transactions; use await store.transaction(...) and emit.",
  );
}
