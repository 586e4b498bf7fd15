import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemTimers } from "../../src/model/timers.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import { MortalWorker } from "../deliver/mortal-worker.ts";
import { kinds } from "../deliver/stores.ts";
import { type FakeAnswer, FakeSender, names, World } from "../deliver/world.ts";

/** A small generator with a seed, so that a failure can be seen again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

/**
 * The place of a worker that is in the middle of a send, once there is one: looked for in steps shorter than a send, for
 * longer than the longest pause between two polls. Where every subject is in the hands of a dead worker, that is only
 * when a lease ends, so the time up to then is left out.
 */
async function sendingOne(world: World, workers: readonly MortalWorker[]): Promise<number> {
  for (let waited = 0; waited <= 40_000; waited += 10_000) {
    for (let look = 0; look < 300; look++) {
      const place = workers.findIndex(({ sending }) => sending > 0);
      if (place >= 0) return place;
      // Memory and SQLite never leave the thread: without this, not even the time limit of the test would be heard.
      await systemTimers.sleep(0);
      await world.advance(5);
    }
    world.time.skip(10_000);
  }
  throw new Error(
    "Each subject has something to send, and no worker has begun to in 40 s, longer than a lease.",
  );
}

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  test("field-faults C1: three workers that die in the middle of sends, random failures and late commits: no subject goes backwards, none is sent twice at a time, nothing is lost", async () => {
    const random = seeded(20_260_105);
    await world.subscribe("sub_a", { ordering: "subject" });
    const subjects = names(0, 4, "booking:");
    const flying = new Map<string, number>();
    let mostTogether = 0;
    const sender = new FakeSender(world.time, async ({ subject = "" }): Promise<FakeAnswer> => {
      const together = (flying.get(subject) ?? 0) + 1;
      mostTogether = Math.max(mostTogether, together);
      flying.set(subject, together);
      await world.time.sleep(5 + Math.floor(random() * 60));
      flying.set(subject, flying.get(subject)! - 1);
      const luck = random();
      return luck < 0.2 ? 500 : luck < 0.25 ? "connect_refused" : 200;
    });
    const policy = [300, 300, 300, 300, 300, 300, 300];
    const live = (itsStore: OutboxStore): MortalWorker =>
      new MortalWorker(itsStore, sender, (store, mine) =>
        world.start(mine, { store, dispatcher: world.dispatcher({ store }), policy }),
      );
    const stores = [world.store, await world.again(), await world.again()];
    const workers = stores.map(live);
    const revision = new Map(subjects.map((subject) => [subject, 0]));
    const capture = async (subject: string, number: number): Promise<void> => {
      revision.set(subject, Math.max(revision.get(subject)!, number));
      const id = `evt_${subject.replace(":", "_")}_${number}`;
      await world.capture({ id, type: "booking.moved", subject, revision: number });
    };
    for (let round = 0; round < 9; round++) {
      for (const subject of subjects) {
        if (random() < 0.3) continue;
        const next = revision.get(subject)! + 1;
        // Revisions are captured out of order within a window: the later commit of the lower one.
        const swap = random() < 0.3;
        for (const number of swap ? [next + 1, next] : [next]) {
          await capture(subject, number);
          if (swap) await world.advance(random() < 0.5 ? 0 : 120);
        }
      }
      if (round % 3 === 1) {
        // One dies: what it holds goes on with the others when its lease ends.
        for (const subject of subjects) await capture(subject, revision.get(subject)! + 1);
        const place = await sendingOne(world, workers);
        workers[place]!.kill();
        world.forget(workers[place]!.loops);
        workers[place] = live(stores[place]!);
      }
      await world.advance(150);
    }
    for (let n = 0; n < 6; n++) await world.later(12_000);
    expect(mostTogether).toBe(1);
    for (const subject of subjects) {
      const seen = sender.sent
        .filter(({ delivery }) => delivery.subject === subject)
        .map(({ delivery }) => Number(delivery.eventId.split("_").at(-1)));
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
      const rows = await world.deliveries({ subject });
      expect(rows.length).toBe(revision.get(subject));
      for (const { status, reason, attempts } of rows)
        if (status === "cancelled") expect([reason, attempts]).toEqual(["superseded", 0]);
        else expect(status).toBe("delivered");
    }
  });

  test("field-faults C1: a failing first delivery holds its own subject only, and its end lets the next go", async () => {
    await world.subscribe("sub_a", { ordering: "subject" });
    const sender = new FakeSender(world.time, ({ subject }) => (subject === "user:bad" ? 500 : 200));
    world.start(sender, { policy: [2_000, 2_000] });
    await world.capture(
      { id: "evt_b1", subject: "user:bad", revision: 1 },
      { id: "evt_b2", subject: "user:bad", revision: 2 },
      ...names(1, 30).map((id, index) => ({ id, subject: "user:good", revision: index + 1 })),
    );
    await world.advance(1_500);
    const good = sender.sent.filter(({ delivery }) => delivery.subject === "user:good");
    expect(good.map(({ delivery }) => delivery.eventId)).toEqual(names(1, 30));
    expect(sender.counts().get("evt_b2 sub_a")).toBeUndefined();
    expect((await world.deliveries({ eventId: "evt_b2" }))[0]).toMatchObject({ hold: "ordering" });
    for (let n = 0; n < 6; n++) await world.later(5_000);
    expect(sender.counts().get("evt_b1 sub_a")).toBe(3);
    expect(sender.counts().get("evt_b2 sub_a")).toBe(3);
    expect((await world.deliveries({ subject: "user:bad" })).map(({ status }) => status)).toEqual([
      "failed",
      "failed",
    ]);
  });
});
