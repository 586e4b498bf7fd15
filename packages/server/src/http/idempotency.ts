import { createHash } from "node:crypto";
import type { IdFunc, Logger, RequestStore } from "hookwell";
import { canonicalJson, repeatableIds } from "hookwell/environment";
import type { Caller } from "./caller.ts";
import { apiProblem, invalidRequest, problemResponse, toProblem } from "./problems.ts";

/** Longer than any route takes: a test send has 15 s. */
const leaseMs = 30_000;
const mostCharacters = 255;

/** What a request with an `Idempotency-Key` knows of its first one. */
export interface FirstRequest {
  /** Ids for what it makes: the same when it is carried out again. */
  eventIds(): IdFunc;
}

export interface KeyedRequest {
  readonly caller: Caller;
  readonly key: string;
  /** Everything that makes it this request and no other. */
  readonly content: unknown;
  readonly requestId: string;
  /** Carried out twice, it does what it does once. */
  readonly repeatable: boolean;
}

/** Key of a request, or undefined without one. Quotes around it, as a structured field has them, do not belong to it. @throws ProblemError 400 */
export function idempotencyKey(request: Request): string | undefined {
  const header = request.headers.get("idempotency-key");
  if (header === null) return undefined;
  const key = /^"([^"\\]*)"$/.exec(header)?.[1] ?? header;
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= mostCharacters) return key;
  throw invalidRequest([
    {
      pointer: "/idempotency-key",
      message: `must be 1 to ${mostCharacters} visible ASCII characters, such as a UUID`,
    },
  ]);
}

/**
 * Carries out a request once for each key of a caller: later ones with the same content get the first answer, from
 * any replica, for 24 hours. Kept are the answers of the route, refusals (4xx) among them; not those of the server's
 * own faults (5xx), so that they can be tried again.
 */
export class Idempotency {
  readonly #store: RequestStore;
  readonly #logger: Logger;

  constructor(store: RequestStore, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** @throws ProblemError 409 while another one is at it or when its outcome is unknown, 422 when the key was another request's */
  async answer(request: KeyedRequest, work: (first: FirstRequest) => Promise<Response>): Promise<Response> {
    const { caller, key, repeatable } = request;
    const name = { owner: ownerOf(caller), key };
    const fingerprint = sha256(canonicalJson(request.content));
    const begun = await this.#store.beginRequest({ ...name, fingerprint, leaseMs, repeatable }, null);
    switch (begun.state) {
      case "answered":
        return replayed(begun.answer);
      case "running":
        throw apiProblem(
          "idempotency_in_progress",
          "A request with this Idempotency-Key is being carried out.",
          {
            headers: { "retry-after": "1" },
          },
        );
      case "different":
        throw apiProblem(
          "idempotency_key_reused",
          "This Idempotency-Key was used for a request with other content; use a new one for each request.",
        );
      case "lost":
        throw apiProblem(
          "idempotency_outcome_unknown",
          `The first request with this Idempotency-Key was begun at ${begun.beganAt.toISOString()}, and its answer is not known. It may have been carried out: look, and if it was not, send it with another key.`,
        );
      case "begun":
        break;
    }
    const seed = JSON.stringify([name.owner, key]);
    const first: FirstRequest = { eventIds: () => repeatableIds("evt_", begun.beganAt, seed) };
    let response: Response;
    try {
      response = await work(first);
    } catch (error) {
      const failure = toProblem(error);
      if (failure.status >= 500) {
        await this.#note(() => this.#store.abandonRequest(name, begun.token), request.requestId);
        throw error;
      }
      response = problemResponse(failure, request.requestId);
    }
    const answer = await written(response);
    await this.#note(() => this.#store.finishRequest(name, begun.token, answer), request.requestId);
    return response;
  }

  /** What was done is done: that it could not be noted must not turn its answer into another. */
  async #note(write: () => Promise<unknown>, requestId: string): Promise<void> {
    try {
      await write();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#logger.error(
        `The answer of request ${requestId} could not be kept for its Idempotency-Key: ${why}`,
      );
    }
  }
}

function ownerOf({ id, projectId, tenantId, ownerId }: Caller): string {
  return id ?? JSON.stringify([projectId ?? null, tenantId ?? null, ownerId ?? null]);
}

interface WrittenAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | null;
}

async function written(response: Response): Promise<string> {
  const answer: WrittenAnswer = {
    status: response.status,
    // The id names one request, and this one is over.
    headers: [...response.headers].filter(([name]) => name !== "x-request-id"),
    body: response.body === null ? null : await response.clone().text(),
  };
  return JSON.stringify(answer);
}

function replayed(text: string): Response {
  const { status, headers, body } = JSON.parse(text) as WrittenAnswer;
  const response = new Response(body, { status, headers: headers.map(([name, value]) => [name, value]) });
  response.headers.set("idempotency-replayed", "true");
  return response;
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
