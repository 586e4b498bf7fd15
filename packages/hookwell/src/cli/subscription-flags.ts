import { parseDuration } from "../model/duration.ts";
import type { RateLimit } from "../model/subscription.ts";
import { readWhole } from "./arguments.ts";
import { type Terminal, UsageError } from "./command.ts";
import type { Options } from "./options.ts";
import { readText } from "./read-text.ts";

/** What `create` and `update` have in common. */
export const subscriptionOptions = {
  type: {
    type: "string",
    multiple: true,
    value: "<type>",
    help: "event types to send, or prefixes such as 'user.*'. None = every type",
  },
  field: {
    type: "string",
    multiple: true,
    value: "<name>",
    help: "fields of the data to send. None = the default set",
  },
  header: {
    type: "string",
    multiple: true,
    value: "<name: value>",
    help: "sent with every webhook; stored sealed and never shown",
  },
  "headers-file": {
    type: "string",
    value: "<file>",
    help: "the same as a JSON object, for values that must not be on a command line; - is standard input",
  },
  description: { type: "string", value: "<text>", help: "for people", mayBeEmpty: true },
  metadata: { type: "string", multiple: true, value: "<name=value>", help: "your own data" },
  "external-id": { type: "string", value: "<id>", help: "your own name for it", mayBeEmpty: true },
  "rate-limit": { type: "string", value: "<n/time>", help: "at most so many sends in a time: 10/1s, 600/1m" },
  "max-in-flight": { type: "string", value: "<n>", help: "at most so many sends at a time" },
  ordering: {
    type: "string",
    value: "<how>",
    help: "none, or subject: the deliveries of one subject go one at a time, by revision",
  },
} as const satisfies Options;

export interface EndpointFlags {
  readonly header?: string[];
  readonly "headers-file"?: string;
}

/** Custom headers from the two options; undefined when neither is given. @throws UsageError */
export async function readHeaders(
  terminal: Terminal,
  flags: EndpointFlags,
): Promise<Record<string, string> | undefined> {
  const file = flags["headers-file"];
  if (flags.header === undefined && file === undefined) return undefined;
  const headers = file === undefined ? {} : headersOf(await readText(terminal, file), file);
  for (const line of flags.header ?? []) {
    const [, name, value] = /^([^:]+):\s*(.*)$/s.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new UsageError("--header must be a name and a value, such as 'x-team: billing'.");
    headers[name] = value;
  }
  return headers;
}

function headersOf(text: string, file: string): Record<string, string> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The text may hold credentials, so nothing of it is quoted.
    throw new UsageError(`${file} is not JSON.`);
  }
  const entries =
    typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  if (entries.length === 0 || entries.some(([, header]) => typeof header !== "string"))
    throw new UsageError(`${file} must be a JSON object of texts, such as {"authorization": "Bearer …"}.`);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** `name=value` pairs. @throws UsageError */
export function readMetadata(pairs: readonly string[] | undefined): Record<string, string> | undefined {
  if (pairs === undefined) return undefined;
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError("--metadata must be a name and a value, such as team=billing.");
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** `10/1s`, `600/1m`. @throws UsageError */
export function readRateLimit(text: string | undefined): RateLimit | undefined {
  if (text === undefined) return undefined;
  const [, limit, time = ""] = /^(\d{1,7})\/(.+)$/.exec(text) ?? [];
  const ms = parseDuration(/^\d/.test(time) ? time : `1${time}`);
  if (limit === undefined || ms === undefined || ms < 1_000 || ms % 1_000 !== 0)
    throw new UsageError(
      "--rate-limit must be a number in a time of whole seconds, such as 10/1s or 600/1m.",
    );
  return { limit: Number(limit), perSeconds: ms / 1_000 };
}

export function readMaxInFlight(text: string | undefined): number | undefined {
  return readWhole(text, "--max-in-flight", 1);
}
