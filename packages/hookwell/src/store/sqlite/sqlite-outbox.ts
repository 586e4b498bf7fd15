import { randomUUID } from "node:crypto";
import type {
  AttemptRecord,
  Delivery,
  DeliveryDetail,
  DeliveryRecord,
  Outcome,
} from "../../model/delivery.ts";
import type { CaptureInput, CaptureResult, EventKey, EventOutcome, EventRecord } from "../../model/event.ts";
import type { HoldRecord } from "../../model/hold.ts";
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
import type { Migrations } from "../migrations.ts";
import type { RequestBegin, RequestBegun, RequestName } from "../request-contract.ts";
import type { OpenEndpoint, SecretRotation } from "../secret-rotation.ts";
import type { StoreStats } from "../stats-contract.ts";
import type { SubscriptionGuard } from "../subscription-guard.ts";
import { createApiKey, deleteApiKey, findApiKey, listApiKeys, touchApiKey } from "./api-keys.ts";
import { captureProgram } from "./capture.ts";
import { anyWorkText, checkLimit, claimRows } from "./claim.ts";
import { cancelProgram, checkDelivery, enqueue, retryProgram } from "./deliveries.ts";
import { getDelivery, listAttempts, listDeliveries } from "./delivery-queries.ts";
import { dispatch, failDispatch, releaseProgram, takeNew } from "./dispatch.ts";
import { getEvent, listEvents } from "./event-queries.ts";
import { deliveriesOfEvent } from "./explain.ts";
import { activeHolds, holdsAll, listHolds, releaseHoldProgram, setHoldProgram } from "./holds.ts";
import { fileFindings, undispatched } from "./inspection.ts";
import { countSealed, reseal, retireKeys } from "./key-rotation.ts";
import { lookAt, readDelivery } from "./last-look.ts";
import { Maintenance } from "./maintain.ts";
import { applyMark, type Mark } from "./marks.ts";
import type { SqliteOptions } from "./options.ts";
import { Recording } from "./recording.ts";
import { abandonRequest, beginRequest, finishRequest } from "./requests.ts";
import { openEndpoint, rotateProgram } from "./secrets.ts";
import { Session } from "./session.ts";
import { countToGiveBack, giveBackHeld } from "./set-aside.ts";
import { SqliteReplays } from "./sqlite-replays.ts";
import { readStats } from "./stats.ts";
import {
  getSubscription,
  listActive,
  listSubscriptions,
  matchSubscriptions,
} from "./subscription-queries.ts";
import { addProgram, createProgram, statusProgram, updateProgram } from "./subscriptions.ts";
import { countRemaining, lag } from "./upkeep.ts";
import { watchCommits } from "./watch.ts";

/** Milliseconds of a claim by the reference method. */
const referenceLeaseMs = 30_000;

/** The outbox in one SQLite file, on a connection of its own to the file of the application. */
export class SqliteOutbox implements OutboxStore {
  readonly dialect = "sqlite";
  readonly migrations: Migrations;
  readonly replays: SqliteReplays;
  readonly #session: Session;
  readonly #recording: Recording;
  readonly #maintenance: Maintenance;
  readonly #watches = new Set<() => void>();
  #stale = 0;

  constructor(options: SqliteOptions) {
    const session = new Session(options);
    this.#session = session;
    this.replays = new SqliteReplays(session);
    this.migrations = session.migrations;
    this.#recording = new Recording(session, options.logger);
    this.#maintenance = new Maintenance(session.connection, session.endpoints);
  }

  // --- opening and closing -----------------------------------------------------------------------------------

  open(options: { readonly withKeys: boolean }): Promise<void> {
    return this.#session.open(options);
  }

  async close(): Promise<void> {
    for (const stop of this.#watches) stop();
    this.#watches.clear();
    this.#session.close();
  }

  // --- the reference methods ---------------------------------------------------------------------------------

  async enqueueDelivery(delivery: Delivery): Promise<void> {
    checkDelivery(delivery);
    const copy = structuredClone(delivery);
    const connection = await this.#session.readyWithKeys();
    const making = this.#session.making();
    await connection.write(() => enqueue(connection, making, this.#session.endpoints, copy));
  }

  async claimDue(now: Date, limit: number): Promise<Delivery[]> {
    const { deliveries } = await this.claim({ now, limit, leaseMs: referenceLeaseMs });
    return [...deliveries];
  }

  markDelivered(id: string, at: Date, leaseToken?: string): Promise<void> {
    return this.#mark(id, { kind: "delivered", at: at.getTime() }, leaseToken);
  }

  reschedule(
    id: string,
    attempts: number,
    lastError: string,
    nextAttemptAt: Date,
    leaseToken?: string,
  ): Promise<void> {
    const due = nextAttemptAt.getTime();
    return this.#mark(id, { kind: "retry", attempts, error: lastError, due }, leaseToken);
  }

  markFailed(id: string, attempts: number, lastError: string, leaseToken?: string): Promise<void> {
    return this.#mark(id, { kind: "failed", attempts, error: lastError }, leaseToken);
  }

  async #mark(id: string, mark: Mark, leaseToken: string | undefined): Promise<void> {
    const connection = await this.#session.ready();
    const now = this.#session.now(null);
    if (!(await connection.write(() => applyMark(connection, id, mark, leaseToken, now)))) this.#stale++;
  }

  async listActiveSubscriptions(projectId: string): Promise<Subscription[]> {
    const connection = await this.#session.readyWithKeys();
    return listActive(connection, this.#session.endpoints, projectId);
  }

  async addSubscription(subscription: Subscription): Promise<void> {
    const copy = structuredClone(subscription);
    await this.#session.own(() => addProgram(this.#session.making(), copy));
  }

  async get(deliveryId: string): Promise<Delivery | undefined> {
    const connection = await this.#session.readyWithKeys();
    return readDelivery(connection, this.#session.endpoints, deliveryId, this.#session.now(null));
  }

  // --- capture and dispatch ----------------------------------------------------------------------------------

  async capture(
    scope: Exclude<Scope, { kind: "sync" }>,
    events: readonly CaptureInput[],
  ): Promise<CaptureResult[]> {
    if (scope.kind === "own") return this.#session.own(() => captureProgram(events, this.#session.now(null)));
    const results = await this.#session.host.run(scope, captureProgram(events, this.#session.now(null)));
    await this.#session.host.run(scope, this.#session.host.checkLibrary(scope));
    await this.#session.host.run(scope, this.#session.host.checkTimeout());
    return results;
  }

  captureSync(scope: Extract<Scope, { kind: "sync" }>, events: readonly CaptureInput[]): CaptureResult[] {
    const results = this.#session.host.runSync(scope, captureProgram(events, this.#session.now(null)));
    this.#session.host.runSync(scope, this.#session.host.checkLibrary(scope));
    this.#session.host.runSync(scope, this.#session.host.checkTimeout());
    return results;
  }

  async takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]> {
    const connection = await this.#session.ready();
    return takeNew(connection, routes, limit, this.#session.now(now));
  }

  async matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]> {
    const connection = await this.#session.ready();
    return matchSubscriptions(connection, queries);
  }

  async dispatch(items: readonly DispatchItem[], now: Now): Promise<EventKey[]> {
    const connection = await this.#session.ready();
    return connection.write(() => dispatch(connection, items, this.#session.now(now)));
  }

  async failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    const connection = await this.#session.ready();
    return connection.write(() => failDispatch(connection, key, error, retryInMs, this.#session.now(now)));
  }

  releaseEvent(scope: Scope, key: EventKey): Promise<void> {
    return this.#session.join(scope, () => releaseProgram(key));
  }

  // --- claim and record --------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    checkLimit(request.limit);
    const connection = await this.#session.readyWithKeys();
    const now = (): number => this.#session.now(request.now);
    const none = { deliveries: [], failed: [], cursor: request.cursor ?? "" };
    // An idle poll takes no lock.
    if (connection.all(anyWorkText, [now()])[0]?.work !== 1) return none;
    if (holdsAll(activeHolds(connection))) return none;
    const token = randomUUID();
    const { ids, cursor, againInMs, again } = await connection.write(() =>
      claimRows(connection, request, token, now()),
    );
    const more = again ? { again } : {};
    if (ids.length === 0) return { ...none, ...more };
    const look = lookAt(connection, this.#session.endpoints, ids, token, now());
    const failed = await this.#recording.giveUp(look, request.now);
    if (look.missingKey) throw look.missingKey;
    return {
      deliveries: look.deliveries,
      failed,
      cursor,
      ...more,
      ...(againInMs !== undefined && { againInMs }),
    };
  }

  async record(outcomes: readonly Outcome[], now: Now, policy?: LanePolicy): Promise<RecordResult> {
    const result = await this.#recording.record(outcomes, now, policy);
    this.#stale += result.stale.length;
    return result;
  }

  get staleOutcomes(): number {
    return this.#stale;
  }

  // --- management --------------------------------------------------------------------------------------------

  createSubscription(scope: Scope, subscription: NewSubscription): Promise<SubscriptionRecord> {
    const copy = structuredClone(subscription);
    return this.#session.join(scope, () => createProgram(this.#session.making(), copy));
  }

  updateSubscription(
    scope: Scope,
    id: string,
    patch: SubscriptionPatch,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    const copy = structuredClone(patch);
    return this.#session.join(scope, () =>
      updateProgram(this.#session.making(), id, copy, visibility, guard),
    );
  }

  setSubscriptionStatus(
    scope: Scope,
    id: string,
    status: SubscriptionStatus,
    reason: DisabledReason | undefined,
    visibility: Visibility,
    guard?: SubscriptionGuard,
  ): Promise<SubscriptionRecord> {
    return this.#session.join(scope, () =>
      statusProgram(id, status, reason, visibility, guard, this.#session.now(null)),
    );
  }

  rotateSecret(
    scope: Scope,
    id: string,
    rotation: SecretRotation,
    visibility: Visibility,
  ): Promise<SubscriptionRecord> {
    return this.#session.join(scope, () => rotateProgram(this.#session.making(), id, rotation, visibility));
  }

  async openEndpoint(id: string, visibility: Visibility, now: Now): Promise<OpenEndpoint | undefined> {
    const connection = await this.#session.readyWithKeys();
    return openEndpoint(connection, this.#session.endpoints, id, visibility, this.#session.now(now));
  }

  async getSubscription(id: string, visibility: Visibility): Promise<SubscriptionRecord | undefined> {
    const connection = await this.#session.ready();
    return getSubscription(connection, id, visibility);
  }

  async listSubscriptions(filter: SubscriptionFilter, page: Page): Promise<PageOf<SubscriptionRecord>> {
    const connection = await this.#session.ready();
    return listSubscriptions(connection, filter, page);
  }

  async getEvent(
    id: string,
    visibility: Visibility,
  ): Promise<(EventRecord & { outcome: EventOutcome }) | undefined> {
    const connection = await this.#session.ready();
    return getEvent(connection, id, visibility);
  }

  async listEvents(
    filter: EventFilter,
    page: Page,
  ): Promise<PageOf<EventRecord & { outcome: EventOutcome }>> {
    const connection = await this.#session.ready();
    return listEvents(connection, filter, page);
  }

  async deliveriesOfEvent(event: EventKey, subscriptionIds: readonly string[]): Promise<DeliveryOfEvent[]> {
    const connection = await this.#session.ready();
    return deliveriesOfEvent(connection, event, subscriptionIds);
  }

  async getDelivery(id: string, visibility: Visibility): Promise<DeliveryDetail | undefined> {
    const connection = await this.#session.ready();
    return getDelivery(connection, id, visibility, this.#session.now(null));
  }

  async listDeliveries(filter: DeliveryFilter, page: Page): Promise<PageOf<DeliveryRecord>> {
    const connection = await this.#session.ready();
    return listDeliveries(connection, filter, page, this.#session.now(null));
  }

  async listAttempts(deliveryId: string): Promise<AttemptRecord[]> {
    const connection = await this.#session.ready();
    return listAttempts(connection, deliveryId);
  }

  retryDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return this.#session.join(scope, () => retryProgram(id, visibility, this.#session.now(now)));
  }

  cancelDelivery(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<DeliveryRecord> {
    return this.#session.join(scope, () => cancelProgram(id, visibility, this.#session.now(now)));
  }

  async createApiKey(key: ApiKeyRecord & { readonly hash: string }): Promise<void> {
    const connection = await this.#session.ready();
    await connection.write(() => createApiKey(connection, key));
  }

  async findApiKey(hash: string): Promise<ApiKeyRecord | undefined> {
    const connection = await this.#session.ready();
    return findApiKey(connection, hash);
  }

  async touchApiKey(id: string, at: Date): Promise<void> {
    const connection = await this.#session.ready();
    await connection.write(() => touchApiKey(connection, id, at));
  }

  async listApiKeys(page: Page, projectId?: string): Promise<PageOf<ApiKeyRecord>> {
    const connection = await this.#session.ready();
    return listApiKeys(connection, page, projectId);
  }

  async deleteApiKey(id: string, projectId?: string): Promise<boolean> {
    const connection = await this.#session.ready();
    return connection.write(() => deleteApiKey(connection, id, projectId));
  }

  beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun> {
    return this.#session.sealing((connection, ring) =>
      beginRequest(connection, ring, request, this.#session.now(now)),
    );
  }

  finishRequest(name: RequestName, token: string, answer: string): Promise<boolean> {
    return this.#session.sealing((connection, ring) => finishRequest(connection, ring, name, token, answer));
  }

  async abandonRequest(name: RequestName, token: string): Promise<void> {
    const connection = await this.#session.ready();
    await connection.write(() => abandonRequest(connection, name, token));
  }

  // --- holds -------------------------------------------------------------------------------------------------

  setHold(scope: Scope, hold: NewHold, now: Now): ReturnType<HoldStore["setHold"]> {
    const copy = structuredClone(hold);
    return this.#session.join(scope, () => setHoldProgram(copy, this.#session.now(now)));
  }

  releaseHold(scope: Scope, which: Parameters<HoldStore["releaseHold"]>[1]): Promise<HoldRecord | undefined> {
    return this.#session.join(scope, () => releaseHoldProgram(which));
  }

  async listHolds(visibility: Pick<Visibility, "projectId"> = {}): Promise<HoldRecord[]> {
    return listHolds(await this.#session.ready(), visibility);
  }

  async giveBackHeld(limit: number, now: Now): ReturnType<HoldStore["giveBackHeld"]> {
    checkLimit(limit);
    return giveBackHeld(await this.#session.ready(), limit, this.#session.now(now));
  }

  async countToGiveBack(max: number): Promise<number> {
    return countToGiveBack(await this.#session.ready(), max);
  }

  // --- upkeep ------------------------------------------------------------------------------------------------

  async maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult> {
    checkLimit(limit);
    await this.#session.readyWithKeys();
    return this.#maintenance.run(retention, limit, this.#session.now(now));
  }

  async countSealed(): Promise<SealedCounts> {
    return countSealed(await this.#session.ready(), this.#session.keys);
  }

  async reseal(limit: number, cursor?: string): Promise<ResealResult> {
    const connection = await this.#session.ready();
    return reseal(connection, this.#session.keys, await this.#session.ring(), limit, cursor);
  }

  async retireKeys(): Promise<readonly string[] | undefined> {
    return retireKeys(await this.#session.ready(), this.#session.keys);
  }

  async lag(now: Now): Promise<{ readonly oldestDueAt?: Date; readonly oldestNewAt?: Date }> {
    const connection = await this.#session.ready();
    return lag(connection, this.#session.now(now));
  }

  async countRemaining(
    max: number,
    now: Now = null,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    const connection = await this.#session.ready();
    return countRemaining(connection, max, this.#session.now(now));
  }

  async inspect(now: Now): Promise<StoreInspection> {
    const connection = await this.#session.ready();
    const clock = new Date(this.#session.now(now));
    return { clock, undispatched: undispatched(connection), findings: fileFindings(connection) };
  }

  checkKeys(): Promise<"usable" | "unused"> {
    return this.#session.checkKeys();
  }

  async stats(projectId: string | undefined, now: Now): Promise<StoreStats> {
    const connection = await this.#session.ready();
    return readStats(connection, projectId, this.#session.now(now));
  }

  watch(onWake: () => void): () => void {
    const stop = watchCommits(this.#session.connection, onWake);
    this.#watches.add(stop);
    return () => {
      stop();
      this.#watches.delete(stop);
    };
  }

  /** Nothing to do: others see the commit in the file. */
  notify(): void {}
}

/** The outbox in a SQLite file. Make its tables with `store.migrations.migrate()`, or with `migrate: true`. */
export function sqliteStore(options: SqliteOptions): SqliteOutbox {
  return new SqliteOutbox(options);
}
