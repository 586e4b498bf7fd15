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
import { cancelWindow } from "./bulk-cancel.ts";
import { failMissing, fillMissing, takeMissing } from "./missing.ts";
import {
  advanceReplays,
  countReplayable,
  createReplay,
  findReplay,
  listReplays,
  stopReplay,
} from "./replays.ts";
import type { MemoryState } from "./state.ts";
import type { Write } from "./transaction.ts";

/** Replays and bulk cancel of a MemoryOutbox. */
export class MemoryReplays implements ReplayStore {
  readonly #state: MemoryState;
  readonly #now: (now: Now) => number;
  readonly #join: <T>(scope: Scope, write: Write<T>) => T;

  constructor(state: MemoryState, now: (now: Now) => number, join: <T>(scope: Scope, write: Write<T>) => T) {
    this.#state = state;
    this.#now = now;
    this.#join = join;
  }

  async create(scope: Scope, replay: NewReplay): Promise<ReplayRecord> {
    const given = structuredClone(replay);
    const now = this.#now(null);
    return this.#join(scope, (state) => createReplay(state, given, now));
  }

  async get(id: string, visibility: Visibility): Promise<ReplayRecord | undefined> {
    return findReplay(this.#state, id, visibility);
  }

  async list(filter: ReplayFilter, page: Page): Promise<PageOf<ReplayRecord>> {
    return listReplays(this.#state, filter, page);
  }

  async stop(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<ReplayRecord> {
    const time = this.#now(now);
    return this.#join(scope, (state) => stopReplay(state, id, visibility, time));
  }

  async count(
    work: ReplayWork,
    after: WalkPosition | undefined,
    limits: Pick<ReplayLimits, "look" | "missingMs">,
    now: Now,
  ): Promise<WindowCount> {
    return countReplayable(this.#state, work, after, limits, this.#now(now));
  }

  async advance(limits: ReplayLimits, now: Now): Promise<ReplayAdvance> {
    return this.#write((state) => advanceReplays(state, limits, this.#now(now)));
  }

  async takeMissing(routes: readonly string[], limit: number, now: Now): Promise<MissingDelivery[]> {
    return takeMissing(this.#state, routes, limit, this.#now(now));
  }

  async fillMissing(items: readonly MissingFill[], now: Now): Promise<number> {
    return this.#write((state) => fillMissing(state, items, this.#now(now)));
  }

  async failMissing(key: MissingKey, error: string, retryInMs: number | null, now: Now): Promise<boolean> {
    return this.#write((state) => failMissing(state, key, error, retryInMs, this.#now(now)));
  }

  async cancelWindow(
    selection: DeliverySelection,
    period: TimeRange,
    after: CancelPosition | undefined,
    options: { readonly look: number; readonly dryRun: boolean },
    now: Now,
  ): Promise<CancelWindow> {
    return this.#write((state) => cancelWindow(state, selection, period, after, options, this.#now(now)));
  }

  #write<T>(write: Write<T>): T {
    return this.#join({ kind: "own" }, write);
  }
}
