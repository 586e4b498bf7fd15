import type { World } from "../contestants/contract.ts";
import { hookwellPostgres, type hookwellSqlite } from "../contestants/hookwell.ts";
import { steadyMs } from "../measuring.ts";
import type { Receiver } from "../receiver-process.ts";
import { WorkerHandle } from "../worker-handle.ts";
import { type Round, Stand } from "./throughput.ts";

/** One point of a curve. */
export interface Point {
  readonly at: number;
  readonly perSecond: number;
  readonly workerCpuUs?: number;
  readonly databaseCpuUs?: number | undefined;
}

export interface Curve {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly Point[];
}

const usual = { subscriptions: 20, bodyBytes: 700 };

/** Worker processes side by side on one PostgreSQL. */
export async function scaleWorkers(
  world: World,
  receiver: Receiver,
  counts: readonly number[],
  deliveries: number,
): Promise<Curve> {
  const side = await hookwellPostgres.prepare(world, usual);
  const workers: WorkerHandle[] = [];
  const points: Point[] = [];
  let made = 0;
  try {
    for (const count of [counts[0]!, ...counts]) {
      while (workers.length < count) workers.push(await WorkerHandle.open(side.config));
      const running = workers.slice(0, count);
      const expected = await side.enqueue(deliveries);
      made += expected;
      await receiver.reset();
      const begun = steadyMs();
      await Promise.all(running.map((worker) => worker.start()));
      await receiver.expect(expected, 120_000);
      await Promise.all(running.map((worker) => worker.stop()));
      const { lastAt, requests } = await receiver.counts();
      const recorded = await side.recorded();
      if (recorded !== made || requests !== expected)
        throw new Error(
          `${count} workers: ${requests} received, ${recorded} recorded of ${expected}, ${made} in all`,
        );
      points.push({ at: count, perSecond: (expected * 1_000) / (lastAt - begun) });
    }
  } finally {
    for (const worker of workers) await worker.close();
    await side.close();
  }
  // The first one warmed up.
  return { name: "worker processes, PostgreSQL", unit: "processes", points: points.slice(1) };
}

/** Subscriptions that one event reaches. */
export async function scaleSubscriptions(
  world: World,
  receiver: Receiver,
  counts: readonly number[],
  deliveries: number,
): Promise<Curve> {
  const points: Point[] = [];
  for (const subscriptions of counts) {
    const round = await alone(
      world,
      receiver,
      { ...usual, subscriptions },
      Math.max(deliveries, subscriptions),
    );
    points.push({ at: subscriptions, ...round });
  }
  return { name: "subscriptions, PostgreSQL", unit: "subscriptions", points };
}

/** Size of the event's data. */
export async function scaleBodies(
  world: World,
  receiver: Receiver,
  sizes: readonly number[],
  deliveries: number,
): Promise<Curve> {
  const points: Point[] = [];
  for (const bodyBytes of sizes) {
    // About the same number of bytes in all once bodies are large.
    const count = Math.max(200, Math.min(deliveries, Math.floor(100_000_000 / bodyBytes)));
    points.push({ at: bodyBytes, ...(await alone(world, receiver, { ...usual, bodyBytes }, count)) });
  }
  return { name: "body size, PostgreSQL", unit: "bytes", points };
}

async function alone(
  world: World,
  receiver: Receiver,
  shape: { readonly subscriptions: number; readonly bodyBytes: number },
  deliveries: number,
  contestant: typeof hookwellSqlite = hookwellPostgres,
): Promise<Round> {
  const stand = await Stand.open(contestant, world, receiver, shape);
  try {
    await stand.round(Math.ceil(deliveries / 3));
    return await stand.round(deliveries);
  } finally {
    await stand.close();
  }
}
