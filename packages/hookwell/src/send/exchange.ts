import type { Dispatcher } from "undici";
import type { Delivery } from "../model/delivery.ts";
import type { Expiring } from "./deadlines.ts";
import { excerptOf } from "./excerpt.ts";
import { systemCode, TransportFailure, transportFailure } from "./failures.ts";
import { bytesReceivedBefore } from "./received.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { DeliveryError, SendAbortedError, type SendReceipt } from "./sender.ts";

/** What an exchange needs of its sender. */
export interface ExchangeHost {
  readonly readBytes: number;
  readonly keepBytes: number;
  readonly exchangeMs: number;
  now(): Date;
  /** Sends the request once more on a connection of its own. */
  again(exchange: Exchange): void;
  /** The exchange is over, whatever came of it. */
  ended(exchange: Exchange): void;
}

type Headers = Record<string, string | string[] | undefined>;

/**
 * One HTTP exchange. The status alone decides: what the body does after it only sets when the exchange ends.
 */
export class Exchange implements Dispatcher.DispatchHandler, Expiring {
  readonly delivery: Delivery;
  readonly request: Dispatcher.DispatchOptions;
  readonly result = Promise.withResolvers<SendReceipt>();
  readonly signal: AbortSignal | undefined;
  readonly #host: ExchangeHost;
  /** Host and port of the endpoint, for messages. */
  readonly #place: string;
  readonly #startedAt: Date;
  readonly #startedMs = performance.now();
  #controller: Dispatcher.DispatchController | undefined;
  #answering = false;
  #triedAgain = false;
  #settled = false;
  #status = 0;
  #headers: Headers = {};
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #readBytes = 0;

  constructor(
    host: ExchangeHost,
    delivery: Delivery,
    request: Dispatcher.DispatchOptions,
    place: string,
    startedAt: Date,
    signal: AbortSignal | undefined,
  ) {
    this.#host = host;
    this.delivery = delivery;
    this.request = request;
    this.#place = place;
    this.#startedAt = startedAt;
    this.signal = signal;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It ended while it waited for a connection; nothing has been written yet.
    if (this.#settled) controller.abort(new Error("ended before it began"));
  }

  onResponseStarted(): void {
    this.#answering = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // 1xx is no answer yet.
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    // Kept beyond what is shown, so that a secret across the edge is found whole.
    if (this.#keptBytes < 2 * this.#host.keepBytes) {
      const part = chunk.subarray(0, 2 * this.#host.keepBytes - this.#keptBytes);
      // A copy: the chunk is a view of a buffer that may be much larger.
      this.#kept.push(Buffer.from(part));
      this.#keptBytes += part.length;
    }
    this.#readBytes += chunk.length;
    if (this.#readBytes <= this.#host.readBytes) return;
    this.#settle();
    controller.abort(new Error("enough of the answer was read"));
  }

  onResponseEnd(): void {
    if (!this.#settled) this.#settle();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#settled) return;
    if (this.#status !== 0) this.#settle();
    else if (this.#isStale(error)) {
      this.#triedAgain = true;
      this.#controller = undefined;
      this.#host.again(this);
    } else if (systemCode(error) === "UND_ERR_CLOSED" || systemCode(error) === "UND_ERR_DESTROYED")
      this.#drop();
    else this.#fail(transportFailure(error, this.#place));
  }

  /** The whole exchange has used up its time. */
  expire(): void {
    if (this.#settled) return;
    if (this.#status !== 0) this.#settle();
    else
      this.#fail(
        new TransportFailure("timeout", `${this.#place} did not answer within ${this.#host.exchangeMs} ms`),
      );
    this.#cut();
  }

  /** The caller no longer wants it. An answer that has come still counts. */
  abort(): void {
    if (this.#settled) return;
    if (this.#status !== 0) this.#settle();
    else this.#drop();
    this.#cut();
  }

  #cut(): void {
    this.#controller?.abort(new Error("the exchange was ended"));
  }

  /** A keep-alive connection that the other side had given up: the request may never have been seen. */
  #isStale(error: Error): boolean {
    return (
      !this.#triedAgain &&
      !this.#answering &&
      transportFailure(error, this.#place).code === "reset" &&
      bytesReceivedBefore(error) > 0
    );
  }

  #settle(): void {
    const status = this.#status;
    const excerpt = this.#excerpt();
    const details = {
      ...this.#times(),
      statusCode: status,
      ...(excerpt === undefined ? {} : { excerpt }),
    };
    this.#end();
    if (status < 300) this.result.resolve(details);
    else {
      const retryAfterMs = this.#retryAfter();
      this.result.reject(
        new DeliveryError(`http_${status}`, `${this.#place} answered ${status}`, {
          ...details,
          ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        }),
      );
    }
  }

  #fail(failure: TransportFailure): void {
    this.#end();
    this.result.reject(
      new DeliveryError(failure.code, failure.message, this.#times(), { cause: failure.cause ?? failure }),
    );
  }

  #drop(): void {
    this.#end();
    this.result.reject(new SendAbortedError(this.delivery.id));
  }

  #end(): void {
    this.#settled = true;
    this.#host.ended(this);
  }

  #times(): { startedAt: Date; durationMs: number } {
    return { startedAt: this.#startedAt, durationMs: Math.round(performance.now() - this.#startedMs) };
  }

  #retryAfter(): number | undefined {
    if (this.#status !== 429 && this.#status !== 503) return undefined;
    const value = this.#headers["retry-after"];
    return typeof value === "string" ? parseRetryAfter(value, this.#host.now()) : undefined;
  }

  #excerpt(): string | undefined {
    if (this.#readBytes === 0) return undefined;
    const encoding = this.#headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") return "[compressed, not decoded]";
    const { secret, secrets = [], headers = {} } = this.delivery;
    // An endpoint that echoes what it got must not put credentials into the log. Short values would hide words.
    const hidden = [secret, ...secrets, ...Object.values(headers)].filter((text) => text.length >= 8);
    return excerptOf(
      this.#kept.length === 1 ? (this.#kept[0] as Buffer) : Buffer.concat(this.#kept),
      this.#readBytes,
      this.#host.keepBytes,
      hidden,
    );
  }
}
