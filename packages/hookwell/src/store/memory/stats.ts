import { type LaneFacts, lanesInTrouble } from "../lane-trouble.ts";
import { everyProject, minuteMs, minuteOf, minutesShown } from "../minute-counts.ts";
import { type Counted, mostCounted, type StoreStats } from "../stats-contract.ts";
import { isCovered } from "./holds.ts";
import { isClaimable, lagOf } from "./maintain.ts";
import type { MemoryState, SubscriptionRow } from "./state.ts";

/** What happens; a map of everything is walked, which is what this store is. */
export function readStats(state: MemoryState, projectId: string | undefined, now: number): StoreStats {
  const isOurs = (owner: string | undefined): boolean => projectId === undefined || owner === projectId;
  const projectOf = (subscriptionId: string): string | undefined =>
    state.subscriptions.get(subscriptionId)?.record.projectId;
  const pending = [...state.pending.values()].filter(
    (row) => projectId === undefined || projectOf(row.subscriptionId) === projectId,
  );
  const newEvents = [...state.newEvents.values()].filter(({ record }) => isOurs(record.projectId));
  const due = pending.filter((row) => row.dueAt <= now && isClaimable(state, row, now));
  const oldestDue = new Map<string, number>();
  for (const row of pending.filter((one) => !isCovered(state, one)))
    oldestDue.set(row.subscriptionId, Math.min(row.dueAt, oldestDue.get(row.subscriptionId) ?? row.dueAt));
  const facts = [...state.subscriptions.values()]
    .filter(({ record }) => isOurs(record.projectId))
    .map((row) => factsOf(state, row, oldestDue.get(row.record.id)));
  return {
    at: new Date(now),
    minutes: minutesOf(state, projectId ?? everyProject, now),
    pending: counted(pending.length),
    newEvents: counted(newEvents.length),
    ...lagOf(state, due, newEvents),
    lanes: lanesInTrouble(facts, false, now),
  };
}

function minutesOf(state: MemoryState, projectId: string, now: number): StoreStats["minutes"] {
  const first = minuteOf(now) - minutesShown;
  return [...state.minutes.values()]
    .filter((row) => row.projectId === projectId && row.minute >= first && row.minute <= minuteOf(now))
    .sort((a, b) => a.minute - b.minute)
    .map(({ minute, counts }) => ({ minute: new Date(minute * minuteMs), ...counts }));
}

function factsOf(
  state: MemoryState,
  { record, statusChangedAt }: SubscriptionRow,
  oldestDueAt: number | undefined,
): LaneFacts {
  const lane = state.lane(record.id);
  return {
    subscriptionId: record.id,
    projectId: record.projectId,
    status: record.status,
    statusChangedAt,
    failures: lane.failures,
    failingSince: lane.failingSince,
    openedAt: lane.open?.since,
    limited: record.rateLimit !== undefined,
    oldestDueAt,
  };
}

function counted(count: number): Counted {
  return { count: Math.min(count, mostCounted), capped: count > mostCounted };
}
