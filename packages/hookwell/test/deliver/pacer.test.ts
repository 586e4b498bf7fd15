import { expect, test } from "vitest";
import { Pacer } from "../../src/deliver/pacer.ts";
import { systemTimers } from "../../src/model/timers.ts";
import { turns, VirtualTime } from "./virtual-time.ts";

/** A loop that only notes when it looks. */
function looking(random = () => 0.5): {
  time: VirtualTime;
  pacer: Pacer;
  looks: number[];
  found: { next: boolean };
} {
  const time = new VirtualTime();
  const start = time.monotonic();
  const pacer = new Pacer(time, random);
  const looks: number[] = [];
  const found = { next: false };
  const stopped = { now: false };
  const loop = async (): Promise<void> => {
    while (!stopped.now) {
      looks.push(time.monotonic() - start);
      await pacer.next(found.next);
      if (looks.length > 500) stopped.now = true;
    }
  };
  void loop();
  return { time, pacer, looks, found };
}

const gaps = (looks: readonly number[]): number[] => looks.slice(1).map((at, index) => at - looks[index]!);

test("polls after 200 ms at first, then more rarely, at most once a second; work brings 200 ms back", async () => {
  const { time, looks, found } = looking();
  await time.advance(10_000);
  expect(gaps(looks).slice(0, 6)).toEqual([200, 300, 450, 675, 1_000, 1_000]);
  found.next = true;
  await time.advance(1_000);
  found.next = false;
  expect(gaps(looks).at(-1)).toBe(200);
});

test("polls are spread, so that replicas do not look together", async () => {
  const { time, looks } = looking(() => 0.999);
  await time.advance(5_000);
  expect(gaps(looks)[0]).toBeCloseTo(240, 0);
  const early = looking(() => 0);
  await early.time.advance(5_000);
  expect(gaps(early.looks)[0]).toBe(160);
});

test("after a wake it looks again after 1, 2, 4 … 64 ms", async () => {
  const { time, pacer, looks } = looking();
  await time.advance(5_000);
  const before = looks.length;
  pacer.wake();
  await time.advance(127);
  expect(gaps(looks).slice(before)).toEqual([2, 4, 8, 16, 32, 64]);
  expect(looks[before]! - 5_000).toBe(1);
});

test("wakes without pause neither put a look off nor make one each millisecond", async () => {
  const { time, pacer, looks } = looking();
  await time.advance(5_000);
  const before = looks.length;
  for (let ms = 0; ms < 400; ms++) {
    pacer.wake();
    await time.advance(1);
  }
  const made = looks.length - before;
  expect(made).toBeGreaterThan(40);
  expect(made).toBeLessThan(80);
});

test("a poke is a look at once, also one that comes during a look", async () => {
  const { time, pacer, looks } = looking();
  await time.advance(10);
  pacer.poke();
  await turns();
  expect(looks).toEqual([0, 10]);
  pacer.poke();
  pacer.poke();
  await turns();
  expect(looks).toEqual([0, 10, 10]);
});

test("system timers take waits beyond 2^31 - 1 ms, and end when aborted", async () => {
  const end = new AbortController();
  let ended = false;
  const sleeping = systemTimers.sleep(2 ** 40, end.signal).then(() => {
    ended = true;
  });
  await turns(50);
  expect(ended).toBe(false);
  end.abort();
  await sleeping;
  await systemTimers.sleep(0);
  await systemTimers.sleep(Number.NaN);
});
