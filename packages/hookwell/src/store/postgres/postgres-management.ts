import { systemClock } from "../../model/clock.ts";
import type { AttemptRecord, DeliveryDetail, DeliveryRecord } from "../../model/delivery.ts";
import { EncryptionKeyError } from "../../model/errors.ts";
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
import { KeyRing } from "../sealing.ts";
import type { OpenEndpoint, SecretRotation } from "../secret-rotation.ts";
import type { StoreStats } from "../stats-contract.ts";
import type { SubscriptionGuard } from "../subscription-guard.ts";
import { createApiKey, deleteApiKey, findApiKey, listApiKeys, touchApiKey } from "./api-keys.ts";
import { Database } from "./database.ts";
import { cancelDelivery, getDelivery, listAttempts, retryDelivery } from "./deliveries.ts";
import { deliveriesOfEvent } from "./explain.ts";
import { countToGiveBack, giveBackHeld, listHolds, releaseHold, setHold } from "./holds.ts";
import { inspect } from "./inspection.ts";
import { countSealed, reseal, retireKeys } from "./key-rotation.ts";
import { getEvent, listDeliveries, listEvents, listSubscriptions } from "./lists.ts";
import { verifyKeys } from "./opening.ts";
import { type PgPool, type PostgresOptions, quotedSchema } from "./options.ts";
import { abandonRequest, beginRequest, finishRequest } from "./requests.ts";
import { openEndpoint, rotateSecret } from "./secrets.ts";
import { readStats } from "./stats.ts";
import {
  createSubscription,
  getSubscription,
  setSubscriptionStatus,
  updateSubscription,
} from "./subscriptions.ts";

/** Where the tables are, unless told otherwise. */
export const defaultSchema = "hookwell";

/** What an operator and the API do with the outbox: everything but the way of an event from capture to its outcome. */
export class PostgresManagement {
  protected readonly pool: PgPool;
  protected readonly db: Database;
  protected readonly newEndpointId: IdFunc;
  readonly #keyRing: KeyRing | undefined;

  constructor(options: PostgresOptions) {
    this.pool = options.pool;
    const schema = quotedSchema(options.schema ?? defaultSchema);
    this.db = new Database(options.pool, schema, options.now, options.preparedStatements);
    this.#keyRing = options.encryptionKeys ? KeyRing.parse(options.encryptionKeys) : undefined;
    this.newEndpointId = options.idFunc ?? idFunc("end_", options.now ?? systemClock, systemRandom);
  }

  // --- subscriptions ------------------------------------------------------------------------------------------

  async createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord> {
    const given = structuredClone(subscription);
    const endpointId = this.newEndpointId();
    return await this.db.program(scope, () =>
      createSubscription(this.db.schema, this.keys(), given, endpointId, this.now()),
    );
  }

  async updateSubscription(
    scope: Scope,
    id: string,
    patch: SubscriptionPatch,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    const given = structuredClone(patch);
    const endpointId = this.newEndpointId();
    return await this.db.program(scope, () =>
      updateSubscription(this.db.schema, this.keys(), id, given, visibility, guard, endpointId, this.now()),
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
    return await this.db.program(scope, () =>
      setSubscriptionStatus(this.db.schema, id, status, reason, visibility, guard, this.now()),
    );
  }

  async rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord> {
    const endpointId = this.newEndpointId();
    return await this.db.program(scope, () =>
      rotateSecret(this.db.schema, this.keys(), id, rotation, visibility, endpointId, this.now()),
    );
  }

  async openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined> {
    return await openEndpoint(this.db, this.keys(), id, visibility, this.now(now));
  }

  async getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined> {
    return await getSubscription(this.db, id, visibility);
  }

  async listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>> {
    return await listSubscriptions(this.db, filter, page);
  }

  // --- events and deliveries ----------------------------------------------------------------------------------

  async getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined> {
    return await getEvent(this.db, id, visibility);
  }

  async listEvents(
    filter: EventFilter,
    page: Page,
  ): Promise<PageOf<EventRecord & { outcome: EventOutcome }>> {
    return await listEvents(this.db, filter, page);
  }

  async deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]> {
    return await deliveriesOfEvent(this.db, event, subscriptionIds);
  }

  async getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined> {
    return await getDelivery(this.db, id, visibility, this.now());
  }

  async listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>> {
    return await listDeliveries(this.db, filter, page, this.now());
  }

  async listAttempts(deliveryId: string): Promise<AttemptRecord[]> {
    return await listAttempts(this.db, deliveryId);
  }

  async retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return await this.db.program(scope, () => retryDelivery(this.db.schema, id, visibility, this.now(now)));
  }

  async cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return await this.db.program(scope, () => cancelDelivery(this.db.schema, id, visibility, this.now(now)));
  }

  // --- API keys and their requests ----------------------------------------------------------------------------

  async createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void> {
    await createApiKey(this.db, key);
  }

  async findApiKey(hash: string): Promise<ApiKeyRecord | undefined> {
    return await findApiKey(this.db, hash);
  }

  async touchApiKey(id: string, at: Date): Promise<void> {
    await touchApiKey(this.db, id, at);
  }

  async listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>> {
    return await listApiKeys(this.db, page, projectId);
  }

  async deleteApiKey(id: string, projectId?: string): Promise<boolean> {
    return await deleteApiKey(this.db, id, projectId);
  }

  async beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun> {
    return await beginRequest(this.db, this.keys(), request, now);
  }

  async finishRequest(name: RequestName, token: string, answer: string): Promise<boolean> {
    return await finishRequest(this.db, this.keys(), name, token, answer);
  }

  async abandonRequest(name: RequestName, token: string): Promise<void> {
    await abandonRequest(this.db, name, token);
  }

  // --- holds --------------------------------------------------------------------------------------------------

  async setHold(scope: Scope, hold: NewHold, now: Now): ReturnType<HoldStore["setHold"]> {
    const given = structuredClone(hold);
    return await this.db.program(scope, () => setHold(this.db.schema, given, this.now(now)));
  }

  async releaseHold(
    scope: Scope,
    which: Parameters<HoldStore["releaseHold"]>[1],
  ): Promise<HoldRecord | undefined> {
    return await this.db.program(scope, () => releaseHold(this.db.schema, which));
  }

  async listHolds(visibility: Pick<Visibility, "projectId"> = {}): Promise<HoldRecord[]> {
    return await listHolds(this.db, visibility);
  }

  async giveBackHeld(limit: number, now: Now): ReturnType<HoldStore["giveBackHeld"]> {
    return await giveBackHeld(this.db, limit, this.now(now));
  }

  async countToGiveBack(max: number): Promise<number> {
    return await countToGiveBack(this.db, max);
  }

  // --- encryption keys ----------------------------------------------------------------------------------------

  async countSealed(): Promise<SealedCounts> {
    return await countSealed(this.db, this.keys());
  }

  async reseal(limit: number, cursor?: string): Promise<ResealResult> {
    return await reseal(this.db, this.keys(), limit, cursor);
  }

  async retireKeys(): Promise<readonly string[] | undefined> {
    return await retireKeys(this.db, this.keys());
  }

  // --- looking at the store -----------------------------------------------------------------------------------

  async inspect(now: Now): Promise<StoreInspection> {
    return await inspect(this.db, this.pool, this.now(now));
  }

  async checkKeys(): Promise<"usable"> {
    await verifyKeys(this.db, this.keys());
    return "usable";
  }

  async stats(projectId: string | undefined, now: Now): Promise<StoreStats> {
    return await readStats(this.db, projectId, now);
  }

  // --- for the rest of the outbox ----------------------------------------------------------------------------

  protected now(now: Now = null): string | null {
    return this.db.now(now);
  }

  protected keys(): KeyRing {
    if (this.#keyRing) return this.#keyRing;
    throw new EncryptionKeyError(
      "A PostgreSQL store keeps secrets and headers sealed and was given no encryption key; make one with `hookwell keys generate` and set HOOKWELL_ENCRYPTION_KEYS to it in every process (k1:<key>).",
    );
  }
}
