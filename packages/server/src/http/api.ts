import { OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { isHookwellError, type Logger, type RequestStore, stringifyJson } from "hookwell";
import { problemsOfIssues, readJson, refuseBody } from "./body.ts";
import { type Authorize, type Caller, requireCaller } from "./caller.ts";
import { entityTag, isKnown, versionsOf } from "./conditions.ts";
import { answersOf, describeRoute, problemsOf, registerProblem } from "./describe.ts";
import { type FirstRequest, Idempotency, idempotencyKey } from "./idempotency.ts";
import type { ErrorCode } from "./problem-codes.ts";
import { apiProblem, invalidRequest, problemResponse, toProblem } from "./problems.ts";
import { type Scope, scopeMeanings, scopes } from "./scopes.ts";

/** One route: what it takes and answers, as both the check of requests and the description of the API. */
export interface RouteSpec<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly method: "get" | "post" | "patch" | "delete";
  /** OpenAPI form: `/v1/events/{id}`. */
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** One of them is enough. */
  readonly scopes: readonly Scope[];
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  /** A request without a body is one with `{}`. */
  readonly bodyOptional?: boolean;
  readonly mediaTypes?: readonly string[];
  readonly maxBytes?: number;
  /** Success answers by status. */
  readonly answers: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>;
  /** What it may answer beyond the codes that every route has (describe.ts). */
  readonly errors?: readonly ErrorCode[];
  /** What `params` name has an entity tag: reads answer it and may answer 304, writes take `If-Match`. */
  readonly conditional?: true;
  /**
   * Carried out twice it does what it does once, so that a request with an `Idempotency-Key` whose server died may be
   * carried out again. Default: its outcome is unknown, and it is answered 409.
   */
  readonly repeatable?: true;
  /** A body that is taken as it stands. */
  readonly example?: z.input<Body>;
}

export interface RouteInput<Params, Query, Body> {
  readonly caller: Caller;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** Versions that the request lets be changed; undefined = no condition. */
  readonly ifVersion: readonly string[] | undefined;
  /** Of a request with an `Idempotency-Key`. */
  readonly first: FirstRequest | undefined;
}

export interface Answer {
  readonly status: number;
  /** Version of what is answered, for its entity tag. */
  readonly version?: string;
  /** Written as exact JSON; absent = no body. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiOptions {
  readonly basePath: string;
  readonly authorize: Authorize;
  readonly logger: Logger;
  /** Keeps the answers of requests with an `Idempotency-Key`. */
  readonly requests: RequestStore;
  readonly requestId: () => string;
}

type Variables = { Variables: { requestId: string } };

const nothing = z.strictObject({});
const mebibyte = 1_048_576;

/** Collects routes: each is checked, authorised, described, and answered with problem documents when it fails. */
export class Api {
  readonly #hono: OpenAPIHono<Variables>;
  readonly #options: ApiOptions;
  readonly #idempotency: Idempotency;
  /** Methods by path pattern, for 405. */
  readonly #paths = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#idempotency = new Idempotency(options.requests, options.logger);
    this.#hono = new OpenAPIHono<Variables>({
      getPath: (request) => withoutBase(new URL(request.url).pathname, options.basePath),
    });
    this.#hono.use(async (c, next) => {
      const given = c.req.header("x-request-id") ?? "";
      const id = /^[A-Za-z0-9_.:-]{1,128}$/.test(given) ? given : options.requestId();
      c.set("requestId", id);
      await this.#logged(c, next);
      c.res.headers.set("x-request-id", id);
      c.res.headers.set("x-content-type-options", "nosniff");
      if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
    });
    this.#hono.onError((error, c) => this.#fail(error, c));
    this.#hono.notFound((c) => this.#missing(c));
    registerProblem(this.#hono.openAPIRegistry);
    this.#hono.openAPIRegistry.registerComponent("securitySchemes", "key", {
      type: "http",
      scheme: "bearer",
      description: [
        "A key of this server, sent as `Authorization: Bearer <key>`. A key with a project sees only that project. Scopes:",
        ...scopes.map((scope) => `- \`${scope}\`: ${scopeMeanings[scope]}`),
      ].join("\n"),
    });
  }

  get fetch(): (request: Request) => Promise<Response> {
    return async (request) => this.#hono.fetch(request);
  }

  /** The OpenAPI document of the routes added so far. */
  document(): ReturnType<OpenAPIHono["getOpenAPI31Document"]> {
    return this.#hono.getOpenAPI31Document({
      openapi: "3.1.0",
      info: {
        title: "Hookwell",
        version: "1",
        description: "Transactional webhooks: events in, signed deliveries out.",
        license: { name: "MIT" },
      },
      servers: [{ url: this.#options.basePath || "/" }],
    });
  }

  /** Adds a route that needs a key. */
  route<
    Params extends z.ZodType = typeof nothing,
    Query extends z.ZodType = typeof nothing,
    Body extends z.ZodType = z.ZodUndefined,
  >(
    spec: RouteSpec<Params, Query, Body>,
    handle: (input: RouteInput<z.output<Params>, z.output<Query>, z.output<Body>>) => Promise<Answer>,
  ): void {
    const { authorize } = this.#options;
    const idempotency = this.#idempotency;
    const mediaTypes = spec.mediaTypes ?? ["application/json"];
    describeRoute(this.#hono.openAPIRegistry, spec, mediaTypes);
    this.#add(spec.method, spec.path, async (c) => {
      const caller = await requireCaller(c.req.raw, authorize, spec.scopes);
      const params = check(spec.params ?? nothing, c.req.param()) as z.output<Params>;
      const query = check(spec.query ?? nothing, queryOf(c.req.url)) as z.output<Query>;
      let given: unknown;
      if (spec.body)
        given = await readJson(c.req.raw, spec.maxBytes ?? mebibyte, mediaTypes, spec.bodyOptional);
      else if (spec.method !== "get") await refuseBody(c.req.raw);
      const body = (spec.body && check(spec.body, given)) as z.output<Body>;
      const ifVersion = spec.conditional && versionsOf(c.req.header("if-match") ?? null);
      const work = async (first?: FirstRequest): Promise<Response> =>
        answer(
          await handle({ caller, params, query, body, ifVersion, first }),
          spec.method === "get" ? c.req.raw : undefined,
        );
      const key = spec.method === "post" ? idempotencyKey(c.req.raw) : undefined;
      if (key === undefined) return work();
      const content = [spec.id, params, queryOf(c.req.url), given ?? null, ifVersion ?? null];
      const repeatable = spec.repeatable ?? false;
      return idempotency.answer({ caller, key, content, requestId: c.get("requestId"), repeatable }, work);
    });
  }

  /** Adds a route that everybody may read. It is described by `answers`, or not at all. */
  open(
    path: string,
    description: Pick<RouteSpec<z.ZodType, z.ZodType, z.ZodType>, "id" | "tag" | "summary" | "answers"> & {
      readonly errors?: readonly ErrorCode[];
      readonly mediaType?: string;
      /** A key with one of these is needed after all: for a route that answers something else than JSON. */
      readonly scopes?: readonly Scope[];
    },
    handle: (caller?: Caller) => Promise<Response | Answer> | Response | Answer,
  ): void {
    const { authorize } = this.#options;
    const { scopes: wanted } = description;
    this.#hono.openAPIRegistry.registerPath({
      method: "get",
      path,
      operationId: description.id,
      tags: [description.tag],
      summary: description.summary,
      security: wanted ? [{ key: [...wanted] }] : [],
      responses: {
        ...answersOf(description.answers, description.mediaType),
        ...problemsOf(["internal", ...(description.errors ?? [])]),
      },
    });
    this.#add("get", path, async (c) => {
      const result = await handle(wanted && (await requireCaller(c.req.raw, authorize, wanted)));
      return result instanceof Response ? result : answer(result);
    });
  }

  #add(
    method: RouteSpec<z.ZodType, z.ZodType, z.ZodType>["method"],
    path: string,
    handle: (c: Context<Variables>) => Promise<Response>,
  ): void {
    const known = this.#paths.get(path) ?? {
      pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
      methods: new Set<string>(),
    };
    known.methods.add(method.toUpperCase());
    if (method === "get") known.methods.add("HEAD");
    this.#paths.set(path, known);
    this.#hono.on(method.toUpperCase(), path.replaceAll(/\{([^}]+)\}/g, ":$1"), handle);
  }

  /** With a log of records: a line for the request, whose id is also in the lines that are written meanwhile. */
  async #logged(c: Context<Variables>, next: () => Promise<void>): Promise<void> {
    const { structured } = this.#options.logger;
    if (!structured) return next();
    const began = performance.now();
    await structured.within({ request_id: c.get("requestId") }, async () => {
      await next();
      const { method, path } = c.req;
      const { status } = c.res;
      const duration_ms = Math.round(performance.now() - began);
      // What asks all the time is only of interest when it fails.
      const level = status >= 500 ? "error" : isProbe(path) ? "debug" : "info";
      structured.entry({ level, event: "request", fields: { method, path, status, duration_ms } });
    });
  }

  #missing(c: Context<Variables>): Response {
    for (const { pattern, methods } of this.#paths.values())
      if (pattern.test(c.req.path)) {
        const allow = [...methods].join(", ");
        return this.#fail(
          apiProblem("method_not_allowed", `${c.req.method} is not among ${allow}.`, {
            headers: { allow },
          }),
          c,
        );
      }
    return this.#fail(apiProblem("no_such_route", "There is no such route; see /openapi.json."), c);
  }

  #fail(error: unknown, c: Context<Variables>): Response {
    const failure = toProblem(error);
    const requestId = c.get("requestId");
    if (failure.status >= 500) {
      const cause = failure.cause ?? failure;
      // Our own errors say what happened; of others the stack is needed.
      const text = cause instanceof Error && !isHookwellError(cause) ? cause.stack : cause;
      this.#options.logger.error(`${c.req.method} ${c.req.path} failed (request ${requestId}): ${text}`);
    }
    return problemResponse(failure, requestId);
  }
}

/** `read` = the request, when it only looks. */
function answer({ status, body, version, headers: given }: Answer, read?: Request): Response {
  const headers = { ...given, ...(version !== undefined && { etag: entityTag(version) }) };
  if (read && version !== undefined && isKnown(read.headers.get("if-none-match"), entityTag(version)))
    return new Response(null, { status: 304, headers });
  if (body === undefined) return new Response(null, { status, headers });
  return new Response(stringifyJson(body), {
    status,
    headers: { ...headers, "content-type": "application/json" },
  });
}

function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw invalidRequest(problemsOfIssues(result.error.issues));
}

function queryOf(url: string): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of new URL(url).searchParams) {
    if (Object.hasOwn(query, name))
      throw invalidRequest([{ pointer: `/${name}`, message: "is given more than once" }]);
    Object.defineProperty(query, name, { value, enumerable: true });
  }
  return query;
}

function isProbe(path: string): boolean {
  return ["/healthz", "/readyz", "/healthz/delivery", "/metrics"].includes(path);
}

function withoutBase(path: string, base: string): string {
  if (base === "") return path;
  if (path === base) return "/";
  // A path outside the base matches no route; two slashes keep it from looking like one.
  return path.startsWith(`${base}/`) ? path.slice(base.length) : `//${path}`;
}
