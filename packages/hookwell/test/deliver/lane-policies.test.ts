import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defaultBreaker, type LanePolicy } from "../../src/model/lane-policy.ts";
import { kinds } from "./stores.ts";
import { type FakeAnswer, FakeSender, names, World } from "./world.ts";

const lanes: LanePolicy = { breaker: defaultBreaker };
/** Over the SQL stores, virtual time has its price: the same doubling to a nearer end. */
const nearer: LanePolicy = { breaker: { ...defaultBreaker, probeMaxMs: 20_000 } };
const hours = 3_600_000;

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  test("a dead receiver is asked by single probes, doubling from 5 s to the limit, and what waits spends no attempt", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 60).map((id) => ({ id })));
    let answer: FakeAnswer = 503;
    const sender = new FakeSender(world.time, () => answer);
    world.start(sender, { lanes: nearer, policy: [24 * hours, 24 * hours] });
    await world.advance(3_000);
    expect(world.observed.of("laneOpened")).toEqual([{ subscriptionId: "sub_a" }]);
    const opened = sender.sent.length;
    expect(opened).toBeLessThanOrEqual(12);
    expect((await world.deliveries({ status: "pending" })).every(({ hold }) => hold === "circuit_open")).toBe(
      true,
    );
    for (let n = 0; n < 14; n++) await world.later(10_000);
    const probes = sender.sent.slice(opened - 1).map(({ at }) => at.getTime());
    const gaps = probes.slice(1).map((at, i) => at - probes[i]!);
    for (const [i, gap] of gaps.entries())
      expect(gap).toBeGreaterThanOrEqual(Math.min(5_000 * 2 ** i, 20_000));
    expect(gaps.length).toBeGreaterThanOrEqual(5);
    expect(Math.max(...sender.counts().values())).toBe(1);
    answer = 200;
    const before = sender.sent.length;
    for (let n = 0; n < 3; n++) await world.later(10_000);
    await world.advance(3_000);
    expect(world.observed.of("laneClosed")).toEqual([{ subscriptionId: "sub_a" }]);
    // One of the sixty failed at each send before; all others have been delivered by their first.
    expect(sender.sent.length - before).toBe(60 - before);
    expect((await world.deliveries({ status: "delivered" })).length).toBe(60 - before);
  });

  test("rate_limit of a subscription, two workers: 3 a second and no more, none lost", async () => {
    await world.subscribe("sub_a", { rateLimit: { limit: 3, perSeconds: 1 } });
    await world.subscribe("sub_b");
    await world.capture(...names(0, 15).map((id) => ({ id })));
    const sender = new FakeSender(world.time);
    world.start(sender);
    world.start(sender, { store: await world.again() });
    await world.advance(900);
    expect(sender.to("sub_b").length).toBe(15);
    await world.advance(5_000);
    const at = sender.to("sub_a").map((sent) => sent.at.getTime());
    expect(at.length).toBe(15);
    for (const from of at)
      expect(at.filter((time) => time >= from && time < from + 1_000).length).toBeLessThanOrEqual(3);
  });

  test("max_in_flight of a subscription holds over two workers", async () => {
    await world.subscribe("sub_a", { maxInFlight: 3 });
    await world.capture(...names(0, 30).map((id) => ({ id })));
    const sender = new FakeSender(world.time, async () => {
      await world.time.sleep(50);
      return 200;
    });
    world.start(sender);
    world.start(sender, { store: await world.again() });
    await world.advance(8_000);
    expect(sender.sent.length).toBe(30);
    expect(sender.mostInFlight).toBe(3);
  });

  test("twenty hanging receivers, one that answers in 14 s, one that resets, fifty good ones: the good ones' deliveries are all made within two seconds of being due, by a worker of 64 slots", async () => {
    const hanging = names(0, 20, "sub_hang_");
    const good = names(0, 50, "sub_good_");
    for (const id of [...hanging, "sub_slow", "sub_reset", ...good]) await world.subscribe(id);
    const sender = new FakeSender(world.time, async ({ subscriptionId }) => {
      if (subscriptionId.startsWith("sub_hang_")) {
        await world.time.sleep(15_000);
        return "timeout";
      }
      if (subscriptionId === "sub_slow") await world.time.sleep(14_000);
      if (subscriptionId === "sub_reset") return "reset";
      await world.time.sleep(20);
      return 200;
    });
    world.start(sender, { lanes, maxInFlight: 64 });
    // Virtual time over a database has its price: a shorter hour there.
    const rounds = kind.name === "memory" ? 30 : 8;
    for (let round = 0; round < rounds; round++) {
      await world.capture({ id: `evt_${round}a` }, { id: `evt_${round}b` });
      await world.advance(2_000);
    }
    await world.advance(4_000);
    const sent = sender.sent.filter(({ delivery }) => delivery.subscriptionId.startsWith("sub_good_"));
    expect(sent.length).toBe(good.length * rounds * 2);
    const waits = sent.map(({ delivery, at }) => at.getTime() - delivery.nextAttemptAt.getTime());
    expect(Math.max(...waits)).toBeLessThanOrEqual(2_000);
    expect(sender.mostInFlight).toBeLessThanOrEqual(64);
    expect(sender.to("sub_slow").length).toBeGreaterThan(3);
    expect(world.observed.of("laneOpened").map(({ subscriptionId }) => subscriptionId)).toContain(
      "sub_reset",
    );
  });
});

describe("on memory", () => {
  let world: World;
  beforeEach(async () => {
    world = await World.open();
  });
  afterEach(() => world.close());

  test("after it closed a lane has one send in flight again, then as many as it takes", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 300).map((id) => ({ id })));
    let broken = false;
    let inFlight = 0;
    const most: number[] = [];
    const sender = new FakeSender(world.time, async () => {
      most.push(++inFlight);
      await world.time.sleep(40);
      inFlight--;
      return broken ? 500 : 200;
    });
    world.start(sender, { lanes: { breaker: { failures: 5, probeMs: 500, probeMaxMs: 1_000 } } });
    await world.advance(150);
    expect(Math.max(...most)).toBeGreaterThan(4);
    broken = true;
    for (let n = 0; n < 50 && world.observed.of("laneOpened").length === 0; n++) await world.advance(20);
    await world.advance(100);
    broken = false;
    most.length = 0;
    await world.later(600_000);
    expect(world.observed.of("laneOpened").length).toBe(1);
    expect(world.observed.of("laneClosed").length).toBe(1);
    expect(most.slice(0, 2)).toEqual([1, 1]);
    expect(Math.max(...most)).toBeGreaterThan(8);
    expect((await world.deliveries({ status: "pending" })).length).toBe(0);
  });
});
