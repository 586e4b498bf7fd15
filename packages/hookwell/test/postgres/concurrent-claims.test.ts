import { afterAll, beforeAll, expect, test } from "vitest";
import type { HoldSelector } from "../../src/model/hold.ts";
import { deliveryId } from "../../src/model/ids.ts";
import type { PostgresOptions, PostgresOutbox } from "../../src/store/postgres/index.ts";
import { dispatchAll, emitted, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
let stores: PostgresOutbox[];
beforeAll(async () => {
  database = await TestDatabase.make();
  stores = [await database.store(), await database.store()];
});
afterAll(() => database.drop());

const exchange = { startedAt: new Date(), durationMs: 1, statusCode: 200 };

async function fill(projectId: string, lanes: number, events: number): Promise<number> {
  for (let lane = 0; lane < lanes; lane++)
    await stores[0]!.createSubscription(own, subscriptionInput(`sub_${projectId}_${lane}`, { projectId }));
  const inputs = Array.from({ length: events }, (_, i) => emitted(`evt_${projectId}_${i}`, { projectId }));
  for (let i = 0; i < inputs.length; i += 50) await stores[0]!.capture(own, inputs.slice(i, i + 50));
  while ((await dispatchAll(stores[0]!, 500)) > 0);
  return lanes * events;
}

async function drain(store: PostgresOutbox, limit: number, sent: string[]): Promise<void> {
  let cursor = "";
  for (;;) {
    const claim = await store.claim({ now: null, limit, leaseMs: 60_000, cursor });
    cursor = claim.cursor;
    if (claim.deliveries.length === 0) return;
    sent.push(...claim.deliveries.map(({ id }) => id));
    const outcomes = claim.deliveries.map(({ id, leaseToken = "" }) => ({
      id,
      leaseToken,
      kind: "delivered" as const,
      exchange,
    }));
    expect((await store.record(outcomes, null)).stale).toEqual([]);
  }
}

test("field-faults C2: two replicas over twenty endpoints send each delivery once", async () => {
  const rows = await fill("wide", 20, 100);
  const sent: string[] = [];
  await Promise.all(stores.map((store) => drain(store, 50, sent)));
  expect(sent).toHaveLength(rows);
  expect(new Set(sent).size).toBe(rows);
  expect(stores.map((store) => store.staleOutcomes)).toEqual([0, 0]);
});

test("field-faults C2: two replicas of four loops each over one endpoint send each delivery once", async () => {
  const rows = await fill("narrow", 1, 600);
  const sent: string[] = [];
  const loops = [...stores, ...stores, ...stores, ...stores];
  await Promise.all(loops.map((store, i) => drain(store, 7 + i, sent)));
  // A loop that came while others held the last rows may have gone home early, but none is sent twice.
  expect(new Set(sent).size).toBe(sent.length);
  await drain(stores[0]!, 100, sent);
  expect(sent).toHaveLength(rows);
});

test("field-faults C2: two dispatchers that take the same events make each delivery once", async () => {
  await stores[0]!.createSubscription(own, subscriptionInput("sub_both", { projectId: "both" }));
  await stores[0]!.capture(
    own,
    Array.from({ length: 60 }, (_, i) => eventInput(`evt_both_${i}`, { projectId: "both" })),
  );
  const counts = await Promise.all([...stores, ...stores].map((store) => dispatchAll(store)));
  while ((await dispatchAll(stores[1]!)) > 0);
  expect(counts.reduce((a, b) => a + b)).toBeLessThanOrEqual(60);
  const sent: string[] = [];
  await drain(stores[1]!, 100, sent);
  expect(sent).toHaveLength(60);
});

test.each(["deleted", "paused"] as const)(
  "field-faults H1: %s between the claim's commit and the last look, it is given back unsent",
  async (status) => {
    const projectId = `late_${status}`;
    const id = `sub_${projectId}`;
    await fill(projectId, 1, 3);
    const pool = database.pool();
    let claims = 0;
    const store = await database.store({
      pool: {
        async query(text, values) {
          const result = await pool.query(text, values);
          const sql = typeof text === "string" ? text : text.text;
          if (sql.startsWith("WITH RECURSIVE") && result.rows.length > 0 && claims++ === 0)
            await stores[1]!.setSubscriptionStatus(own, `${id}_0`, status, undefined, {});
          return result;
        },
        connect: () => pool.connect(),
      },
    });
    expect((await store.claim({ now: null, limit: 10, leaseMs: 60_000 })).deliveries).toEqual([]);
    expect(claims).toBe(1);
    for (let event = 0; event < 3; event++)
      expect(await store.getDelivery(deliveryId(`evt_${projectId}_${event}`, `${id}_0`), {})).toMatchObject({
        status: "pending",
        attempts: 0,
      });
  },
);

test("sixteen claimers at once get each of 500 rows once", async () => {
  await fill("rush", 5, 100);
  const claims = await Promise.all(
    Array.from({ length: 16 }, (_, i) => stores[i % 2]!.claim({ now: null, limit: 50, leaseMs: 60_000 })),
  );
  const ids = claims.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
  for (;;) {
    const { deliveries } = await stores[0]!.claim({ now: null, limit: 100, leaseMs: 60_000 });
    if (deliveries.length === 0) break;
    ids.push(...deliveries.map(({ id }) => id));
  }
  expect(new Set(ids).size).toBe(500);
  expect(ids).toHaveLength(500);
});

test("a hold that is set between a claim and its last look gives the rows back, without an attempt", async () => {
  const projectId = "late";
  await stores[0]!.createSubscription(own, subscriptionInput("sub_late", { projectId }));
  await stores[0]!.capture(own, [emitted("evt_late", { projectId })]);
  await dispatchAll(stores[0]!);
  const pool = database.pool();
  let set = 0;
  const slow = await database.store({
    pool: {
      connect: () => pool.connect(),
      query: async (text: string, values?: (string | null)[]) => {
        // The last look: the claim is committed.
        if (text.includes("subscription_status") && set++ === 0)
          await stores[0]!.setHold(own, { id: "hld_late", selector: { projectId } }, null);
        return pool.query(text, values);
      },
    } as PostgresOptions["pool"],
  });
  expect((await slow.claim({ now: null, limit: 10, leaseMs: 60_000 })).deliveries).toEqual([]);
  expect(set).toBeGreaterThan(0);
  const { items } = await stores[0]!.listDeliveries({ projectId }, { limit: 10 });
  expect(items).toMatchObject([{ status: "pending", hold: "held", attempts: 0 }]);
  await stores[0]!.releaseHold(own, { projectId });
  const { deliveries } = await slow.claim({ now: null, limit: 10, leaseMs: 60_000 });
  expect(deliveries).toMatchObject([{ eventId: "evt_late", attempts: 1 }]);
});

test("holds that come and go under three workers: nothing is sent that was held throughout, nothing is lost, doubled or reordered", async () => {
  let seed = 20_260_105;
  const random = (most: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * most);
  };
  const projectId = "held";
  for (let lane = 0; lane < 4; lane++)
    await stores[0]!.createSubscription(
      own,
      subscriptionInput(`sub_held_${lane}`, { projectId, ordering: lane % 2 ? "subject" : "none" }),
    );
  const types = ["user.created", "user.updated", "booking.created"];
  const events = Array.from({ length: 120 }, (_, i) =>
    eventInput(`evt_held_${i}`, {
      projectId,
      type: types[i % 3]!,
      route: types[i % 3]!,
      subject: `user:${i % 8}`,
      revision: i >> 3,
    }),
  );
  const place = new Map(events.map(({ id, subject, revision }) => [id, { subject, revision }]));
  const publish = async (part: typeof events): Promise<void> => {
    await stores[0]!.capture(own, part);
    const [matches = []] = await stores[0]!.matchSubscriptions([{ projectId, filters: ["", "user.*"] }]);
    await stores[0]!.dispatch(
      part.map(({ id, data }) => ({
        projectId,
        id,
        bodies: [{ variant: "v", bytes: Buffer.from(data) }],
        deliveries: matches.map((match) => ({
          ...match,
          variant: "v",
          id: deliveryId(id, match.subscriptionId),
        })),
      })),
      null,
    );
  };

  const selectors: readonly HoldSelector[] = [
    { all: true },
    { projectId },
    { type: "user.*" },
    { type: "user.created" },
    { type: "booking.created" },
  ];
  const covers = (selector: HoldSelector, type: string): boolean =>
    !("type" in selector) ||
    selector.type === type ||
    (selector.type === "user.*" && type.startsWith("user."));
  /** Holds that are surely in force: set is done, and release has not begun. */
  const inForce = new Map<HoldSelector, number>();
  let instant = 0;
  let over = false;
  const sent: string[] = [];
  const faults: string[] = [];
  const latest = new Map<string, number>();

  const work = async (store: PostgresOutbox): Promise<void> => {
    let cursor = "";
    for (let idle = 0; idle < 20; ) {
      const began = ++instant;
      const claim = await store.claim({ now: null, limit: 1 + random(12), leaseMs: 60_000, cursor });
      cursor = claim.cursor;
      idle = over && claim.deliveries.length === 0 && !claim.again ? idle + 1 : 0;
      for (const { id, type = "", eventId, subscriptionId } of claim.deliveries) {
        for (const [selector, since] of inForce)
          if (since < began && covers(selector, type)) faults.push(`${id} under ${JSON.stringify(selector)}`);
        const { subject, revision } = place.get(eventId)!;
        const lane = `${subscriptionId} ${subject}`;
        if (Number(subscriptionId.at(-1)) % 2 && (latest.get(lane) ?? -1) > revision!)
          faults.push(`${eventId} after revision ${latest.get(lane)}`);
        latest.set(lane, revision!);
      }
      const outcomes = claim.deliveries.map(({ id, leaseToken = "" }) =>
        random(10) === 0
          ? { id, leaseToken, kind: "released" as const }
          : { id, leaseToken, kind: "delivered" as const, exchange },
      );
      sent.push(...outcomes.filter(({ kind }) => kind === "delivered").map(({ id }) => id));
      expect((await store.record(outcomes, null)).stale).toEqual([]);
    }
  };
  const operate = async (): Promise<void> => {
    for (let n = 0; n < 40; n++) {
      const selector = selectors[random(selectors.length)]!;
      const store = stores[random(2)]!;
      if (n % 4 === 0) await publish(events.splice(0, 12));
      if (inForce.delete(selector)) await store.releaseHold(own, selector);
      else {
        const { created } = await store.setHold(own, { id: `hld_${n}`, selector }, null);
        expect(created).toBe(true);
        inForce.set(selector, ++instant);
      }
      await stores[random(2)]!.giveBackHeld(1 + random(40), null);
    }
    while (events.length > 0) await publish(events.splice(0, 12));
    for (const selector of selectors)
      if (inForce.delete(selector)) await stores[1]!.releaseHold(own, selector);
    while ((await stores[0]!.giveBackHeld(50, null)).more);
    over = true;
  };
  await Promise.all([operate(), work(stores[0]!), work(stores[1]!), work(stores[1]!)]);
  expect(faults).toEqual([]);
  expect(sent).toHaveLength(120 * 4);
  expect(new Set(sent).size).toBe(120 * 4);
  expect(await stores[0]!.countToGiveBack(10)).toBe(0);
}, 60_000);
