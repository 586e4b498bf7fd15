import {
  addDays,
  dateAt,
  datesFrom,
  dayOfWeek,
  endOfDate,
  instantOfLocal,
  type Period,
  startOfDate,
} from "./calendar.ts";

/** Weekly hours of a host, as local clock times `HH:MM`; an end may be `24:00`. */
export interface AvailabilityRule {
  /** null = for every event type of the host that has no hours of its own. */
  readonly eventTypeId: string | null;
  /** 0 = Sunday. */
  readonly dayOfWeek: number;
  readonly startTime: string;
  readonly endTime: string;
}

/** What a host does on one date instead of its weekly hours. Several of one date are several periods. */
export interface AvailabilityOverride {
  readonly date: string;
  readonly isAvailable: boolean;
  /** Absent = from the start of the date, to its end. */
  readonly startTime: string | null;
  readonly endTime: string | null;
}

export interface HostHours {
  /** IANA zone in which the clock times are meant. */
  readonly timeZone: string;
  readonly rules: readonly AvailabilityRule[];
  readonly overrides: readonly AvailabilityOverride[];
}

/** Hours that a host gave for this event type count instead of its general ones. */
export function rulesFor(
  rules: readonly AvailabilityRule[],
  eventTypeId: string,
): readonly AvailabilityRule[] {
  const own = rules.filter((rule) => rule.eventTypeId === eventTypeId);
  return own.length > 0 ? own : rules.filter((rule) => rule.eventTypeId === null);
}

/**
 * When a host works, date by date in its own zone, for every date that `range` touches. Periods of one date that
 * overlap or touch are one; those of different dates stay apart, because each starts a grid of slots anew. Dates
 * before and after the range are included where an appointment that begins in it may reach into them.
 */
export function workingPeriods(host: HostHours, eventTypeId: string, range: Period): Period[] {
  const rules = rulesFor(host.rules, eventTypeId);
  const first = addDays(dateAt(range.start, host.timeZone), -1);
  const last = addDays(dateAt(range.end, host.timeZone), 1);
  return datesFrom(first, last).flatMap((date) => merge(periodsOf(host, rules, date)));
}

function periodsOf(host: HostHours, rules: readonly AvailabilityRule[], date: string): Period[] {
  // A zone that crossed the date line left a date out: its hours must not move to the next one.
  if (startOfDate(date, host.timeZone) === endOfDate(date, host.timeZone)) return [];
  const overrides = host.overrides.filter((override) => override.date === date);
  const times =
    overrides.length > 0
      ? overrides
          .filter((override) => override.isAvailable)
          .map((override) => [override.startTime ?? "00:00", override.endTime ?? "24:00"] as const)
      : rules
          .filter((rule) => rule.dayOfWeek === dayOfWeek(date))
          .map((rule) => [rule.startTime, rule.endTime] as const);
  return times
    .map(([from, to]) => ({
      start: instantOfLocal(date, from, host.timeZone),
      end: instantOfLocal(date, to, host.timeZone),
    }))
    .filter((period) => period.start < period.end);
}

/** The same time as the fewest periods, in order: those that overlap or touch become one. */
export function merge(periods: readonly Period[]): Period[] {
  const merged: Period[] = [];
  for (const period of [...periods].sort((left, right) => left.start - right.start)) {
    const last = merged.at(-1);
    if (last === undefined || period.start > last.end) merged.push(period);
    else if (period.end > last.end) merged[merged.length - 1] = { start: last.start, end: period.end };
  }
  return merged;
}
