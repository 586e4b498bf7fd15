import type { Work, WorkConfig } from "./contestants/contract.ts";
import { contestants } from "./contestants/index.ts";
import { type EmitPlan, emitAsPlanned } from "./emitting.ts";
import { serve } from "./rpc.ts";

// One contestant's worker, in a process of its own, started and stopped by the controller.
let work: Work | undefined;

export interface Usage {
  /** CPU of this process so far, in ms. */
  readonly cpuMs: number;
  readonly rssBytes: number;
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss() };
}

serve({
  open: async (config: WorkConfig) => {
    const contestant = contestants.find(({ name }) => name === config.contestant);
    work = await contestant!.work(config);
  },
  start: (expected: number) => work!.start(expected),
  stop: () => work!.stop(),
  usage,
  emit: (plan: EmitPlan) => emitAsPlanned(work!, plan),
  close: () => work?.close(),
});
