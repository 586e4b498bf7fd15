import { z } from "zod";
import type { FieldProblem } from "../http/problem.ts";
import { text } from "../http/text.ts";
import { isDate } from "../scheduling/calendar.ts";

const startTime = text({ max: 5 }).regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, "must be a time of day, HH:MM");
const endTime = text({ max: 5 }).regex(
  /^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/,
  "must be a time of day, HH:MM, or 24:00",
);

const rule = z.strictObject({
  /** 0 = Sunday. */
  day_of_week: z.int().min(0, "must be 0 (Sunday) to 6").max(6, "must be 0 (Sunday) to 6"),
  start_time: startTime,
  end_time: endTime,
  event_type_id: text({ max: 128 }).nullable().optional(),
});

const override = z.strictObject({
  date: text({ max: 10 }).refine(isDate, "must be a date, YYYY-MM-DD"),
  is_available: z.boolean(),
  start_time: startTime.nullable().optional(),
  end_time: endTime.nullable().optional(),
});

/** The whole availability of a user: what is left out is removed. */
export const availabilitySchema = z.strictObject({
  rules: z.array(rule).max(500, "must have at most 500 rules").default([]),
  overrides: z.array(override).max(1000, "must have at most 1000 overrides").default([]),
});
export type AvailabilityInput = z.output<typeof availabilitySchema>;

/** What the fields say together: ends after starts, and days off that are nothing else. */
export function availabilityProblems({ rules, overrides }: AvailabilityInput): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const late = "must be later than the start_time";
  for (const [index, { start_time: start, end_time: end }] of rules.entries())
    if (end <= start) problems.push({ pointer: `/rules/${index}/end_time`, message: late });
  const kinds = new Map<string, boolean>();
  for (const [index, given] of overrides.entries()) {
    const at = `/overrides/${index}`;
    const start = given.start_time ?? undefined;
    const end = given.end_time ?? undefined;
    if (!given.is_available && (start !== undefined || end !== undefined))
      problems.push({ pointer: at, message: "must have no times: the whole date is taken off" });
    else if ((start === undefined) !== (end === undefined))
      problems.push({ pointer: at, message: "must have both times, or neither for the whole date" });
    else if (start !== undefined && end !== undefined && end <= start)
      problems.push({ pointer: `${at}/end_time`, message: late });
    if ((kinds.get(given.date) ?? given.is_available) !== given.is_available)
      problems.push({ pointer: at, message: `contradicts another override of ${given.date}` });
    kinds.set(given.date, given.is_available);
  }
  return problems;
}
