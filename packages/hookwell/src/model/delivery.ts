import type { DeliveryStatus, Hold } from "./states.ts";

/**
 * One event bound to one subscription: the row the delivery engine works on. `payload` is the exact bytes that
 * are signed and sent on every attempt.
 */
export interface Delivery {
  readonly id: string;
  readonly eventId: string;
  readonly subscriptionId: string;
  readonly url: string;
  /** The secret bound at fan-out while it is valid: the key of the body signature. */
  readonly secret: string;
  readonly payload: Uint8Array;
  readonly status: DeliveryStatus;
  /** Sends begun in this round. */
  readonly attempts: number;
  readonly lastError?: string;
  readonly nextAttemptAt: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Event type, for the header and the type's retry policy. */
  readonly type?: string;
  readonly projectId?: string;
  readonly tenantId?: string;
  readonly subject?: string;
  /** Every secret that is valid now, the bound one included: each signs the attempt. Absent = `[secret]`. */
  readonly secrets?: readonly string[];
  /** Custom headers of the endpoint. */
  readonly headers?: Readonly<Record<string, string>>;
  /** 1 for the first round; each retry by hand of a final row opens the next. */
  readonly round?: number;
  /** Proof of the claim: an outcome counts only with it. Present on claimed rows. */
  readonly leaseToken?: string;
  readonly leaseUntil?: Date;
}

/** One HTTP exchange, as recorded. */
export interface Exchange {
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly statusCode?: number;
  /** Stable code, absent on success. */
  readonly errorCode?: string;
  /** Text without secrets, absent on success. */
  readonly error?: string;
  /** The first 4 KiB of the answer, made storable. */
  readonly excerpt?: string;
}

export interface AttemptRecord extends Exchange {
  readonly number: number;
  readonly round: number;
}

/** A delivery as management shows it. */
export interface DeliveryRecord {
  readonly id: string;
  readonly eventId: string;
  readonly subscriptionId: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly type: string;
  readonly subject?: string;
  readonly status: DeliveryStatus;
  /** Why it is failed or cancelled. */
  readonly reason?: string;
  /** Why a pending one is not being sent. */
  readonly hold?: Hold;
  readonly attempts: number;
  readonly round: number;
  readonly errorCode?: string;
  readonly lastError?: string;
  /** Only while pending. */
  readonly nextAttemptAt?: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly deliveredAt?: Date;
}

/** One delivery with what was sent and what came back. */
export interface DeliveryDetail extends DeliveryRecord {
  readonly url: string;
  /** The body as sent. */
  readonly body: Uint8Array;
  readonly attemptLog: readonly AttemptRecord[];
}

/**
 * What became of a claimed delivery. It counts only with the current lease token.
 * - `delivered`: 2xx.
 * - `retry`: due again `delayMs` after the store's now; `holdLaneMs` keeps the whole lane back that long (Retry-After).
 * - `failed`: final. Without `exchange` nothing was sent (worker lost during an earlier attempt) and the send
 *   that the claim counted is taken back. `holdLaneMs` as for `retry`: the receiver asked for quiet, whichever row
 *   it answered.
 * - `gone`: 410: failed, the subscription disabled as gone and its lane held, in one transaction.
 * - `released`: given back unsent; the claim's attempt is taken back and the row is due as before.
 * `breakable`: the failure counts towards the circuit breaker (network, time-out, 429, 5xx).
 */
export type Outcome = { readonly id: string; readonly leaseToken: string } & (
  | { readonly kind: "delivered"; readonly exchange: Exchange }
  | {
      readonly kind: "retry";
      readonly exchange: Exchange;
      readonly delayMs: number;
      readonly holdLaneMs?: number;
      readonly breakable?: boolean;
    }
  | {
      readonly kind: "failed";
      readonly exchange?: Exchange;
      readonly reason: string;
      readonly errorCode: string;
      readonly error: string;
      readonly holdLaneMs?: number;
      readonly breakable?: boolean;
    }
  | { readonly kind: "gone"; readonly exchange: Exchange }
  | { readonly kind: "released" }
);
