import { behindLive, blockedAt } from "../ordering.ts";
import { nowSql, oneOf, textsFor } from "./database.ts";
import { awakeSql, restsUntilSql } from "./lanes.ts";
import { takeSql } from "./take-sql.ts";

interface ClaimTexts {
  /** $1 now. Readies lanes whose next due time has come, and those that capture left a note about. */
  readonly wake: string;
  /** $1 now, $2 limit, $3 cursor, $4 room, $5 rooms (JSON object), $6 lease in ms, $7 what the tokens begin with. */
  readonly take: string;
  /**
   * The same where no lane on the way has a limit of its own or an open circuit. Where one has, it takes nothing, and
   * answers one row with `holds`: limits.
   */
  readonly takeUnguarded: string;
  /** The same while an operator holds something: rows that no hold covers. */
  readonly takeUnheld: string;
  /** $1 lanes (JSON array). */
  readonly lock: string;
  /** $1 now, $2 lanes (JSON array). */
  readonly sleep: string;
}

/** Lanes readied by one claim. */
const mostLanes = 1_000;

export const claimTexts = textsFor((s): ClaimTexts => {
  const wake = `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), due AS MATERIALIZED (
  SELECT l.subscription_id FROM ${s}.lane l
  WHERE NOT l.ready AND l.held = 0 AND l.next_due <= (SELECT now FROM t)
  ORDER BY l.next_due LIMIT ${mostLanes}
  FOR UPDATE SKIP LOCKED
), noted AS MATERIALIZED (
  SELECT w.id, l.subscription_id
  FROM ${s}.lane_wake w JOIN ${s}.lane l ON l.subscription_id = w.subscription_id
  WHERE ${oneOf("l.subscription_id", `SELECT n.subscription_id FROM ${s}.lane_wake n`)}
  LIMIT ${mostLanes}
  FOR UPDATE SKIP LOCKED
), heard AS (
  DELETE FROM ${s}.lane_wake w USING noted WHERE w.id = noted.id
)
UPDATE ${s}.lane l
SET ${awakeSql("(SELECT now FROM t)")}
WHERE ${oneOf("l.subscription_id", "SELECT subscription_id FROM due UNION SELECT subscription_id FROM noted")}`;

  return {
    wake,
    take: takeSql(s, "guarded"),
    takeUnguarded: takeSql(s, "unguarded"),
    takeUnheld: takeSql(s, "unheld"),
    lock: lockSql(s),
    sleep: sleepSql(s),
  };
});

function lockSql(s: string): string {
  return `SELECT l.subscription_id FROM ${s}.lane l
WHERE ${oneOf("l.subscription_id", "SELECT w.id FROM jsonb_array_elements_text($1::text::jsonb) AS w(id)")} AND l.ready
ORDER BY l.subscription_id
FOR UPDATE SKIP LOCKED`;
}

function sleepSql(s: string): string {
  const first = (value: string, range: string): string => `(
    SELECT ${value} FROM ${s}.delivery d
    WHERE d.subscription_id = l.subscription_id AND d.status = 'pending' AND ${range}
    ORDER BY d.due_at, d.id LIMIT 1
  )`;
  const due = `least(${first("d.due_at", `d.due_at < ${behindLive}`)},
    ${first(`d.due_at - ${behindLive}`, `d.due_at >= ${behindLive} AND d.due_at < ${blockedAt}`)})`;
  return `WITH t AS MATERIALIZED (
  SELECT $1::text::bigint AS now
)
UPDATE ${s}.lane l
SET ready = false, next_due = CASE WHEN ${due} IS NOT NULL THEN greatest(${due}, ${restsUntilSql}) END
WHERE ${oneOf("l.subscription_id", "SELECT w.id FROM jsonb_array_elements_text($2::text::jsonb) AS w(id)")}
  AND (${due} > (SELECT now FROM t)) IS NOT FALSE`;
}
