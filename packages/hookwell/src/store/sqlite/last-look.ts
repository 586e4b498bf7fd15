import { type Row, runProgramSync } from "../../adapters/seam.ts";
import type { Delivery } from "../../model/delivery.ts";
import { EncryptionKeyError, StorageError } from "../../model/errors.ts";
import type { KeyRing } from "../sealing.ts";
import type { Connection } from "./connection.ts";
import { deliveryColumns, deliveryJoins, toDelivery, toUnreadable } from "./delivery-rows.ts";
import { type Endpoint, type EndpointCache, readEndpoint } from "./endpoints.ts";
import { activeHolds, coveringHold } from "./holds.ts";
import { optionalText, text } from "./rows.ts";

/** Parameters: ids (JSON), in the order wanted. */
const lookText = `
SELECT ${deliveryColumns}, s.status AS subscription_status
FROM json_each(?) j
CROSS JOIN hookwell_delivery d INDEXED BY hookwell_delivery_id ON d.id = j.value
${deliveryJoins}
LEFT JOIN hookwell_subscription s ON s.id = d.subscription_id
ORDER BY j.key`;

interface Claim {
  readonly id: string;
  readonly leaseToken: string;
}

/** What is there to send, and what must not be sent now. */
export interface Look {
  readonly deliveries: readonly Delivery[];
  /** Rows of subscriptions that are no longer active, and what an operator holds. */
  readonly inactive: readonly Claim[];
  /** Rows whose body or endpoint version is missing or damaged. */
  readonly unreadable: readonly Delivery[];
  /** An endpoint is sealed with a key that this process has not: nothing is sent, all are given back. */
  readonly missingKey?: EncryptionKeyError;
}

/** Reads claimed rows as they are after the claim was committed. A row that was cancelled since is left out. */
export function lookAt(
  connection: Connection,
  endpoints: Endpoints,
  ids: readonly string[],
  token: string,
  now: number,
): Look {
  const deliveries: Delivery[] = [];
  const inactive: Claim[] = [];
  const unreadable: Delivery[] = [];
  const claims: Claim[] = [];
  const holds = activeHolds(connection);
  let missingKey: EncryptionKeyError | undefined;
  for (const row of connection.all(lookText, [JSON.stringify(ids)])) {
    const leaseToken = optionalText(row.lease_token);
    if (!leaseToken?.startsWith(`${token}.`)) continue;
    const claim = { id: text(row.id), leaseToken };
    const status = optionalText(row.subscription_status);
    const isHeld = coveringHold(holds, { projectId: text(row.project_id), type: text(row.type) });
    if (isHeld || (status !== undefined && status !== "active")) inactive.push(claim);
    else if (!missingKey) {
      try {
        const delivery = endpoints.delivery(row, now);
        if (delivery) deliveries.push(delivery);
        else unreadable.push(toUnreadable(row, now));
      } catch (error) {
        if (!(error instanceof EncryptionKeyError)) throw error;
        missingKey = error;
      }
    }
    claims.push(claim);
  }
  // A process without the key must not spend attempts that another one could use.
  if (missingKey) return { deliveries: [], inactive: claims, unreadable: [], missingKey };
  return { deliveries, inactive, unreadable };
}

export const readText = `SELECT ${deliveryColumns} FROM hookwell_delivery d ${deliveryJoins} WHERE d.id = ?`;

/** One row as the engine works on it. @throws StorageError when its body or endpoint is missing or damaged */
export function readDelivery(
  connection: Connection,
  endpoints: Endpoints,
  id: string,
  now: number,
): Delivery | undefined {
  const [row] = connection.all(readText, [id]);
  if (!row) return undefined;
  const delivery = endpoints.delivery(row, now);
  if (delivery) return delivery;
  throw new StorageError(`The stored body or endpoint version of delivery ${id} is missing or damaged.`);
}

/** Opens endpoint versions on our connection, each once. */
export class Endpoints {
  readonly #connection: Connection;
  readonly #ring: () => KeyRing;
  readonly #cache: EndpointCache;

  constructor(connection: Connection, ring: () => KeyRing, cache: EndpointCache) {
    this.#connection = connection;
    this.#ring = ring;
    this.#cache = cache;
  }

  /** Undefined when its body or endpoint is missing or damaged. */
  delivery(row: Row, now: number): Delivery | undefined {
    if (!(row.bytes instanceof Uint8Array)) return undefined;
    const own = this.get(text(row.endpoint_id));
    const newest = optionalText(row.superseded_by);
    const current = newest === undefined ? own : this.get(newest);
    return own && current && toDelivery(row, own, current, now);
  }

  /** Undefined when it is missing, or was changed by somebody else. */
  get(id: string): Endpoint | undefined {
    const known = this.#cache.get(id);
    if (known) return known;
    let endpoint: Endpoint | undefined;
    try {
      endpoint = runProgramSync(readEndpoint(this.#ring(), id), this.#connection.run);
    } catch (error) {
      if (error instanceof EncryptionKeyError && this.#lacksKey(id)) throw error;
      // The ring has its key, so this text alone does not open.
      if (!isDamage(error)) throw error;
    }
    if (endpoint) this.#cache.set(id, endpoint);
    return endpoint;
  }

  #lacksKey(id: string): boolean {
    const [row] = this.#connection.all(sealedText, [id]);
    return row !== undefined && this.#ring().lacksKeyOf(text(row.sealed));
  }
}

const sealedText = "SELECT sealed FROM hookwell_endpoint WHERE id = ?";

function isDamage(error: unknown): boolean {
  return error instanceof EncryptionKeyError || error instanceof SyntaxError;
}
