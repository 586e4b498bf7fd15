import type { LanePolicy } from "../model/lane-policy.ts";
import {
  afterOutcomes,
  isClean,
  type LaneChange,
  type LaneLimits,
  type LaneOutcome,
  type LaneState,
} from "./lane-state.ts";
import { type OperationalType, reportEveryMs } from "./operational.ts";

/** Type and data of an operational event about a lane. */
export type LaneNews = readonly [OperationalType, Readonly<Record<string, string | number>>];

/** A delivery that failed for good. */
export interface FailedDelivery {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly type: string;
  readonly errorCode: string;
}

/** What one batch of outcomes brought to one lane. */
export class LaneBatch {
  readonly outcomes: LaneOutcome[] = [];
  /** Of the application's own events. */
  readonly failed: FailedDelivery[] = [];
  /** A 410 disabled the subscription. */
  gone = false;

  /** True when the lane, as it was, need not be written. */
  leaves(lane: LaneState): boolean {
    return (
      isClean(lane) &&
      !this.gone &&
      this.failed.length === 0 &&
      !this.outcomes.some(({ kind }) => kind === "failure")
    );
  }

  /** `active`: the subscription still is, after the batch. */
  apply(
    before: LaneState,
    limits: LaneLimits,
    policy: LanePolicy,
    active: boolean,
    subscriptionId: string,
    now: number,
  ): {
    readonly lane: LaneState;
    readonly changes: readonly LaneChange[];
    readonly news: readonly LaneNews[];
  } {
    const { lane, changes } = afterOutcomes(before, limits, this.outcomes, policy, now, active);
    if (!policy.report) return { lane, changes, news: [] };
    const news = changeNews(subscriptionId, lane, changes, this.gone);
    const last = this.failed.at(-1);
    if (!last) return { lane, changes, news };
    const count = lane.unreported + this.failed.length;
    if (lane.reportedAt !== undefined && lane.reportedAt > now - reportEveryMs)
      return { lane: { ...lane, unreported: count }, changes, news };
    return {
      lane: { ...lane, reportedAt: now, unreported: 0 },
      changes,
      news: [...news, failedNews(subscriptionId, last, count)],
    };
  }
}

function changeNews(
  id: string,
  { failures }: LaneState,
  changes: readonly LaneChange[],
  gone: boolean,
): readonly LaneNews[] {
  const about = { subscription_id: id };
  const news: LaneNews[] = [];
  if (changes.includes("opened")) news.push(["hookwell.subscription.failing", { ...about, failures }]);
  if (changes.includes("closed")) news.push(["hookwell.subscription.recovered", about]);
  const reason = gone ? "gone" : changes.includes("disabled") ? "failing" : undefined;
  if (reason) news.push(["hookwell.subscription.disabled", { ...about, reason, failures }]);
  return news;
}

function failedNews(id: string, failed: FailedDelivery, count: number): LaneNews {
  const { deliveryId, eventId, type, errorCode } = failed;
  return [
    "hookwell.delivery.failed",
    {
      subscription_id: id,
      delivery_id: deliveryId,
      event_id: eventId,
      event_type: type,
      error_code: errorCode,
      count,
    },
  ];
}
