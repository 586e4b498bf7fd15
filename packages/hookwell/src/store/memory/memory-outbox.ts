import type { Clock } from "../../model/clock.ts";
import type { Delivery, Outcome } from "../../model/delivery.ts";
import type { CaptureInput, CaptureResult, EventKey, EventRecord } from "../../model/event.ts";
import type { IdFunc } from "../../model/ids.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Matchable } from "../../model/matching.ts";
import type { Subscription } from "../../model/subscription.ts";
import type {
  ClaimRequest,
  ClaimResult,
  DispatchItem,
  DispatchResult,
  DispatchRoom,
  Lag,
  MaintenanceResult,
  Match,
  Now,
  OutboxStore,
  RecordResult,
  RetentionPolicy,
  Scope,
} from "../contract.ts";
import { placeAt } from "../ordering.ts";
import { storable } from "../storable.ts";
import { capture, matchesOf, takeNew } from "./capture.ts";
import { claim } from "./claim.ts";
import { copyInput } from "./copies.ts";
import { enqueue } from "./deliveries.ts";
import { dispatch, failDispatch, releaseEvent } from "./dispatch.ts";
import { countRemaining, lag, maintain } from "./maintain.ts";
import { MemoryManagement, noSyncTransactions } from "./memory-management.ts";
import { MemoryReplays } from "./memory-replays.ts";
import { mark, record } from "./record.ts";
import { compareText, type DeliveryRow } from "./state.ts";
import { addSubscription } from "./subscriptions.ts";
import { MemoryTransaction } from "./transaction.ts";
import { toDelivery, toSubscription } from "./view.ts";

/** Milliseconds of a claim by the reference method. */
const referenceLeaseMs = 30_000;

/**
 * The outbox in memory: for tests, examples and programs whose events may die with them. It is also the
 * executable form of the store contract, which the SQL stores are compared with.
 */
export class MemoryOutbox extends MemoryManagement implements OutboxStore {
  readonly dialect = "memory";
  readonly #watchers = new Set<() => void>();
  readonly replays: MemoryReplays;
  #stale = 0;

  /** `now` is the store's own clock; `idFunc` makes the ids of endpoint versions. */
  constructor(options: { readonly now?: Clock; readonly idFunc?: IdFunc } = {}) {
    super(options);
    this.replays = new MemoryReplays(
      this.state,
      (now) => this.now(now),
      (scope, write) => this.join(scope, write),
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
    const tx = new MemoryTransaction(this, this.state);
    try {
      const result = await fn(tx);
      tx.commit(this.state);
      return result;
    } finally {
      tx.rollback();
    }
  }

  // --- the reference methods ---------------------------------------------------------------------------------

  async enqueueDelivery(delivery: Delivery): Promise<void> {
    const endpointId = this.newEndpointId();
    this.write((state) => enqueue(state, delivery, endpointId));
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
      updatedAt: this.now(null),
    }));
  }

  async markFailed(id: string, attempts: number, lastError: string, leaseToken?: string): Promise<void> {
    this.#mark(id, leaseToken, (row) => ({
      ...row,
      status: "failed",
      reason: "attempts_exhausted",
      attempts,
      lastError: storable(lastError),
      updatedAt: this.now(null),
    }));
  }

  async listActiveSubscriptions(projectId: string): Promise<Subscription[]> {
    return [...this.state.subscriptions.values()]
      .filter(({ record }) => record.projectId === projectId && record.status === "active")
      .map((row) => toSubscription(this.state, row))
      .sort((a, b) => compareText(a.id, b.id));
  }

  addSubscription(subscription: Subscription): void {
    const endpointId = this.newEndpointId();
    this.write((state) => addSubscription(state, subscription, endpointId, this.now(null)));
  }

  get(deliveryId: string): Delivery | undefined {
    const row = this.state.deliveries.get(deliveryId);
    return row && toDelivery(this.state, row, this.now(null));
  }

  // --- capture and dispatch ----------------------------------------------------------------------------------

  async capture(
    scope: Exclude<Scope, { kind: "sync" }>,
    events: readonly CaptureInput[],
  ): Promise<CaptureResult[]> {
    const inputs = events.map(copyInput);
    const now = this.now(null);
    const firstSeq = this.seq + 1;
    this.seq += inputs.length;
    return this.join(scope, (state) => capture(state, inputs, firstSeq, now));
  }

  captureSync(): CaptureResult[] {
    throw noSyncTransactions();
  }

  async takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]> {
    return takeNew(this.state, routes, limit, this.now(now));
  }

  async matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]> {
    return queries.map((query) => matchesOf(this.state, query));
  }

  async dispatch(items: readonly DispatchItem[], now: Now, room?: DispatchRoom): Promise<DispatchResult> {
    return this.write((state) => dispatch(state, items, this.now(now), room));
  }

  async failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    return this.write((state) => {
      const at = this.now(now);
      return failDispatch(state, key, error, retryInMs, at, (event) =>
        capture(state, [event], ++this.seq, at),
      );
    });
  }

  async releaseEvent(scope: Scope, key: EventKey): Promise<void> {
    this.join(scope, (state) => releaseEvent(state, key));
  }

  // --- claim and record --------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    return this.write((state) => claim(state, request, this.now(request.now)));
  }

  async record(outcomes: readonly Outcome[], now: Now, policy: LanePolicy = {}): Promise<RecordResult> {
    const result = this.write((state) => {
      const at = this.now(now);
      return record(state, outcomes, at, policy, (event) => capture(state, [event], ++this.seq, at));
    });
    this.#stale += result.stale.length;
    return result;
  }

  get staleOutcomes(): number {
    return this.#stale;
  }

  // --- upkeep ------------------------------------------------------------------------------------------------

  async maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult> {
    return this.write((state) => {
      const at = this.now(now);
      return maintain(state, retention, limit, at, (event) => capture(state, [event], ++this.seq, at));
    });
  }

  async lag(now: Now): Promise<Lag> {
    return lag(this.state, this.now(now));
  }

  async countRemaining(
    max: number,
    now: Now = null,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    return countRemaining(this.state, max, this.now(now));
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

  #mark(id: string, leaseToken: string | undefined, change: (row: DeliveryRow) => DeliveryRow): void {
    if (!this.write((state) => mark(state, id, leaseToken, change, this.now(null)))) this.#stale++;
  }
}
