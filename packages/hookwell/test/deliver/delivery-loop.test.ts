import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DeliveryLoop } from "../../src/deliver/delivery-loop.ts";
import type { RetryPolicyInput } from "../../src/model/retry.ts";
import type { ClaimRequest } from "../../src/store/contract.ts";
import { failing } from "./rows.ts";
import { FakeSender, names, World } from "./world.ts";

let world: World;
beforeEach(async () => {
  world = await World.open();
});
afterEach(() => world.close());

describe("claiming", () => {
  test("is for free slots only, and no slot is left empty while work is there", async () => {
    for (const id of names(0, 30, "sub_")) await world.subscribe(id);
    await world.capture(...names(0, 40).map((id) => ({ id })));
    await world.dispatcher().dispatchOnce();
    const limits: number[] = [];
    const sender = new FakeSender(world.time, async () => {
      await world.time.sleep(20);
      return 200;
    });
    const store = failing(world.store, {
      claim: (request: ClaimRequest) => {
        limits.push(request.limit);
        expect(request.limit).toBeLessThanOrEqual(50 - sender.inFlight);
        return world.store.claim(request);
      },
    });
    world.start(sender, { store, maxInFlight: 50 });
    await world.advance(15);
    // One for each lane of which nothing is known.
    expect(sender.inFlight).toBe(30);
    await world.advance(20);
    expect(sender.inFlight).toBe(50);
    await world.advance(600);
    expect(sender.mostInFlight).toBe(50);
    expect(sender.sent.length).toBe(1_200);
    // 25 laps of 20 ms, and what it takes to notice that slots are free.
    expect(
      Math.max(...sender.sent.map(({ at }) => at.getTime())) - Date.parse("2026-03-01T09:00:00Z"),
    ).toBeLessThan(600);
    expect(limits.every((limit) => limit > 0)).toBe(true);
    expect(world.observed.of("leaseLost")).toEqual([]);
  });

  test("takes one lane's rows in order and as many at once as the lane has shown that it can take", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 90).map((id) => ({ id })));
    const sender = new FakeSender(world.time, async () => {
      await world.time.sleep(100);
      return 200;
    });
    world.start(sender);
    await world.advance(50);
    expect(sender.inFlight).toBe(1);
    await world.advance(100);
    expect(sender.inFlight).toBe(4);
    await world.advance(2_000);
    expect(sender.mostInFlight).toBe(32);
    expect(sender.sent.length).toBe(90);
  });
});

describe("recording", () => {
  test("under load outcomes are recorded in batches, none later than 50 ms", async () => {
    for (const id of names(0, 40, "sub_")) await world.subscribe(id);
    await world.capture(...names(0, 60).map((id) => ({ id })));
    const ended = new Map<string, number>();
    const waits: number[] = [];
    const batches: number[] = [];
    const store = failing(world.store, {
      record: (outcomes, now) => {
        batches.push(outcomes.length);
        for (const { id } of outcomes) waits.push(world.time.monotonic() - ended.get(id)!);
        return world.store.record(outcomes, now);
      },
    });
    const sender = new FakeSender(world.time, async (_delivery, index) => {
      await world.time.sleep(5 + (index % 7));
      ended.set(sender.sent[index]!.delivery.id, world.time.monotonic());
      return 200;
    });
    world.start(sender, { store });
    await world.advance(3_000);
    expect(waits.length).toBe(2_400);
    expect(Math.max(...waits)).toBeLessThanOrEqual(50);
    expect(batches.length).toBeLessThan(100);
  });

  test("the last outcome under way is recorded at once", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    const sender = new FakeSender(world.time);
    const loop = new DeliveryLoop(world.parts(sender));
    await loop.claimOnce();
    await world.settle();
    expect(await world.deliveries()).toMatchObject([{ status: "delivered" }]);
    expect(world.time.asked).toEqual([]);
  });
});

describe("policies", () => {
  test("the event type's own goes before the worker's", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_own", type: "own.made" }, { id: "evt_other", type: "other.made" });
    const sender = new FakeSender(world.time, () => 500);
    world.start(sender, {
      policy: { maxAttempts: 1 },
      policies: new Map<string, RetryPolicyInput>([["own.made", [1_000, 1_000]]]),
    });
    await world.later(60_000);
    const counts = sender.counts();
    expect([counts.get("evt_own sub_a"), counts.get("evt_other sub_a")]).toEqual([3, 1]);
  });

  test("one that throws is reported, and the default one stands in", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    const sender = new FakeSender(world.time, () => 500);
    world.start(sender, {
      policy: () => {
        throw new Error("no policy today");
      },
    });
    await world.later(400_000);
    expect(sender.sent.length).toBe(6);
    expect(world.observed.of("warning")[0]!.message).toContain("no policy today");
  });
});

test("no secret of the endpoint is in what is stored of a failure, even when the sender quotes it", async () => {
  await world.subscribe("sub_a", { secret: "whsec_very+secret" });
  await world.capture({ id: "evt_1" });
  world.start({
    deliver: ({ secret }) => Promise.reject(new Error(`cannot sign with ${secret}`)),
  });
  await world.advance(1_000);
  const [delivery] = await world.deliveries();
  expect(delivery!.lastError).toBe("cannot sign with [secret]");
  expect(JSON.stringify(world.observed.all)).not.toContain("very+secret");
});
