import { minuteOf, minutesKept, type Tally } from "../minute-counts.ts";
import type { Connection } from "./connection.ts";

const addText = `
INSERT INTO hookwell_minute_count (minute, project_id, dispatched, delivered, failed_attempts, failed)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (minute, project_id) DO UPDATE SET dispatched = dispatched + excluded.dispatched,
  delivered = delivered + excluded.delivered, failed_attempts = failed_attempts + excluded.failed_attempts,
  failed = failed + excluded.failed`;

/** Inside a write: adds what it did to the minute it is in. */
export function countMinute(connection: Connection, tally: Tally, now: number): void {
  for (const [projectId, { dispatched, delivered, failedAttempts, failed }] of tally.entries())
    connection.all(addText, [minuteOf(now), projectId, dispatched, delivered, failedAttempts, failed]);
}

const oldText = "SELECT 1 FROM hookwell_minute_count WHERE minute < ? LIMIT 1";
const dropText = `
DELETE FROM hookwell_minute_count WHERE (minute, project_id) IN (
  SELECT minute, project_id FROM hookwell_minute_count WHERE minute < ? ORDER BY minute, project_id LIMIT CAST(? AS INTEGER))`;

/** Drops minutes that are no longer shown. True when there are more of them. */
export async function dropCounts(connection: Connection, limit: number, now: number): Promise<boolean> {
  const oldest = minuteOf(now) - minutesKept;
  if (connection.all(oldText, [oldest]).length === 0) return false;
  return connection.write(() => {
    connection.all(dropText, [oldest, limit]);
    return connection.all(oldText, [oldest]).length > 0;
  });
}
