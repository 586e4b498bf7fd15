import { ValidationError } from "./errors.ts";

/** JSON as Hookwell reads it: integers beyond 2^53 are bigint, so that no digit is lost. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

const integerPattern = /^-?\d+$/;
/** Where a number may stand, so that the hex digits of an id in a string are none. */
const demandingNumber = /(?:^|[[,:])\s*-?(?:\d{16}|\d+(?:\.\d+)?[eE])/;

type SourceReviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
const parseWithSource = JSON.parse as (text: string, reviver?: SourceReviver) => unknown;
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

/** Parses JSON; integers that a double cannot hold come back as bigint. Throws SyntaxError, and
 * {@link ValidationError} for a number too large for a double that is no integer. */
export function parseJson(text: string): JsonValue {
  // The reviver costs several times a plain parse, and only a number with many digits or an exponent can need it.
  if (!demandingNumber.test(text)) return JSON.parse(text) as JsonValue;
  return parseWithSource(text, (_key, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    if (context.source !== undefined && integerPattern.test(context.source)) return BigInt(context.source);
    if (!Number.isFinite(value))
      throw new ValidationError([
        { pointer: "", message: `number ${context.source?.slice(0, 40)} is too large` },
      ]);
    return value;
  }) as JsonValue;
}

/**
 * Writes JSON as JSON.stringify does, but bigint keeps its digits, and what JSON cannot say (NaN, Infinity,
 * a function or undefined at the top) is refused with a {@link ValidationError} instead of becoming null.
 * NUL and lone surrogates are written as escapes, so the text is always valid UTF-8 without NUL.
 */
export function stringifyJson(value: unknown): string {
  return plainJson(value) ?? checkedJson(value);
}

/** In a quarter of the time; undefined where the value may hold what JSON.stringify refuses or makes null. */
function plainJson(value: unknown): string | undefined {
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text?.includes("null") ? undefined : text;
  } catch {
    return undefined;
  }
}

function checkedJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, (key, item: unknown) => {
      if (typeof item === "bigint") return rawJson(item.toString());
      if (typeof item === "number" && !Number.isFinite(item))
        throw new ValidationError([{ pointer: `/${key}`, message: `${item} cannot be written as JSON` }]);
      return item;
    });
  } catch (error) {
    if (error instanceof ValidationError) throw error;
    throw new ValidationError([
      {
        pointer: "",
        message: `cannot be written as JSON: ${error instanceof Error ? error.message : error}`,
      },
    ]);
  }
  if (text === undefined)
    throw new ValidationError([{ pointer: "", message: `${typeof value} cannot be written as JSON` }]);
  return text;
}

/** The same JSON with object keys in code unit order at every depth: equal for equal content. */
export function canonicalJson(value: unknown): string {
  return stringifyJson(sortKeys(parseJson(stringifyJson(value))));
}

function sortKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  // A null prototype and defineProperty-free assignment keep a key named __proto__ an ordinary key.
  const sorted = Object.create(null) as Record<string, JsonValue>;
  for (const key of Object.keys(value).sort())
    sorted[key] = sortKeys((value as Record<string, JsonValue>)[key]!);
  return sorted;
}
