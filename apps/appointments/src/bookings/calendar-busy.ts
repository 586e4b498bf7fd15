import type { CalendarBusy } from "../availability/slot-hosts.ts";
import { ProblemError } from "../http/problem.ts";
import { dayMs, type Period } from "../scheduling/calendar.ts";
import type { BusyCalendars } from "./side-effect-planner.ts";

/** Buffers may have a day each; what is further away cannot matter. */
const reachMs = dayMs;

/**
 * When the calendars of these hosts are busy around an appointment. Never called inside a transaction.
 * @throws ProblemError 503 when a calendar cannot be asked: a time is not given away on a guess
 */
export async function calendarBusy(
  calendars: BusyCalendars,
  hostIds: readonly string[],
  appointment: Period,
): Promise<CalendarBusy> {
  try {
    return await calendars.freeBusy(hostIds, appointment.start - reachMs, appointment.end + reachMs);
  } catch (cause) {
    throw new ProblemError(
      "calendar_unreachable",
      "The calendar of a host cannot be reached, so nothing was changed. Try again.",
      { cause },
    );
  }
}

/** The same without one time: the entry of the appointment that moves must not stand in its own way. */
export function withoutTime(busy: CalendarBusy, own: Period): CalendarBusy {
  return new Map(
    [...busy].map(([hostId, periods]) => [
      hostId,
      periods.flatMap((period) =>
        [
          { start: period.start, end: Math.min(period.end, own.start) },
          { start: Math.max(period.start, own.end), end: period.end },
        ].filter(({ start, end }) => start < end),
      ),
    ]),
  );
}
