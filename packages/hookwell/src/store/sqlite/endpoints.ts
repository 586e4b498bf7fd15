import type { Program } from "../../adapters/seam.ts";
import type { EndpointSecret } from "../../model/subscription.ts";
import { endpointName } from "../sealed-places.ts";
import type { KeyRing } from "../sealing.ts";
import { validSecrets } from "../secret-rotation.ts";
import { statement, text } from "./rows.ts";

/** An endpoint version in the clear. Versions never change, so an opened one may be kept. */
export interface Endpoint {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The first is the key of the body signature. */
  readonly secrets: readonly EndpointSecret[];
}

interface SealedPart {
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly { readonly secret: string; readonly expiresAt?: number }[];
}

const insertText = `
INSERT INTO hookwell_endpoint (id, subscription_id, url, sealed, superseded_by, created_at)
VALUES (?, ?, ?, ?, NULL, CAST(? AS INTEGER))`;

/** Stores a version, sealed to its row. */
export function* insertEndpoint(
  ring: KeyRing,
  id: string,
  subscriptionId: string,
  endpoint: Endpoint,
  now: number,
): Program<void> {
  const part: SealedPart = {
    headers: endpoint.headers,
    secrets: endpoint.secrets.map(({ secret, expiresAt }) => ({
      secret,
      ...(expiresAt && { expiresAt: expiresAt.getTime() }),
    })),
  };
  const sealed = ring.seal(JSON.stringify(part), endpointName(id));
  yield statement(insertText, id, subscriptionId, endpoint.url, sealed, now);
}

/** @throws EncryptionKeyError */
export function openEndpoint(ring: KeyRing, id: string, url: string, sealed: string): Endpoint {
  const part = JSON.parse(ring.open(sealed, endpointName(id))) as SealedPart;
  return {
    url,
    headers: part.headers,
    secrets: part.secrets.map(({ secret, expiresAt }) => ({
      secret,
      ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt) }),
    })),
  };
}

const readText = "SELECT url, sealed FROM hookwell_endpoint WHERE id = ?";

/** Reads and opens a version; undefined when there is none. */
export function* readEndpoint(ring: KeyRing, id: string): Program<Endpoint | undefined> {
  const [row] = yield statement(readText, id);
  return row && openEndpoint(ring, id, text(row.url), text(row.sealed));
}

/** Opened versions, the least recently used forgotten first. */
export class EndpointCache {
  readonly #limit: number;
  readonly #opened = new Map<string, Endpoint>();

  constructor(limit = 5_000) {
    this.#limit = limit;
  }

  get(id: string): Endpoint | undefined {
    const endpoint = this.#opened.get(id);
    if (!endpoint) return undefined;
    this.#opened.delete(id);
    this.#opened.set(id, endpoint);
    return endpoint;
  }

  set(id: string, endpoint: Endpoint): void {
    if (this.#opened.size >= this.#limit) this.#opened.delete(this.#opened.keys().next().value!);
    this.#opened.set(id, endpoint);
  }
}

/** Secrets that are valid at a time, and the one of the body signature: the bound one while it is listed. */
export function secretsAt(
  own: Endpoint,
  current: Endpoint,
  now: number,
): { readonly secret: string; readonly secrets: string[] } {
  const secrets = validSecrets(current.secrets, now);
  const bound = own.secrets[0]!.secret;
  return { secret: secrets.includes(bound) ? bound : (secrets[0] ?? bound), secrets };
}
