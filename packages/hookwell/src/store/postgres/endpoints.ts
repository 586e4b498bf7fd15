import type { EndpointSecret } from "../../model/subscription.ts";
import { endpointName } from "../sealed-places.ts";
import type { KeyRing } from "../sealing.ts";
import { type Database, oneOf, textsFor } from "./database.ts";
import { text } from "./rows.ts";

/** Where a delivery goes and what signs it, as it was when the version was made. It never changes. */
export interface Endpoint {
  readonly id: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The first one is the key of the body signature. */
  readonly secrets: readonly EndpointSecret[];
}

interface Sealed {
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly { readonly secret: string; readonly expires_at?: number }[];
}

const mostKnown = 10_000;

/** Seals the parts of a version that are nobody else's business; the text opens for this version only. */
export function sealEndpoint(keys: KeyRing, endpoint: Omit<Endpoint, "url">): string {
  const content: Sealed = {
    headers: endpoint.headers,
    secrets: endpoint.secrets.map(({ secret, expiresAt }) =>
      expiresAt ? { secret, expires_at: expiresAt.getTime() } : { secret },
    ),
  };
  return keys.seal(JSON.stringify(content), endpointName(endpoint.id));
}

export function openEndpoint(keys: KeyRing, id: string, url: string, sealed: string): Endpoint {
  const content = JSON.parse(keys.open(sealed, endpointName(id))) as Sealed;
  const secrets = content.secrets.map(
    ({ secret, expires_at }): EndpointSecret =>
      expires_at === undefined ? { secret } : { secret, expiresAt: new Date(expires_at) },
  );
  return { id, url, headers: content.headers, secrets };
}

/** Undefined for a version that somebody damaged. */
function openWhole(keys: KeyRing, id: string, url: string, sealed: string): Endpoint | undefined {
  try {
    return openEndpoint(keys, id, url, sealed);
  } catch (error) {
    if (keys.lacksKeyOf(sealed)) throw error;
    return undefined;
  }
}

const texts = textsFor(
  (s) => `SELECT e.id, e.url, e.sealed
FROM ${s}.endpoint e
WHERE ${oneOf("e.id", "SELECT want.id FROM jsonb_array_elements_text($1::text::jsonb) AS want(id)")}`,
);

/** Opened endpoint versions. They are immutable, so what was opened once stays known. */
export class EndpointBook {
  readonly #db: Database;
  readonly #keys: () => KeyRing;
  readonly #known = new Map<string, Endpoint>();

  constructor(db: Database, keys: () => KeyRing) {
    this.#db = db;
    this.#keys = keys;
  }

  /** Versions by id; one that is no longer stored, or damaged, is left out. @throws EncryptionKeyError for a key that is missing here */
  async get(ids: ReadonlySet<string>): Promise<ReadonlyMap<string, Endpoint>> {
    const unknown = [...ids].filter((id) => !this.#known.has(id));
    if (unknown.length > 0) {
      const rows = await this.#db.run({
        text: texts(this.#db.schema),
        params: [JSON.stringify(unknown)],
      });
      for (const row of rows) {
        const endpoint = openWhole(this.#keys(), text(row, "id"), text(row, "url"), text(row, "sealed"));
        if (endpoint) this.#known.set(endpoint.id, endpoint);
      }
    }
    const found = new Map<string, Endpoint>();
    for (const id of ids) {
      const endpoint = this.#known.get(id);
      if (endpoint) found.set(id, endpoint);
    }
    for (const id of this.#known.keys()) {
      if (this.#known.size <= mostKnown) break;
      this.#known.delete(id);
    }
    return found;
  }
}
