import { type Clock, systemClock } from "../../model/clock.ts";
import type { AttemptRecord, DeliveryDetail, DeliveryRecord } from "../../model/delivery.ts";
import { ConfigurationError, NotInTransactionError } from "../../model/errors.ts";
import type { EventKey, EventOutcome, EventRecord } from "../../model/event.ts";
import type { HoldRecord } from "../../model/hold.ts";
import { type IdFunc, idFunc, systemRandom } from "../../model/ids.ts";
import type { DisabledReason, SubscriptionStatus } from "../../model/states.ts";
import type { NewSubscription, SubscriptionPatch, SubscriptionRecord } from "../../model/subscription.ts";
import type {
  ApiKeyRecord,
  DeliveryFilter,
  EventFilter,
  Now,
  Page,
  PageOf,
  Scope,
  SubscriptionFilter,
  Visibility,
} from "../contract.ts";
import type { DeliveryOfEvent } from "../explain-contract.ts";
import type { HoldStore, NewHold } from "../hold-contract.ts";
import type { StoreInspection } from "../inspection-contract.ts";
import type { ResealResult, SealedCounts } from "../key-rotation.ts";
import type { RequestBegin, RequestBegun, RequestName } from "../request-contract.ts";
import type { OpenEndpoint, SecretRotation } from "../secret-rotation.ts";
import type { StoreStats } from "../stats-contract.ts";
import type { SubscriptionGuard } from "../subscription-guard.ts";
import { createApiKey, deleteApiKey, findApiKey, touchApiKey } from "./api-keys.ts";
import { capture } from "./capture.ts";
import { cancelDelivery, isDeliveryVisible, retryDelivery } from "./deliveries.ts";
import { deliveriesOfEvent } from "./explain.ts";
import { listHolds, releaseHold, setHold } from "./holds.ts";
import { undispatched } from "./inspection.ts";
import { findEvent, listApiKeys, listDeliveries, listEvents, listSubscriptions } from "./lists.ts";
import { abandonRequest, beginRequest, finishRequest } from "./requests.ts";
import { openEndpoint, rotateSecret } from "./secrets.ts";
import { MemoryState } from "./state.ts";
import { readStats } from "./stats.ts";
import { createSubscription, isVisible, setSubscriptionStatus, updateSubscription } from "./subscriptions.ts";
import { MemoryTransaction, type Write, writeTo } from "./transaction.ts";
import { attemptLog, toDeliveryDetail, toSubscriptionRecord } from "./view.ts";

/** What an operator and the API do with the outbox: everything but the way of an event from capture to its outcome. */
export class MemoryManagement {
  protected readonly state = new MemoryState();
  protected readonly clock: Clock;
  protected readonly newEndpointId: IdFunc;
  protected seq = 0;

  constructor(options: { readonly now?: Clock; readonly idFunc?: IdFunc }) {
    this.clock = options.now ?? systemClock;
    this.newEndpointId = options.idFunc ?? idFunc("end_", this.clock, systemRandom);
  }

  // --- subscriptions ------------------------------------------------------------------------------------------

  async createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord> {
    const input = structuredClone(subscription);
    const endpointId = this.newEndpointId();
    const now = this.now(null);
    return this.join(scope, (state) => createSubscription(state, input, endpointId, now));
  }

  async updateSubscription(
    scope: Scope,
    id: string,
    patch: SubscriptionPatch,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    const changes = structuredClone(patch);
    const endpointId = this.newEndpointId();
    const now = this.now(null);
    return this.join(scope, (state) =>
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
    const now = this.now(null);
    return this.join(scope, (state) =>
      setSubscriptionStatus(state, id, status, reason, visibility, guard, now, (event) =>
        capture(state, [event], ++this.seq, now),
      ),
    );
  }

  async rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord> {
    const endpointId = this.newEndpointId();
    const now = this.now(null);
    return this.join(scope, (state) => rotateSecret(state, id, rotation, visibility, endpointId, now));
  }

  async openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined> {
    return openEndpoint(this.state, id, visibility, this.now(now));
  }

  async getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined> {
    const row = this.state.subscriptions.get(id);
    return row && isVisible(row.record, visibility) ? toSubscriptionRecord(row) : undefined;
  }

  async listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>> {
    return listSubscriptions(this.state, filter, page);
  }

  // --- events and deliveries ----------------------------------------------------------------------------------

  async getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined> {
    return findEvent(this.state, id, visibility);
  }

  async listEvents(
    filter: EventFilter,
    page: Page,
  ): Promise<PageOf<EventRecord & { outcome: EventOutcome }>> {
    return listEvents(this.state, filter, page);
  }

  async deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]> {
    return deliveriesOfEvent(this.state, event, subscriptionIds);
  }

  async getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined> {
    const row = this.state.deliveries.get(id);
    return row && isDeliveryVisible(this.state, row, visibility)
      ? toDeliveryDetail(this.state, row, this.now(null))
      : undefined;
  }

  async listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>> {
    return listDeliveries(this.state, filter, page, this.now(null));
  }

  async listAttempts(deliveryId: string): Promise<AttemptRecord[]> {
    const row = this.state.deliveries.get(deliveryId);
    return row ? attemptLog(this.state, row) : [];
  }

  async retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    const time = this.now(now);
    return this.join(scope, (state) => retryDelivery(state, id, visibility, time));
  }

  async cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    const time = this.now(now);
    return this.join(scope, (state) => cancelDelivery(state, id, visibility, time));
  }

  // --- API keys and their requests ----------------------------------------------------------------------------

  async createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void> {
    this.write((state) => createApiKey(state, key));
  }

  async findApiKey(hash: string): Promise<ApiKeyRecord | undefined> {
    return findApiKey(this.state, hash);
  }

  async touchApiKey(id: string, at: Date): Promise<void> {
    touchApiKey(this.state, id, at);
  }

  async listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>> {
    return listApiKeys(this.state, page, projectId);
  }

  async deleteApiKey(id: string, projectId?: string): Promise<boolean> {
    return this.write((state) => deleteApiKey(state, id, projectId));
  }

  async beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun> {
    return this.write((state) => beginRequest(state, request, this.now(now)));
  }

  async finishRequest(name: RequestName, token: string, answer: string): Promise<boolean> {
    return this.write((state) => finishRequest(state, name, token, answer));
  }

  async abandonRequest(name: RequestName, token: string): Promise<void> {
    this.write((state) => abandonRequest(state, name, token));
  }

  // --- holds --------------------------------------------------------------------------------------------------

  async setHold(scope: Scope, hold: NewHold, now: Now): ReturnType<HoldStore["setHold"]> {
    const given = structuredClone(hold);
    const at = this.now(now);
    return this.join(scope, (state) => setHold(state, given, at));
  }

  async releaseHold(
    scope: Scope,
    which: Parameters<HoldStore["releaseHold"]>[1],
  ): Promise<HoldRecord | undefined> {
    return this.join(scope, (state) => releaseHold(state, which));
  }

  async listHolds(visibility: Pick<Visibility, "projectId"> = {}): Promise<HoldRecord[]> {
    return listHolds(this.state, visibility);
  }

  /** Nothing is set aside here. */
  async giveBackHeld(): ReturnType<HoldStore["giveBackHeld"]> {
    return { deliveries: 0, more: false };
  }

  async countToGiveBack(): Promise<number> {
    return 0;
  }

  // --- encryption keys ----------------------------------------------------------------------------------------

  async countSealed(): Promise<SealedCounts> {
    return { byKey: new Map() };
  }

  async reseal(): Promise<ResealResult> {
    return { resealed: 0, damaged: [] };
  }

  async retireKeys(): Promise<readonly string[]> {
    return [];
  }

  // --- looking at the store -----------------------------------------------------------------------------------

  async inspect(now: Now): Promise<StoreInspection> {
    const clock = now ?? this.clock();
    return { clock, undispatched: undispatched(this.state), findings: [] };
  }

  async checkKeys(): Promise<"unused"> {
    return "unused";
  }

  async stats(projectId: string | undefined, now: Now): Promise<StoreStats> {
    return readStats(this.state, projectId, this.now(now));
  }

  // --- for the rest of the outbox ----------------------------------------------------------------------------

  protected now(now: Now): number {
    return (now ?? this.clock()).getTime();
  }

  protected write<T>(write: Write<T>): T {
    return writeTo(this.state, write);
  }

  protected join<T>(scope: Scope, write: Write<T>): T {
    if (scope.kind === "own") return this.write(write);
    if (scope.kind === "sync") throw noSyncTransactions();
    const { tx } = scope;
    if (!(tx instanceof MemoryTransaction) || tx.owner !== this)
      throw new NotInTransactionError("The given tx is not a transaction of this MemoryOutbox.");
    return tx.write(write);
  }
}

export function noSyncTransactions(): ConfigurationError {
  return new ConfigurationError(
    "A MemoryOutbox has no synchronous transactions; use await store.transaction(...) and emit.",
  );
}
