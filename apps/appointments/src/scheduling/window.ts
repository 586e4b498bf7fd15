import { dayMs, endOfDate, instantOf, isDate, minuteMs, type Period, startOfDate } from "./calendar.ts";

/**
 * When the appointment of an invitation may be. A bound is a local date of `timeZone`, inclusive, or an RFC 3339
 * instant, exact; null = open on that side.
 */
export interface Window {
  readonly from: string | null;
  readonly until: string | null;
  readonly timeZone: string | null;
}

/** The whole appointment must be in it; it may end exactly at `end`. Open sides are infinite. */
export function windowBounds({ from, until, timeZone }: Window): Period {
  const zone = timeZone ?? "UTC";
  return {
    start: from === null ? -Infinity : isDate(from) ? startOfDate(from, zone) : instantOf(from, "ceil"),
    end: until === null ? Infinity : isDate(until) ? endOfDate(until, zone) : instantOf(until, "floor"),
  };
}

/** How soon and how late an appointment may begin, counted from now. */
export interface Reach {
  readonly minNoticeMinutes: number;
  /** 0 = 365. */
  readonly maxFutureDays: number;
}

/** The stricter of two, each for itself: the longer notice and the nearer limit. */
export function stricterReach(left: Reach, right: Reach): Reach {
  return {
    minNoticeMinutes: Math.max(left.minNoticeMinutes, right.minNoticeMinutes),
    maxFutureDays: Math.min(futureDays(left), futureDays(right)),
  };
}

/** The earliest and the latest start, both allowed. Days are 24 hours here: a limit, not an appointment. */
export function startLimits(
  now: number,
  reach: Reach,
): { readonly earliest: number; readonly latest: number } {
  return {
    earliest: now + reach.minNoticeMinutes * minuteMs,
    latest: now + futureDays(reach) * dayMs,
  };
}

function futureDays({ maxFutureDays }: Reach): number {
  return maxFutureDays === 0 ? 365 : maxFutureDays;
}
