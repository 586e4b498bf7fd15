import type { FieldProblem } from "../http/problem.ts";

/** How long the appointments of an event type may be, in minutes. The last three are all null when it is fixed. */
export interface DurationPolicy {
  readonly durationMinutes: number;
  readonly durationMinMinutes: number | null;
  readonly durationMaxMinutes: number | null;
  readonly durationIncrementMinutes: number | null;
}

export function allowsDuration(policy: DurationPolicy, minutes: number): boolean {
  const { durationMinMinutes: min, durationMaxMinutes: max, durationIncrementMinutes: increment } = policy;
  if (min === null || max === null || increment === null) return minutes === policy.durationMinutes;
  return minutes >= min && minutes <= max && (minutes - min) % increment === 0;
}

/** The durations that a policy allows, in words for a refusal. */
export function describeDurations(policy: DurationPolicy): string {
  const { durationMinMinutes: min, durationMaxMinutes: max, durationIncrementMinutes: increment } = policy;
  if (min === null || max === null || increment === null) return `${policy.durationMinutes}`;
  return `${min} to ${max} in steps of ${increment}`;
}

/** What is wrong with a policy, by the fields of an event type. */
export function durationProblems(policy: DurationPolicy): FieldProblem[] {
  const range = {
    duration_min_minutes: policy.durationMinMinutes,
    duration_max_minutes: policy.durationMaxMinutes,
    duration_increment_minutes: policy.durationIncrementMinutes,
  };
  const missing = Object.entries(range).filter(([, value]) => value === null);
  if (missing.length === 3) return [];
  if (missing.length > 0)
    return missing.map(([name]) => ({
      pointer: `/${name}`,
      message:
        "must be given too: a duration has a minimum, a maximum and an increment, or none of the three",
    }));
  if ((range.duration_min_minutes ?? 0) > (range.duration_max_minutes ?? 0))
    return [{ pointer: "/duration_max_minutes", message: "must not be below the minimum" }];
  if (!allowsDuration(policy, policy.durationMinutes))
    return [{ pointer: "/duration_minutes", message: `must be ${describeDurations(policy)} minutes` }];
  return [];
}
