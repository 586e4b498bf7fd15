import type { ReplayRecord } from "../../model/replay.ts";
import type { NewReplay, ReplayAdvance, ReplayLimits, WalkPosition } from "../../store/replay-contract.ts";
import { day, own, type StoreWorld, start } from "./store-world.ts";

/** Small, so that few rows take several steps. */
export const limits: ReplayLimits = {
  look: 3,
  most: 2,
  pending: 100,
  waitMs: 1_000,
  missingMs: 30 * day,
  keepMs: 90 * day,
};

/** A replay of everything that failed on sub_a until now. */
export function newReplay(t: StoreWorld, overrides: Partial<NewReplay> = {}): NewReplay {
  return {
    id: "rpl_1",
    selection: { projectId: "live", subscriptionId: "sub_a" },
    statuses: ["failed"],
    since: new Date(start),
    until: t.in(1),
    count: 0,
    ...overrides,
  };
}

export function makeReplay(t: StoreWorld, overrides: Partial<NewReplay> = {}): Promise<ReplayRecord> {
  return t.store.replays.create(own, newReplay(t, overrides));
}

/** Steps until nothing more can be done at once; answers what was queued. */
export async function advanceAll(t: StoreWorld, changes: Partial<ReplayLimits> = {}): Promise<number> {
  let queued = 0;
  for (let turn = 0; turn < 200; turn++) {
    const step: ReplayAdvance = await t.store.replays.advance({ ...limits, ...changes }, null);
    queued += step.queued;
    if (!step.again) return queued;
  }
  throw new Error("a replay does not come to its end");
}

/** Counts window by window, as `create` of the library does. */
export async function countAll(t: StoreWorld, replay: NewReplay): Promise<number> {
  let count = 0;
  for (let after: WalkPosition | undefined; ; ) {
    const window = await t.store.replays.count(replay, after, limits, null);
    count += window.count;
    after = window.next;
    if (!after) return count;
  }
}

/** The replay as it is, with what is waiting to be counted. */
export async function replayNow(t: StoreWorld, id = "rpl_1"): Promise<ReplayRecord> {
  return (await t.store.replays.get(id, {}))!;
}

/** Publishes an event, and ends each of its deliveries: delivered, or failed for good. */
export async function ended(
  t: StoreWorld,
  id: string,
  as: "delivered" | "failed",
  overrides: Parameters<StoreWorld["publish"]>[1] = {},
): Promise<string[]> {
  const ids = await t.publish(id, overrides);
  const claimed = await t.claim();
  await t.store.record(
    claimed.map((row) => (as === "delivered" ? t.delivered(row) : t.failed(row))),
    null,
  );
  return ids;
}
