import { parseDuration } from "./duration.ts";
import { ConfigurationError } from "./errors.ts";
import type { LogLevel } from "./observe.ts";

/** Programs that read settings. */
export type SettingReader =
  | "serve"
  | "worker"
  | "migrate"
  | "listen"
  | "npm start"
  /** Every command that works on the database: `events`, `retry`, `doctor`, … */
  | "others";

/** One environment variable, as docs/reference/configuration.md shows it. */
export interface Setting {
  readonly name: string;
  readonly meaning: string;
  /** What holds when it is absent or empty, in words or as it would be written. */
  readonly default: string;
  /** Form of the value. */
  readonly unit: string;
  readonly readBy: readonly SettingReader[];
  /** The value is never printed. */
  readonly secret?: true;
  /** White space around the value is not cut off. */
  readonly exact?: true;
}

interface Definition<T> extends Setting {
  /** The typed value, or a sentence that says what it must be. Undefined text = absent. */
  readonly parse: (text: string | undefined) => { readonly value: T } | { readonly must: string };
}

const define = <T>(definition: Definition<T>): Definition<T> => definition;
const everyProgram = ["serve", "worker", "migrate", "npm start", "others"] as const;

function port(text: string | undefined, absent: number): { value: number } | { must: string } {
  if (text === undefined) return { value: absent };
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return value <= 65_535 ? { value } : { must: "be a port number from 0 to 65535" };
}

/** Who may read /metrics. */
export type MetricsAccess = "key" | "open" | "off";

function isLogLevel(text: string): text is LogLevel {
  return ["debug", "info", "warn", "error"].includes(text);
}

function databaseUrl(text: string | undefined): { value: string | undefined } | { must: string } {
  if (text === undefined || /^postgres(ql)?:\/\/./.test(text)) return { value: text };
  return { must: "begin with postgres:// (leave it unset for SQLite in HOOKWELL_DATA_DIR)" };
}

const table = {
  port: define({
    name: "PORT",
    meaning: "Port that the API answers on. 0 takes a free one and prints it.",
    default: "8787",
    unit: "port number",
    readBy: ["serve", "npm start"],
    parse: (text) => port(text, 8787),
  }),
  host: define({
    name: "HOST",
    meaning: "Address to listen on.",
    default: "every address of the machine",
    unit: "address or host name",
    readBy: ["serve", "worker", "npm start"],
    parse: (text) => ({ value: text }),
  }),
  healthPort: define({
    name: "HOOKWELL_HEALTH_PORT",
    meaning: "Port of the worker's own health routes, so that it can run beside a server.",
    default: "8788",
    unit: "port number",
    readBy: ["worker"],
    parse: (text) => port(text, 8788),
  }),
  dataDir: define({
    name: "HOOKWELL_DATA_DIR",
    meaning: "Directory of the SQLite database and its encryption key. Made when it is missing.",
    default: "./data",
    unit: "path",
    readBy: everyProgram,
    parse: (text) => ({ value: text ?? "./data" }),
  }),
  hookwellDatabaseUrl: define({
    name: "HOOKWELL_DATABASE_URL",
    meaning: "PostgreSQL database of Hookwell. Holds over DATABASE_URL.",
    default: "DATABASE_URL",
    unit: "postgres:// address",
    readBy: everyProgram,
    secret: true,
    parse: databaseUrl,
  }),
  plainDatabaseUrl: define({
    name: "DATABASE_URL",
    meaning: "PostgreSQL database of the application, which Hookwell shares.",
    default: "SQLite in HOOKWELL_DATA_DIR",
    unit: "postgres:// address",
    readBy: everyProgram,
    secret: true,
    parse: databaseUrl,
  }),
  worker: define({
    name: "HOOKWELL_WORKER",
    meaning:
      "`off` runs neither dispatcher nor worker: events are captured and wait for `hookwell worker` beside it.",
    default: "on",
    unit: "on or off",
    readBy: ["serve", "npm start"],
    parse: (text): { value: boolean } | { must: string } => {
      if (text === undefined || text === "on") return { value: true };
      return text === "off" ? { value: false } : { must: "be on or off" };
    },
  }),
  apiKey: define({
    name: "HOOKWELL_API_KEY",
    meaning: "First admin key of the API. Without it the first start makes one and prints it once.",
    default: "made and printed once",
    unit: "16 to 256 visible ASCII characters",
    readBy: ["serve", "npm start"],
    secret: true,
    exact: true,
    parse: (text): { value: string | undefined } | { must: string } =>
      text === undefined || /^[\x21-\x7e]{16,256}$/.test(text)
        ? { value: text }
        : { must: "be 16 to 256 visible ASCII characters without spaces" },
  }),
  retrySchedule: define({
    name: "HOOKWELL_RETRY_SCHEDULE",
    meaning:
      "Delay after each failed attempt, each spread by 20 %, for event types without a policy of their own. One attempt more than delays.",
    default: "5s,5m,30m,2h,5h,10h,10h",
    unit: "durations (ms, s, m, h, d), joined by commas",
    readBy: ["serve", "worker", "npm start"],
    // Read by parseRetrySchedule (deliver), which is above this folder.
    parse: (text) => ({ value: text }),
  }),
  allowNetworks: define({
    name: "HOOKWELL_ALLOW_NETWORKS",
    meaning: "Networks that webhooks may go to although they are not public.",
    default: "none",
    unit: "CIDR networks, joined by commas",
    readBy: ["serve", "worker", "npm start", "others"],
    // Read by the address guard (send).
    parse: (text) => ({ value: text }),
  }),
  encryptionKeys: define({
    name: "HOOKWELL_ENCRYPTION_KEYS",
    meaning:
      "Keys that seal signing secrets and custom headers, newest first, each as `id:key`. Make one with `hookwell keys generate`.",
    default:
      "SQLite: made beside the database; PostgreSQL: required (`npm start` makes one in HOOKWELL_DATA_DIR)",
    unit: "id:base64 of 32 bytes, joined by commas",
    readBy: ["serve", "worker", "npm start", "others"],
    secret: true,
    // Read, and refused with the entry that is wrong, by the key ring of the stores.
    parse: (text) => ({ value: text }),
  }),
  log: define({
    name: "HOOKWELL_LOG",
    meaning:
      "`json` writes a line of JSON for each observable event and request, `text` sentences for what an operator should read.",
    default: "text",
    unit: "text or json",
    readBy: ["serve", "worker", "npm start"],
    parse: (text = "text"): { value: "text" | "json" } | { must: string } =>
      text === "text" || text === "json" ? { value: text } : { must: "be text or json" },
  }),
  logLevel: define({
    name: "HOOKWELL_LOG_LEVEL",
    meaning: "What matters less is not logged.",
    default: "info",
    unit: "debug, info, warn or error",
    readBy: ["serve", "worker", "npm start"],
    parse: (text = "info"): { value: LogLevel } | { must: string } =>
      isLogLevel(text) ? { value: text } : { must: "be debug, info, warn or error" },
  }),
  metrics: define({
    name: "HOOKWELL_METRICS",
    meaning:
      "Who may read /metrics: `key` = whoever sends a key of all projects with the scope read, `open` = everybody who reaches the port, `off` = nobody.",
    default: "key",
    unit: "key, open or off",
    readBy: ["serve", "worker", "npm start"],
    parse: (text = "key"): { value: MetricsAccess } | { must: string } =>
      text === "key" || text === "open" || text === "off" ? { value: text } : { must: "be key, open or off" },
  }),
  metricsSubscriptions: define({
    name: "HOOKWELL_METRICS_SUBSCRIPTIONS",
    meaning:
      "How many subscriptions have a label of their own in the metrics: the first that are met; the rest is `other`.",
    default: "0",
    unit: "0 to 10000",
    readBy: ["serve", "worker", "npm start"],
    parse: (text = "0"): { value: number } | { must: string } =>
      /^\d{1,5}$/.test(text) && Number(text) <= 10_000
        ? { value: Number(text) }
        : { must: "be a number from 0 to 10000" },
  }),
  maxLagMs: define({
    name: "HOOKWELL_MAX_LAG",
    meaning: "Age of the oldest due delivery or undispatched event from which /healthz/delivery answers 503.",
    default: "5m",
    unit: "duration (ms, s, m, h, d)",
    readBy: ["serve", "worker", "npm start", "others"],
    parse: (text): { value: number } | { must: string } => {
      const value = parseDuration(text ?? "5m");
      return value === undefined || value === 0 ? { must: "be a duration such as 5m" } : { value };
    },
  }),
} as const;

type Table = typeof table;
type ValueOf<D> = D extends Definition<infer T> ? T : never;

/** The environment as typed values; times are milliseconds. */
export type Settings = { readonly [Key in keyof Table]: ValueOf<Table[Key]> } & {
  /** HOOKWELL_DATABASE_URL, else DATABASE_URL; undefined = SQLite. */
  readonly databaseUrl: string | undefined;
};

/** Every environment variable that Hookwell reads, in the order of the reference page. */
export const settings: readonly Setting[] = Object.values(table);

/**
 * Reads the environment. An empty variable counts as absent.
 * @throws ConfigurationError that names every variable whose value cannot be used; secret values are not quoted.
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const faults: string[] = [];
  const read = <T>(definition: Definition<T>): T => {
    const given = environment[definition.name];
    const text = (definition.exact ? given : given?.trim()) || undefined;
    const result = definition.parse(text);
    if ("value" in result) return result.value;
    const shown = definition.secret ? "its value" : JSON.stringify(text);
    faults.push(`${definition.name} must ${result.must}; ${shown} is not.`);
    return undefined as T;
  };
  const values = {} as Record<string, unknown>;
  for (const [key, definition] of Object.entries(table))
    values[key] = read(definition as Definition<unknown>);
  if (faults.length > 0) throw new ConfigurationError(faults.join("\n"), "invalid_setting");
  return {
    ...values,
    databaseUrl: values.hookwellDatabaseUrl ?? values.plainDatabaseUrl,
  } as unknown as Settings;
}
