import type { AttemptRecord, DeliveryDetail, DeliveryRecord } from "../../model/delivery.ts";
import type { EventKey, EventOutcome, EventRecord } from "../../model/event.ts";
import type { HoldRecord } from "../../model/hold.ts";
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
import { createApiKey, deleteApiKey, findApiKey, listApiKeys, touchApiKey } from "./api-keys.ts";
import { checkLimit } from "./claim.ts";
import { cancelProgram, retryProgram } from "./deliveries.ts";
import { getDelivery, listAttempts, listDeliveries } from "./delivery-queries.ts";
import { getEvent, listEvents } from "./event-queries.ts";
import { deliveriesOfEvent } from "./explain.ts";
import { listHolds, releaseHoldProgram, setHoldProgram } from "./holds.ts";
import { fileFindings, undispatched } from "./inspection.ts";
import { countSealed, reseal, retireKeys } from "./key-rotation.ts";
import { abandonRequest, beginRequest, finishRequest } from "./requests.ts";
import { openEndpoint, rotateProgram } from "./secrets.ts";
import type { Session } from "./session.ts";
import { countToGiveBack, giveBackHeld } from "./set-aside.ts";
import { readStats } from "./stats.ts";
import { getSubscription, listSubscriptions } from "./subscription-queries.ts";
import { createProgram, statusProgram, updateProgram } from "./subscriptions.ts";

/** What an operator and the API do with the outbox: everything but the way of an event from capture to its outcome. */
export class SqliteManagement {
  protected readonly session: Session;

  constructor(session: Session) {
    this.session = session;
  }

  // --- subscriptions ------------------------------------------------------------------------------------------

  createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord> {
    const copy = structuredClone(subscription);
    return this.session.join(scope, () => createProgram(this.session.making(), copy));
  }

  updateSubscription(
    scope: Scope,
    id: string,
    patch: SubscriptionPatch,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    const copy = structuredClone(patch);
    return this.session.join(scope, () => updateProgram(this.session.making(), id, copy, visibility, guard));
  }

  setSubscriptionStatus(
    scope: Scope,
    id: string,
    status: SubscriptionStatus,
    reason: DisabledReason | undefined,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    return this.session.join(scope, () =>
      statusProgram(id, status, reason, visibility, guard, this.session.now(null)),
    );
  }

  rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord> {
    return this.session.join(scope, () => rotateProgram(this.session.making(), id, rotation, visibility));
  }

  async openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined> {
    const connection = await this.session.readyWithKeys();
    return openEndpoint(connection, this.session.endpoints, id, visibility, this.session.now(now));
  }

  async getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined> {
    const connection = await this.session.ready();
    return getSubscription(connection, id, visibility);
  }

  async listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>> {
    const connection = await this.session.ready();
    return listSubscriptions(connection, filter, page);
  }

  // --- events and deliveries ----------------------------------------------------------------------------------

  async getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined> {
    const connection = await this.session.ready();
    return getEvent(connection, id, visibility);
  }

  async listEvents(
    filter: EventFilter,
    page: Page,
  ): Promise<PageOf<EventRecord & { outcome: EventOutcome }>> {
    const connection = await this.session.ready();
    return listEvents(connection, filter, page);
  }

  async deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]> {
    const connection = await this.session.ready();
    return deliveriesOfEvent(connection, event, subscriptionIds);
  }

  async getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined> {
    const connection = await this.session.ready();
    return getDelivery(connection, id, visibility, this.session.now(null));
  }

  async listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>> {
    const connection = await this.session.ready();
    return listDeliveries(connection, filter, page, this.session.now(null));
  }

  async listAttempts(deliveryId: string): Promise<AttemptRecord[]> {
    const connection = await this.session.ready();
    return listAttempts(connection, deliveryId);
  }

  retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return this.session.join(scope, () => retryProgram(id, visibility, this.session.now(now)));
  }

  cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return this.session.join(scope, () => cancelProgram(id, visibility, this.session.now(now)));
  }

  // --- API keys and their requests ----------------------------------------------------------------------------

  async createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void> {
    const connection = await this.session.ready();
    await connection.write(() => createApiKey(connection, key));
  }

  async findApiKey(hash: string): Promise<ApiKeyRecord | undefined> {
    const connection = await this.session.ready();
    return findApiKey(connection, hash);
  }

  async touchApiKey(id: string, at: Date): Promise<void> {
    const connection = await this.session.ready();
    await connection.write(() => touchApiKey(connection, id, at));
  }

  async listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>> {
    const connection = await this.session.ready();
    return listApiKeys(connection, page, projectId);
  }

  async deleteApiKey(id: string, projectId?: string): Promise<boolean> {
    const connection = await this.session.ready();
    return connection.write(() => deleteApiKey(connection, id, projectId));
  }

  beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun> {
    return this.session.sealing((connection, ring) =>
      beginRequest(connection, ring, request, this.session.now(now)),
    );
  }

  finishRequest(name: RequestName, token: string, answer: string): Promise<boolean> {
    return this.session.sealing((connection, ring) => finishRequest(connection, ring, name, token, answer));
  }

  async abandonRequest(name: RequestName, token: string): Promise<void> {
    const connection = await this.session.ready();
    await connection.write(() => abandonRequest(connection, name, token));
  }

  // --- holds --------------------------------------------------------------------------------------------------

  setHold(scope: Scope, hold: NewHold, now: Now): ReturnType<HoldStore["setHold"]> {
    const copy = structuredClone(hold);
    return this.session.join(scope, () => setHoldProgram(copy, this.session.now(now)));
  }

  releaseHold(scope: Scope, which: Parameters<HoldStore["releaseHold"]>[1]): Promise<HoldRecord | undefined> {
    return this.session.join(scope, () => releaseHoldProgram(which));
  }

  async listHolds(visibility: Pick<Visibility, "projectId"> = {}): Promise<HoldRecord[]> {
    return listHolds(await this.session.ready(), visibility);
  }

  async giveBackHeld(limit: number, now: Now): ReturnType<HoldStore["giveBackHeld"]> {
    checkLimit(limit);
    return giveBackHeld(await this.session.ready(), limit, this.session.now(now));
  }

  async countToGiveBack(max: number): Promise<number> {
    return countToGiveBack(await this.session.ready(), max);
  }

  // --- encryption keys ----------------------------------------------------------------------------------------

  async countSealed(): Promise<SealedCounts> {
    return countSealed(await this.session.ready(), this.session.keys);
  }

  async reseal(limit: number, cursor?: string): Promise<ResealResult> {
    const connection = await this.session.ready();
    return reseal(connection, this.session.keys, await this.session.ring(), limit, cursor);
  }

  async retireKeys(): Promise<readonly string[] | undefined> {
    return retireKeys(await this.session.ready(), this.session.keys);
  }

  // --- looking at the store -----------------------------------------------------------------------------------

  async inspect(now: Now): Promise<StoreInspection> {
    const connection = await this.session.ready();
    const clock = new Date(this.session.now(now));
    return { clock, undispatched: undispatched(connection), findings: fileFindings(connection) };
  }

  checkKeys(): Promise<"usable" | "unused"> {
    return this.session.checkKeys();
  }

  async stats(projectId: string | undefined, now: Now): Promise<StoreStats> {
    const connection = await this.session.ready();
    return readStats(connection, projectId, this.session.now(now));
  }
}
