import type { Now } from "./contract.ts";

/** How long the answer of a request with an idempotency key is kept. */
export const requestsKeptMs = 24 * 3_600_000;

/** Names a request that may be sent again: an idempotency key is its owner's own. */
export interface RequestName {
  readonly owner: string;
  readonly key: string;
}

export interface RequestBegin extends RequestName {
  /** Digest of what is asked. Another one under the same name is another request. */
  readonly fingerprint: string;
  /** Milliseconds after which one without an answer is taken for abandoned by a process that died. */
  readonly leaseMs: number;
  /** Such an abandoned one may be carried out again. */
  readonly repeatable: boolean;
}

export type RequestBegun =
  /** Carry it out, and then finish or abandon it. `beganAt` stays the same when it is carried out again. */
  | { readonly state: "begun"; readonly token: string; readonly beganAt: Date }
  | { readonly state: "answered"; readonly answer: string }
  /** Somebody is carrying it out. */
  | { readonly state: "running" }
  /** It was begun, and nobody can say any more what came of it. */
  | { readonly state: "lost"; readonly beganAt: Date }
  /** The key was used for another request. */
  | { readonly state: "different" };

/** Requests with an idempotency key and their answers, for {@link requestsKeptMs}: part of the store contract. */
export interface RequestStore {
  /** Of calls at one time with one name, in whatever process, exactly one is answered `begun`. */
  beginRequest(request: RequestBegin, now: Now): Promise<RequestBegun>;
  /** Keeps the answer, sealed: it may hold a secret. False when the token is no longer current. */
  finishRequest(name: RequestName, token: string, answer: string): Promise<boolean>;
  /** Forgets that it was begun: the next one is carried out. An answered one stays. */
  abandonRequest(name: RequestName, token: string): Promise<void>;
}

/** What a sealed answer is tied to. */
export function requestSealName({ owner, key }: RequestName): string {
  return `request ${JSON.stringify([owner, key])}`;
}
