import type { EventRecord } from "../model/event.ts";
import type { DeliverySelection, ReplayRecord, ReplayWork } from "../model/replay.ts";
import type { ReplayStatus } from "../model/states.ts";
import type { Match, Now, Page, PageOf, Scope, TimeRange, Visibility } from "./contract.ts";

/** Finished deliveries are gone through first, then events without a delivery; then only bodies are missing. */
export type WalkPhase = "deliveries" | "missing" | "rendering";

/** How far a walk has come: everything up to and with this (time, id) of the phase is dealt with. */
export interface WalkPosition {
  readonly phase: WalkPhase;
  readonly at: Date;
  readonly id: string;
}

/** A replay about to be made: everything checked by the caller. */
export interface NewReplay extends ReplayWork {
  readonly id: string;
  readonly count: number;
}

export interface ReplayFilter extends Visibility {
  readonly status?: ReplayStatus;
  readonly subscriptionId?: string;
}

export interface ReplayLimits {
  /** Rows of a table that one step looks at. */
  readonly look: number;
  /** Rows that one step queues. */
  readonly most: number;
  /** Rows of one replay that may be pending at a time. */
  readonly pending: number;
  /** How long a replay is left alone that must wait for its pending rows, or for what is to be rendered. */
  readonly waitMs: number;
  /** `missing` sees no event captured longer ago: rows that are pruned by now would be missed. Null = no bound. */
  readonly missingMs: number | null;
  /** Replays that ended longer ago are forgotten. Null = none. */
  readonly keepMs: number | null;
}

/** What one call of `advance` did. */
export interface ReplayAdvance {
  /** Rows that became pending. */
  readonly queued: number;
  /** More can be done at once. */
  readonly again: boolean;
  /** A replay is under way, so that another look soon is worth while. */
  readonly running: boolean;
  readonly ended: readonly {
    readonly id: string;
    readonly status: ReplayStatus;
    readonly subscriptionId?: string;
  }[];
}

/** Names an event that a replay found without a delivery. */
export interface MissingKey {
  readonly replayId: string;
  readonly projectId: string;
  readonly eventId: string;
}

/** The same with what it takes to render it. */
export interface MissingDelivery extends MissingKey {
  /** Absent: the event is gone. */
  readonly event?: EventRecord;
  /** As the subscription is now; absent: the event is not to be sent there any more. */
  readonly match?: Match;
  /** Failed tries to render it. */
  readonly tries: number;
}

/** What became of one. Without `delivery` it is skipped. */
export interface MissingFill extends MissingKey {
  readonly delivery?: {
    readonly id: string;
    readonly subscriptionId: string;
    readonly endpointId: string;
    /** Absent: the body that capture froze (fan-out `emit`). */
    readonly body?: { readonly variant: string; readonly bytes: Uint8Array };
    readonly ordered?: true;
  };
  /** JSON text of the enrichment, stored with the event. */
  readonly patch?: string;
}

/** One window of a walk over what a replay or a bulk cancel is about. */
export interface WindowCount {
  readonly count: number;
  /** Where the next window begins; absent = there is none. */
  readonly next?: WalkPosition;
}

/** Where a bulk cancel goes on: pending rows by lane, place in the lane, id. */
export interface CancelPosition {
  readonly subscriptionId: string;
  readonly dueAt: number;
  readonly id: string;
}

export interface CancelWindow {
  /** Rows that were cancelled; with `dryRun` those that would be. */
  readonly count: number;
  readonly next?: CancelPosition;
}

/** The part of a store that finds many deliveries, and sends or cancels them (`OutboxStore.replays`). */
export interface ReplayStore {
  create(scope: Scope, replay: NewReplay): Promise<ReplayRecord>;
  get(id: string, visibility: Visibility): Promise<ReplayRecord | undefined>;
  list(filter: ReplayFilter, page: Page): Promise<PageOf<ReplayRecord>>;
  /** running -> stopped: queues nothing more; what it queued stays. @throws NotFoundError, InvalidStateError */
  stop(scope: Scope, id: string, visibility: Visibility, now: Now): Promise<ReplayRecord>;
  /** Counts what a replay would find in the next `look` rows after the position; absent = from the beginning. */
  count(
    work: ReplayWork,
    after: WalkPosition | undefined,
    limits: Pick<ReplayLimits, "look" | "missingMs">,
    now: Now,
  ): Promise<WindowCount>;
  /**
   * Takes one running replay one step on, in one transaction: looks at the next rows of its walk, queues those that
   * are to be sent again as new rounds (attempts 0, same id, same bytes), notes events without a delivery for
   * `takeMissing`, and moves its position. So a row is queued at most once, whatever crashes. A replay that another
   * process has in hand is passed over. A row that is pending is never touched.
   *
   * A replay is done when its walk is over and everything noted is rendered. It fails when its subscription is no
   * longer active or paused.
   */
  advance(limits: ReplayLimits, now: Now): Promise<ReplayAdvance>;
  /** Up to `limit` noted events whose route is among `routes`, due for a try, of running replays. No lock. */
  takeMissing(routes: readonly string[], limit: number, now: Now): Promise<MissingDelivery[]>;
  /** One transaction: those still noted get their body and delivery, an existing pair is left alone. Answers how many rows were made. */
  fillMissing(items: readonly MissingFill[], now: Now): Promise<number>;
  /** Counts a failed try: again after `retryInMs`, or given up and skipped when that is null. False = no longer noted. */
  failMissing(key: MissingKey, error: string, retryInMs: number | null, now: Now): Promise<boolean>;
  /**
   * Cancels, in one short transaction, the pending rows made in the period among the next `look` ones after the
   * position. Rows that another transaction has in hand are passed over.
   */
  cancelWindow(
    selection: DeliverySelection,
    period: TimeRange,
    after: CancelPosition | undefined,
    options: { readonly look: number; readonly dryRun: boolean },
    now: Now,
  ): Promise<CancelWindow>;
}
