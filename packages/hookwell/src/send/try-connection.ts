import type { AddressGuard } from "./address-guard.ts";
import { guardedConnector } from "./connector.ts";
import { hostOf } from "./endpoint-url.ts";
import { TransportFailure } from "./failures.ts";
import type { Resolver } from "./resolver.ts";
import { Targets } from "./target.ts";

/** How far a connection came. */
export type ConnectionTrial =
  | { readonly ok: true; readonly ms: number }
  /** `code` and `message` as an attempt would have them. */
  | { readonly ok: false; readonly code: string; readonly message: string };

export interface TrialOptions {
  readonly guard: AddressGuard;
  readonly resolver: Resolver;
  readonly connectMs: number;
  readonly nextAddressMs: number;
}

/**
 * Opens a connection to where a url leads as a send does (look-up, address guard, TCP, TLS) and closes it: no request
 * is made. Ends within the limit of a connection.
 */
export async function tryConnection(url: string, options: TrialOptions): Promise<ConnectionTrial> {
  const began = performance.now();
  try {
    const { origin } = new Targets(options.guard).of(url);
    await connected(new URL(origin), options);
    return { ok: true, ms: Math.round(performance.now() - began) };
  } catch (error) {
    if (!(error instanceof TransportFailure)) throw error;
    return { ok: false, code: error.code, message: error.message };
  }
}

function connected(url: URL, options: TrialOptions): Promise<void> {
  const { protocol, host, port } = url;
  return new Promise((resolve, reject) => {
    guardedConnector(options)({ protocol, hostname: hostOf(url), host, port }, (error, socket) => {
      if (error) return reject(error);
      // What it says now is of no interest.
      socket.on("error", () => {});
      socket.destroy();
      resolve();
    });
  });
}
