import type { OpenAPIHono, RouteConfig } from "@hono/zod-openapi";
import { z } from "@hono/zod-openapi";
import { problem } from "../shapes/problem.ts";
import type { RouteSpec } from "./api.ts";
import { type ErrorCode, statusOf } from "./problem-codes.ts";

type AnySpec = RouteSpec<z.ZodType, z.ZodType, z.ZodType>;
type Registry = OpenAPIHono["openAPIRegistry"];

/** Codes that any route with a key may answer. */
const everywhere: readonly ErrorCode[] = [
  "validation_failed",
  "unauthorized",
  "missing_scope",
  "internal",
  "storage",
  "schema_version",
  "encryption_key",
];
const withBody: readonly ErrorCode[] = [
  "malformed_json",
  "invalid_identifier",
  "request_too_large",
  "unsupported_media_type",
];
const keyed: readonly ErrorCode[] = [
  "idempotency_in_progress",
  "idempotency_outcome_unknown",
  "idempotency_key_reused",
];
const withoutBody: readonly ErrorCode[] = ["unexpected_body", "malformed_json", "request_too_large"];

const statusMeanings: Readonly<Record<number, string>> = {
  400: "The request is not as described here; `errors` names each field.",
  401: "No key, or one that is not valid.",
  403: "The key has none of the scopes that this route needs.",
  404: "Nothing with this id exists for the key.",
  409: "The state of the thing does not allow this.",
  412: "It was changed since the version in `If-Match`.",
  413: "The body, or an event in it, is too large.",
  415: "The body is not sent as JSON.",
  422: "The `Idempotency-Key` was used for another request.",
  500: "A fault of the server.",
  503: "The database cannot be used now.",
};

/** Every code that a route may answer with. */
export function errorCodes(spec: AnySpec): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...everywhere,
    ...(spec.params ? (["not_found"] as const) : []),
    ...(spec.body ? withBody : spec.method === "get" ? [] : withoutBody),
    ...(spec.method === "post" ? keyed : []),
    ...(spec.conditional && spec.method !== "get" ? (["version_conflict"] as const) : []),
    ...(spec.errors ?? []),
  ]);
  return [...codes];
}

/** Adds a route that needs a key to the description. */
export function describeRoute(registry: Registry, spec: AnySpec, mediaTypes: readonly string[]): void {
  const { body, example } = spec;
  const content = body
    ? Object.fromEntries(
        mediaTypes.map((type) => [type, { schema: body, ...(example !== undefined && { example }) }]),
      )
    : undefined;
  const headers = headersOf(spec);
  registry.registerPath({
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
      ...(headers && { headers }),
      ...(content ? { body: { required: !spec.bodyOptional, content } } : {}),
    },
    responses: {
      ...answersOf(spec.answers, undefined, spec.conditional),
      ...(spec.conditional && spec.method === "get"
        ? { 304: { description: "`If-None-Match` names it as it is." } }
        : {}),
      ...problemsOf(errorCodes(spec)),
    },
  });
}

function headersOf({ method, conditional }: AnySpec): z.ZodObject | undefined {
  const tags = z.string().max(4096).optional();
  const headers = {
    ...(method === "post" && {
      "idempotency-key": z.string().min(1).max(255).optional().openapi({
        description:
          "Your own name for this request, such as a UUID. For 24 hours the same request with the same key gets the first answer again, with `Idempotency-Replayed: true`, and is not carried out again.",
      }),
    }),
    ...(conditional &&
      method === "get" && {
        "if-none-match": tags.openapi({ description: "Entity tags that the caller has: 304 for these." }),
      }),
    ...(conditional &&
      method !== "get" && {
        "if-match": tags.openapi({
          description:
            "The `ETag` that the change is based on; another one by now is 412. `*` = whatever it is.",
        }),
      }),
  };
  return Object.keys(headers).length > 0 ? z.strictObject(headers) : undefined;
}

/** Success answers by status. */
export function answersOf(
  answers: AnySpec["answers"],
  mediaType = "application/json",
  conditional = false,
): RouteConfig["responses"] {
  const responses: RouteConfig["responses"] = {};
  for (const [status, { description, schema }] of Object.entries(answers))
    responses[status] = {
      description,
      ...(schema && { content: { [mediaType]: { schema } } }),
      ...(conditional &&
        schema && {
          headers: z.object({
            ETag: z.string().openapi({ description: "Names its content; for `If-Match`." }),
          }),
        }),
    };
  return responses;
}

/** Problem answers by status, each with the codes that it may have. */
export function problemsOf(codes: readonly ErrorCode[]): RouteConfig["responses"] {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const status = statusOf(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const responses: RouteConfig["responses"] = {};
  for (const [status, its] of [...byStatus].sort(([a], [b]) => a - b))
    responses[status] = {
      description: `${statusMeanings[status] ?? "Error."} Codes: ${its.map((code) => `\`${code}\``).join(", ")}.`,
      content: {
        "application/problem+json": {
          schema: {
            allOf: [
              { $ref: "#/components/schemas/Problem" },
              { type: "object", properties: { code: { enum: its } }, additionalProperties: true },
            ],
          },
        },
      },
    };
  return responses;
}

/** Described although answers only refer to it. */
export function registerProblem(registry: Registry): void {
  registry.register("Problem", problem);
}
