import { addDays, type Day, dateAt, daysFrom, instantOfLocal, type Period } from "./calendar.ts";

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

/** What was worked out for one host and is the same for others of its zone: reading a calendar takes its time. */
export type CalendarMemo = Map<string, Period | undefined>;

/**
 * When a host works, date by date in its own zone, for every date that `range` touches. Periods of one date that
 * overlap or touch are one; those of different dates stay apart, because each starts a grid of slots anew. Dates
 * before and after the range are included where an appointment that begins in it may reach into them.
 */
export function workingPeriods(
  host: HostHours,
  eventTypeId: string,
  range: Period,
  memo: CalendarMemo = new Map(),
): Period[] {
  const rules = rulesFor(host.rules, eventTypeId);
  const first = addDays(dateAt(range.start, host.timeZone), -1);
  const last = addDays(dateAt(range.end, host.timeZone), 1);
  return daysFrom(first, last).flatMap((day) =>
    merge(
      timesOf(host, rules, day).flatMap(
        ([from, to]) => periodOf(memo, host.timeZone, day.date, from, to) ?? [],
      ),
    ),
  );
}

function timesOf(
  host: HostHours,
  rules: readonly AvailabilityRule[],
  day: Day,
): (readonly [from: string, to: string])[] {
  const overrides = host.overrides.filter((override) => override.date === day.date);
  if (overrides.length > 0)
    return overrides
      .filter((override) => override.isAvailable)
      .map((override) => [override.startTime ?? "00:00", override.endTime ?? "24:00"]);
  return rules
    .filter((rule) => rule.dayOfWeek === day.dayOfWeek)
    .map((rule) => [rule.startTime, rule.endTime]);
}

function periodOf(
  memo: CalendarMemo,
  timeZone: string,
  date: string,
  from: string,
  to: string,
): Period | undefined {
  const key = `${timeZone} ${date} ${from} ${to}`;
  if (memo.has(key)) return memo.get(key);
  const start = instantOfLocal(date, from, timeZone);
  const end = instantOfLocal(date, to, timeZone);
  // One that moved to the next date is of a date that the zone left out, crossing the date line.
  const period = start < end && dateAt(start, timeZone) === date ? { start, end } : undefined;
  memo.set(key, period);
  return period;
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

/** Whether an instant is in one of these periods, which are merged: in order, and apart. */
export function isIn(periods: readonly Period[], instant: number): boolean {
  let low = 0;
  let high = periods.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (periods[middle]!.start <= instant) low = middle + 1;
    else high = middle;
  }
  return instant < (periods[low - 1]?.end ?? -Infinity);
}
