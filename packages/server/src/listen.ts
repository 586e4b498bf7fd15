import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { ConfigurationError } from "hookwell";

export interface ListenOptions {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** 0 = a free one. */
  readonly port: number;
  /** Address to listen on. Default: every address of the machine. */
  readonly host?: string;
}

/** A server that answers. */
export interface Listening {
  readonly port: number;
  /** Address for people on this machine, such as `http://localhost:8787`. */
  readonly url: string;
  /** Takes no new request and waits for those in work, at most `graceMs` (5,000). */
  close(graceMs?: number): Promise<void>;
}

/** Answers HTTP with a fetch handler. @throws ConfigurationError when the port cannot be had */
export async function listen({ fetch, port, host }: ListenOptions): Promise<Listening> {
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false }) as Server;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(explain(error, port, host)));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    port: bound,
    url: `http://${host && !/^(0\.0\.0\.0|::)$/.test(host) ? bracketed(host) : "localhost"}:${bound}`,
    close: (graceMs = 5_000) => close(server, graceMs),
  };
}

function explain(error: NodeJS.ErrnoException, port: number, host: string | undefined): Error {
  const where = `${host ? `${host} ` : ""}port ${port}`;
  if (error.code === "EADDRINUSE")
    return new ConfigurationError(
      `Cannot listen on ${where}: another program uses it. Stop that program, or set PORT to a free port.`,
      "port_in_use",
    );
  if (error.code === "EACCES")
    return new ConfigurationError(
      `Cannot listen on ${where}: this user may not. Set PORT to one above 1023.`,
      "port_forbidden",
    );
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
    return new ConfigurationError(`Cannot listen on ${where}: HOST is no address of this machine.`);
  return error;
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

async function close(server: Server, graceMs: number): Promise<void> {
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  // A keep-alive connection that has just had its answer would otherwise be waited for.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  try {
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeIdleConnections();
    });
  } finally {
    clearTimeout(timer);
    clearInterval(sweep);
  }
}
