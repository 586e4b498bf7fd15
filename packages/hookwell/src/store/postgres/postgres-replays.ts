import type { DeliverySelection, ReplayRecord, ReplayWork } from "../../model/replay.ts";
import type { Now, Page, PageOf, Scope, TimeRange, Visibility } from "../contract.ts";
import type {
  CancelPosition,
  CancelWindow,
  MissingDelivery,
  MissingFill,
  MissingKey,
  NewReplay,
  ReplayAdvance,
  ReplayFilter,
  ReplayLimits,
  ReplayStore,
  WalkPosition,
  WindowCount,
} from "../replay-contract.ts";
import { nextPhase, takesEvents, walkStart } from "../replay-work.ts";
import { cancelWindow } from "./bulk-cancel.ts";
import type { Database } from "./database.ts";
import { Conditions, pageOf } from "./lists.ts";
import { failMissing, fillMissing, takeMissing } from "./missing.ts";
import { replayColumnsSql, replayTexts } from "./replay-sql.ts";
import {
  advanceReplays,
  createReplay,
  isReplayVisible,
  readSubscription,
  stopReplay,
  toReplay,
} from "./replays.ts";
import { toSubscription } from "./subscription-rows.ts";
import { deliveryWindow, eventWindow, type Step, toMissing, toWindow, type Window } from "./walk.ts";

/** Replays and bulk cancel in PostgreSQL. */
export class PostgresReplays implements ReplayStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async create(scope: Scope, replay: NewReplay): Promise<ReplayRecord> {
    const given = structuredClone(replay);
    return await this.#db.program(scope, () => createReplay(this.#db.schema, given, this.#db.now(null)));
  }

  async get(id: string, visibility: Visibility): Promise<ReplayRecord | undefined> {
    const [row] = await this.#db.run({ text: replayTexts(this.#db.schema).get, params: [id] });
    return row && isReplayVisible(row, visibility) ? toReplay(row) : undefined;
  }

  async list(filter: ReplayFilter, page: Page): Promise<PageOf<ReplayRecord>> {
    const where = new Conditions();
    where.equal("r.project_id", filter.projectId);
    where.equal("r.tenant_id", filter.tenantId);
    where.equal("r.owner_id", filter.ownerId);
    where.equal("r.status", filter.status);
    where.equal("r.subscription_id", filter.subscriptionId);
    const select = `SELECT r.created_at AS at, ${replayColumnsSql(this.#db.schema)}`;
    return await pageOf(this.#db, where, select, "r.created_at", "r.id", page, toReplay);
  }

  async stop(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<ReplayRecord> {
    return await this.#db.program(scope, () =>
      stopReplay(this.#db.schema, id, visibility, this.#db.now(now)),
    );
  }

  async count(
    work: ReplayWork,
    after: WalkPosition | undefined,
    limits: Pick<ReplayLimits, "look" | "missingMs">,
    now: Now,
  ): Promise<WindowCount> {
    const from = after ?? walkStart(work);
    const { hits, last } = await this.#look(work, from, limits, now);
    const next = last
      ? { phase: from.phase, at: new Date(last.at), id: last.id }
      : nextPhase(work, from.phase);
    return { count: hits.length, ...(next.phase !== "rendering" && { next }) };
  }

  async #look(
    work: ReplayWork,
    from: WalkPosition,
    limits: Pick<ReplayLimits, "look" | "missingMs">,
    now: Now,
  ): Promise<Window<Step>> {
    const { schema } = this.#db;
    if (from.phase === "deliveries")
      return toWindow(await this.#db.run(deliveryWindow(schema, work, from, limits.look)), limits.look);
    const [row] = await this.#db.run(readSubscription(schema, work.selection.subscriptionId ?? ""));
    const subscription = row && toSubscription(row);
    if (!subscription || !takesEvents(subscription.status)) return { hits: [] };
    const rows = await this.#db.run(eventWindow(schema, work, from, limits, this.#db.now(now)));
    return toMissing(rows, limits.look, work.selection, subscription);
  }

  async advance(limits: ReplayLimits, now: Now): Promise<ReplayAdvance> {
    return await advanceReplays(this.#db, limits, this.#db.now(now));
  }

  async takeMissing(routes: readonly string[], limit: number, now: Now): Promise<MissingDelivery[]> {
    return await takeMissing(this.#db, routes, limit, this.#db.now(now));
  }

  async fillMissing(items: readonly MissingFill[], now: Now): Promise<number> {
    return await fillMissing(this.#db, items, this.#db.now(now));
  }

  async failMissing(key: MissingKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    return await failMissing(this.#db, key, error, retryInMs, this.#db.now(now));
  }

  async cancelWindow(
    selection: DeliverySelection,
    period: TimeRange,
    after: CancelPosition | undefined,
    options: { readonly look: number; readonly dryRun: boolean },
    now: Now,
  ): Promise<CancelWindow> {
    return await cancelWindow(this.#db, selection, period, after, options, this.#db.now(now));
  }
}
