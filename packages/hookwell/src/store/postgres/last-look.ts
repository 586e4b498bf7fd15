import type { Delivery, Outcome } from "../../model/delivery.ts";
import { EncryptionKeyError } from "../../model/errors.ts";
import type { Logger } from "../../model/observe.ts";
import type { ClaimResult } from "../contract.ts";
import type { Database } from "./database.ts";
import type { EndpointBook } from "./endpoints.ts";
import { type Loaded, loadDeliveries } from "./loading.ts";
import { recordOutcomes } from "./record.ts";

const damaged = "The stored body or endpoint version of this delivery is missing or damaged.";
const cause = { reason: "unreadable", errorCode: "unreadable", error: damaged } as const;

/**
 * What was claimed, read after the claim was committed. Rows whose subscription was stopped, or that an operator
 * holds, are given back, and rows that lost their body or endpoint fail: neither may stop the others.
 */
export async function lastLook(
  db: Database,
  endpoints: EndpointBook,
  rows: readonly { readonly id: string; readonly leaseToken: string }[],
  now: string | null,
  logger: Logger | undefined,
): Promise<Pick<ClaimResult, "deliveries" | "failed">> {
  const tokens = new Map(rows.map(({ id, leaseToken }) => [id, leaseToken]));
  const proof = (id: string) => ({ id, leaseToken: tokens.get(id)! });
  let loaded: Loaded[];
  try {
    loaded = await loadDeliveries(db, endpoints, [...tokens.keys()], now);
  } catch (error) {
    // A process without the key must not spend attempts that another one could use.
    if (error instanceof EncryptionKeyError) {
      const released = [...tokens.keys()].map((id): Outcome => ({ ...proof(id), kind: "released" }));
      await recordOutcomes(db, released, now, logger);
    }
    throw error;
  }
  const deliveries: Delivery[] = [];
  const unreadable: Delivery[] = [];
  const unsent: Outcome[] = [];
  for (const { delivery, subscriptionStatus: status, held, unreadable: isLost } of loaded) {
    const { id } = delivery;
    // A row cancelled since the claim has lost its token.
    if (delivery.leaseToken !== tokens.get(id)) continue;
    if (held || (status !== undefined && status !== "active"))
      unsent.push({ ...proof(id), kind: "released" });
    else if (isLost) {
      logger?.error(`hookwell: delivery ${id} is not sent. ${damaged}`);
      unreadable.push(delivery);
      unsent.push({ ...proof(id), kind: "failed", ...cause });
    } else deliveries.push(delivery);
  }
  if (unsent.length === 0) return { deliveries, failed: [] };
  const { recorded } = await recordOutcomes(db, unsent, now, logger);
  const counted = new Map(recorded.map((row) => [row.id, row]));
  const failed = unreadable.flatMap(({ leaseToken: _token, leaseUntil: _until, ...row }) => {
    const { status, attempts } = counted.get(row.id) ?? row;
    return status === "failed" ? [{ ...row, status, attempts, lastError: damaged }] : [];
  });
  return { deliveries, failed };
}
