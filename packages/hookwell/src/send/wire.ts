import type { Delivery } from "../model/delivery.ts";
import { ConfigurationError } from "../model/errors.ts";
import { version as packageVersion } from "../model/version.ts";
import { bodySignature, standardSignature } from "./signatures.ts";

/** Renames or drops what shows the name Hookwell, for products that show their own. */
export interface WireOptions {
  /** Beginning of the names of our own headers, a hyphen last. Default `x-hookwell-`. */
  readonly headerPrefix?: string;
  /** Default `Hookwell/<version>`. */
  readonly userAgent?: string;
  /** False drops `webhook-id`, `webhook-timestamp` and `webhook-signature` (Standard Webhooks). */
  readonly standard?: boolean;
  /** False drops the signature of the body alone, `x-hookwell-signature`. */
  readonly body?: boolean;
}

export const defaultHeaderPrefix = "x-hookwell-";

/** The prefix of our own headers in lower case. @throws ConfigurationError when no header may begin so. */
export function headerPrefixOf(wire: WireOptions): string {
  const prefix = (wire.headerPrefix ?? defaultHeaderPrefix).toLowerCase();
  if (!/^[a-z][a-z0-9-]{0,62}-$/.test(prefix) || prefix.startsWith("webhook-"))
    throw new ConfigurationError(
      'wire.headerPrefix must be letters, digits and hyphens that end with a hyphen, such as "x-acme-", and not begin with "webhook-".',
    );
  return prefix;
}

/** Makes the headers of one attempt, names and values one after the other, in the order they are sent in. */
export class WireHeaders {
  readonly #common: readonly string[];
  readonly #standard: boolean;
  readonly #body: boolean;
  readonly #event: string;
  readonly #delivery: string;
  readonly #attempt: string;
  readonly #signature: string;

  /** @throws ConfigurationError */
  constructor(wire: WireOptions = {}, version = packageVersion) {
    const prefix = headerPrefixOf(wire);
    const userAgent = wire.userAgent ?? `Hookwell/${version}`;
    if (!/^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/.test(userAgent))
      throw new ConfigurationError("wire.userAgent must be 1 to 256 visible ASCII characters.");
    this.#standard = wire.standard ?? true;
    this.#body = wire.body ?? true;
    if (!this.#standard && !this.#body)
      throw new ConfigurationError(
        "wire.standard and wire.body are both off, so webhooks would not be signed; leave one on.",
      );
    this.#common = ["content-type", "application/json", "user-agent", userAgent];
    this.#event = `${prefix}event`;
    this.#delivery = `${prefix}delivery`;
    this.#attempt = `${prefix}attempt`;
    this.#signature = `${prefix}signature`;
  }

  /** @throws ValidationError when a secret cannot be used. */
  of(delivery: Delivery, timestampSeconds: number): string[] {
    const { eventId, payload, secret } = delivery;
    const headers = [...this.#common];
    if (this.#standard)
      headers.push(
        "webhook-id",
        eventId,
        "webhook-timestamp",
        String(timestampSeconds),
        "webhook-signature",
        standardSignature(delivery.secrets ?? [secret], eventId, timestampSeconds, payload),
      );
    if (delivery.type !== undefined) headers.push(this.#event, delivery.type);
    headers.push(this.#delivery, delivery.id, this.#attempt, String(Math.max(1, delivery.attempts)));
    if (this.#body) headers.push(this.#signature, bodySignature(secret, payload));
    if (delivery.headers)
      for (const [name, value] of Object.entries(delivery.headers)) headers.push(name, value);
    return headers;
  }
}
