import { z } from "zod";
import { invalid } from "../http/problem.ts";
import { check } from "../http/request-body.ts";
import { text, timeZone } from "../http/text.ts";
import {
  addDays,
  dateAt,
  daysBetween,
  endOfDate,
  isDate,
  type Period,
  startOfDate,
} from "../scheduling/calendar.ts";

const maxDays = 366;
const defaultDays = 14;

const date = text({ max: 10 }).refine(isDate, "must be a date, YYYY-MM-DD").optional();
const schema = z.object({ from: date, to: date, tz: timeZone().optional() });

/**
 * Reads `from`, `to` (local dates of `tz`, inclusive) as the range of starts that is asked for. Left out: today, two
 * weeks, and the given zone. @throws ProblemError 400
 */
export function readSlotsQuery(
  query: Readonly<Record<string, string>>,
  now: Date,
  ownTimeZone: string,
): Period {
  const { from, to, tz = ownTimeZone } = check(schema, query);
  const first = from ?? dateAt(now.getTime(), tz);
  const last = to ?? addDays(first, defaultDays - 1);
  const days = daysBetween(first, last) + 1;
  if (days < 1) throw invalid([{ pointer: "/to", message: "must not be before from" }]);
  if (days > maxDays)
    throw invalid([{ pointer: "/to", message: `must be at most ${maxDays} days after from` }]);
  return { start: startOfDate(first, tz), end: endOfDate(last, tz) };
}
