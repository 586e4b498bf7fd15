import type { Delivery, Outcome } from "../../model/delivery.ts";
import { ConfigurationError } from "../../model/errors.ts";
import type { CaptureInput, CaptureResult, EventKey, EventRecord } from "../../model/event.ts";
import type { LanePolicy } from "../../model/lane-policy.ts";
import type { Matchable } from "../../model/matching.ts";
import type { Logger } from "../../model/observe.ts";
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
import { capture, runCapture } from "./capture.ts";
import { type Claimed, claimRows, sleepLanes } from "./claim.ts";
import { enqueueDelivery } from "./deliveries.ts";
import { dispatchEvents, failDispatch, matchSubscriptions, releaseEvent, takeNew } from "./dispatch.ts";
import { EndpointBook } from "./endpoints.ts";
import { setAside } from "./holds.ts";
import { lastLook } from "./last-look.ts";
import { Notices } from "./listen.ts";
import { loadDeliveries } from "./loading.ts";
import { PostgresMigrations } from "./migrator.ts";
import { checkKeys, checkServer } from "./opening.ts";
import type { PostgresOptions } from "./options.ts";
import { defaultSchema, PostgresManagement } from "./postgres-management.ts";
import { PostgresReplays } from "./postgres-replays.ts";
import { type Mark, markDelivery, recordOutcomes } from "./record.ts";
import { listActiveSubscriptions, putSubscription } from "./subscriptions.ts";
import { Unseen } from "./unseen.ts";
import { Upkeep } from "./upkeep.ts";

/** Milliseconds of a claim by the reference method. */
const referenceLeaseMs = 30_000;

/** The outbox in PostgreSQL, for any number of processes. Made by {@link postgresStore}. */
export class PostgresOutbox extends PostgresManagement implements OutboxStore {
  readonly dialect = "postgres";
  /** The four verbs of the schema. */
  readonly migrations: Migrations & Required<Pick<Migrations, "grant">>;
  readonly replays: PostgresReplays;
  readonly #schemaSteps: PostgresMigrations;
  readonly #migrate: boolean;
  readonly #logger: Logger | undefined;
  readonly #notices: Notices;
  readonly #endpoints: EndpointBook;
  readonly #upkeep: Upkeep;
  readonly #unseen = new Unseen();
  #hearsPool = false;
  #stale = 0;

  constructor(options: PostgresOptions) {
    super(options);
    this.#schemaSteps = new PostgresMigrations(this.db);
    this.migrations = this.#schemaSteps;
    this.#migrate = options.migrate ?? false;
    this.#logger = options.logger;
    this.#notices = new Notices(
      this.db,
      `hookwell_${options.schema ?? defaultSchema}`,
      options.listen?.connectionString,
      options.logger,
    );
    this.#endpoints = new EndpointBook(this.db, () => this.keys());
    this.replays = new PostgresReplays(this.db);
    this.#upkeep = new Upkeep(this.db, this.#endpoints);
  }

  async open({ withKeys }: { readonly withKeys: boolean }): Promise<void> {
    // Without a listener, an idle connection that the server closes would end the process.
    if (!this.#hearsPool) this.pool.on?.("error", this.#onPoolError);
    this.#hearsPool = true;
    await checkServer(this.db);
    if (this.#migrate) await this.migrations.migrate();
    await this.#schemaSteps.demandUsable();
    if (withKeys) await checkKeys(this.db, this.keys());
    await this.#notices.open();
  }

  /** Ends what the store opened; the pool is the caller's. */
  async close(): Promise<void> {
    await this.#notices.close();
    this.pool.off?.("error", this.#onPoolError);
    this.#hearsPool = false;
  }

  // --- the reference methods ---------------------------------------------------------------------------------

  async enqueueDelivery(delivery: Delivery): Promise<void> {
    await enqueueDelivery(this.db, this.keys(), delivery, this.newEndpointId(), this.now());
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
    return await listActiveSubscriptions(this.db, this.keys(), projectId);
  }

  async addSubscription(subscription: Subscription): Promise<void> {
    const given = structuredClone(subscription);
    const endpointId = this.newEndpointId();
    await this.db.program({ kind: "own" }, () =>
      putSubscription(this.db.schema, this.keys(), given, endpointId, this.now()),
    );
  }

  async get(deliveryId: string): Promise<Delivery | undefined> {
    const [found] = await loadDeliveries(this.db, this.#endpoints, [deliveryId], this.now());
    return found?.unreadable ? undefined : found?.delivery;
  }

  // --- capture and dispatch ----------------------------------------------------------------------------------

  async capture(
    scope: Exclude<Scope, { kind: "sync" }>,
    events: readonly CaptureInput[],
  ): Promise<CaptureResult[]> {
    if (scope.kind === "own") return await runCapture(this.db, events, this.now());
    return await this.db.joined(scope, capture(this.db.schema, events, this.now()));
  }

  captureSync(): CaptureResult[] {
    throw new ConfigurationError(
      "PostgreSQL clients are asynchronous: use await hooks.emit(), and emitSync() only with a SQLite store.",
    );
  }

  async takeNew(routes: readonly string[], limit: number, now: Now): Promise<EventRecord[]> {
    return await takeNew(this.db, routes, limit, this.now(now));
  }

  async matchSubscriptions(queries: readonly Matchable[]): Promise<Match[][]> {
    return await matchSubscriptions(this.db, queries);
  }

  async dispatch(items: readonly DispatchItem[], now: Now, room?: DispatchRoom): Promise<DispatchResult> {
    const { dispatched, claimed } = await dispatchEvents(this.db, items, this.now(now), room);
    try {
      return { dispatched, ...(await this.#look(claimed, this.now(now))) };
    } catch (error) {
      // The events are dispatched all the same, and the next claim gives their rows back.
      this.#logger?.warn(
        `hookwell: what a dispatch claimed could not be read: ${error instanceof Error ? error.message : String(error)}`,
      );
      return { dispatched, deliveries: [], failed: [] };
    }
  }

  async failDispatch(key: EventKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    return await failDispatch(this.db, key, error, retryInMs, this.now(now));
  }

  async releaseEvent(scope: Scope, key: EventKey): Promise<void> {
    await this.db.program(scope, () => releaseEvent(this.db.schema, key, this.now()));
  }

  // --- claim and record --------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const now = this.now(request.now);
    await this.#unseen.giveBack(this.db, now, this.#logger);
    const claimed = await claimRows(this.db, request);
    const [{ deliveries, failed }, again] = await Promise.all([
      this.#look(claimed.rows, now),
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
    const result = await recordOutcomes(this.db, outcomes, this.now(now), this.#logger, policy);
    this.#stale += result.stale.length;
    return result;
  }

  get staleOutcomes(): number {
    return this.#stale;
  }

  // --- upkeep ------------------------------------------------------------------------------------------------

  async maintain(retention: RetentionPolicy | null, limit: number, now: Now): Promise<MaintenanceResult> {
    return await this.#upkeep.maintain(retention, limit, now);
  }

  async lag(now: Now): Promise<Lag> {
    return await this.#upkeep.lag(now);
  }

  async countRemaining(
    max: number,
    now: Now = null,
  ): Promise<{ readonly pending: number; readonly newEvents: number }> {
    return await this.#upkeep.countRemaining(max, now);
  }

  watch(onWake: () => void): () => void {
    return this.#notices.watch(onWake);
  }

  notify(): void {
    this.#notices.notify();
  }

  // --- inside ------------------------------------------------------------------------------------------------

  /** Reads what was claimed, and gives back what must not be sent now. */
  async #look(
    rows: Claimed["rows"],
    now: string | null,
  ): Promise<Pick<ClaimResult, "deliveries" | "failed">> {
    if (rows.length === 0) return { deliveries: [], failed: [] };
    try {
      const looked = await lastLook(this.db, this.#endpoints, rows, now, this.#logger);
      this.#unseen.seen();
      return looked;
    } catch (error) {
      this.#unseen.failed(rows);
      throw error;
    }
  }

  /**
   * Sets held rows aside and puts lanes without work to sleep; true when rows were set aside. It only saves work for
   * the next claims, so a failure must not take away what this one got.
   */
  async #tidy({ passed, empty, now }: Claimed): Promise<true | undefined> {
    try {
      const moved = passed.length > 0 ? await setAside(this.db, passed, now) : 0;
      if (empty.length > 0) await sleepLanes(this.db, empty, now);
      return moved > 0 ? true : undefined;
    } catch (error) {
      this.#logger?.warn(
        `hookwell: idle lanes stay awake: ${error instanceof Error ? error.message : String(error)}`,
      );
      return undefined;
    }
  }

  async #mark(mark: Mark): Promise<void> {
    if (!(await markDelivery(this.db, mark, this.now()))) this.#stale++;
  }

  readonly #onPoolError = (error: Error): void => {
    this.#logger?.warn(`hookwell: an idle connection to PostgreSQL was lost: ${error.message}`);
  };
}
