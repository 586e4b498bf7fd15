import {
  EventMismatchError,
  EventSchemaError,
  NotInTransactionError,
  PayloadTooLargeError,
  RevisionConflictError,
} from "hookwell";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Host } from "./host.ts";
import { hosts } from "./hosts.ts";

describe.each(hosts)("a transaction of $name", (kind) => {
  let host: Host;
  beforeEach(async () => {
    host = await kind.open();
  });
  afterEach(() => host.close());

  async function eventIds(): Promise<string[]> {
    const { items } = await host.store.listEvents({}, { limit: 100 });
    return items.map(({ id }) => id).sort();
  }
  const open = async (tx: unknown, id: string): Promise<void> => {
    await host.insert(tx, id);
    await host.emit(tx, "account.opened", { id }, { id: `opened-${id}` });
  };
  /** The error of what was done inside, after which the transaction goes on. */
  const errorOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => "no error",
      (error: unknown) => error,
    );

  test("field-faults A1: commits the change and its event together, in both ways of fan-out", async () => {
    await host.store.addSubscription({
      id: "sub_1",
      projectId: "live",
      url: "https://a.example/",
      secret: "secret",
      eventTypes: [],
      active: true,
    });
    const seenInside = await host.transaction(async (tx) => {
      await open(tx, "a");
      await host.emit(tx, "account.closed", { id: "a" }, { id: "closed-a" });
      return kind.concurrent ? await eventIds() : [];
    });
    expect(seenInside).toEqual([]);
    expect(await host.accounts()).toEqual(["a"]);
    expect(await eventIds()).toEqual(["closed-a", "opened-a"]);
    const { items } = await host.store.listDeliveries({}, { limit: 10 });
    expect(items).toMatchObject([{ eventId: "closed-a", subscriptionId: "sub_1", status: "pending" }]);
  });

  test("field-faults A2: a rollback leaves neither, nor a delivery of fan-out emit", async () => {
    await host.store.addSubscription({
      id: "sub_1",
      projectId: "live",
      url: "https://a.example/",
      secret: "secret",
      eventTypes: [],
      active: true,
    });
    const work = host.transaction(async (tx) => {
      await open(tx, "a");
      await host.emit(tx, "account.closed", { id: "a" });
      throw new Error("declined");
    });
    await expect(work).rejects.toThrow("declined");
    expect(await host.accounts()).toEqual([]);
    expect(await eventIds()).toEqual([]);
    expect((await host.store.listDeliveries({}, { limit: 10 })).items).toEqual([]);
    await host.transaction((tx) => open(tx, "a"));
    expect(await eventIds()).toEqual(["opened-a"]);
  });

  test("field-faults A3: a savepoint that is rolled back takes its events with it, and no others", async () => {
    await host.transaction(async (tx) => {
      await open(tx, "before");
      const failed = host.savepoint(tx, async (inner) => {
        await open(inner, "inside");
        throw new Error("undo this part");
      });
      await expect(failed).rejects.toThrow("undo this part");
      await host.savepoint(tx, (inner) => open(inner, "kept"));
      await open(tx, "after");
    });
    expect(await host.accounts()).toEqual(["after", "before", "kept"]);
    expect(await eventIds()).toEqual(["opened-after", "opened-before", "opened-kept"]);
  });

  test("outside of a transaction an emit is refused, whatever stands for one", async () => {
    const outside = [...(await host.outside()), undefined, null, {}, "transaction", 1];
    for (const tx of outside) {
      const error = await errorOf(host.emit(tx, "account.opened", { id: "a" }));
      expect(error).toBeInstanceOf(NotInTransactionError);
      expect((error as Error).message).toContain('tx: "own"');
    }
    expect(await eventIds()).toEqual([]);
  });

  test("an error after the emit undoes the event too", async () => {
    await host.transaction((tx) => open(tx, "taken"));
    const work = host.transaction(async (tx) => {
      await host.emit(tx, "account.opened", { id: "b" }, { id: "opened-b" });
      await host.insert(tx, "taken");
    });
    await expect(work).rejects.toThrow(/unique|duplicate/i);
    expect(await host.accounts()).toEqual(["taken"]);
    expect(await eventIds()).toEqual(["opened-taken"]);
  });

  test("each of many transactions keeps or loses its own event only", async () => {
    const one = async (index: number): Promise<void> => {
      const id = `${index}`.padStart(2, "0");
      const work = host.transaction(async (tx) => {
        await open(tx, id);
        if (index % 3 === 0) throw new Error("declined");
      });
      await work.catch((error: Error) => expect(error.message).toBe("declined"));
    };
    const indexes = Array.from({ length: 24 }, (_, index) => index);
    if (kind.concurrent) await Promise.all(indexes.map(one));
    else for (const index of indexes) await one(index);
    const kept = indexes.filter((index) => index % 3 !== 0).map((index) => `${index}`.padStart(2, "0"));
    expect(await host.accounts()).toEqual(kept);
    expect(await eventIds()).toEqual(kept.map((id) => `opened-${id}`));
  });

  test("the same id in transactions side by side is one event", async () => {
    const repeat = () =>
      host.transaction((tx) => host.emit(tx, "account.opened", { id: "a" }, { id: "once", revision: 1 }));
    const results: unknown[] = [];
    if (kind.concurrent) results.push(...(await Promise.all([repeat(), repeat(), repeat()])));
    else for (let i = 0; i < 3; i++) results.push(await repeat());
    expect(results).toHaveLength(3);
    expect(results.filter((result) => !(result as { duplicate: boolean }).duplicate)).toHaveLength(1);
    expect(await eventIds()).toEqual(["once"]);
  });

  test("a refused emit writes nothing and leaves the transaction usable", async () => {
    await host.transaction((tx) =>
      host.emit(tx, "account.opened", { id: "old" }, { id: "old", revision: 7 }),
    );
    await host.transaction(async (tx) => {
      await open(tx, "first");
      const refused = async (expected: new (...args: never[]) => Error, work: Promise<unknown>) =>
        expect(await errorOf(work)).toBeInstanceOf(expected);
      await refused(EventMismatchError, host.emit(tx, "account.opened", { id: "new" }, { id: "old" }));
      await refused(
        RevisionConflictError,
        host.emit(tx, "account.opened", { id: "old", note: "again" }, { revision: 7 }),
      );
      await refused(EventSchemaError, host.emit(tx, "account.opened", { id: 5 } as never));
      const large = { id: "large", note: "x".repeat(262_144) };
      await refused(PayloadTooLargeError, host.emit(tx, "account.opened", large));
      const { duplicate } = await host.emit(tx, "account.opened", { id: "old" }, { id: "old", revision: 7 });
      expect(duplicate).toBe(true);
      await open(tx, "last");
    });
    expect(await host.accounts()).toEqual(["first", "last"]);
    expect(await eventIds()).toEqual(["old", "opened-first", "opened-last"]);
  });
});
