import { type Problem, ValidationError } from "../model/errors.ts";
import { subscriptionLimits } from "../model/subscription.ts";
import { defaultHeaderPrefix, headerPrefixOf, type WireOptions } from "./wire.ts";

const limits = {
  count: subscriptionLimits.headers,
  name: 128,
  value: 4096,
  total: subscriptionLimits.headerCharacters,
};
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Names that HTTP, the body or the signatures decide. */
const reserved = new Set([
  "host",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "user-agent",
  "accept-encoding",
  "proxy-connection",
  "proxy-authorization",
]);

/**
 * Checks the custom headers of an endpoint when they are saved: at most 32, 8 KiB together; a value is at most
 * 4096 characters of ASCII without control characters and without white space around it.
 * Names that Hookwell or HTTP set are refused.
 * @throws ValidationError with a problem for each header; values, which may be credentials, are never repeated.
 */
export function checkHeaders(
  headers: unknown,
  wire: WireOptions = {},
  field = "headers",
): asserts headers is Record<string, string> {
  const pointer = `/${field}`;
  if (typeof headers !== "object" || headers === null || Array.isArray(headers))
    throw new ValidationError([{ pointer, message: "must be an object of names and values" }]);
  const prefixes = ["webhook-", "content-", defaultHeaderPrefix, headerPrefixOf(wire)];
  const problems: Problem[] = [];
  const seen = new Set<string>();
  let total = 0;
  for (const [name, value] of Object.entries(headers)) {
    const message = nameProblem(name, prefixes, seen) ?? valueProblem(value);
    if (message) problems.push({ pointer: `${pointer}/${escapePointer(name)}`, message });
    seen.add(name.toLowerCase());
    // What is refused already would only add a second complaint about the same thing.
    if (message === undefined) total += name.length + (value as string).length;
  }
  if (seen.size > limits.count)
    problems.push({ pointer, message: `must have at most ${limits.count} entries` });
  if (total > limits.total)
    problems.push({ pointer, message: `must be at most ${limits.total} characters together` });
  if (problems.length > 0) throw new ValidationError(problems);
}

function nameProblem(
  name: string,
  prefixes: readonly string[],
  seen: ReadonlySet<string>,
): string | undefined {
  const lower = name.toLowerCase();
  if (name === "") return "must not have an empty name";
  if (name.length > limits.name) return `must have a name of at most ${limits.name} characters`;
  if (!token.test(name)) return "must have a name of letters, digits and !#$%&'*+.^_`|~- only";
  if (seen.has(lower)) return "is there twice; names differ by more than upper and lower case";
  if (reserved.has(lower)) return "is set by HTTP or Hookwell and cannot be changed";
  const prefix = prefixes.find((start) => lower.startsWith(start));
  return prefix && `is set by Hookwell, as every name that begins with ${prefix}`;
}

function valueProblem(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be text";
  if (value.length > limits.value) return `must be at most ${limits.value} characters`;
  if (/[\r\n\0]/.test(value)) return "must not contain line breaks or NUL";
  if (!/^[\t\x20-\x7e]*$/.test(value)) return "must be ASCII; encode other text, for example as base64";
  if (/^[\t ]|[\t ]$/.test(value)) return "must not have white space around it";
  return undefined;
}

function escapePointer(name: string): string {
  return name.slice(0, limits.name).replaceAll("~", "~0").replaceAll("/", "~1");
}
