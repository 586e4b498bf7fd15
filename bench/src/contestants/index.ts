import { bullmq } from "./bullmq.ts";
import type { Contestant } from "./contract.ts";
import { graphileWorker } from "./graphile.ts";
import { hookwellPostgres, hookwellPrepared, hookwellSqlite } from "./hookwell.ts";
import { pgBoss } from "./pg-boss.ts";
import { bareUndici } from "./undici.ts";

/** Everybody, in the order of the tables. */
export const contestants: readonly Contestant[] = [
  hookwellPostgres,
  hookwellPrepared,
  hookwellSqlite,
  graphileWorker,
  pgBoss,
  bullmq,
  bareUndici,
];
