import { minuteMs, type Period } from "./calendar.ts";

/** Minutes that a host keeps free around an appointment. */
export interface Buffers {
  readonly bufferBeforeMinutes: number;
  readonly bufferAfterMinutes: number;
}

/** A time that is taken, and the buffers it was booked with: none for an entry of a calendar. */
export interface BusyPeriod extends Period, Buffers {}

/** Half-open: periods that only touch do not overlap. */
export function overlaps(left: Period, right: Period): boolean {
  return left.start < right.end && right.start < left.end;
}

/** A period with its buffers around it. */
export function widened(period: Period, buffers: Buffers): Period {
  return {
    start: period.start - buffers.bufferBeforeMinutes * minuteMs,
    end: period.end + buffers.bufferAfterMinutes * minuteMs,
  };
}

/**
 * Whether an appointment cannot be beside a busy period: it reaches into the buffers of that one, or that one reaches
 * into its own. Two buffers may share their time: nobody meets in either.
 */
export function conflicts(appointment: Period, buffers: Buffers, busy: BusyPeriod): boolean {
  return overlaps(appointment, widened(busy, busy)) || overlaps(widened(appointment, buffers), busy);
}
