import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";

/** One request as it came over the wire. */
export interface ReceivedRequest {
  /** 0 for the first request that this receiver got. */
  readonly index: number;
  readonly method: string;
  /** Path and query as sent. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Names and values as sent, one after the other. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** 0 for the first connection: equal numbers mean the same keep-alive connection. */
  readonly connection: number;
}

/**
 * What to answer. A number is a status without a body. `"hang"` never answers, `"reset"` cuts the connection
 * with a TCP reset before any answer.
 */
export type Answer = number | "hang" | "reset" | AnswerParts;

export interface AnswerParts {
  /** Default 200. */
  readonly status?: number;
  /** The reason phrase, sent as given. */
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** An iterable is written piece by piece as it yields: a slow or endless body is one that yields slowly or for ever. */
  readonly body?: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  /** What follows the body: the end (default), nothing ever, or a reset of the connection. */
  readonly ending?: "end" | "hang" | "reset";
}

export interface ReceiverOptions {
  /** Decides the answer to each request; absent = 200 without a body. */
  readonly respond?: (request: ReceivedRequest, index: number) => Answer | Promise<Answer>;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default: any free port. */
  readonly port?: number;
  /** Serves https with this key and certificate (PEM). */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** A real HTTP server that keeps what it is sent and answers as the test says. */
export interface Receiver {
  /** Address with the path /hook. */
  readonly url: string;
  readonly port: number;
  /** Complete requests in the order in which their bodies ended. */
  readonly requests: readonly ReceivedRequest[];
  /** TCP connections accepted so far. */
  readonly connections: number;
  /** Answers whose client went away before they ended. */
  readonly abandoned: number;
  /** Resolves when the predicate holds; it is looked at after every request and every abandoned answer. */
  waitFor(predicate: (receiver: Receiver) => boolean): Promise<void>;
  /** Resolves with all requests so far when there are at least `count`. */
  waitForRequests(count: number): Promise<readonly ReceivedRequest[]>;
  /** Closes keep-alive connections that carry no request now, without notice to the client. */
  closeIdleConnections(): void;
  /**
   * Cuts every connection and stops. Waits that still stand are rejected.
   * @throws what `respond` threw, if it did
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A `respond` that gives these answers in order, the last one for ever after. */
export function answers(...list: readonly [Answer, ...Answer[]]): (request: ReceivedRequest) => Answer {
  return (request) => list[Math.min(request.index, list.length - 1)]!;
}

/** Starts a receiver on a loopback address. Close it, or hold it with `await using`. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const receiver = new RecordingReceiver(options);
  await receiver.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  return receiver;
}

interface Waiter {
  readonly predicate: (receiver: Receiver) => boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

class RecordingReceiver implements Receiver {
  url = "";
  port = 0;
  readonly requests: ReceivedRequest[] = [];
  connections = 0;
  abandoned = 0;
  readonly #options: ReceiverOptions;
  readonly #server: ReturnType<typeof createServer>;
  readonly #sockets = new Map<Socket, number>();
  readonly #waiters = new Set<Waiter>();
  readonly #errors: unknown[] = [];
  #closed = false;

  constructor(options: ReceiverOptions) {
    this.#options = options;
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      this.#handle(request, response).catch((error: unknown) => {
        this.#errors.push(error);
        response.destroy();
      });
    };
    this.#server = options.tls
      ? (createTlsServer(options.tls, handle) as unknown as ReturnType<typeof createServer>)
      : createServer(handle);
    // The test decides how long a connection lives, not a default of the server.
    this.#server.keepAliveTimeout = 0;
    this.#server.requestTimeout = 0;
    this.#server.headersTimeout = 0;
    this.#server.on(options.tls ? "secureConnection" : "connection", (socket: Socket) => {
      this.#sockets.set(socket, this.connections++);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  async listen(port: number, host: string): Promise<void> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    this.port = (this.#server.address() as AddressInfo).port;
    const name = host.includes(":") ? `[${host}]` : host;
    this.url = `${this.#options.tls ? "https" : "http"}://${name}:${this.port}/hook`;
  }

  waitFor(predicate: (receiver: Receiver) => boolean): Promise<void> {
    if (predicate(this)) return Promise.resolve();
    if (this.#closed) return Promise.reject(new Error("The receiver is closed."));
    return new Promise((resolve, reject) => this.#waiters.add({ predicate, resolve, reject }));
  }

  async waitForRequests(count: number): Promise<readonly ReceivedRequest[]> {
    await this.waitFor(() => this.requests.length >= count);
    return this.requests;
  }

  closeIdleConnections(): void {
    this.#server.closeIdleConnections();
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      const ended = once(this.#server, "close");
      this.#server.close();
      for (const socket of this.#sockets.keys()) socket.destroy();
      this.#server.closeAllConnections();
      await ended;
      for (const waiter of this.#waiters)
        waiter.reject(new Error(`The receiver was closed after ${this.requests.length} requests.`));
      this.#waiters.clear();
    }
    if (this.#errors.length > 0) throw this.#errors.shift();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    let leaving = false;
    response.on("error", () => {});
    response.on("close", () => {
      if (response.writableFinished || leaving || this.#closed) return;
      this.abandoned++;
      this.#wake();
    });
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of message) chunks.push(chunk as Buffer);
    } catch {
      return; // The client left inside its own request: no complete request to keep.
    }
    const request: ReceivedRequest = {
      index: this.requests.length,
      method: message.method ?? "",
      path: message.url ?? "",
      headers: message.headers,
      rawHeaders: message.rawHeaders,
      body: Buffer.concat(chunks),
      connection: this.#sockets.get(message.socket) ?? -1,
    };
    this.requests.push(request);
    this.#wake();
    const answer = (await this.#options.respond?.(request, request.index)) ?? 200;
    if (answer === "hang") return;
    if (answer === "reset") {
      leaving = true;
      message.socket.resetAndDestroy();
      return;
    }
    const parts = typeof answer === "number" ? { status: answer } : answer;
    leaving = parts.ending === "reset";
    await write(response, parts);
  }

  #wake(): void {
    for (const waiter of this.#waiters) {
      let holds: boolean;
      try {
        holds = waiter.predicate(this);
      } catch (error) {
        this.#waiters.delete(waiter);
        waiter.reject(error instanceof Error ? error : new Error(String(error)));
        continue;
      }
      if (!holds) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

/** Writes one scripted answer; returns early when the client has left. */
async function write(response: ServerResponse, answer: AnswerParts): Promise<void> {
  const { status = 200, reason, headers = {}, body = "" } = answer;
  for (const [name, value] of Object.entries(headers))
    response.setHeader(name, typeof value === "string" ? value : [...value]);
  if (reason === undefined) response.writeHead(status);
  else response.writeHead(status, reason);
  if (typeof body !== "string" && Symbol.asyncIterator in body) {
    response.flushHeaders();
    for await (const piece of body) {
      if (response.destroyed) return;
      if (!response.write(piece)) await drained(response);
    }
  } else if (body.length > 0) response.write(body);
  else if (answer.ending !== undefined && answer.ending !== "end") response.flushHeaders();
  if (response.destroyed || answer.ending === "hang") return;
  if (answer.ending === "reset") {
    await new Promise<void>((resolve) => response.write("", () => resolve()));
    response.socket?.resetAndDestroy();
    return;
  }
  response.end();
}

/** Resolves when the response takes more, or is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
  });
}
