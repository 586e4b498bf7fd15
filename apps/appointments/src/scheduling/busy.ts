import { minuteMs, type Period } from "./calendar.ts";

/** Minutes that a host keeps free around an appointment. */
export interface Buffers {
  readonly bufferBeforeMinutes: number;
  readonly bufferAfterMinutes: number;
}

/** A time that is taken, and the buffers it was booked with: none for an entry of a calendar. */
export interface BusyPeriod extends Period, Buffers {}

/**
 * When an appointment of this length may not begin, because of one busy period: periods are half-open, so the two may
 * touch; neither may reach into the buffers of the other. Two buffers may share their time: nobody meets in either.
 */
export function blockedStarts(busy: BusyPeriod, buffers: Buffers, durationMs: number): Period {
  const before = Math.max(busy.bufferBeforeMinutes, buffers.bufferAfterMinutes) * minuteMs;
  const after = Math.max(busy.bufferAfterMinutes, buffers.bufferBeforeMinutes) * minuteMs;
  return { start: busy.start - before - durationMs + 1, end: busy.end + after };
}

/** Whether an appointment cannot be beside a busy period. */
export function conflicts(appointment: Period, buffers: Buffers, busy: BusyPeriod): boolean {
  const blocked = blockedStarts(busy, buffers, appointment.end - appointment.start);
  return blocked.start <= appointment.start && appointment.start < blocked.end;
}
