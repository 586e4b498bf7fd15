/** The codes of problems that the API finds itself, with their status. Public: never renamed, only added to. */
export const problemCodes = {
  validation_failed: { status: 400, meaning: "The request is not as described; `errors` names each field." },
  malformed_json: {
    status: 400,
    meaning: "The body is not JSON in UTF-8, or is nested deeper than 200 levels.",
  },
  unexpected_body: { status: 400, meaning: "The route takes no body, and what was sent would be ignored." },
  unauthorized: { status: 401, meaning: "No key was sent, or it is unknown, expired or deleted." },
  missing_scope: {
    status: 403,
    meaning: "The key is valid and has none of the scopes that the route needs.",
  },
  no_such_route: { status: 404, meaning: "The path is none of the API's; /openapi.json has them all." },
  method_not_allowed: { status: 405, meaning: "The path exists, with the methods in the header `allow`." },
  idempotency_in_progress: {
    status: 409,
    meaning: "A request with this `Idempotency-Key` is being carried out; send it again after `Retry-After`.",
  },
  idempotency_outcome_unknown: {
    status: 409,
    meaning:
      "The first request with this `Idempotency-Key` was begun and its answer is not known: the server ended in the middle. Look whether it was carried out; if not, send it with another key.",
  },
  idempotency_key_reused: {
    status: 422,
    meaning: "The `Idempotency-Key` was used for another request in the last 24 hours.",
  },
  request_too_large: { status: 413, meaning: "The body of the request is over the route's limit." },
  unsupported_media_type: { status: 415, meaning: "The body is not sent as the header `accept` says." },
  internal: { status: 500, meaning: "A fault of the server; its log has the cause under the `request_id`." },
  not_ready: { status: 503, meaning: "/readyz: database, schema or encryption key cannot be used." },
  storage: { status: 503, meaning: "The database cannot be used now; try again." },
  delivery_late: {
    status: 503,
    meaning: "/healthz/delivery: something due or not dispatched is older than HOOKWELL_MAX_LAG.",
  },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly meaning: string }>>;

export type ProblemCode = keyof typeof problemCodes;

/** Status of the errors of the library that are told as they are; any other is `internal`. Their meaning is theirs. */
export const libraryCodes = {
  validation_failed: 400,
  invalid_identifier: 400,
  event_schema_failed: 400,
  blocked_address: 400,
  unknown_event_type: 400,
  no_example: 400,
  not_found: 404,
  invalid_state: 409,
  duplicate_id: 409,
  too_many_secrets: 409,
  event_mismatch: 409,
  revision_conflict: 409,
  version_conflict: 412,
  payload_too_large: 413,
  schema_version: 503,
  encryption_key: 503,
  storage: 503,
  send_aborted: 503,
} as const satisfies Readonly<Record<string, number>>;

/** What `code` of a problem may be. */
export type ErrorCode = ProblemCode | keyof typeof libraryCodes;

export function statusOf(code: ErrorCode): number {
  return code in problemCodes ? problemCodes[code as ProblemCode].status : libraryCodes[code as LibraryCode];
}

type LibraryCode = keyof typeof libraryCodes;
