import {
  EventSchemaError,
  type HookwellError,
  isHookwellError,
  PayloadTooLargeError,
  type Problem,
  UnknownEventTypeError,
  ValidationError,
} from "hookwell";
import { libraryCodes, type ProblemCode, problemCodes } from "./problem-codes.ts";

/** An answer of the API that is an error (RFC 9457), before it has the id of its request. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problems: readonly Problem[];
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    status: number,
    code: string,
    detail: string,
    more: {
      readonly problems?: readonly Problem[];
      readonly headers?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: more.cause });
    this.name = "ProblemError";
    this.status = status;
    this.code = code;
    this.problems = more.problems ?? [];
    this.headers = more.headers ?? {};
  }
}

/** A problem that the API finds itself; its status is that of its code. */
export function apiProblem(
  code: ProblemCode,
  detail: string,
  more?: ConstructorParameters<typeof ProblemError>[3],
): ProblemError {
  return new ProblemError(problemCodes[code].status, code, detail, more);
}

const titles: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not found",
  405: "Method not allowed",
  409: "Conflict",
  412: "Precondition failed",
  413: "Content too large",
  415: "Unsupported media type",
  422: "Unprocessable content",
  500: "Internal error",
  503: "Service unavailable",
};

/** A request whose content is not as described: each fault with its pointer. */
export function invalidRequest(problems: readonly Problem[], code = "validation_failed"): ProblemError {
  const detail = problems.map(({ pointer, message }) => `${pointer || "/"}: ${message}`).join("; ");
  return new ProblemError(400, code, detail, { problems });
}

/** The URN that names a kind of problem; docs/reference/errors.md explains each code. */
export const problemType = (code: string): string => `urn:hookwell:error:${code}`;

/** The problem document of an error, as the answer to one request. */
export function problemResponse(problem: ProblemError, requestId: string): Response {
  const body = {
    type: problemType(problem.code),
    title: titles[problem.status] ?? "Error",
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...(problem.problems.length > 0 ? { errors: problem.problems } : {}),
  };
  return new Response(JSON.stringify(body), {
    status: problem.status,
    headers: { ...problem.headers, "content-type": "application/problem+json", "x-request-id": requestId },
  });
}

const statuses: ReadonlyMap<string, number> = new Map(Object.entries(libraryCodes));

const insideFault = "Something went wrong inside the server. Its log has the cause under the request id.";
const notUsable =
  "The database, its schema or the encryption key cannot be used now. The log of the server has the cause under the request id.";

/** The problem that an error thrown by the library, or by anything, is to the caller of the API. */
export function toProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const status = isHookwellError(error) ? statuses.get(error.code) : undefined;
  if (!isHookwellError(error) || status === undefined)
    return apiProblem("internal", insideFault, { cause: error });
  const inList = error.index === undefined ? "" : `/${error.index}`;
  const problems = problemsOf(error).map(({ pointer, message }) => ({ pointer: inList + pointer, message }));
  if (error instanceof ValidationError) return invalidRequest(problems, error.code);
  // Words of the inside name hosts, databases and roles, and may come before anybody has shown a key.
  const detail = status < 500 || error.code === "send_aborted" ? error.message : notUsable;
  return new ProblemError(status, error.code, detail, { problems, cause: error });
}

function problemsOf(error: HookwellError): readonly Problem[] {
  if (error instanceof EventSchemaError)
    return error.problems.map(({ pointer, message }) => ({ pointer: `/data${pointer}`, message }));
  if (error instanceof ValidationError)
    return error.problems.map(({ pointer, message }) => ({ pointer: snakePointer(pointer), message }));
  if (error instanceof UnknownEventTypeError)
    return [{ pointer: snakePointer(error.pointer), message: error.message }];
  if (error instanceof PayloadTooLargeError) return [{ pointer: "/data", message: error.message }];
  return [];
}

const namesOfOurs: ReadonlySet<string> = new Set(["rateLimit"]);

/** `/projectId` of the library is `/project_id` of the API; names inside data, headers and metadata are the caller's. */
function snakePointer(pointer: string): string {
  const [, first, second, ...rest] = pointer.split("/");
  if (first === undefined) return pointer;
  const words = [snake(first)];
  if (second !== undefined) words.push(namesOfOurs.has(first) ? snake(second) : second);
  return ["", ...words, ...rest].join("/");
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
