import type { Row } from "../../adapters/seam.ts";
import type { SubscriptionStatus } from "../../model/states.ts";
import type { Now } from "../contract.ts";
import { type LaneFacts, lanesInTrouble } from "../lane-trouble.ts";
import { everyProject, minuteMs } from "../minute-counts.ts";
import { type Counted, mostCounted, type StoreStats } from "../stats-contract.ts";
import type { Database } from "./database.ts";
import { defined, flag, integer, optionalDate, optionalInteger, text } from "./rows.ts";
import { mostLanes, statsTexts } from "./stats-sql.ts";

/** What happens, in three statements; none of them holds or waits for anything. */
export async function readStats(db: Database, projectId: string | undefined, at: Now): Promise<StoreStats> {
  const texts = statsTexts(db.schema)[projectId === undefined ? "all" : "one"];
  const params = [db.now(at), projectId ?? everyProject];
  const [minutes, [backlog], lanes] = await Promise.all([
    db.run({ text: texts.minutes, params }),
    db.run({ text: texts.backlog, params }),
    db.run({ text: texts.lanes, params }),
  ]);
  const now = integer(backlog!, "now");
  const full = flag(backlog!, "full");
  return defined<StoreStats>({
    at: new Date(now),
    minutes: minutes.map((row) => ({
      minute: new Date(integer(row, "minute") * minuteMs),
      dispatched: integer(row, "dispatched"),
      delivered: integer(row, "delivered"),
      failedAttempts: integer(row, "failed_attempts"),
      failed: integer(row, "failed"),
    })),
    pending: counted(integer(backlog!, "pending"), full),
    newEvents: counted(
      integer(backlog!, "new_events"),
      (optionalInteger(backlog!, "looked") ?? 0) > mostCounted,
    ),
    oldestDueAt: optionalDate(backlog!, "oldest_due"),
    oldestNewAt: optionalDate(backlog!, "oldest_new"),
    lanes: lanesInTrouble(lanes.map(toFacts), full || isFull(lanes), now),
  });
}

function counted(count: number, more: boolean): Counted {
  return { count: Math.min(count, mostCounted), capped: more || count > mostCounted };
}

/** One kind of look was at its limit. */
function isFull(rows: readonly Row[]): boolean {
  const looks = new Map<string, number>();
  for (const row of rows) {
    const look = text(row, "look");
    looks.set(look, (looks.get(look) ?? 0) + 1);
  }
  looks.delete("project");
  return [...looks.values()].some((number) => number >= mostLanes);
}

function toFacts(row: Row): LaneFacts {
  return {
    subscriptionId: text(row, "subscription_id"),
    projectId: text(row, "project_id"),
    status: text(row, "status") as SubscriptionStatus,
    statusChangedAt: integer(row, "status_changed_at"),
    failures: integer(row, "failures"),
    failingSince: optionalInteger(row, "failing_since"),
    openedAt: optionalInteger(row, "opened_at"),
    limited: flag(row, "limited"),
    oldestDueAt: optionalInteger(row, "oldest_due"),
  };
}
