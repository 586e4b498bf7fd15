import type { Delivery, Outcome } from "../../model/delivery.ts";
import { EncryptionKeyError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import type { Database } from "./database.ts";
import type { EndpointBook } from "./endpoints.ts";
import { type Loaded, loadDeliveries } from "./loading.ts";
import { recordOutcomes } from "./record.ts";

/** How a claimed row ends that is not sent. */
type Unsent =
  | { readonly kind: "released" }
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly errorCode: string;
      readonly error: string;
    };

const damaged = "The stored body or endpoint version of this delivery is missing or damaged.";
const unreadable: Unsent = {
  kind: "failed",
  reason: "unreadable",
  errorCode: "unreadable",
  error: damaged,
};

/**
 * What was claimed, read after the claim was committed. Rows whose subscription was stopped are given back, and
 * rows that lost their body or endpoint fail: neither may stop the others.
 */
export async function lastLook(
  db: Database,
  endpoints: EndpointBook,
  rows: readonly { readonly id: string; readonly leaseToken: string }[],
  now: string | null,
  logger: Logger | undefined,
): Promise<Delivery[]> {
  const tokens = new Map(rows.map(({ id, leaseToken }) => [id, leaseToken]));
  const giveUp = async (ids: readonly string[], how: Unsent): Promise<void> => {
    if (ids.length === 0) return;
    const outcomes = ids.map((id): Outcome => ({ ...how, id, leaseToken: tokens.get(id)! }));
    await recordOutcomes(db, outcomes, now, logger);
  };
  let loaded: Loaded[];
  try {
    loaded = await loadDeliveries(db, endpoints, [...tokens.keys()], now);
  } catch (error) {
    // A process without the key must not spend attempts that another one could use.
    if (error instanceof EncryptionKeyError) await giveUp([...tokens.keys()], { kind: "released" });
    throw error;
  }
  // A row cancelled since the claim has lost its token.
  const ours = loaded.filter(({ delivery }) => delivery.leaseToken === tokens.get(delivery.id));
  const isStopped = ({ subscriptionStatus: status }: Loaded): boolean =>
    status !== undefined && status !== "active";
  await giveUp(
    ours.filter(isStopped).map(({ delivery }) => delivery.id),
    { kind: "released" },
  );
  const readable = new Set(loaded.map(({ delivery }) => delivery.id));
  const lost = [...tokens.keys()].filter((id) => !readable.has(id));
  for (const id of lost) logger?.error(`hookwell: delivery ${id} is not sent. ${damaged}`);
  await giveUp(lost, unreadable);
  return ours.filter((item) => !isStopped(item)).map(({ delivery }) => delivery);
}
