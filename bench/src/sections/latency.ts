import type { Contestant, Shape, World } from "../contestants/contract.ts";
import { type EmitPlan, emitAsPlanned } from "../emitting.ts";
import { type Latency, latency } from "../measuring.ts";
import type { Receiver } from "../receiver-process.ts";
import { WorkerHandle } from "../worker-handle.ts";

export type Processes = "one" | "two";
export type Load = "idle" | "half";

export interface LatencyResult {
  readonly contestant: string;
  readonly processes: Processes;
  readonly load: Load;
  /** From before the transaction that emits to the arrival at the receiver, in ms. */
  readonly latency: Latency;
}

const idleEveryMs = 40;

/** The plan of half load: events to all, so often that half of what was measured is asked for. */
export function halfLoad(perSecond: number, subscriptions: number, ms: number): EmitPlan {
  const everyMs = (subscriptions * 1_000) / (perSecond / 2);
  return { count: Math.max(5, Math.ceil(ms / everyMs)), everyMs };
}

/** Emits by the plan while the worker runs, and matches what came with what was emitted. */
export async function measureLatency(
  emit: (plan: EmitPlan) => Promise<ReadonlyMap<string, number>>,
  receiver: Receiver,
  plan: EmitPlan,
  subscriptions: number,
): Promise<Latency> {
  await receiver.reset();
  const begun = await emit(plan);
  await receiver.expect(plan.to === undefined ? plan.count * subscriptions : plan.count, 120_000);
  const waits: number[] = [];
  for (const [key, at] of await receiver.times()) {
    const began = begun.get(key.slice(key.indexOf(" ") + 1));
    if (began !== undefined) waits.push(at - began);
  }
  return latency(waits);
}

export async function measureLatencies(
  list: readonly Contestant[],
  world: World,
  receiver: Receiver,
  settings: {
    readonly shape: Shape;
    /** Emits of the idle measure. */
    readonly emits: number;
    readonly halfMs: number;
    /** Deliveries per second at full load, by contestant; absent = no half load. */
    readonly rates: ReadonlyMap<string, number>;
  },
  report: (line: string) => void,
): Promise<LatencyResult[]> {
  const results: LatencyResult[] = [];
  const { shape } = settings;
  for (const contestant of list)
    for (const processes of ["one", "two"] as const) {
      const side = await contestant.prepare(world, shape);
      const worker = await WorkerHandle.open({ ...side.config, listens: processes === "two" });
      const emit = (plan: EmitPlan): Promise<ReadonlyMap<string, number>> =>
        processes === "one" ? worker.emit(plan) : emitAsPlanned(side, plan);
      const measure = async (load: Load, plan: EmitPlan): Promise<void> => {
        const measured = await measureLatency(emit, receiver, plan, shape.subscriptions);
        results.push({ contestant: contestant.name, processes, load, latency: measured });
        report(
          `${contestant.name}, ${processes} process${processes === "two" ? "es" : ""}, ${load}: ` +
            `p50 ${measured.p50.toFixed(1)} ms, p99 ${measured.p99.toFixed(1)} ms`,
        );
      };
      await worker.start();
      await measureLatency(emit, receiver, { count: 40, everyMs: 10, to: shape.subscriptions }, 1);
      const idle = { count: settings.emits, everyMs: idleEveryMs, to: shape.subscriptions };
      await measure("idle", idle);
      const rate = settings.rates.get(contestant.name);
      if (rate) await measure("half", halfLoad(rate, shape.subscriptions, settings.halfMs));
      await worker.stop();
      await worker.close();
      await side.close();
    }
  return results;
}
