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
import { nextPhase, walkStart } from "../replay-work.ts";
import { cancelWindow } from "./bulk-cancel.ts";
import { failMissing, fillMissing, takeMissing } from "./missing.ts";
import { type Condition, condition, readPage } from "./pages.ts";
import {
  advanceReplays,
  createProgram,
  isReplayVisible,
  replayColumns,
  stopProgram,
  toReplay,
} from "./replays.ts";
import type { Session } from "./session.ts";
import { deliveryWindow, eventWindow } from "./walk.ts";

/** Replays and bulk cancel in a SQLite file. */
export class SqliteReplays implements ReplayStore {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  create(scope: Scope, replay: NewReplay): Promise<ReplayRecord> {
    const given = structuredClone(replay);
    return this.#session.join(scope, () => createProgram(given, this.#session.now(null)));
  }

  async get(id: string, visibility: Visibility): Promise<ReplayRecord | undefined> {
    const connection = await this.#session.ready();
    const [row] = connection.all("SELECT * FROM hookwell_replay WHERE id = ?", [id]);
    return row && isReplayVisible(row, visibility) ? toReplay(row) : undefined;
  }

  async list(filter: ReplayFilter, page: Page): Promise<PageOf<ReplayRecord>> {
    const connection = await this.#session.ready();
    const filters: Condition[] = [];
    const equal = (column: string, value: string | undefined): void => {
      if (value !== undefined) filters.push(condition(`r.${column} = ?`, value));
    };
    equal("project_id", filter.projectId);
    equal("tenant_id", filter.tenantId);
    equal("owner_id", filter.ownerId);
    equal("status", filter.status);
    equal("subscription_id", filter.subscriptionId);
    const listing = {
      columns: replayColumns,
      from: "hookwell_replay r INDEXED BY hookwell_replay_list",
      joins: "",
      time: "r.created_at",
      id: "r.id",
      served: [],
      filters,
    };
    return readPage(connection, listing, {}, page, toReplay);
  }

  stop(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<ReplayRecord> {
    return this.#session.join(scope, () => stopProgram(id, visibility, this.#session.now(now)));
  }

  async count(
    work: ReplayWork,
    after: WalkPosition | undefined,
    limits: Pick<ReplayLimits, "look" | "missingMs">,
    now: Now,
  ): Promise<WindowCount> {
    const connection = await this.#session.ready();
    const from = after ?? walkStart(work);
    const { hits, last } =
      from.phase === "deliveries"
        ? deliveryWindow(connection, work, from, limits.look)
        : eventWindow(connection, work, from, limits, this.#session.now(now));
    const next = last
      ? { phase: from.phase, at: new Date(last.at), id: last.id }
      : nextPhase(work, from.phase);
    return { count: hits.length, ...(next.phase !== "rendering" && { next }) };
  }

  async advance(limits: ReplayLimits, now: Now): Promise<ReplayAdvance> {
    const connection = await this.#session.ready();
    return advanceReplays(connection, limits, () => this.#session.now(now));
  }

  async takeMissing(routes: readonly string[], limit: number, now: Now): Promise<MissingDelivery[]> {
    const connection = await this.#session.ready();
    return takeMissing(connection, routes, limit, this.#session.now(now));
  }

  async fillMissing(items: readonly MissingFill[], now: Now): Promise<number> {
    const connection = await this.#session.ready();
    return connection.write(() => fillMissing(connection, items, this.#session.now(now)));
  }

  async failMissing(key: MissingKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    const connection = await this.#session.ready();
    return connection.write(() => failMissing(connection, key, error, retryInMs, this.#session.now(now)));
  }

  async cancelWindow(
    selection: DeliverySelection,
    period: TimeRange,
    after: CancelPosition | undefined,
    options: { readonly look: number; readonly dryRun: boolean },
    now: Now,
  ): Promise<CancelWindow> {
    const connection = await this.#session.ready();
    return cancelWindow(connection, selection, period, after, options, () => this.#session.now(now));
  }
}
