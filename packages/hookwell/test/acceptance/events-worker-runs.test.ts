import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Worker, type WorkerConfig } from "../../src/deliver/worker.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import { enqueue, failing, get } from "../deliver/rows.ts";
import { kinds } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

/** Lines of the three levels of a logger. */
class Lines {
  readonly all: string[] = [];
  readonly info = (line: string): number => this.all.push(line);
  readonly warn = this.info;
  readonly error = this.info;
}

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  let lines: Lines;
  beforeEach(async () => {
    world = await World.open(kind);
    lines = new Lines();
  });
  afterEach(() => world.close());

  const worker = (config: Partial<WorkerConfig> & Pick<WorkerConfig, "sender">): Worker =>
    new Worker({
      store: world.store,
      now: world.time.clock,
      timers: world.time,
      monotonic: world.time.monotonic,
      random: () => 0.5,
      logger: lines,
      policy: { maxAttempts: 3, baseDelay: 1_000, maxDelay: 8_000 },
      ...config,
    });

  test("events 34: run works at once, then at the interval or when woken; its rounds never overlap", async () => {
    await enqueue(world, "dlv_1");
    let claims = 0;
    let inside = 0;
    let overlapped = false;
    const store = failing(world.store, {
      claimDue: async (now, limit) => {
        claims++;
        overlapped ||= ++inside > 1;
        const found = await world.store.claimDue(now, limit);
        await world.time.sleep(100);
        inside--;
        return found;
      },
    });
    const sender = new FakeSender(world.time);
    const running = worker({ sender, store, interval: 5_000 });
    const stop = new AbortController();
    const run = running.run(stop.signal);
    await world.advance(100);
    expect(sender.sent.length).toBe(1);
    running.wake();
    await world.settle();
    running.wake();
    running.wake();
    await world.advance(200);
    expect(claims).toBe(3);
    await world.advance(4_999);
    expect(claims).toBe(3);
    await world.advance(1);
    expect(claims).toBe(4);
    stop.abort();
    await world.advance(100);
    await run;
    expect(overlapped).toBe(false);
    expect(world.time.sleeping).toBe(0);
  });

  test("events 34: a failing round is logged and the loop goes on", async () => {
    await enqueue(world, "dlv_1");
    let failures = 3;
    const store = failing(world.store, {
      claimDue: async (now, limit) => {
        if (failures-- > 0) throw new Error("no such host");
        return world.store.claimDue(now, limit);
      },
    });
    const sender = new FakeSender(world.time);
    const stop = new AbortController();
    const run = worker({ sender, store }).run(stop.signal);
    await world.advance(10_000);
    expect(lines.all.filter((line) => line.includes("no such host")).length).toBe(3);
    expect(sender.sent.length).toBe(1);
    stop.abort();
    await run;
  });

  test("events 38: a worker that comes back after its lease ended changes nothing, and is counted", async () => {
    await enqueue(world, "dlv_1");
    let release = (): void => {};
    const stalled = new FakeSender(world.time, async () => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return 500;
    });
    const late = worker({ sender: stalled }).processOnce();
    await world.settle();
    world.time.skip(30_000);
    const sender = new FakeSender(world.time);
    await worker({ sender }).processOnce();
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "delivered", attempts: 2 });
    const stale = world.store.staleOutcomes;
    release();
    await late;
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "delivered", attempts: 2 });
    expect(world.store.staleOutcomes).toBe(stale + 1);
  });

  test("events 39: stop during a send: not a failed attempt, and the row is given back", async () => {
    await enqueue(world, "dlv_1");
    const hanging = new FakeSender(world.time, () => "hang");
    const stop = new AbortController();
    const run = worker({ sender: hanging }).run(stop.signal);
    await world.settle();
    expect(hanging.inFlight).toBe(1);
    stop.abort();
    await run;
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "pending", attempts: 0 });
    const sender = new FakeSender(world.time);
    await worker({ sender }).processOnce();
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "delivered", attempts: 1 });
  });

  test("events 39: a sender that does not heed the abort holds a stop for a second, not for ever", async () => {
    await enqueue(world, "dlv_1");
    const deaf = new FakeSender(world.time, () => new Promise<never>(() => {}));
    const stop = new AbortController();
    const run = worker({ sender: deaf }).run(stop.signal);
    await world.settle();
    stop.abort();
    await world.advance(1_000);
    await run;
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "pending", attempts: 0 });
    expect(world.time.sleeping).toBe(0);
  });

  test("events 39: with a grace period sends end by themselves, and count", async () => {
    await enqueue(world, "dlv_1");
    const slow = new FakeSender(world.time, async () => {
      await world.time.sleep(3_000);
      return 200;
    });
    const stop = new AbortController();
    const run = worker({ sender: slow, graceMs: 5_000 }).run(stop.signal);
    await world.settle();
    stop.abort();
    await world.advance(3_000);
    await run;
    expect(await get(world.store, "dlv_1")).toMatchObject({ status: "delivered", attempts: 1 });
    expect(world.time.sleeping).toBe(0);
  });

  test("events 41: two workers, a flaky sender: every row ends once, and none is sent more often than it failed", async () => {
    const rows = names(0, 120, "dlv_");
    await enqueue(world, ...rows);
    const other = await world.again();
    // Deterministic flakiness: each row fails 0 to 3 times, so some succeed and some are given up.
    const failures = new Map(rows.map((id, index) => [id, index % 4]));
    const sent = new Map<string, number>();
    const sender = new FakeSender(world.time, async ({ id }) => {
      const number = (sent.get(id) ?? 0) + 1;
      sent.set(id, number);
      await new Promise((resolve) => setImmediate(resolve));
      return number <= failures.get(id)! ? 500 : 200;
    });
    const abandoned: string[] = [];
    const failureHook = ({ id }: Delivery): number => abandoned.push(id);
    const workers = [world.store, other].map((store) => worker({ sender, store, batch: 7, failureHook }));
    // Due at once, after 1 s, and 2 s later.
    for (const wait of [0, 1_000, 2_000, 60_000]) {
      world.time.skip(wait);
      await Promise.all(
        workers.map(async (each) => {
          for (let round = 0; round < 10; round++) await each.processOnce();
        }),
      );
    }
    for (const id of rows) {
      const expected = failures.get(id)! < 3 ? "delivered" : "failed";
      expect(await get(world.store, id)).toMatchObject({ status: expected });
      expect(sent.get(id)).toBe(Math.min(failures.get(id)! + 1, 3));
    }
    expect(abandoned.sort()).toEqual(rows.filter((_, index) => index % 4 === 3));
  });
});

test("events 31: a worker without a store or a sender is refused", () => {
  expect(() => new Worker({} as WorkerConfig)).toThrow("needs a store and a sender");
});
