import {
  createHookwell,
  type Delivery,
  defineEvents,
  MemoryOutbox,
  type MemoryTransaction,
  memoryTx,
} from "hookwell";
import { describe, expect, test } from "vitest";
import type { CaptureInput } from "../../src/model/event.ts";
import type { Scope } from "../../src/store/contract.ts";

// What holds on every store is in src/testing/contract and runs from test/contract. Here is what only the memory
// store has: its synchronous methods and its own transactions.

const t0 = new Date("2026-04-01T08:00:00.007Z");
const own = { kind: "own" } as const;

function delivery(id: string, overrides: Partial<Delivery> = {}): Delivery {
  return {
    id,
    eventId: `evt-of-${id}`,
    subscriptionId: "sub-1",
    url: "https://one.example/hook",
    secret: "s1",
    payload: Buffer.from("{}"),
    status: "pending",
    attempts: 0,
    nextAttemptAt: t0,
    createdAt: t0,
    updatedAt: t0,
    ...overrides,
  };
}

function event(id: string, overrides: Partial<CaptureInput> = {}): CaptureInput {
  return {
    projectId: "live",
    id,
    type: "user.created",
    occurredAt: t0,
    data: "{}",
    route: "user.created",
    contentHash: `hash of ${id}`,
    ...overrides,
  };
}

function within(tx: unknown): Extract<Scope, { kind: "async" }> {
  return { kind: "async", adapter: memoryTx() as never, tx };
}

async function names(store: MemoryOutbox): Promise<string[]> {
  return (await store.takeNew(["user.created"], 100, null)).map(({ id }) => id);
}

test("events 25: addSubscription and get of the memory store answer at once", async () => {
  const store = new MemoryOutbox({ now: () => t0 });
  expect(
    store.addSubscription({
      id: "sub-1",
      projectId: "live",
      url: "https://one.example/hook",
      secret: "s1",
      eventTypes: [],
      active: true,
    }),
  ).toBeUndefined();
  await store.enqueueDelivery(delivery("d-1"));
  const row: Delivery | undefined = store.get("d-1");
  expect(row?.url).toBe("https://one.example/hook");
  expect(store.get("d-2")).toBeUndefined();
});

test("events 42: clock and id function are optional, and given ones are used", async () => {
  const plain = new MemoryOutbox();
  await plain.enqueueDelivery(delivery("d-1"));
  await plain.markFailed("d-1", 1, "no");
  expect(plain.get("d-1")!.updatedAt.getTime()).toBeGreaterThan(t0.getTime());

  const ids: string[] = [];
  const store = new MemoryOutbox({
    now: () => t0,
    idFunc: () => {
      ids.push(`end-${ids.length + 1}`);
      return ids.at(-1)!;
    },
  });
  await store.enqueueDelivery(delivery("d-1"));
  await store.markFailed("d-1", 1, "no");
  expect(store.get("d-1")!.updatedAt).toEqual(t0);
  expect(ids).toEqual(["end-1"]);
});

test("events 42: nothing that was handed out or handed in reaches the stored row", async () => {
  const store = new MemoryOutbox({ now: () => t0 });
  const headers: Record<string, string> = { "x-a": "1" };
  const given = delivery("d-1", { headers, nextAttemptAt: new Date(t0) });
  await store.enqueueDelivery(given);
  headers["x-a"] = "changed";
  given.nextAttemptAt.setTime(0);
  const [claimed] = await store.claimDue(t0, 1);
  claimed!.payload.fill(0);
  (claimed!.headers as Record<string, string>)["x-a"] = "changed";
  claimed!.leaseUntil!.setTime(0);
  expect(store.get("d-1")).toMatchObject({
    headers: { "x-a": "1" },
    nextAttemptAt: t0,
    leaseUntil: new Date(t0.getTime() + 30_000),
  });
  expect(Buffer.from(store.get("d-1")!.payload).toString()).toBe("{}");
});

describe("transactions of the memory store", () => {
  test("field-faults A3: a savepoint that is rolled back takes its events along, the outer ones stay", async () => {
    const store = new MemoryOutbox();
    await store.transaction(async (tx) => {
      await store.capture(within(tx), [event("outer-1")]);
      const broken = tx.savepoint(async (inner) => {
        await store.capture(within(inner), [event("inner-bad")]);
        throw new Error("undo");
      });
      await expect(broken).rejects.toThrow("undo");
      await tx.savepoint(async (inner) => {
        await store.capture(within(inner), [event("inner-good")]);
      });
      await store.capture(within(tx), [event("outer-2")]);
      expect(await names(store)).toEqual([]);
    });
    expect(await names(store)).toEqual(["outer-1", "inner-good", "outer-2"]);
  });

  test("a savepoint sees the writes of the transaction around it, and its transaction waits meanwhile", async () => {
    const store = new MemoryOutbox();
    await store.transaction(async (tx) => {
      await store.capture(within(tx), [event("e1")]);
      await tx.savepoint(async (inner) => {
        expect(await store.capture(within(inner), [event("e1")])).toEqual([{ id: "e1", duplicate: true }]);
        await expect(store.capture(within(tx), [event("e2")])).rejects.toMatchObject({
          code: "not_in_transaction",
        });
      });
    });
    expect(await names(store)).toEqual(["e1"]);
  });

  test("field-faults A2: a transaction that conflicts with what was committed meanwhile fails whole at its commit", async () => {
    const store = new MemoryOutbox();
    const revision = { subject: "user:1", revision: 1 };
    const late = store.transaction(async (tx) => {
      await store.capture(within(tx), [event("late-1"), event("late-2", revision)]);
      await store.capture(own, [event("early", revision)]);
    });
    await expect(late).rejects.toMatchObject({ code: "revision_conflict" });
    expect(await names(store)).toEqual(["early"]);
  });

  test("two open transactions that capture the same event leave one", async () => {
    const store = new MemoryOutbox();
    await store.transaction(async (one) => {
      await store.capture(within(one), [event("e1")]);
      await store.transaction(async (two) => {
        expect(await store.capture(within(two), [event("e1")])).toEqual([{ id: "e1", duplicate: false }]);
      });
    });
    expect(await names(store)).toEqual(["e1"]);
  });

  test("a transaction that has ended, that of another store, and anything else is refused", async () => {
    const store = new MemoryOutbox();
    let ended: MemoryTransaction | undefined;
    await store.transaction(async (tx) => {
      expect(memoryTx().isInTransaction(tx)).toBe(true);
      ended = tx;
    });
    expect(memoryTx().isInTransaction(ended)).toBe(false);
    expect(memoryTx().isInTransaction(store)).toBe(false);
    const refusal = { code: "not_in_transaction" };
    await expect(store.capture(within(ended), [event("e1")])).rejects.toMatchObject(refusal);
    await expect(store.capture(within({}), [event("e1")])).rejects.toMatchObject(refusal);
    await new MemoryOutbox().transaction((tx) =>
      expect(store.capture(within(tx), [event("e1")])).rejects.toMatchObject(refusal),
    );
    expect(await names(store)).toEqual([]);
  });

  test("field-faults A1: emit through createHookwell commits with the change or not at all", async () => {
    const store = new MemoryOutbox();
    const hooks = createHookwell({
      store,
      tx: memoryTx(),
      project: "live",
      events: defineEvents({
        "user.created": {
          schema: {
            "~standard": {
              version: 1,
              vendor: "test",
              validate: (value: unknown) => ({ value: value as { id: string } }),
            },
          },
          jsonSchema: { type: "object" },
        },
      }),
    });
    const failing = store.transaction(async (tx) => {
      await hooks.emit("user.created", { id: "u1" }, { tx, id: "evt_1" });
      throw new Error("the change failed");
    });
    await expect(failing).rejects.toThrow("the change failed");
    expect(await names(store)).toEqual([]);
    await store.transaction((tx) => hooks.emit("user.created", { id: "u1" }, { tx, id: "evt_1" }));
    expect(await names(store)).toEqual(["evt_1"]);
  });
});
