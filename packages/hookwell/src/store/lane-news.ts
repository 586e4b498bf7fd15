import type { LanePolicy } from "../model/lane-policy.ts";
import {
  afterOutcomes,
  isClean,
  type LaneChange,
  type LaneLimits,
  type LaneOutcome,
  type LaneState,
} from "./lane-state.ts";
import { isOperational, type OperationalType, reportEveryMs } from "./operational.ts";

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
    const report = reportFailures(lane, subscriptionId, this.failed, now);
    return { lane: report.lane, changes, news: [...news, ...report.news] };
  }
}

/** Tells of failed deliveries of a lane, or remembers how many there were when it told of some within the minute. */
export function reportFailures(
  lane: LaneState,
  subscriptionId: string,
  failed: readonly FailedDelivery[],
  now: number,
): { readonly lane: LaneState; readonly news: readonly LaneNews[] } {
  const last = failed.at(-1);
  if (!last) return { lane, news: [] };
  const count = lane.unreported + failed.length;
  if (lane.reportedAt !== undefined && lane.reportedAt > now - reportEveryMs)
    return { lane: { ...lane, unreported: count }, news: [] };
  return {
    lane: { ...lane, reportedAt: now, unreported: 0 },
    news: [failedNews(subscriptionId, last, count)],
  };
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

/** A delivery that failed because its disabled subscription held it for too long. */
export interface HeldRow {
  readonly id: string;
  readonly projectId: string;
  readonly subscriptionId: string;
  readonly eventId: string;
  readonly type: string;
}

/** The application's own deliveries that failed so, by lane; the last one by id is the one that is named. */
export function heldTooLong(
  rows: readonly HeldRow[],
): readonly { projectId: string; subscriptionId: string; failed: FailedDelivery[] }[] {
  const lanes = new Map<string, { projectId: string; subscriptionId: string; failed: FailedDelivery[] }>();
  const sorted = rows.filter(({ type }) => !isOperational(type)).sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const { id, projectId, subscriptionId, eventId, type } of sorted) {
    const lane = lanes.get(subscriptionId) ?? { projectId, subscriptionId, failed: [] };
    lanes.set(subscriptionId, lane);
    lane.failed.push({ deliveryId: id, eventId, type, errorCode: "held_too_long" });
  }
  return [...lanes.values()].sort((a, b) => (a.subscriptionId < b.subscriptionId ? -1 : 1));
}
