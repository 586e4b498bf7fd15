import {
  createHookwell,
  type DrainResult,
  type HookwellCore,
  type HookwellOptions,
  MemoryOutbox,
  type OutboxStore,
  parseJson,
} from "hookwell";
import pg from "pg";
import { freshPostgres, freshSqlite, migrated } from "../../../hookwell/test/support/databases.ts";
import { firstAdminKey, type HandlerOptions, hookwellHandler, listen } from "../../src/index.ts";
import { Described } from "./described.ts";

export type StoreKind = "memory" | "sqlite" | "postgres";

/** A clock that stands until it is moved. */
export class TestClock {
  #now = Date.parse("2026-03-01T12:00:00.000Z");
  readonly read = (): Date => new Date(this.#now);
  advance(ms: number): void {
    this.#now += ms;
  }
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body. Tests read it like a page of the documentation, so it is loose here. */
  readonly json: Json;
}

// biome-ignore lint/suspicious/noExplicitAny: a test names the fields it expects and fails where one is missing
export type Json = any;

export interface CallOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is. */
  readonly raw?: NonNullable<RequestInit["body"]>;
  /** Null = no key; absent = the admin key. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

type Options = Partial<
  Pick<HookwellOptions<undefined, never, never>, "project" | "retry"> & {
    readonly events: unknown;
    readonly tenants: "required" | "optional";
  }
> &
  HandlerOptions;

/** A real server on a loopback port over one store, on virtual time. */
export class World implements AsyncDisposable {
  readonly kind: StoreKind;
  readonly hooks: HookwellCore;
  readonly clock: TestClock;
  readonly url: string;
  readonly adminKey: string;
  /** Everything that was logged. */
  readonly logs: string[];
  /** Every answer that was given, as text with its headers. */
  readonly answers: string[] = [];
  described: Described | undefined;
  basePath = "";
  readonly #close: () => Promise<void>;

  constructor(
    parts: Pick<World, "kind" | "hooks" | "clock" | "url" | "adminKey" | "logs"> & {
      close: () => Promise<void>;
    },
  ) {
    this.kind = parts.kind;
    this.hooks = parts.hooks;
    this.clock = parts.clock;
    this.url = parts.url;
    this.adminKey = parts.adminKey;
    this.logs = parts.logs;
    this.#close = parts.close;
  }

  /** One request over the wire; the answer is checked against the server's own description. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answered> {
    const headers = new Headers(options.headers);
    const key = options.key === undefined ? this.adminKey : options.key;
    if (key !== null && !headers.has("authorization")) headers.set("authorization", `Bearer ${key}`);
    let body = options.raw;
    if (options.body !== undefined) {
      body = JSON.stringify(options.body);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
    }
    const response = await fetch(`${this.url}${path}`, { method, headers, body });
    const text = await response.text();
    this.answers.push(`${[...response.headers].map((pair) => pair.join(": ")).join("\n")}\n${text}`);
    const contentType = response.headers.get("content-type") ?? "";
    const { pathname } = new URL(`http://x${path}`);
    if (pathname.startsWith(this.basePath))
      this.described?.check(method, pathname.slice(this.basePath.length), response.status, contentType, text);
    const json = contentType.includes("json") && text !== "" ? parseJson(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  }

  /** `call` for the happy path: fails with the answer when the status is another. */
  async ok(status: number, method: string, path: string, options: CallOptions = {}): Promise<Json> {
    const answer = await this.call(method, path, options);
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  /** A key with these scopes. */
  async key(scopes: readonly string[], projectId?: string, more: Json = {}): Promise<string> {
    const body = { name: scopes.join(" "), scopes, ...(projectId && { project_id: projectId }), ...more };
    return (await this.ok(201, "POST", "/v1/keys", { body })).key;
  }

  /** Dispatches and sends what is due now. */
  work(): Promise<DrainResult> {
    return this.hooks.drain({ deadlineMs: 30_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

export async function startWorld(kind: StoreKind, options: Options = {}): Promise<World> {
  const { project, retry, events, tenants, ...handler } = options;
  const clock = new TestClock();
  const logs: string[] = [];
  const log = (line: string): void => void logs.push(line);
  const logger = { info: log, warn: log, error: log };
  const { store, drop } = await openStore(kind, clock);
  const hooks = createHookwell({
    store,
    clock: clock.read,
    logger,
    network: { allow: ["127.0.0.0/8"], http: true },
    ...(project && { project }),
    ...(retry && { retry }),
    ...(tenants && { tenants }),
    ...(events ? { events: events as never } : {}),
  }) as unknown as HookwellCore;
  await hooks.ready();
  const { key } = await firstAdminKey(hooks, undefined);
  const server = await listen({ fetch: hookwellHandler(hooks, handler), port: 0, host: "127.0.0.1" });
  const world = new World({
    kind,
    hooks,
    clock,
    logs,
    url: server.url,
    adminKey: key!,
    close: async () => {
      await server.close(0);
      await hooks.close();
      await drop();
    },
  });
  world.basePath = handler.basePath ?? "";
  const document = await world.ok(200, "GET", `${world.basePath}/openapi.json`, { key: null });
  world.described = describedBy(document);
  return world;
}

async function openStore(
  kind: StoreKind,
  clock: TestClock,
): Promise<{ store: OutboxStore; drop: () => Promise<void> }> {
  if (kind === "memory") return { store: new MemoryOutbox({ now: clock.read }), drop: async () => {} };
  if (kind === "sqlite") {
    const { sqliteStore } = await import("hookwell/sqlite");
    const { path, drop } = freshSqlite();
    return { store: sqliteStore({ path, migrate: true, now: clock.read }), drop: async () => drop() };
  }
  const { postgresStore } = await import("hookwell/postgres");
  const { url, drop } = await freshPostgres(migrated);
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const encryptionKeys = `k1:${Buffer.alloc(32, 7).toString("base64")}`;
  const store = postgresStore({ pool, migrate: true, now: clock.read, encryptionKeys });
  return {
    store,
    drop: async () => {
      await pool.end();
      await drop();
    },
  };
}

const known = new Map<string, Described>();

/** Compiling the description costs more than most tests: worlds with the same one share it. */
function describedBy(document: Json): Described {
  const text = JSON.stringify(document);
  const described = known.get(text) ?? new Described(document);
  known.set(text, described);
  return described;
}
