import { InvalidIdentifierError } from "./errors.ts";

const eventIdPattern = /^[A-Za-z0-9_:-]{1,128}$/;
const typePattern = /^[a-z0-9_]+(\.[a-z0-9_]+)*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const controlPattern = /[\u0000-\u001f\u007f-\u009f]/;

/** 1 to 128 of `[A-Za-z0-9_:-]`: no dot, because Standard Webhooks joins id, timestamp and body with dots. */
export function checkEventId(id: unknown, field = "id"): asserts id is string {
  if (typeof id !== "string" || !eventIdPattern.test(id))
    throw new InvalidIdentifierError(field, "must be 1 to 128 characters of A-Z a-z 0-9 _ : -");
}

/** True for a well-formed event type: lower-case words joined by dots, at most 128 characters. */
export function isEventType(type: unknown): type is string {
  return typeof type === "string" && type.length <= 128 && typePattern.test(type);
}

export function checkEventType(type: unknown, field = "type"): asserts type is string {
  if (!isEventType(type))
    throw new InvalidIdentifierError(
      field,
      "must be lower-case words of a-z 0-9 _ joined by dots, at most 128 characters",
    );
}

/** A filter entry: a type, or a type prefix followed by `.*` (any depth). A bare `*` is refused. */
export function checkTypeFilter(entry: unknown, field: string): asserts entry is string {
  const base = typeof entry === "string" && entry.endsWith(".*") ? entry.slice(0, -2) : entry;
  if (!isEventType(base))
    throw new InvalidIdentifierError(
      field,
      'must be an event type such as "user.created", or "user.*"; leave the list empty for every type',
    );
}

/** Subject, tenant, owner, project: 1 to 255 characters, no control characters, well-formed Unicode. */
export function checkName(value: unknown, field: string): asserts value is string {
  if (typeof value !== "string" || value.length === 0 || value.length > 255)
    throw new InvalidIdentifierError(field, "must be 1 to 255 characters");
  if (controlPattern.test(value))
    throw new InvalidIdentifierError(field, "must not contain control characters");
  if (!value.isWellFormed())
    throw new InvalidIdentifierError(field, "must be well-formed Unicode (it has a lone surrogate)");
}

/** A revision: a whole number from 0 to 2^53 - 1. */
export function checkRevision(value: unknown, field = "revision"): asserts value is number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0)
    throw new InvalidIdentifierError(field, "must be a whole number from 0 to 9007199254740991");
}
