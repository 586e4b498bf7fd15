import pg from "pg";
import type { Work, WorkConfig } from "./contestants/contract.ts";
import { contestantCalled } from "./contestants/index.ts";
import { type EmitPlan, emitAsPlanned } from "./emitting.ts";
import { serve } from "./rpc.ts";

// One contestant's worker, in a process of its own, started and stopped by the controller.
let work: Work | undefined;

export interface Usage {
  /** CPU of this process so far, in ms. */
  readonly cpuMs: number;
  readonly rssBytes: number;
  /** Statements that it has sent to PostgreSQL so far. */
  readonly statements: number;
}

let statements = 0;
const send = pg.Client.prototype.query as (...given: unknown[]) => unknown;
pg.Client.prototype.query = function counted(this: pg.Client, ...given: unknown[]) {
  statements++;
  return send.apply(this, given);
} as typeof pg.Client.prototype.query;

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss(), statements };
}

serve({
  open: async (config: WorkConfig) => {
    work = await (await contestantCalled(config.contestant)).work(config);
  },
  start: (expected: number) => work!.start(expected),
  stop: () => work!.stop(),
  usage,
  emit: (plan: EmitPlan) => emitAsPlanned(work!, plan),
  close: () => work?.close(),
});
