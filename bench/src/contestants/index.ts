import type { Contestant } from "./contract.ts";

// Loaded one by one: a worker process has its own contestant's modules in memory, and nobody else's.
const loaders: Readonly<Record<string, () => Promise<Contestant>>> = {
  "Hookwell on PostgreSQL": async () => (await import("./hookwell.ts")).hookwellPostgres,
  "Hookwell on PostgreSQL, prepared": async () => (await import("./hookwell.ts")).hookwellPrepared,
  "Hookwell on SQLite": async () => (await import("./hookwell.ts")).hookwellSqlite,
  "graphile-worker": async () => (await import("./graphile.ts")).graphileWorker,
  "pg-boss": async () => (await import("./pg-boss.ts")).pgBoss,
  BullMQ: async () => (await import("./bullmq.ts")).bullmq,
  "bare undici loop": async () => (await import("./undici.ts")).bareUndici,
};

/** Everybody, in the order of the tables. */
export function allContestants(): Promise<Contestant[]> {
  return Promise.all(Object.values(loaders).map((load) => load()));
}

/** @throws when there is nobody of that name */
export async function contestantCalled(name: string): Promise<Contestant> {
  const load = loaders[name];
  if (!load) throw new Error(`Nobody is called ${name}`);
  return await load();
}
