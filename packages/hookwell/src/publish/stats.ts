import { checkName } from "../model/identifiers.ts";
import type { Now, OutboxStore } from "../store/contract.ts";
import type { MinuteCounts, StoreStats } from "../store/stats-contract.ts";

/** What happened per minute, on average over so many whole minutes. */
export interface Rate extends MinuteCounts {
  readonly overMinutes: number;
}

/**
 * What happens, as one look says. Counts are exact and written with what they count; the backlog is counted up to
 * 10,000, and `capped` says that there is more.
 */
export interface Stats extends StoreStats {
  /** Over the last 1, 5 and 60 minutes that are over: the running minute is in `minutes` only. */
  readonly rates: readonly Rate[];
  /** Holds of an operator that are in force, of a project those that may cover it: the backlog may wait for them. */
  readonly holds: number;
}

const windows = [1, 5, 60] as const;
const minuteMs = 60_000;
const parts = ["dispatched", "delivered", "failedAttempts", "failed"] as const;

export async function readStats(
  store: OutboxStore,
  now: Now,
  { projectId }: { readonly projectId?: string },
): Promise<Stats> {
  if (projectId !== undefined) checkName(projectId, "project");
  const stats = await store.stats(projectId, now);
  const holds = (await store.listHolds()).filter(
    ({ selector }) =>
      projectId === undefined || !("projectId" in selector) || selector.projectId === projectId,
  );
  const rates = windows.map((overMinutes) => rateOver(stats, overMinutes));
  return { ...stats, rates, holds: holds.length };
}

function rateOver({ at, minutes }: StoreStats, overMinutes: number): Rate {
  const running = Math.floor(at.getTime() / minuteMs) * minuteMs;
  const first = running - overMinutes * minuteMs;
  const within = minutes.filter(({ minute }) => minute.getTime() >= first && minute.getTime() < running);
  const rate = Object.fromEntries(
    parts.map((part) => [part, within.reduce((sum, counts) => sum + counts[part], 0) / overMinutes]),
  ) as unknown as MinuteCounts;
  return { overMinutes, ...rate };
}
