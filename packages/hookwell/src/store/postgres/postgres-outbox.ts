import { systemClock } from "../../model/clock.ts";
import type {
  AttemptRecord,
  Delivery,
  DeliveryDetail,
  DeliveryRecord,
  Outcome,
} from "../../model/delivery.ts";
import { ConfigurationError, EncryptionKeyError } from "../../model/errors.ts";
import type { CaptureInput, CaptureResult, EventKey, EventOutcome, EventRecord } from "../../model/event.ts";
import type { HoldRecord } from "../../model/hold.ts";
import { type IdFunc, idFunc, systemRandom } from "../../model/ids.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Matchable } from "../../model/matching.ts";
import type { Logger } from "../../model/observe.ts";
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
import type { Migrations } from "../migrations.ts";
import type { RequestBegin, RequestBegun, RequestName } from "../request-contract.ts";
import { KeyRing } from "../sealing.ts";
import type { OpenEndpoint, SecretRotation } from "../secret-rotation.ts";
import type { StoreStats } from "../stats-contract.ts";
import type { SubscriptionGuard } from "../subscription-guard.ts";
import { createApiKey, deleteApiKey, findApiKey, listApiKeys, touchApiKey } from "./api-keys.ts";
import { capture, runCapture } from "./capture.ts";
import { type Claimed, claimRows, sleepLanes } from "./claim.ts";
import { Database } from "./database.ts";
import { cancelDelivery, enqueueDelivery, getDelivery, listAttempts, retryDelivery } from "./deliveries.ts";
import { dispatchEvents, failDispatch, matchSubscriptions, releaseEvent, takeNew } from "./dispatch.ts";
import { EndpointBook } from "./endpoints.ts";
import { deliveriesOfEvent } from "./explain.ts";
import { countToGiveBack, giveBackHeld, listHolds, releaseHold, setAside, setHold } from "./holds.ts";
import { inspect } from "./inspection.ts";
import { countSealed, reseal, retireKeys } from "./key-rotation.ts";
import { lastLook } from "./last-look.ts";
import { Notices } from "./listen.ts";
import { getEvent, listDeliveries, listEvents, listSubscriptions } from "./lists.ts";
import { loadDeliveries } from "./loading.ts";
import { PostgresMigrations } from "./migrator.ts";
import { checkKeys, checkServer, verifyKeys } from "./opening.ts";
import { type PgPool, type PostgresOptions, quotedSchema } from "./options.ts";
import { PostgresReplays } from "./postgres-replays.ts";
import { type Mark, markDelivery, recordOutcomes } from "./record.ts";
import { abandonRequest, beginRequest, finishRequest } from "./requests.ts";
import { openEndpoint, rotateSecret } from "./secrets.ts";
import { readStats } from "./stats.ts";
import {
  createSubscription,
  getSubscription,
  listActiveSubscriptions,
  putSubscription,
  setSubscriptionStatus,
  updateSubscription,
} from "./subscriptions.ts";
import { Upkeep } from "./upkeep.ts";

/** Milliseconds of a claim by the reference method. */
const referenceLeaseMs = 30_000;

/** The outbox in PostgreSQL, for any number of processes. Made by {@link postgresStore}. */
export class PostgresOutbox implements OutboxStore {
  readonly dialect = "postgres";
  /** The four verbs of the schema. */
  readonly migrations: Migrations & Required<Pick<Migrations, "grant">>;
  readonly replays: PostgresReplays;
  readonly #pool: PgPool;
  readonly #db: Database;
  readonly #schemaSteps: PostgresMigrations;
  readonly #keyRing: KeyRing | undefined;
  readonly #migrate: boolean;
  readonly #newEndpointId: IdFunc;
  readonly #logger: Logger | undefined;
  readonly #notices: Notices;
  readonly #endpoints: EndpointBook;
  readonly #upkeep: Upkeep;
  #hearsPool = false;
  #stale = 0;

  constructor(options: PostgresOptions) {
    const schema = options.schema ?? "hookwell";
    this.#pool = options.pool;
    this.#db = new Database(options.pool, quotedSchema(schema), options.now, options.preparedStatements);
    this.#schemaSteps = new PostgresMigrations(this.#db);
    this.migrations = this.#schemaSteps;
    this.#keyRing = options.encryptionKeys ? KeyRing.parse(options.encryptionKeys) : undefined;
    this.#migrate = options.migrate ?? false;
    this.#newEndpointId = options.idFunc ?? idFunc("end_", options.now ?? systemClock, systemRandom);
    this.#logger = options.logger;
    this.#notices = new Notices(
      this.#db,
      `hookwell_${schema}`,
      options.listen?.connectionString,
      options.logger,
    );
    this.#endpoints = new EndpointBook(this.#db, () => this.#keys());
    this.replays = new PostgresReplays(this.#db);
    this.#upkeep = new Upkeep(this.#db, this.#endpoints);
  }

  async open({ withKeys }: { readonly withKeys: boolean }): Promise<void> {
    // Without a listener, an idle connection that the server closes would end the process.
    if (!this.#hearsPool) this.#pool.on?.("error", this.#onPoolError);
    this.#hearsPool = true;
    await checkServer(this.#db);
    if (this.#migrate) await this.migrations.migrate();
    await this.#schemaSteps.demandUsable();
    if (withKeys) await checkKeys(this.#db, this.#keys());
    await this.#notices.open();
  }

  /** Ends what the store opened; the pool is the caller's. */
  async close(): Promise<void> {
    await this.#notices.close();
    this.#pool.off?.("error", this.#onPoolError);
    this.#hearsPool = false;
  }

  // --- the reference methods ---------------------------------------------------------------------------------

  async enqueueDelivery(delivery: Delivery): Promise<void> {
    await enqueueDelivery(this.#db, this.#keys(), delivery, this.#newEndpointId(), this.#now());
  }

  async claimDue(now: Date, limit: number): Promise<Delivery[]> {
    const { deliveries } = await this.claim({ now, limit, leaseMs: referenceLeaseMs });
    return [...deliveries];
  }

  async markDelivered(id: string, at: Date, leaseToken?: string): Promise<void> {
    await this.#mark({ id, leaseToken, status: "delivered", at });
  }

  async reschedule(
    id: string,
    attempts: number,
    lastError: string,
    nextAttemptAt: Date,
    leaseToken?: string,
  ): Promise<void> {
    await this.#mark({ id, leaseToken, status: "pending", attempts, lastError, nextAttemptAt });
  }

  async markFailed(id: string, attempts: number, lastError: string, leaseToken?: string): Promise<void> {
    await this.#mark({ id, leaseToken, status: "failed", reason: "attempts_exhausted", attempts, lastError });
  }

  async listActiveSubscriptions(projectId: string): Promise<Subscription[]> {
    return await listActiveSubscriptions(this.#db, this.#keys(), projectId);
  }

  async addSubscription(subscription: Subscription): Promise<void> {
    const given = structuredClone(subscription);
    const endpointId = this.#newEndpointId();
    await this.#db.program({ kind: "own" }, () =>
      putSubscription(this.#db.schema, this.#keys(), given, endpointId, this.#now()),
    );
  }

  async get(deliveryId: string): Promise<Delivery | undefined> {
    const [found] = await loadDeliveries(this.#db, this.#endpoints, [deliveryId], this.#now());
    return found?.unreadable ? undefined : found?.delivery;
  }

  // --- capture and dispatch ----------------------------------------------------------------------------------

  async capture(
    scope: Exclude<Scope, { kind: "sync" }>,
    events: readonly CaptureInput[],
  ): Promise<CaptureResult[]> {
    if (scope.kind === "own") return await runCapture(this.#db, events, this.#now());
    return await this.#db.joined(scope, capture(this.#db.schema, events, this.#now()));
  }

  captureSync(): CaptureResult[] {
    throw new ConfigurationError(
      "PostgreSQL clients are asynchronous: use await hooks.emit(), and emitSync() only with a SQLite store.",
    );
  }

  async takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]> {
    return await takeNew(this.#db, routes, limit, this.#now(now));
  }

  async matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]> {
    return await matchSubscriptions(this.#db, queries);
  }

  async dispatch(items: readonly DispatchItem[], now: Now): Promise<EventKey[]> {
    return await dispatchEvents(this.#db, items, this.#now(now));
  }

  async failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    return await failDispatch(this.#db, key, error, retryInMs, this.#now(now));
  }

  async releaseEvent(scope: Scope, key: EventKey): Promise<void> {
    await this.#db.program(scope, () => releaseEvent(this.#db.schema, key, this.#now()));
  }

  // --- claim and record --------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const claimed = await claimRows(this.#db, request);
    const [{ deliveries, failed }, again] = await Promise.all([
      claimed.rows.length > 0
        ? lastLook(this.#db, this.#endpoints, claimed.rows, this.#now(request.now), this.#logger)
        : { deliveries: [], failed: [] },
      this.#tidy(claimed),
    ]);
    const { cursor, againInMs } = claimed;
    return {
      deliveries,
      failed,
      cursor,
      ...(again && { again }),
      ...(againInMs !== undefined && { againInMs }),
    };
  }

  async record(outcomes: readonly Outcome[], now: Now, policy: LanePolicy = {}): Promise<RecordResult> {
    if (outcomes.length === 0) return { recorded: [], stale: [], lanes: [] };
    const result = await recordOutcomes(this.#db, outcomes, this.#now(now), this.#logger, policy);
    this.#stale += result.stale.length;
    return result;
  }

  get staleOutcomes(): number {
    return this.#stale;
  }

  // --- management --------------------------------------------------------------------------------------------

  async createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord> {
    const given = structuredClone(subscription);
    const endpointId = this.#newEndpointId();
    return await this.#db.program(scope, () =>
      createSubscription(this.#db.schema, this.#keys(), given, endpointId, this.#now()),
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
    const endpointId = this.#newEndpointId();
    return await this.#db.program(scope, () =>
      updateSubscription(
        this.#db.schema,
        this.#keys(),
        id,
        given,
        visibility,
        guard,
        endpointId,
        this.#now(),
      ),
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
    return await this.#db.program(scope, () =>
      setSubscriptionStatus(this.#db.schema, id, status, reason, visibility, guard, this.#now()),
    );
  }

  async rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord> {
    const endpointId = this.#newEndpointId();
    return await this.#db.program(scope, () =>
      rotateSecret(this.#db.schema, this.#keys(), id, rotation, visibility, endpointId, this.#now()),
    );
  }

  async openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined> {
    return await openEndpoint(this.#db, this.#keys(), id, visibility, this.#now(now));
  }

  async getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined> {
    return await getSubscription(this.#db, id, visibility);
  }

  async listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>> {
    return await listSubscriptions(this.#db, filter, page);
  }

  async getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined> {
    return await getEvent(this.#db, id, visibility);
  }

  async listEvents(
    filter: EventFilter,
    page: Page,
  ): Promise<PageOf<EventRecord & { outcome: EventOutcome }>> {
    return await listEvents(this.#db, filter, page);
  }

  async deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]> {
    return await deliveriesOfEvent(this.#db, event, subscriptionIds);
  }

  async getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined> {
    return await getDelivery(this.#db, id, visibility, this.#now());
  }

  async listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>> {
    return await listDeliveries(this.#db, filter, page, this.#now());
  }

  async listAttempts(deliveryId: string): Promise<AttemptRecord[]> {
    return await listAttempts(this.#db, deliveryId);
  }

  async retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return await this.#db.program(scope, () =>
      retryDelivery(this.#db.schema, id, visibility, this.#now(now)),
    );
  }

  async cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return await this.#db.program(scope, () =>
      cancelDelivery(this.#db.schema, id, visibility, this.#now(now)),
    );
  }

  async createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void> {
    await createApiKey(this.#db, key);
  }

  async findApiKey(hash: string): Promise<ApiKeyRecord | undefined> {
    return await findApiKey(this.#db, hash);
  }

  async touchApiKey(id: string, at: Date): Promise<void> {
    await touchApiKey(this.#db, id, at);
  }

  async listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>> {
    return await listApiKeys(this.#db, page, projectId);
  }

  async deleteApiKey(id: string, projectId?: string): Promise<boolean> {
    return await deleteApiKey(this.#db, id, projectId);
  }

  async beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun> {
    return await beginRequest(this.#db, this.#keys(), request, now);
  }

  async finishRequest(name: RequestName, token: string, answer: string): Promise<boolean> {
    return await finishRequest(this.#db, this.#keys(), name, token, answer);
  }

  async abandonRequest(name: RequestName, token: string): Promise<void> {
    await abandonRequest(this.#db, name, token);
  }

  // --- holds -------------------------------------------------------------------------------------------------

  async setHold(scope: Scope, hold: NewHold, now: Now): ReturnType<HoldStore["setHold"]> {
    const given = structuredClone(hold);
    return await this.#db.program(scope, () => setHold(this.#db.schema, given, this.#now(now)));
  }

  async releaseHold(
    scope: Scope,
    which: Parameters<HoldStore["releaseHold"]>[1],
  ): Promise<HoldRecord | undefined> {
    return await this.#db.program(scope, () => releaseHold(this.#db.schema, which));
  }

  async listHolds(visibility: Pick<Visibility, "projectId"> = {}): Promise<HoldRecord[]> {
    return await listHolds(this.#db, visibility);
  }

  async giveBackHeld(limit: number, now: Now): ReturnType<HoldStore["giveBackHeld"]> {
    return await giveBackHeld(this.#db, limit, this.#now(now));
  }

  async countToGiveBack(max: number): Promise<number> {
    return await countToGiveBack(this.#db, max);
  }

  // --- upkeep ------------------------------------------------------------------------------------------------

  async maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult> {
    return await this.#upkeep.maintain(retention, limit, now);
  }

  async countSealed(): Promise<SealedCounts> {
    return await countSealed(this.#db, this.#keys());
  }

  async reseal(limit: number, cursor?: string): Promise<ResealResult> {
    return await reseal(this.#db, this.#keys(), limit, cursor);
  }

  async retireKeys(): Promise<readonly string[] | undefined> {
    return await retireKeys(this.#db, this.#keys());
  }

  async lag(now: Now): Promise<{ readonly oldestDueAt?: Date; readonly oldestNewAt?: Date }> {
    return await this.#upkeep.lag(now);
  }

  async countRemaining(
    max: number,
    now: Now = null,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    return await this.#upkeep.countRemaining(max, now);
  }

  async inspect(now: Now): Promise<StoreInspection> {
    return await inspect(this.#db, this.#pool, this.#now(now));
  }

  async checkKeys(): Promise<"usable"> {
    await verifyKeys(this.#db, this.#keys());
    return "usable";
  }

  async stats(projectId: string | undefined, now: Now): Promise<StoreStats> {
    return await readStats(this.#db, projectId, now);
  }

  watch(onWake: () => void): () => void {
    return this.#notices.watch(onWake);
  }

  notify(): void {
    this.#notices.notify();
  }

  // --- inside ------------------------------------------------------------------------------------------------

  #now(now: Now = null): string | null {
    return this.#db.now(now);
  }

  #keys(): KeyRing {
    if (this.#keyRing) return this.#keyRing;
    throw new EncryptionKeyError(
      "A PostgreSQL store keeps secrets and headers sealed and was given no encryption key; make one with `hookwell keys generate` and set HOOKWELL_ENCRYPTION_KEYS to it in every process (k1:<key>).",
    );
  }

  /**
   * Sets held rows aside and puts lanes without work to sleep; true when rows were set aside. It only saves work for
   * the next claims, so a failure must not take away what this one got.
   */
  async #tidy({ passed, empty, now }: Claimed): Promise<true | undefined> {
    try {
      const moved = passed.length > 0 ? await setAside(this.#db, passed, now) : 0;
      if (empty.length > 0) await sleepLanes(this.#db, empty, now);
      return moved > 0 ? true : undefined;
    } catch (error) {
      this.#logger?.warn(
        `hookwell: idle lanes stay awake: ${error instanceof Error ? error.message : String(error)}`,
      );
      return undefined;
    }
  }

  async #mark(mark: Mark): Promise<void> {
    if (!(await markDelivery(this.#db, mark, this.#now()))) this.#stale++;
  }

  readonly #onPoolError = (error: Error): void => {
    this.#logger?.warn(`hookwell: an idle connection to PostgreSQL was lost: ${error.message}`);
  };
}
