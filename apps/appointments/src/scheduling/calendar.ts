import { Temporal } from "temporal-polyfill";

/** A half-open span of time, `start <= t < end`, in epoch milliseconds. */
export interface Period {
  readonly start: number;
  readonly end: number;
}

export const minuteMs = 60_000;
export const dayMs = 86_400_000;

const dateShape = /^\d{4}-\d{2}-\d{2}$/;
// What Temporal also takes (basic format, no seconds, a zone in brackets, six-digit years) is not RFC 3339.
const timestampShape = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** Whether a text is a date of the calendar, `YYYY-MM-DD`. */
export function isDate(text: string): boolean {
  return dateShape.test(text) && parses(() => Temporal.PlainDate.from(text));
}

/** Whether a text is an RFC 3339 timestamp with its offset. */
export function isTimestamp(text: string): boolean {
  return timestampShape.test(text) && parses(() => Temporal.Instant.from(text));
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** An RFC 3339 timestamp in epoch milliseconds; a finer one is rounded as told. @throws RangeError */
export function instantOf(timestamp: string, rounding: "floor" | "ceil" = "floor"): number {
  return Temporal.Instant.from(timestamp).round({ smallestUnit: "millisecond", roundingMode: rounding })
    .epochMilliseconds;
}

/** Epoch milliseconds as the application writes and stores instants: RFC 3339, UTC, milliseconds. */
export function timestampOf(instant: number): string {
  return new Date(instant).toISOString();
}

/** The same back. Only for what {@link timestampOf} wrote: nothing is checked. */
export function storedInstant(timestamp: string): number {
  return Date.parse(timestamp);
}

/**
 * When a clock in this zone shows this time of this date. A time that the zone leaves out moves forward by the gap; of
 * one that it has twice, the first counts. `24:00` is the midnight that ends the date. @throws RangeError
 */
export function instantOfLocal(date: string, time: string, timeZone: string): number {
  if (time === "24:00") return endOfDate(date, timeZone);
  return Temporal.PlainDate.from(date)
    .toPlainDateTime(Temporal.PlainTime.from(time))
    .toZonedDateTime(timeZone, { disambiguation: "compatible" }).epochMilliseconds;
}

/** The first instant of a local date, which is not midnight where a zone skips it. */
export function startOfDate(date: string, timeZone: string): number {
  return Temporal.PlainDate.from(date).toZonedDateTime(timeZone).epochMilliseconds;
}

/** The first instant after a local date. */
export function endOfDate(date: string, timeZone: string): number {
  return startOfDate(addDays(date, 1), timeZone);
}

/** The date that a calendar in this zone shows. */
export function dateAt(instant: number, timeZone: string): string {
  return Temporal.Instant.fromEpochMilliseconds(instant)
    .toZonedDateTimeISO(timeZone)
    .toPlainDate()
    .toString();
}

export function addDays(date: string, days: number): string {
  return Temporal.PlainDate.from(date).add({ days }).toString();
}

/** Days from one date to the next: negative when `to` is earlier. */
export function daysBetween(from: string, to: string): number {
  return Temporal.PlainDate.from(from).until(Temporal.PlainDate.from(to), { largestUnit: "day" }).days;
}

/** A date and its day of the week: 0 = Sunday … 6 = Saturday. */
export interface Day {
  readonly date: string;
  readonly dayOfWeek: number;
}

/** Every date from the first to the last, both included. */
export function daysFrom(first: string, last: string): Day[] {
  const end = Temporal.PlainDate.from(last);
  const days: Day[] = [];
  for (
    let date = Temporal.PlainDate.from(first);
    Temporal.PlainDate.compare(date, end) <= 0;
    date = date.add({ days: 1 })
  )
    days.push({ date: date.toString(), dayOfWeek: date.dayOfWeek % 7 });
  return days;
}
