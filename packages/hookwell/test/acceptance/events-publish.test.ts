import {
  createHookwell,
  type Delivery,
  DeliveryExistsError,
  Discard,
  DuplicateIdError,
  type Event,
  EventMismatchError,
  InvalidIdentifierError,
  NotInTransactionError,
  OutboxPublisher,
  type OutboxStore,
  type Publisher,
  type Subscription,
  UnknownEventTypeError,
  Worker,
} from "hookwell";
import { startReceiver } from "hookwell/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { kinds, type OpenStore } from "../deliver/stores.ts";

const t0 = new Date("2026-03-01T09:00:00.123Z");
const user = { id: "u1", email: "ada@example.com", name: "Ada", status: "active", emailVerified: true };

function event(changes: Partial<Event> = {}): Event {
  return { id: "evt-1", type: "user.created", projectId: "live", user, ...changes };
}

function subscription(id: string, changes: Partial<Subscription> = {}): Subscription {
  const url = `https://${id}.example/hook`;
  return { id, projectId: "live", url, secret: `secret of ${id}`, eventTypes: [], active: true, ...changes };
}

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let opened: OpenStore;
  let store: OutboxStore;
  let now: Date;
  let made: number;
  let publisher: OutboxPublisher;
  beforeEach(async () => {
    now = t0;
    made = 0;
    opened = await kind.open(() => now);
    store = opened.store;
    publisher = new OutboxPublisher(
      store,
      () => `row-${++made}`,
      () => now,
    );
  });
  afterEach(() => opened.close());

  /** Every row, in the order of the ids that the id function gave. */
  async function rows(): Promise<Delivery[]> {
    const found: Delivery[] = [];
    for (let i = 1; i <= made; i++) {
      const row = await store.get(`row-${i}`);
      if (row) found.push(row);
    }
    return found;
  }
  const bodyOf = (row: Delivery | undefined): string => Buffer.from(row!.payload).toString("utf8");
  const receivers = async (): Promise<string[]> => (await rows()).map((row) => row.subscriptionId).sort();

  test("events 1: an empty id is an error, and nothing is stored", async () => {
    await store.addSubscription(subscription("a"));
    await expect(publisher.emit(event({ id: "" }))).rejects.toThrow(InvalidIdentifierError);
    expect(await rows()).toEqual([]);
    const hooks = createHookwell({ store, project: "live" });
    await expect(hooks.emit("a.b", {}, { tx: "own", id: "" })).rejects.toThrow(InvalidIdentifierError);
    expect((await hooks.events.list()).items).toEqual([]);
  });

  test("events 2: an unknown or empty type is an error, and nothing is stored", async () => {
    await store.addSubscription(subscription("a"));
    for (const type of ["user.renamed", "USER.CREATED", "", "user."])
      await expect(publisher.emit(event({ type }))).rejects.toThrow(UnknownEventTypeError);
    expect(await rows()).toEqual([]);
    const other = new OutboxPublisher(store, undefined, () => now, undefined, ["account.closed"]);
    await other.emit(event({ type: "account.closed" }));
    await expect(other.emit(event())).rejects.toThrow(UnknownEventTypeError);
    expect((await store.listDeliveries({}, { limit: 100 })).items).toMatchObject([
      { type: "account.closed" },
    ]);
  });

  test("events 3: a missing time is the injected clock's, a given one is kept", async () => {
    await store.addSubscription(subscription("a"));
    await publisher.emit(event({ id: "without" }));
    await publisher.emit(event({ id: "with", occurredAt: new Date("2020-02-29T23:59:59.999Z") }));
    expect((await rows()).map((row) => JSON.parse(bodyOf(row)).occurred_at)).toEqual([
      "2026-03-01T09:00:00.123Z",
      "2020-02-29T23:59:59.999Z",
    ]);
  });

  test("events 4: one pending row for each active subscription of the project that takes the type", async () => {
    await store.addSubscription(subscription("all"));
    await store.addSubscription(subscription("one", { eventTypes: ["user.created"] }));
    await store.addSubscription(subscription("two", { eventTypes: ["user.deactivated", "user.created"] }));
    await store.addSubscription(subscription("wild", { eventTypes: ["user.*"] }));
    await store.addSubscription(subscription("type", { eventTypes: ["user.updated"] }));
    await store.addSubscription(subscription("inactive", { active: false }));
    await store.addSubscription(subscription("project", { projectId: "test" }));
    await publisher.emit(event());
    expect(await receivers()).toEqual(["all", "one", "two", "wild"]);
    for (const row of await rows()) expect(row.status).toBe("pending");
  });

  test.each([
    ["t1", "t1", true],
    ["t1", undefined, true],
    [undefined, "t1", true],
    [undefined, undefined, true],
    ["", "t1", true],
    ["t1", "t2", false],
    ["t1", "T1", false],
  ])(
    "events 5: an event of tenant %j and a subscription of tenant %j: match is %j",
    async (mine, its, match) => {
      await store.addSubscription(subscription("a", its === undefined ? {} : { tenantId: its }));
      await publisher.emit(event(mine === undefined ? {} : { tenantId: mine }));
      expect(await receivers()).toEqual(match ? ["a"] : []);
    },
  );

  test("events 6: a row has its ids, url and secret as they were, and is due now with 0 attempts", async () => {
    await store.addSubscription(subscription("a"));
    await publisher.emit(event());
    await store.addSubscription(subscription("a", { url: "https://moved.example/", secret: "new secret" }));
    expect(await rows()).toEqual([
      expect.objectContaining({
        id: "row-1",
        eventId: "evt-1",
        subscriptionId: "a",
        url: "https://a.example/hook",
        secret: "secret of a",
        status: "pending",
        attempts: 0,
        nextAttemptAt: t0,
        createdAt: t0,
        updatedAt: t0,
      }),
    ]);
  });

  test("events 7: the payload has exactly the published keys, in their order, and no other column", async () => {
    await store.addSubscription(subscription("a"));
    const record = { ...user, passwordHash: "$2b$10$secret", token: "t0k3n" };
    await publisher.emit(
      event({ id: "full", tenantId: "t1", user: record, revision: 3, actor: { type: "api_key", id: "k1" } }),
    );
    const bare = { id: "u2", email: "b@example.com", emailVerified: false };
    await publisher.emit(event({ id: "bare", tenantId: "", user: bare }));
    const [full, least] = await rows();
    expect(bodyOf(full)).toBe(
      '{"id":"full","type":"user.created","project_id":"live","tenant_id":"t1","occurred_at":"2026-03-01T09:00:00.123Z",' +
        '"user":{"id":"u1","email":"ada@example.com","name":"Ada","status":"active","email_verified":true},' +
        '"revision":3,"actor":{"type":"api_key","id":"k1"}}',
    );
    expect(bodyOf(least)).toBe(
      '{"id":"bare","type":"user.created","project_id":"live","occurred_at":"2026-03-01T09:00:00.123Z",' +
        '"user":{"id":"u2","email":"b@example.com","email_verified":false}}',
    );
  });

  test("events 8: all rows of one event hold the same bytes, although the clock moves meanwhile", async () => {
    for (const id of ["a", "b", "c"]) await store.addSubscription(subscription(id));
    let ticks = 0;
    const ticking = new OutboxPublisher(
      store,
      () => `row-${++made}`,
      () => new Date(t0.getTime() + ++ticks),
    );
    await ticking.emit(event({ user: { ...user, name: "Zoë \u2028 \u0000" } }));
    const bodies = (await rows()).map(bodyOf);
    expect(bodies).toHaveLength(3);
    expect(new Set(bodies).size).toBe(1);
  });

  test("events 9: the same id and content three times is one row per subscription, and no error", async () => {
    for (const id of ["a", "b"]) await store.addSubscription(subscription(id));
    for (let i = 0; i < 3; i++) await publisher.emit(event());
    expect(await receivers()).toEqual(["a", "b"]);
    const changed = event({ user: { ...user, email: "other@example.com" } });
    await expect(publisher.emit(changed)).rejects.toThrow(EventMismatchError);
  });

  test("events 10: a subscription added between two emits gets its row, with the first rows' bytes", async () => {
    await store.addSubscription(subscription("b"));
    await publisher.emit(event());
    now = new Date("2026-03-01T10:00:00Z");
    await store.addSubscription(subscription("a"));
    await publisher.emit(event());
    expect(await receivers()).toEqual(["a", "b"]);
    const [first, second] = await rows();
    expect(bodyOf(second)).toBe(bodyOf(first));
    const { items } = await store.listDeliveries({ eventId: "evt-1" }, { limit: 10 });
    expect(items.map((row) => row.createdAt.toISOString())).toEqual([
      "2026-03-01T10:00:00.000Z",
      "2026-03-01T09:00:00.123Z",
    ]);
  });

  test("events 11: a store that cannot list is an error of emit; no subscriptions are none", async () => {
    await publisher.emit(event());
    expect(await rows()).toEqual([]);
    const broken = without(store, "listActiveSubscriptions", "database is away");
    await expect(new OutboxPublisher(broken).emit(event())).rejects.toThrow("database is away");
  });

  test("events 12: an endpoint that hangs is not spoken to by an emit", async () => {
    await using receiver = await startReceiver({ respond: () => "hang" });
    await store.addSubscription(subscription("hanging", { url: receiver.url }));
    await store.addSubscription(subscription("refusing", { url: "http://127.0.0.1:1/" }));
    const network = { allow: ["127.0.0.0/8"], http: true };
    let sends = 0;
    const sender = { deliver: async () => void sends++ };
    const hooks = createHookwell({ store, project: "live", network, sender });
    await publisher.emit(event());
    await hooks.emit("a.b", {}, { tx: "own" });
    expect(await rows()).toHaveLength(2);
    expect([receiver.connections, sends]).toEqual([0, 0]);
  });

  test("events 15: nothing is no delivery; a payload changed afterwards is not the stored one", async () => {
    for (const nothing of [undefined, null])
      await expect(store.enqueueDelivery(nothing as unknown as Delivery)).rejects.toThrow();
    await store.addSubscription(subscription("a"));
    const payload = Buffer.from('{"first":1}');
    await store.enqueueDelivery(delivery("row-1", "a", payload));
    made = 1;
    payload.write('{"other":2}');
    expect(bodyOf((await rows())[0])).toBe('{"first":1}');
    (await store.get("row-1"))!.payload[0] = 0;
    expect(bodyOf(await store.get("row-1"))).toBe('{"first":1}');
  });

  test("events 42: without an id function ids are made, and differ", async () => {
    for (const id of ["a", "b"]) await store.addSubscription(subscription(id));
    await new OutboxPublisher(store).emit(event());
    const { items } = await store.listDeliveries({ eventId: "evt-1" }, { limit: 10 });
    expect(new Set(items.map((row) => row.id)).size).toBe(2);
    for (const { id } of items) expect(id).toMatch(/^dlv_[0-9a-f-]{36}$/);
  });

  test("events 42: every mark sets updatedAt to the clock, and takes the claim's token last", async () => {
    await store.addSubscription(subscription("a"));
    for (const id of ["one", "two", "three"]) await publisher.emit(event({ id }));
    const claimed = await store.claimDue(now, 10);
    const token = (id: string) => claimed.find((row) => row.id === id)!.leaseToken!;
    now = new Date("2026-03-01T09:00:05Z");
    await store.markDelivered("row-1", now, "an old token");
    expect(await store.get("row-1")).toMatchObject({ status: "pending" });
    await store.markDelivered("row-1", now, token("row-1"));
    await store.reschedule("row-2", 1, "status 500", new Date("2026-03-01T09:01:00Z"), token("row-2"));
    await store.markFailed("row-3", 1, "status 404", token("row-3"));
    for (const row of await rows()) expect(row.updatedAt).toEqual(now);
    expect((await rows()).map((row) => row.status)).toEqual(["delivered", "pending", "failed"]);
  });

  test("events 42: a row id that is taken is an error, and rows that were returned are copies", async () => {
    for (const id of ["a", "b"]) await store.addSubscription(subscription(id));
    await store.enqueueDelivery(delivery("row-1", "a"));
    await expect(store.enqueueDelivery(delivery("row-1", "b"))).rejects.toThrow(DuplicateIdError);
    await expect(store.enqueueDelivery(delivery("row-2", "a"))).rejects.toThrow(DeliveryExistsError);
    const row = await store.get("row-1");
    (row as { status: string }).status = "failed";
    row!.nextAttemptAt.setTime(0);
    expect(await store.get("row-1")).toMatchObject({ status: "pending", nextAttemptAt: t0 });
  });

  test("events 42: the failure hook sees status failed, and a partial policy takes the rest from the default", async () => {
    await store.addSubscription(subscription("a"));
    await publisher.emit(event());
    const failed: Delivery[] = [];
    const worker = new Worker({
      store,
      sender: { deliver: () => Promise.reject(new Error("refused")) },
      policy: { maxAttempts: 2 },
      now: () => now,
      failureHook: (row) => failed.push(row),
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    });
    await worker.processOnce();
    expect(await store.get("row-1")).toMatchObject({
      status: "pending",
      nextAttemptAt: new Date(t0.getTime() + 2_000),
    });
    now = new Date(t0.getTime() + 2_000);
    await worker.processOnce();
    expect(failed).toMatchObject([{ id: "row-1", status: "failed", attempts: 2, lastError: "refused" }]);
  });

  test("events 42: an empty project is refused, and hooks.emit wants a transaction", async () => {
    await expect(publisher.emit(event({ projectId: "" }))).rejects.toThrow(InvalidIdentifierError);
    const hooks = createHookwell({ store });
    const loosely = hooks.emit as (...args: unknown[]) => Promise<unknown>;
    await expect(loosely("a.b", {}, { tx: "own", projectId: "" })).rejects.toThrow(InvalidIdentifierError);
    await expect(loosely("a.b", {}, { tx: "own" })).rejects.toThrow(/projectId/);
    await expect(loosely("a.b", {}, { projectId: "live" })).rejects.toThrow(NotInTransactionError);
    expect((await hooks.events.list()).items).toEqual([]);
  });

  test("events 42: an event without a time is stamped once for all its rows", async () => {
    for (const id of ["a", "b", "c"]) await store.addSubscription(subscription(id));
    const hooks = createHookwell({ store, project: "live", clock: () => now });
    await hooks.emit("a.b", { n: 1 }, { tx: "own", id: "stamped" });
    now = new Date("2026-03-01T09:30:00Z");
    await hooks.drain({ deadlineMs: 5_000, max: 0 });
    const { items } = await hooks.deliveries.list({ eventId: "stamped" });
    const bodies = await Promise.all(
      items.map(async ({ id }) => Buffer.from((await hooks.deliveries.get(id)).body).toString()),
    );
    expect(bodies).toHaveLength(3);
    expect(new Set(bodies)).toEqual(
      new Set(['{"id":"stamped","type":"a.b","timestamp":"2026-03-01T09:00:00.123Z","data":{"n":1}}']),
    );
  });
});

test("events 37: Discard takes any event, stores nothing, and stands where a publisher is expected", async () => {
  const publisher: Publisher = new Discard();
  await publisher.emit(event());
  await publisher.emit({ id: "", type: "no such type", projectId: "" } as Event);
  await publisher.emit(undefined as unknown as Event);
});

function delivery(id: string, subscriptionId: string, payload: Uint8Array = Buffer.from("{}")): Delivery {
  return {
    id,
    eventId: "evt-1",
    subscriptionId,
    url: `https://${subscriptionId}.example/hook`,
    secret: `secret of ${subscriptionId}`,
    payload,
    status: "pending",
    attempts: 0,
    nextAttemptAt: t0,
    createdAt: t0,
    updatedAt: t0,
  };
}

/** The store, but for one method, which rejects. */
function without(store: OutboxStore, method: keyof OutboxStore, message: string): OutboxStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === method) return () => Promise.reject(new Error(message));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
