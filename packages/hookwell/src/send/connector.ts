import { isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { buildConnector } from "undici";
import { AddressAttempts } from "./address-attempts.ts";
import type { AddressGuard } from "./address-guard.ts";
import { systemCode, TransportFailure, transportFailure } from "./failures.ts";
import { noteBytesReceived } from "./received.ts";
import { type Resolver, resolveOnce } from "./resolver.ts";

export interface ConnectorOptions {
  readonly guard: AddressGuard;
  readonly resolver: Resolver;
  /** Name look-up, TCP and TLS together. */
  readonly connectMs: number;
  /** How long one address may stay silent before the next is tried beside it. */
  readonly nextAddressMs: number;
  readonly ca?: ConnectionOptions["ca"];
}

/**
 * How connections are made: every address of the name is decided on, and the connection goes to one of exactly
 * those, while Host and SNI keep the name. The answer of a second look-up can therefore change nothing.
 */
export function guardedConnector(given: ConnectorOptions): buildConnector.connector {
  const options = { ...given, resolver: resolveOnce(given.resolver) };
  return (target, callback) => {
    open(target, options).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

async function open(target: buildConnector.Options, options: ConnectorOptions): Promise<Socket> {
  const secure = target.protocol === "https:";
  const port = Number(target.port || (secure ? 443 : 80));
  const host = `${isIP(target.hostname) === 6 ? `[${target.hostname}]` : target.hostname}:${port}`;
  const limit = new ConnectLimit(options.connectMs);
  try {
    const addresses = await limit.race(
      options.resolver(target.hostname),
      () =>
        new TransportFailure(
          "dns_failed",
          `${target.hostname} could not be looked up in ${options.connectMs} ms`,
        ),
    );
    for (const { address } of addresses) {
      const reason = options.guard.refusal(address, target.protocol);
      if (reason)
        throw new TransportFailure("blocked_address", `${target.hostname} leads to an address ${reason}`);
    }
    const slow = (): TransportFailure =>
      new TransportFailure(
        "connect_timeout",
        `No connection to ${host} was ready in ${options.connectMs} ms`,
      );
    const attempts = new AddressAttempts(addresses, port, options.nextAddressMs);
    const socket = await limit.race(attempts.first(), slow, () => attempts.giveUp());
    if (!secure) return socket;
    return await limit.race(handshake(socket, target, options), slow, () => socket.destroy());
  } catch (error) {
    throw transportFailure(error, host);
  } finally {
    limit.clear();
  }
}

/** One limit over several steps. */
class ConnectLimit {
  readonly #timer: NodeJS.Timeout;
  #passed = false;
  #onPass: (() => void) | undefined;

  constructor(ms: number) {
    this.#timer = setTimeout(() => {
      this.#passed = true;
      this.#onPass?.();
    }, ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  /** The result of a step, or the failure when the limit passes first; `cancel` then ends the step. */
  race<T>(step: Promise<T>, failure: () => TransportFailure, cancel: () => void = () => {}): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#onPass = () => {
        reject(failure());
        cancel();
      };
      if (this.#passed) this.#onPass();
      step.then(resolve, reject);
    });
  }
}

function handshake(
  socket: Socket,
  target: buildConnector.Options,
  options: ConnectorOptions,
): Promise<Socket> {
  const name = target.servername || target.hostname;
  return new Promise((resolve, reject) => {
    const secure = connectTls({
      socket,
      host: name,
      // SNI carries names only, without the dot that ends a full one.
      servername: isIP(name) ? "" : name.replace(/\.$/, ""),
      ALPNProtocols: ["http/1.1"],
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    });
    const failed = (error: Error): void => {
      const closed = ["ECONNRESET", "EPIPE"].includes(systemCode(error));
      reject(
        closed
          ? new TransportFailure("tls_failed", `${name} closed the connection in the TLS handshake`)
          : error,
      );
    };
    noteBytesReceived(secure);
    secure.once("error", failed);
    secure.once("secureConnect", () => {
      secure.off("error", failed);
      resolve(secure);
    });
  });
}
