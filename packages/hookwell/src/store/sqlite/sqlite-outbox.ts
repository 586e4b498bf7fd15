import { randomUUID } from "node:crypto";
import type { Delivery, Outcome } from "../../model/delivery.ts";
import type { CaptureInput, CaptureResult, EventKey, EventRecord } from "../../model/event.ts";
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
import type { Migrations } from "../migrations.ts";
import { captureProgram } from "./capture.ts";
import { anyWorkText, checkLimit, claimRows } from "./claim.ts";
import { checkDelivery, enqueue } from "./deliveries.ts";
import { dispatch, failDispatch, releaseProgram, takeNew } from "./dispatch.ts";
import { activeHolds, holdsAll } from "./holds.ts";
import { lookAt, readDelivery } from "./last-look.ts";
import { Maintenance } from "./maintain.ts";
import { applyMark, type Mark } from "./marks.ts";
import type { SqliteOptions } from "./options.ts";
import { Recording } from "./recording.ts";
import { Session } from "./session.ts";
import { SqliteManagement } from "./sqlite-management.ts";
import { SqliteReplays } from "./sqlite-replays.ts";
import { listActive, matchSubscriptions } from "./subscription-queries.ts";
import { addProgram } from "./subscriptions.ts";
import { countRemaining, lag } from "./upkeep.ts";
import { watchCommits } from "./watch.ts";

/** Milliseconds of a claim by the reference method. */
const referenceLeaseMs = 30_000;

/** The outbox in one SQLite file, on a connection of its own to the file of the application. */
export class SqliteOutbox extends SqliteManagement implements OutboxStore {
  readonly dialect = "sqlite";
  readonly migrations: Migrations;
  readonly replays: SqliteReplays;
  readonly #recording: Recording;
  readonly #maintenance: Maintenance;
  readonly #watches = new Set<() => void>();
  #stale = 0;

  constructor(options: SqliteOptions) {
    const session = new Session(options);
    super(session);
    this.replays = new SqliteReplays(session);
    this.migrations = session.migrations;
    this.#recording = new Recording(session, options.logger);
    this.#maintenance = new Maintenance(session.connection, session.endpoints);
  }

  // --- opening and closing -----------------------------------------------------------------------------------

  open(options: { readonly withKeys: boolean }): Promise<void> {
    return this.session.open(options);
  }

  async close(): Promise<void> {
    for (const stop of this.#watches) stop();
    this.#watches.clear();
    this.session.close();
  }

  // --- the reference methods ---------------------------------------------------------------------------------

  async enqueueDelivery(delivery: Delivery): Promise<void> {
    checkDelivery(delivery);
    const copy = structuredClone(delivery);
    const connection = await this.session.readyWithKeys();
    const making = this.session.making();
    await connection.write(() => enqueue(connection, making, this.session.endpoints, copy));
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
    const connection = await this.session.ready();
    const now = this.session.now(null);
    if (!(await connection.write(() => applyMark(connection, id, mark, leaseToken, now)))) this.#stale++;
  }

  async listActiveSubscriptions(projectId: string): Promise<Subscription[]> {
    const connection = await this.session.readyWithKeys();
    return listActive(connection, this.session.endpoints, projectId);
  }

  async addSubscription(subscription: Subscription): Promise<void> {
    const copy = structuredClone(subscription);
    await this.session.own(() => addProgram(this.session.making(), copy));
  }

  async get(deliveryId: string): Promise<Delivery | undefined> {
    const connection = await this.session.readyWithKeys();
    return readDelivery(connection, this.session.endpoints, deliveryId, this.session.now(null));
  }

  // --- capture and dispatch ----------------------------------------------------------------------------------

  async capture(
    scope: Exclude<Scope, { kind: "sync" }>,
    events: readonly CaptureInput[],
  ): Promise<CaptureResult[]> {
    if (scope.kind === "own") return this.session.own(() => captureProgram(events, this.session.now(null)));
    const results = await this.session.host.run(scope, captureProgram(events, this.session.now(null)));
    await this.session.host.run(scope, this.session.host.checkLibrary(scope));
    await this.session.host.run(scope, this.session.host.checkTimeout());
    return results;
  }

  captureSync(scope: Extract<Scope, { kind: "sync" }>, events: readonly CaptureInput[]): CaptureResult[] {
    const results = this.session.host.runSync(scope, captureProgram(events, this.session.now(null)));
    this.session.host.runSync(scope, this.session.host.checkLibrary(scope));
    this.session.host.runSync(scope, this.session.host.checkTimeout());
    return results;
  }

  async takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]> {
    const connection = await this.session.ready();
    return takeNew(connection, routes, limit, this.session.now(now));
  }

  async matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]> {
    const connection = await this.session.ready();
    return matchSubscriptions(connection, queries);
  }

  async dispatch(items: readonly DispatchItem[], now: Now, room?: DispatchRoom): Promise<DispatchResult> {
    const connection = await (room ? this.session.readyWithKeys() : this.session.ready());
    const token = randomUUID();
    const { dispatched, claimed } = await connection.write(() =>
      dispatch(connection, items, this.session.now(now), token, room),
    );
    return { dispatched, ...(await this.#lookAt(claimed, token, now)) };
  }

  async failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    const connection = await this.session.ready();
    return connection.write(() => failDispatch(connection, key, error, retryInMs, this.session.now(now)));
  }

  releaseEvent(scope: Scope, key: EventKey): Promise<void> {
    return this.session.join(scope, () => releaseProgram(key));
  }

  // --- claim and record --------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    checkLimit(request.limit);
    const connection = await this.session.readyWithKeys();
    const now = (): number => this.session.now(request.now);
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
    return {
      ...(await this.#lookAt(ids, token, request.now)),
      cursor,
      ...more,
      ...(againInMs !== undefined && { againInMs }),
    };
  }

  /** Reads what was claimed, and gives back what must not be sent now. */
  async #lookAt(
    ids: readonly string[],
    token: string,
    now: Now,
  ): Promise<Pick<ClaimResult, "deliveries" | "failed">> {
    if (ids.length === 0) return { deliveries: [], failed: [] };
    const { connection, endpoints } = this.session;
    const look = lookAt(connection, endpoints, ids, token, this.session.now(now));
    const failed = await this.#recording.giveUp(look, now);
    if (look.missingKey) throw look.missingKey;
    return { deliveries: look.deliveries, failed };
  }

  async record(outcomes: readonly Outcome[], now: Now, policy?: LanePolicy): Promise<RecordResult> {
    const result = await this.#recording.record(outcomes, now, policy);
    this.#stale += result.stale.length;
    return result;
  }

  get staleOutcomes(): number {
    return this.#stale;
  }

  // --- upkeep ------------------------------------------------------------------------------------------------

  async maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult> {
    checkLimit(limit);
    await this.session.readyWithKeys();
    return this.#maintenance.run(retention, limit, this.session.now(now));
  }

  async lag(now: Now): Promise<Lag> {
    const connection = await this.session.ready();
    return lag(connection, this.session.now(now));
  }

  async countRemaining(
    max: number,
    now: Now = null,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    const connection = await this.session.ready();
    return countRemaining(connection, max, this.session.now(now));
  }

  watch(onWake: () => void): () => void {
    const stop = watchCommits(this.session.connection, onWake);
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
