/** One problem in a request: where (JSON pointer, RFC 6901) and what. */
export interface FieldProblem {
  readonly pointer: string;
  readonly message: string;
}

/** Codes of the application's problem documents and the status each answers with. */
const problems = {
  validation_failed: { status: 400, title: "The request is not valid" },
  unauthenticated: { status: 401, title: "A valid API key is needed" },
  forbidden: { status: 403, title: "Not allowed" },
  not_found: { status: 404, title: "Not found" },
  conflict: { status: 409, title: "Conflict with the present state" },
  email_taken: { status: 409, title: "The e-mail address is taken" },
  slot_unavailable: { status: 409, title: "The time is not available" },
  gone: { status: 410, title: "No longer usable" },
  payload_too_large: { status: 413, title: "The request is too large" },
  unsupported_media_type: { status: 415, title: "The request must be JSON" },
  too_many_requests: { status: 429, title: "Too many requests" },
  internal: { status: 500, title: "Something went wrong" },
  change_not_recorded: { status: 500, title: "The change could not be recorded" },
  event_not_captured: { status: 503, title: "The change could not be recorded" },
  calendar_unreachable: { status: 503, title: "A calendar cannot be reached" },
} as const;

export type ProblemCode = keyof typeof problems;

/** Thrown anywhere below a route; the application answers it as a problem document (RFC 9457). */
export class ProblemError extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldProblem[];
  constructor(
    code: ProblemCode,
    detail: string,
    options: { readonly errors?: readonly FieldProblem[]; readonly cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = "ProblemError";
    this.code = code;
    this.errors = options.errors ?? [];
  }

  get status(): (typeof problems)[ProblemCode]["status"] {
    return problems[this.code].status;
  }
}

/** A 400 that names each field. */
export function invalid(errors: readonly FieldProblem[]): ProblemError {
  const detail = errors.map((error) => `${error.pointer || "/"}: ${error.message}`).join("; ");
  return new ProblemError("validation_failed", detail, { errors });
}

/** The same answer for what does not exist and for what the caller may not see. */
export function notFound(what: string, id: string): ProblemError {
  return new ProblemError("not_found", `No ${what} with id ${JSON.stringify(id.slice(0, 80))}.`);
}

/** The body of a problem document. */
export function problemDocument(problem: ProblemError, requestId: string): Record<string, unknown> {
  return {
    type: "about:blank",
    title: problems[problem.code].title,
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors.length > 0 ? { errors: problem.errors } : {}),
  };
}
