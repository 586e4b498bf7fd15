import { parseDuration } from "../model/duration.ts";
import { parseTimestamp } from "../publish/timestamp.ts";
import { UsageError } from "./command.ts";

/** A time from an option: how long ago (`2h`), or RFC 3339. @throws UsageError */
export function readTime(text: string | undefined, option: string, now: Date): Date | undefined {
  if (text === undefined) return undefined;
  const ago = /[a-z]$/.test(text) ? parseDuration(text) : undefined;
  if (ago !== undefined) return new Date(now.getTime() - ago);
  try {
    return parseTimestamp(text, option);
  } catch {
    throw new UsageError(
      `--${option} must be how long ago (90s, 2h, 7d) or a time such as 2026-01-31T12:00:00Z, not ${JSON.stringify(text)}.`,
    );
  }
}

/** A time to come: how long from now (`90d`), or RFC 3339. @throws UsageError */
export function readFutureTime(text: string | undefined, option: string, now: Date): Date | undefined {
  if (text === undefined) return undefined;
  const time = readTime(text, option, now)!;
  const given = /[a-z]$/.test(text) ? new Date(2 * now.getTime() - time.getTime()) : time;
  if (given <= now) throw new UsageError(`--${option} must be in the future.`);
  return given;
}

/** `--since` and `--until` as a range. @throws UsageError */
export function readRange(
  flags: { readonly since?: string; readonly until?: string },
  now: Date,
): { readonly since?: Date; readonly until?: Date } {
  const since = readTime(flags.since, "since", now);
  const until = readTime(flags.until, "until", now);
  if (since && until && since >= until) throw new UsageError("--since must be before --until.");
  return { ...(since && { since }), ...(until && { until }) };
}

/** A time as tables show it: UTC, to the second, in a form that `--since` takes. */
export function shortTime(time: Date | undefined): string | undefined {
  return time?.toISOString().replace(/\.\d+Z$/, "Z");
}

/** A length of time for people: the largest unit, to one decimal where that says something. */
export function shortDuration(ms: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000],
  ] as const;
  const [unit, size] = units.find(([, size]) => ms >= size) ?? ["ms", 1];
  return `${Math.round((ms / size) * 10) / 10} ${unit}`;
}
