import { OpenAPIHono, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { isHookwellError, type Logger, stringifyJson } from "hookwell";
import { problem } from "../shapes/problem.ts";
import { problemsOfIssues, readJson, refuseBody } from "./body.ts";
import { type Authorize, type Caller, requireCaller } from "./caller.ts";
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
  /** Errors by status, beyond those that every route has. */
  readonly errors?: readonly number[];
}

export interface RouteInput<Params, Query, Body> {
  readonly caller: Caller;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
}

export interface Answer {
  readonly status: number;
  /** Written as exact JSON; absent = no body. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiOptions {
  readonly basePath: string;
  readonly authorize: Authorize;
  readonly logger: Logger;
  readonly requestId: () => string;
}

type Variables = { Variables: { requestId: string } };

const nothing = z.strictObject({});
const mebibyte = 1_048_576;
const errorDescriptions: Readonly<Record<number, string>> = {
  400: "The request is not as described here; `errors` names each field.",
  401: "No key, or one that is not valid.",
  403: "The key has none of the scopes that this route needs.",
  404: "Nothing with this id exists for the key.",
  409: "The state of the thing does not allow this.",
  413: "The body, or an event in it, is too large.",
  415: "The body is not sent as JSON.",
  500: "A fault of the server.",
  503: "The database cannot be used now.",
};

/** Collects routes: each is checked, authorised, described, and answered with problem documents when it fails. */
export class Api {
  readonly #hono: OpenAPIHono<Variables>;
  readonly #options: ApiOptions;
  /** Methods by path pattern, for 405. */
  readonly #paths = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#hono = new OpenAPIHono<Variables>({
      getPath: (request) => withoutBase(new URL(request.url).pathname, options.basePath),
    });
    this.#hono.use(async (c, next) => {
      const given = c.req.header("x-request-id") ?? "";
      const id = /^[A-Za-z0-9_.:-]{1,128}$/.test(given) ? given : options.requestId();
      c.set("requestId", id);
      await next();
      c.res.headers.set("x-request-id", id);
      c.res.headers.set("x-content-type-options", "nosniff");
      if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
    });
    this.#hono.onError((error, c) => this.#fail(error, c));
    this.#hono.notFound((c) => this.#missing(c));
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
    const mediaTypes = spec.mediaTypes ?? ["application/json"];
    this.#describe(spec, mediaTypes);
    this.#add(spec.method, spec.path, async (c) => {
      const caller = await requireCaller(c.req.raw, authorize, spec.scopes);
      const params = check(spec.params ?? nothing, c.req.param()) as z.output<Params>;
      const query = check(spec.query ?? nothing, queryOf(c.req.url)) as z.output<Query>;
      let body: unknown;
      if (spec.body)
        body = check(
          spec.body,
          await readJson(c.req.raw, spec.maxBytes ?? mebibyte, mediaTypes, spec.bodyOptional),
        );
      else if (spec.method !== "get") await refuseBody(c.req.raw);
      return answer(await handle({ caller, params, query, body: body as z.output<Body> }));
    });
  }

  /** Adds a route that everybody may read. It is described by `answers`, or not at all. */
  open(
    path: string,
    description: Pick<RouteSpec<z.ZodType, z.ZodType, z.ZodType>, "id" | "tag" | "summary" | "answers"> & {
      readonly errors?: readonly number[];
      readonly mediaType?: string;
    },
    handle: () => Promise<Response | Answer> | Response | Answer,
  ): void {
    this.#hono.openAPIRegistry.registerPath({
      method: "get",
      path,
      operationId: description.id,
      tags: [description.tag],
      summary: description.summary,
      security: [],
      responses: responsesOf(
        description.answers,
        [500, ...(description.errors ?? [])],
        description.mediaType,
      ),
    });
    this.#add("get", path, async () => {
      const result = await handle();
      return result instanceof Response ? result : answer(result);
    });
  }

  #describe(spec: RouteSpec<z.ZodType, z.ZodType, z.ZodType>, mediaTypes: readonly string[]): void {
    const errors = [400, 401, 403, 500, 503, ...(spec.params ? [404] : []), ...(spec.body ? [413, 415] : [])];
    const content = spec.body
      ? Object.fromEntries(mediaTypes.map((type) => [type, { schema: spec.body as z.ZodType }]))
      : undefined;
    this.#hono.openAPIRegistry.registerPath({
      method: spec.method,
      path: spec.path,
      operationId: spec.id,
      tags: [spec.tag],
      summary: spec.summary,
      description: `${spec.description ? `${spec.description}\n\n` : ""}Scope: ${spec.scopes.join(" or ")}.`,
      security: [{ key: [...spec.scopes] }],
      request: {
        params: spec.params as z.ZodObject | undefined,
        query: spec.query as z.ZodObject | undefined,
        ...(content ? { body: { required: !spec.bodyOptional, content } } : {}),
      },
      responses: responsesOf(spec.answers, [...new Set([...errors, ...(spec.errors ?? [])])].sort()),
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

function responsesOf(
  answers: RouteSpec<z.ZodType, z.ZodType, z.ZodType>["answers"],
  errors: readonly number[],
  mediaType = "application/json",
): Parameters<OpenAPIHono["openAPIRegistry"]["registerPath"]>[0]["responses"] {
  const responses: ReturnType<typeof responsesOf> = {};
  for (const [status, { description, schema }] of Object.entries(answers))
    responses[status] = schema ? { description, content: { [mediaType]: { schema } } } : { description };
  for (const status of errors)
    responses[status] = {
      description: errorDescriptions[status] ?? "Error.",
      content: { "application/problem+json": { schema: problem } },
    };
  return responses;
}

function answer({ status, body, headers }: Answer): Response {
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

function withoutBase(path: string, base: string): string {
  if (base === "") return path;
  if (path === base) return "/";
  // A path outside the base matches no route; two slashes keep it from looking like one.
  return path.startsWith(`${base}/`) ? path.slice(base.length) : `//${path}`;
}
