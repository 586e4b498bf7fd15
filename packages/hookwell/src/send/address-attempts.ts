import { connect as connectTcp, type Socket } from "node:net";
import { noteBytesReceived } from "./received.ts";
import type { ResolvedAddress } from "./resolver.ts";

/**
 * Tries addresses one after the other, families in turn: the next one starts when the last has failed or has
 * been silent for a while, without ending it, and the first connection wins (RFC 8305).
 */
export class AddressAttempts {
  readonly #queue: ResolvedAddress[];
  readonly #port: number;
  readonly #nextMs: number;
  readonly #open = new Set<Socket>();
  readonly #result = Promise.withResolvers<Socket>();
  #timer: NodeJS.Timeout | undefined;
  #firstError: Error | undefined;
  #done = false;

  constructor(addresses: readonly ResolvedAddress[], port: number, nextMs: number) {
    this.#queue = inTurns(addresses);
    this.#port = port;
    this.#nextMs = nextMs;
  }

  first(): Promise<Socket> {
    this.#next();
    return this.#result.promise;
  }

  giveUp(winner?: Socket): void {
    this.#done = true;
    clearTimeout(this.#timer);
    for (const socket of this.#open) if (socket !== winner) socket.destroy();
    this.#open.clear();
  }

  #next(): void {
    clearTimeout(this.#timer);
    const target = this.#queue.shift();
    if (this.#done || !target) return;
    const socket = connectTcp({ host: target.address, port: this.#port, noDelay: true, keepAlive: true });
    this.#open.add(socket);
    noteBytesReceived(socket);
    socket.once("error", (error: Error) => this.#failed(socket, error));
    socket.once("connect", () => {
      if (this.#done) return;
      this.giveUp(socket);
      this.#result.resolve(socket);
    });
    if (this.#queue.length > 0) this.#timer = setTimeout(() => this.#next(), this.#nextMs);
  }

  #failed(socket: Socket, error: Error): void {
    if (!this.#open.delete(socket) || this.#done) return;
    this.#firstError ??= error;
    if (this.#queue.length > 0) this.#next();
    else if (this.#open.size === 0) this.#result.reject(this.#firstError);
  }
}

/** The order of the resolver, with the families taking turns. */
function inTurns(addresses: readonly ResolvedAddress[]): ResolvedAddress[] {
  const family = addresses[0]?.family;
  const same = addresses.filter((address) => address.family === family);
  const other = addresses.filter((address) => address.family !== family);
  return same
    .flatMap((address, index) => [address, ...other.slice(index, index + 1)])
    .concat(other.slice(same.length));
}
