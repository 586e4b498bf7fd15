import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Delivery } from "../../src/model/delivery.ts";
import { kinds, tables } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  const statuses = async (): Promise<string[]> => (await world.deliveries()).map(({ status }) => status);

  test("field-faults D4: an event that nobody can dispatch is parked with its reason; the next 150 arrive", async () => {
    await world.subscribe("sub_a");
    // No publisher writes this: it stands for a row that was damaged.
    await world.capture({ id: "evt_bad", data: '{"cut off' });
    await world.capture(...names(0, 150).map((id) => ({ id })));
    const sender = new FakeSender(world.time);
    world.start(sender);
    await world.advance(3_000);
    expect(sender.sent.length).toBe(150);
    await world.later(120_000);
    const bad = await world.store.getEvent("evt_bad", {});
    expect(bad).toMatchObject({
      state: "parked",
      outcome: "parked",
      error: expect.stringMatching(/JSON|string/),
    });
    expect(await world.store.listEvents({ outcome: "parked" }, { limit: 10 })).toMatchObject({
      items: [{ id: "evt_bad" }],
    });
    expect(sender.sent.length).toBe(150);
  });

  // Only what is a table can be damaged by SQL.
  const sqlTest = kind.name in tables ? test : () => {};
  sqlTest(
    "field-faults D4: rows damaged by SQL, each in another column: they alone fail, with a reason; the rest arrives",
    async () => {
      const table = tables[kind.name]!;
      await world.subscribe("sub_a");
      await world.subscribe("sub_broken");
      await world.subscribe("sub_b", { ownerId: "own_1" });
      const columns = ["data", "actor", "audience"];
      await world.capture(
        ...columns.map((id) => ({ id, actor: { type: "user", id: "u" }, audience: ["own_1"] })),
      );
      await world.capture({ id: "audience-number", audience: ["own_1"] });
      for (const column of columns)
        await world.sql(`UPDATE ${table("event")} SET ${column} = '{"cut' WHERE id = '${column}'`);
      await world.sql(`UPDATE ${table("event")} SET audience = '7' WHERE id = 'audience-number'`);
      await world.capture(...names(0, 60).map((id) => ({ id })));
      await world.dispatcher().dispatchOnce();
      // Two deliveries lost what they would send, and one endpoint what it is sent with.
      await world.sql(`DELETE FROM ${table("body")} WHERE event_id IN ('evt_0003', 'evt_0004')`);
      await world.sql(
        `UPDATE ${table("endpoint")} SET sealed = 'v1.k1.nonsense' WHERE subscription_id = 'sub_broken'`,
      );
      const sender = new FakeSender(world.time);
      const abandoned: Delivery[] = [];
      world.start(sender, {
        store: await world.again(),
        failureHook: (delivery) => abandoned.push(delivery),
      });
      await world.advance(3_000);
      expect(sender.to("sub_a").length).toBe(58);
      await world.later(200_000);
      for (const id of [...columns, "audience-number"]) {
        const event = await world.store.getEvent(id, {});
        expect(event).toMatchObject({
          state: "parked",
          outcome: "parked",
          error: expect.stringMatching(/./),
        });
      }
      const failed = await world.store.listDeliveries({ status: "failed" }, { limit: 100 });
      expect(failed.items.map(({ errorCode }) => errorCode)).toEqual(Array(62).fill("unreadable"));
      // Each is reported once, with what could be read of it.
      expect(new Set(abandoned.map(({ id }) => id))).toEqual(new Set(failed.items.map(({ id }) => id)));
      expect(abandoned.length).toBe(62);
      for (const delivery of abandoned)
        expect(delivery).toMatchObject({
          status: "failed",
          attempts: 0,
          url: "",
          lastError: expect.stringContaining("damaged"),
        });
      expect(world.observed.of("failed").map(({ errorCode }) => errorCode)).toEqual(
        Array(62).fill("unreadable"),
      );
      expect(sender.sent.length).toBe(58);
    },
  );

  sqlTest("field-faults D4: a damaged row that was held too long is reported as well", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    await world.store.setSubscriptionStatus({ kind: "own" }, "sub_a", "disabled", "by_hand", {});
    await world.sql(`DELETE FROM ${tables[kind.name]!("body")}`);
    const kept = { deliveredMs: 1e9, failedMs: 1e9, eventsMs: 1e9, heldMs: 60_000 };
    const abandoned: string[] = [];
    world.start(new FakeSender(world.time), {
      retention: kept,
      failureHook: ({ eventId, status }) => abandoned.push(`${eventId} ${status}`),
    });
    await world.later(200_000);
    expect(abandoned).toEqual(["evt_1 failed"]);
  });

  sqlTest(
    "field-faults D4: a process that lacks a newer key says so, and spends no attempt that another one could use",
    async () => {
      await world.subscribe("sub_a");
      await world.capture({ id: "evt_1" }, { id: "evt_2" });
      await world.dispatcher().dispatchOnce();
      const endpoint = tables[kind.name]!("endpoint");
      await world.sql(`UPDATE ${endpoint} SET sealed = 'k9' || substr(sealed, 3)`);
      const sender = new FakeSender(world.time);
      world.start(sender, { store: await world.again() });
      await world.later(200_000);
      expect(world.observed.of("storeLost")).toEqual([
        { loop: "deliver", error: expect.stringContaining('"k9"') },
      ]);
      expect((await world.deliveries()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual([
        "pending 0",
        "pending 0",
      ]);
      await world.sql(`UPDATE ${endpoint} SET sealed = 'k1' || substr(sealed, 3)`);
      await world.advance(10_000);
      expect(sender.sent.length).toBe(2);
    },
  );

  test("field-faults D4: an outcome that the store cannot take is left to its lease; the others are recorded", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 4).map((id) => ({ id })));
    // A sender with a fault of its own: a status that is no number.
    const sender = new FakeSender(world.time);
    const odd = {
      deliver: async (delivery: Delivery) => {
        const receipt = await sender.deliver(delivery);
        if (delivery.eventId !== "evt_0002" || delivery.attempts > 1) return receipt;
        return { startedAt: world.time.clock(), durationMs: 1, statusCode: Number.NaN };
      },
    };
    world.start(odd);
    await world.advance(1_000);
    expect((await statuses()).sort()).toEqual(["delivered", "delivered", "delivered", "pending"]);
    await world.later(31_000);
    expect(await statuses()).toEqual(Array(4).fill("delivered"));
  });
});
