import type { Delivery } from "../model/delivery.ts";
import { HookwellError } from "../model/errors.ts";

/** What a 2xx exchange looked like. */
export interface SendReceipt {
  readonly statusCode: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly excerpt?: string;
}

export interface SendOptions {
  /** Aborting it ends the exchange; the delivery is then neither delivered nor failed. */
  readonly signal?: AbortSignal;
}

/**
 * Delivers one signed webhook. Resolves on a 2xx answer, rejects otherwise, with a {@link DeliveryError} where
 * more is known. A fake that resolves with nothing is a success. Must be safe to call concurrently.
 */
export interface Sender {
  // biome-ignore lint/suspicious/noConfusingVoidType: a fake may be `async () => {}`
  deliver(delivery: Delivery, options?: SendOptions): Promise<SendReceipt | void>;
  /** Closes idle connections. */
  close?(): Promise<void>;
}

export interface DeliveryErrorDetails {
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly statusCode?: number;
  /** From a Retry-After header of a 429 or 503 answer: how long to wait from the end of the exchange, in ms. */
  readonly retryAfterMs?: number;
  readonly excerpt?: string;
}

/**
 * An attempt that did not succeed. `code` is the stable error code of the attempt (`http_500`, `timeout`,
 * `dns_failed`, …: docs/reference/errors.md); the message has the status code and never a secret.
 */
export class DeliveryError extends HookwellError {
  readonly details: DeliveryErrorDetails;
  constructor(code: string, message: string, details: DeliveryErrorDetails, options?: ErrorOptions) {
    super(code, message, options);
    this.details = details;
  }
}

/** The caller aborted the exchange (stop, or a lost lease): not an attempt that failed. */
export class SendAbortedError extends HookwellError {
  constructor(deliveryId: string) {
    super("send_aborted", `Sending delivery ${deliveryId} was stopped before an answer came.`);
  }
}
