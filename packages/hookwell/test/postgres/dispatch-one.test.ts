import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deliveryId } from "../../src/model/ids.ts";
import type { NewSubscription } from "../../src/model/subscription.ts";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await TestDatabase.make();
  pool = database.pool();
});
afterAll(() => database.drop());

const leaseMs = 30_000;
const exchange = { startedAt: new Date(1_700_000_000_000), durationMs: 5, statusCode: 200 };
const room = { limit: 2, leaseMs, room: 1 };

async function endpointsOf(projectId: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query(
    "SELECT id, endpoint_id FROM hookwell.subscription WHERE project_id = $1",
    [projectId],
  );
  return new Map(rows.map((row) => [row.id, row.endpoint_id]));
}

/** Dispatches one event to the first subscriptions of the project. */
async function dispatch(store: PostgresOutbox, projectId: string, id: string, lanes = 2) {
  const endpoints = await endpointsOf(projectId);
  const deliveries = ["a", "b", "c"].slice(0, lanes).map((name) => ({
    id: deliveryId(id, `sub_${projectId}_${name}`),
    subscriptionId: `sub_${projectId}_${name}`,
    endpointId: endpoints.get(`sub_${projectId}_${name}`) ?? "",
    variant: "v",
  }));
  const bodies = [{ variant: "v", bytes: Buffer.from(`{"id":"${id}"}`) }];
  return await store.dispatch([{ projectId, id, bodies, deliveries, patch: '{"more":1}' }], null, room);
}

/** What happened before. */
type Before = (store: PostgresOutbox, projectId: string) => Promise<unknown>;

async function settle(store: PostgresOutbox, projectId: string): Promise<void> {
  await store.capture(own, [eventInput(`evt_${projectId}_before`, { projectId })]);
  const { deliveries } = await dispatch(store, projectId, `evt_${projectId}_before`);
  await store.record(
    deliveries.map(({ id, leaseToken }) => ({ kind: "delivered", id, leaseToken: leaseToken!, exchange })),
    null,
  );
}

const setLane = (projectId: string, set: string): Promise<unknown> =>
  pool.query(`UPDATE hookwell.lane SET ${set} WHERE subscription_id = 'sub_${projectId}_a'`);

const cases: Readonly<
  Record<
    string,
    {
      readonly before?: Before;
      readonly after?: (store: PostgresOutbox) => Promise<unknown>;
      readonly lanes?: number;
      readonly extra?: Partial<NewSubscription>;
    }
  >
> = {
  "lanes that nothing was ever sent to": {},
  "lanes that sleep": {
    before: async (store, projectId) => {
      await settle(store, projectId);
      await store.claim({ now: null, limit: 10, leaseMs });
    },
  },
  "a lane that is not there": {
    before: (_store, projectId) =>
      pool.query(`DELETE FROM hookwell.lane WHERE subscription_id = 'sub_${projectId}_a'`),
  },
  "a paused one": {
    before: (store, projectId) =>
      store.setSubscriptionStatus(own, `sub_${projectId}_a`, "paused", undefined, {}),
  },
  "one with a bound": { extra: { maxInFlight: 3 } },
  "one with an open circuit": {
    before: (_store, projectId) => setLane(projectId, "opened_at = 1, probe_at = 1"),
  },
  "one that rests": { before: (_store, projectId) => setLane(projectId, "hold_until = 9000000000000") },
  "one with an older row that is due": {
    before: async (store, projectId) => {
      await store.capture(own, [eventInput(`evt_${projectId}_older`, { projectId })]);
      const { dispatched } = await store.dispatch(
        [
          {
            projectId,
            id: `evt_${projectId}_older`,
            bodies: [{ variant: "v", bytes: Buffer.from("{}") }],
            deliveries: [
              {
                id: `dlv_${projectId}_older`,
                subscriptionId: `sub_${projectId}_a`,
                endpointId: (await endpointsOf(projectId)).get(`sub_${projectId}_a`)!,
                variant: "v",
              },
            ],
          },
        ],
        null,
      );
      expect(dispatched).toHaveLength(1);
    },
  },
  "an operator who holds something": {
    before: (store) => store.setHold(own, { id: "hld_other", selector: { projectId: "other" } }, null),
    after: (store) => store.releaseHold(own, { id: "hld_other" }),
  },
  "more lanes than there is room for": { lanes: 3 },
  "an event that was dispatched already": {
    before: async (store, projectId) => {
      await store.dispatch([{ projectId, id: `evt_${projectId}`, bodies: [], deliveries: [] }], null);
    },
  },
  "no subscription": { lanes: 0 },
};

describe("the short statement for one event writes what the one for everything writes:", () => {
  for (const [name, { before, after, lanes, extra = {} }] of Object.entries(cases))
    test(name, async () => {
      const seen = [];
      for (const kind of ["short", "long"]) {
        const store = await database.store({ pool });
        const projectId = `${kind}${Object.keys(cases).indexOf(name)}`;
        for (const part of ["a", "b", "c"])
          await store.createSubscription(
            own,
            subscriptionInput(`sub_${projectId}_${part}`, { projectId, ...(part === "a" && extra) }),
          );
        await store.capture(own, [eventInput(`evt_${projectId}`, { projectId })]);
        await before?.(store, projectId);
        // What led nowhere is not tried for a while.
        if (kind === "long") await dispatch(store, "nobody", "evt_nobody");
        const result = await dispatch(store, projectId, `evt_${projectId}`, lanes);
        await after?.(store);
        const { rows } = await pool.query(
          `SELECT d.id, d.subscription_id, d.status, d.attempts, d.round, d.variant, d.type, d.order_key, d.order_at,
            d.lease_token IS NOT NULL AS leased, d.lease_until - d.created_at AS lease, d.due_at - d.created_at AS due,
            d.next_attempt_at - d.created_at AS next, e.state, e.patch, e.dispatched_at = d.created_at AS together,
            convert_from(b.bytes, 'UTF8') AS body, l.ready
           FROM hookwell.event e
           LEFT JOIN hookwell.delivery d ON d.event_id = e.id
           LEFT JOIN hookwell.body b ON b.event_id = e.id AND b.variant = d.variant
           LEFT JOIN hookwell.lane l ON l.subscription_id = d.subscription_id
           WHERE e.id = $1 ORDER BY d.subscription_id`,
          [`evt_${projectId}`],
        );
        const { rows: counts } = await pool.query(
          "SELECT sum(dispatched)::int AS n FROM hookwell.minute_count WHERE project_id = $1",
          [projectId],
        );
        seen.push(
          JSON.stringify({
            rows,
            counts,
            claimed: result.deliveries.map(({ subscriptionId }) => subscriptionId),
          })
            .replaceAll(projectId, "PROJECT")
            .replace(/dlv_[0-9a-f]{32}/g, "dlv"),
        );
      }
      expect(seen[0]).toBe(seen[1]);
    });
});
