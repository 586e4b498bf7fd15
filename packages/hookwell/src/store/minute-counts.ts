import type { Outcome } from "../model/delivery.ts";
import type { MinuteCounts } from "./stats-contract.ts";

export const minuteMs = 60_000;
/** Minutes that are kept: the hour that is shown, and some to spare. */
export const minutesKept = 120;
/** Minutes that are shown besides the running one. */
export const minutesShown = 60;
/** Stands for every project together in the tables of counts. */
export const everyProject = "";

export function minuteOf(now: number): number {
  return Math.floor(now / minuteMs);
}

const nothing: MinuteCounts = { dispatched: 0, delivered: 0, failedAttempts: 0, failed: 0 };

export function added(a: MinuteCounts, b: Partial<MinuteCounts>): MinuteCounts {
  return {
    dispatched: a.dispatched + (b.dispatched ?? 0),
    delivered: a.delivered + (b.delivered ?? 0),
    failedAttempts: a.failedAttempts + (b.failedAttempts ?? 0),
    failed: a.failed + (b.failed ?? 0),
  };
}

/** What a recorded outcome counts as. */
export function countsOf(outcome: Outcome): Partial<MinuteCounts> {
  switch (outcome.kind) {
    case "delivered":
      return { delivered: 1 };
    case "retry":
      return { failedAttempts: 1 };
    case "gone":
      return { failedAttempts: 1, failed: 1 };
    case "failed":
      return { failedAttempts: outcome.exchange ? 1 : 0, failed: 1 };
    case "released":
      return {};
  }
}

/** What a reference mark counts as. `sent` = its number of attempts says that one was made. */
export function countsOfMark(kind: "delivered" | "retry" | "failed", sent: boolean): Partial<MinuteCounts> {
  if (kind === "delivered") return { delivered: 1 };
  return { failedAttempts: sent ? 1 : 0, failed: kind === "failed" ? 1 : 0 };
}

/** Sums of one write by project, and of all of them together. */
export class Tally {
  readonly #counts = new Map<string, MinuteCounts>();

  add(projectId: string, counts: Partial<MinuteCounts>): void {
    if (Object.values(counts).every((count) => count === 0)) return;
    for (const key of new Set([everyProject, projectId]))
      this.#counts.set(key, added(this.#counts.get(key) ?? nothing, counts));
  }

  entries(): IterableIterator<[projectId: string, counts: MinuteCounts]> {
    return this.#counts.entries();
  }
}
