import { Agent, type Dispatcher } from "undici";
import { type Clock, systemClock } from "../model/clock.ts";
import type { Delivery } from "../model/delivery.ts";
import { ValidationError } from "../model/errors.ts";
import { AddressGuard, type NetworkOptions } from "./address-guard.ts";
import { type ConnectorOptions, guardedConnector } from "./connector.ts";
import { Deadlines } from "./deadlines.ts";
import { Exchange, type ExchangeHost } from "./exchange.ts";
import { TransportFailure } from "./failures.ts";
import { type Resolver, systemResolver } from "./resolver.ts";
import {
  DeliveryError,
  SendAbortedError,
  type Sender,
  type SendOptions,
  type SendReceipt,
} from "./sender.ts";
import { Targets } from "./target.ts";
import { WireHeaders, type WireOptions } from "./wire.ts";

/** Bounds of one exchange. */
export interface SendLimits {
  /** Name look-up, TCP and TLS together. Default 5,000 ms. */
  readonly connectMs?: number;
  /** From the start of the connection to the end of the answer's body. Default 15,000 ms. */
  readonly exchangeMs?: number;
  /** How long an address may stay silent before the next one is tried beside it. Default 250 ms. */
  readonly nextAddressMs?: number;
  /** Most of an answer's body that is read; the connection is then ended. Default 64 KiB. */
  readonly readBytes?: number;
  /** Most of an answer's body that is kept as its excerpt. Default 4 KiB. */
  readonly keepBytes?: number;
}

export interface HttpSenderOptions {
  /**
   * An undici dispatcher that sends instead of our own pool: an outgoing proxy, or a mock. It makes its own
   * connections, so it must guard the addresses that names resolve to; addresses written in a url, and http,
   * are still refused here unless `network` allows them.
   */
  readonly dispatcher?: Dispatcher;
  /** What is allowed besides public addresses over https. */
  readonly network?: NetworkOptions;
  /** Time of the signatures and of `startedAt`. */
  readonly clock?: Clock;
  readonly wire?: WireOptions;
  readonly limits?: SendLimits;
  /** Looks names up instead of the system. What it answers passes the address guard. */
  readonly resolver?: Resolver;
  /** Certificate authorities to trust instead of the system's (NODE_EXTRA_CA_CERTS adds to those). */
  readonly ca?: ConnectorOptions["ca"];
  /** Version in the user agent. Default: the package's. */
  readonly version?: string;
}

export const defaultLimits: Required<SendLimits> = {
  connectMs: 5_000,
  exchangeMs: 15_000,
  nextAddressMs: 250,
  readBytes: 64 * 1024,
  keepBytes: 4 * 1024,
};

/**
 * Sends webhooks over HTTP/1.1 with one pool of keep-alive connections. Redirects and proxy variables of the
 * environment are not followed. Takes options, or a dispatcher alone.
 */
export class HttpSender implements Sender {
  readonly #clock: Clock;
  readonly #wire: WireHeaders;
  readonly #targets: Targets;
  readonly #deadlines: Deadlines;
  readonly #dispatcher: Dispatcher;
  /** Our own pool; absent when a dispatcher was given. */
  readonly #pool: Agent | undefined;
  readonly #makeAgent: (pipelining: 0 | 1) => Agent;
  /** Opens a connection for each request; made when first needed. */
  #fresh: Agent | undefined;
  #closing: Promise<void> | undefined;
  readonly #host: ExchangeHost;
  readonly #bySignal = new WeakMap<AbortSignal, Set<Exchange>>();

  /** @throws ConfigurationError for a network or a wire option that cannot be used. */
  constructor(options: HttpSenderOptions | Dispatcher = {}) {
    const given: HttpSenderOptions = isDispatcher(options) ? { dispatcher: options } : options;
    const limits = { ...defaultLimits, ...given.limits };
    const guard = new AddressGuard(given.network);
    const connect = guardedConnector({
      guard,
      resolver: given.resolver ?? systemResolver(),
      connectMs: limits.connectMs,
      nextAddressMs: limits.nextAddressMs,
      ca: given.ca,
    });
    // Our own limits run for the whole exchange, so undici's are off. Without HTTP/2 a pool never makes
    // requests wait for its first connection.
    this.#makeAgent = (pipelining) =>
      new Agent({
        connect,
        pipelining,
        allowH2: false,
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: 16_384,
      });
    this.#clock = given.clock ?? systemClock;
    this.#wire = new WireHeaders(given.wire, given.version);
    this.#targets = new Targets(guard);
    this.#deadlines = new Deadlines(limits.exchangeMs);
    this.#pool = given.dispatcher ? undefined : this.#makeAgent(1);
    this.#dispatcher = given.dispatcher ?? (this.#pool as Agent);
    this.#host = {
      readBytes: limits.readBytes,
      keepBytes: limits.keepBytes,
      exchangeMs: limits.exchangeMs,
      now: this.#clock,
      again: (exchange) => this.#again(exchange),
      ended: (exchange) => this.#ended(exchange),
    };
  }

  /**
   * Sends one attempt. The answer's status decides: 2xx resolves, everything else rejects.
   * @throws DeliveryError with a code of docs/reference/errors.md
   * @throws SendAbortedError when the signal was aborted before an answer came, or the sender is closed
   */
  deliver(delivery: Delivery, options: SendOptions = {}): Promise<SendReceipt> {
    const startedAt = this.#clock();
    const { signal } = options;
    let exchange: Exchange;
    try {
      if (signal?.aborted) throw new SendAbortedError(delivery.id);
      const target = this.#targets.of(delivery.url);
      const request: Dispatcher.DispatchOptions = {
        origin: target.origin,
        path: target.path,
        method: "POST",
        headers: this.#wire.of(delivery, Math.floor(startedAt.getTime() / 1000)),
        body: delivery.payload as Buffer,
      };
      exchange = new Exchange(this.#host, delivery, request, target.host, startedAt, signal);
    } catch (error) {
      return Promise.reject(unsent(error, delivery, startedAt));
    }
    if (signal) this.#watch(signal, exchange);
    this.#deadlines.add(exchange);
    this.#dispatcher.dispatch(exchange.request, exchange);
    return exchange.result.promise;
  }

  /** Lets running exchanges end and closes idle connections; a dispatcher that was given stays open. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#pool?.close();
    // An exchange that ran on the pool may have been sent again here meanwhile.
    await this.#fresh?.close();
    this.#deadlines.close();
  }

  #again(exchange: Exchange): void {
    if (!this.#pool) {
      this.#dispatcher.dispatch(exchange.request, exchange);
      return;
    }
    this.#fresh ??= this.#makeAgent(0);
    this.#fresh.dispatch(exchange.request, exchange);
  }

  /** One listener for each signal: workers give the same one to hundreds of sends. */
  #watch(signal: AbortSignal, exchange: Exchange): void {
    let running = this.#bySignal.get(signal);
    if (!running) {
      const set = new Set<Exchange>();
      running = set;
      this.#bySignal.set(signal, set);
      const abort = (): void => {
        for (const each of [...set]) each.abort();
      };
      signal.addEventListener("abort", abort, { once: true });
    }
    running.add(exchange);
  }

  #ended(exchange: Exchange): void {
    this.#deadlines.remove(exchange);
    if (exchange.signal) this.#bySignal.get(exchange.signal)?.delete(exchange);
  }
}

function isDispatcher(value: object): value is Dispatcher {
  return "dispatch" in value && typeof value.dispatch === "function";
}

/** The rejection for a request that could not be made. */
function unsent(error: unknown, delivery: Delivery, startedAt: Date): Error {
  if (error instanceof SendAbortedError) return error;
  const details = { startedAt, durationMs: 0 };
  if (error instanceof TransportFailure) return new DeliveryError(error.code, error.message, details);
  if (error instanceof ValidationError)
    return new DeliveryError(
      "invalid_request",
      `The secret of subscription ${delivery.subscriptionId} cannot sign: ${error.message}`,
      details,
    );
  return error instanceof Error ? error : new Error(String(error));
}
