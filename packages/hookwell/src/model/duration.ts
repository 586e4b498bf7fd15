const units: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Reads a duration such as `500ms`, `5s`, `30m`, `2h` or `1.5d` as milliseconds. A number without a unit is
 * seconds. Undefined for anything else, and for more than 366 days.
 */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)\s*(ms|s|m|min|h|d)?$/.exec(text.trim());
  if (!match) return undefined;
  const ms = Math.round(Number(match[1]) * units[match[2] ?? "s"]!);
  return ms <= 366 * units.d! ? ms : undefined;
}
