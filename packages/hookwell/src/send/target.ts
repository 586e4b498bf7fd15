import type { AddressGuard } from "./address-guard.ts";
import { isAddress, refusalOf } from "./endpoint-url.ts";
import { TransportFailure } from "./failures.ts";

/** A url taken apart for sending. */
export interface Target {
  readonly origin: string;
  readonly path: string;
  /** Host and port, for messages: no path, query or credentials. */
  readonly host: string;
}

/**
 * Takes urls apart and decides what can be decided without a look-up, each url once. Connections to names are
 * decided on by the connector; one to an address never asks a resolver, so it is decided on here as well.
 */
export class Targets {
  readonly #guard: AddressGuard;
  readonly #known = new Map<string, Target | TransportFailure>();
  readonly #size = 10_000;

  constructor(guard: AddressGuard) {
    this.#guard = guard;
  }

  /** @throws TransportFailure `invalid_request` or `blocked_address` */
  of(url: string): Target {
    let target = this.#known.get(url);
    if (target === undefined) {
      target = parse(url, this.#guard);
      if (this.#known.size >= this.#size) this.#known.delete(this.#known.keys().next().value as string);
      this.#known.set(url, target);
    }
    if (target instanceof TransportFailure) throw target;
    return target;
  }
}

function parse(url: string, guard: AddressGuard): Target | TransportFailure {
  if (!URL.canParse(url))
    return new TransportFailure("invalid_request", "The url of the endpoint is malformed");
  const parsed = new URL(url);
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:")
    return new TransportFailure("invalid_request", "The url of the endpoint must begin with https://");
  if (parsed.username !== "" || parsed.password !== "")
    return new TransportFailure(
      "invalid_request",
      `The url at ${parsed.host} has a user name or password; send them in an authorization header instead`,
    );
  const refusal = refusalOf(parsed, guard);
  if (refusal)
    return new TransportFailure(
      "blocked_address",
      `The url of the endpoint ${refusal}${isAddress(parsed) ? "" : ` (${parsed.hostname})`}`,
    );
  return { origin: parsed.origin, path: parsed.pathname + parsed.search, host: parsed.host };
}
