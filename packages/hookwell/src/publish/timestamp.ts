import { InvalidIdentifierError } from "../model/errors.ts";

const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** A Date as it is, or RFC 3339 text with `Z` or an offset, to the millisecond. @throws InvalidIdentifierError */
export function parseTimestamp(value: Date | string, field: string): Date {
  const date = value instanceof Date ? new Date(value) : fromText(value);
  if (date === undefined || Number.isNaN(date.getTime()))
    throw new InvalidIdentifierError(
      field,
      'must be an RFC 3339 time with Z or an offset, such as "2026-01-31T09:30:00Z"',
    );
  return date;
}

function fromText(text: unknown): Date | undefined {
  const parts = typeof text === "string" ? rfc3339.exec(text) : null;
  if (!parts) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  // Date would move 30 February into March.
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  return new Date(parts[0].toUpperCase());
}
