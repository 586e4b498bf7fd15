import type { DatabaseSync } from "node:sqlite";
import { nodeSqlite } from "../../src/adapters/node-sqlite.ts";
import type { SyncTxAdapter } from "../../src/adapters/seam.ts";
import type { CaptureInput } from "../../src/model/event.ts";
import { deliveryId } from "../../src/model/ids.ts";
import type { Logger } from "../../src/model/observe.ts";
import type { NewSubscription } from "../../src/model/subscription.ts";
import type { RetentionPolicy, Scope } from "../../src/store/contract.ts";
import type { SqliteOutbox } from "../../src/store/sqlite/index.ts";

export const own: Scope & { kind: "own" } = { kind: "own" };
export const day = 86_400_000;
export const retention: RetentionPolicy = {
  deliveredMs: 30 * day,
  failedMs: 90 * day,
  eventsMs: 30 * day,
  heldMs: 30 * day,
};

/** The transaction that is open on a handle of node:sqlite. */
export function hostScope(database: DatabaseSync): Extract<Scope, { kind: "sync" }> {
  return { kind: "sync", adapter: nodeSqlite() as SyncTxAdapter<unknown>, tx: database };
}

export function event(id: string, overrides: Partial<CaptureInput> = {}): CaptureInput {
  return {
    projectId: "live",
    id,
    type: "user.created",
    occurredAt: new Date(0),
    data: `{"id":"${id}"}`,
    route: "user.created",
    contentHash: `hash of ${id}`,
    ...overrides,
  };
}

export function subscription(id: string, overrides: Partial<NewSubscription> = {}): NewSubscription {
  return {
    id,
    projectId: "live",
    url: "https://receiver.example/hook",
    eventTypes: [],
    ordering: "none",
    secret: "whsec_c2VjcmV0IG9mIHRoZSBzdWJzY3JpcHRpb24gaGVyZQ==",
    headers: { authorization: "Bearer header-credential" },
    ...overrides,
  };
}

/** Dispatches every new event to the given subscription. */
export async function dispatchNew(store: SqliteOutbox, limit = 100): Promise<number> {
  const events = await store.takeNew(["user.created"], limit, null);
  const [matches = []] = await store.matchSubscriptions([{ projectId: "live", filters: [""] }]);
  const { dispatched: done } = await store.dispatch(
    events.map(({ projectId, id, data }) => ({
      projectId,
      id,
      bodies: [{ variant: "v", bytes: Buffer.from(data) }],
      deliveries: matches.map(({ subscriptionId, endpointId }) => ({
        id: deliveryId(id, subscriptionId),
        subscriptionId,
        endpointId,
        variant: "v",
      })),
    })),
    null,
  );
  return done.length;
}

/** Claims and records every due row as delivered; answers their event ids. */
export async function deliverDue(store: SqliteOutbox, limit = 100): Promise<string[]> {
  const { deliveries } = await store.claim({ now: null, limit, leaseMs: 30_000 });
  const exchange = { startedAt: new Date(1), durationMs: 1, statusCode: 200 };
  await store.record(
    deliveries.map(({ id, leaseToken }) => ({ id, leaseToken: leaseToken!, kind: "delivered", exchange })),
    null,
  );
  return deliveries.map((delivery) => delivery.eventId);
}

/** A logger that remembers. */
export function listeningLogger(): Logger & { readonly lines: string[] } {
  const lines: string[] = [];
  const add = (message: string): void => {
    lines.push(message);
  };
  return { lines, info: add, warn: add, error: add };
}
