import { behindLive, blockedAt } from "../ordering.ts";
import { nowSql, oneOf, textsFor } from "./database.ts";
import { wakeLanesSql } from "./lanes.ts";

interface OrderingTexts {
  /** $1 delivery ids. Locks their lanes, all of them at once and in id order. */
  readonly lockLanes: string;
  /** $1 subscription ids. Locks the lanes. */
  readonly lockThese: string;
  /** $1 delivery ids. Waits for whoever is claiming the first rows of their groups. */
  readonly lockHeads: string;
  /** $1 now, $2 delivery ids. Cancels what came too late, and lets the first row of each group go. */
  readonly settle: string;
  /** $1 subscription. Ids of rows that wait for another. */
  readonly waiting: string;
  /** $1 now, $2 subscription. Nothing waits for anything any more. */
  readonly drop: string;
  /** $1 delivery. Answers superseded (0 or 1): a higher revision of its subject may have been seen. */
  readonly superseded: string;
}

/** What the `due_at` of row `d` has besides the time it waits for: a replayed one stands behind what is live. */
export function behindReplayedSql(d: string): string {
  return `CASE WHEN ${d}.replay_id IS NULL THEN 0 ELSE ${behindLive} END`;
}

const seen = (d: string): string => `(${d}.attempts > 0 OR ${d}.round > 1)`;
const queued = (d: string): string => `${d}.order_key IS NOT NULL AND ${d}.status = 'pending'`;

/**
 * A group is the deliveries of one subject to one subscription. Its lane is locked first, then the row that may go:
 * whoever finishes, adds or cancels a row of it does so alone, and decides by a statement that begins after that.
 */
export const orderingTexts = textsFor((s): OrderingTexts => {
  const ids = (parameter: string): string =>
    `SELECT w.id FROM jsonb_array_elements_text(${parameter}::text::jsonb) AS w(id)`;
  const groups = (parameter: string): string => `SELECT DISTINCT d.subscription_id AS lane, d.order_key AS key
  FROM ${s}.delivery d WHERE ${oneOf("d.id", ids(parameter))} AND d.order_key IS NOT NULL`;
  const late = "right(k.key, 1) = 'r' AND d.order_at < k.mark AND d.attempts = 0 AND d.round = 1";
  return {
    lockLanes: `SELECT l.subscription_id FROM ${s}.lane l
WHERE ${oneOf("l.subscription_id", `SELECT d.subscription_id FROM ${s}.delivery d WHERE ${oneOf("d.id", ids("$1"))}`)}
ORDER BY l.subscription_id
FOR UPDATE`,

    lockThese: `SELECT l.subscription_id FROM ${s}.lane l WHERE ${oneOf("l.subscription_id", ids("$1"))}
ORDER BY l.subscription_id
FOR UPDATE`,

    lockHeads: `WITH k AS MATERIALIZED (
  ${groups("$1")}
)
SELECT h.id FROM k CROSS JOIN LATERAL (
  SELECT d.id FROM ${s}.delivery d
  WHERE d.subscription_id = k.lane AND d.order_key = k.key AND ${queued("d")} AND d.due_at < ${blockedAt}
  FOR UPDATE
) AS h`,

    settle: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), g AS MATERIALIZED (
  ${groups("$2")}
), k AS MATERIALIZED (
  SELECT g.lane, g.key, m.order_at AS mark, h.id AS head, coalesce(h.seen, false) AS busy
  FROM g
  LEFT JOIN LATERAL (
    SELECT d.order_at FROM ${s}.delivery d
    WHERE d.subscription_id = g.lane AND d.order_key = g.key AND d.order_key IS NOT NULL AND ${seen("d")}
    ORDER BY d.order_at DESC LIMIT 1
  ) AS m ON true
  LEFT JOIN LATERAL (
    SELECT d.id, ${seen("d")} AS seen FROM ${s}.delivery d
    WHERE d.subscription_id = g.lane AND d.order_key = g.key AND ${queued("d")} AND d.due_at < ${blockedAt}
    LIMIT 1
  ) AS h ON true
), late AS (
  UPDATE ${s}.delivery d SET status = 'cancelled', reason = 'superseded', updated_at = t.now
  FROM k, t
  WHERE d.subscription_id = k.lane AND d.order_key = k.key AND ${queued("d")} AND ${late}
  RETURNING d.id
), firsts AS MATERIALIZED (
  SELECT k.lane, k.head, f.id AS first FROM k CROSS JOIN LATERAL (
    SELECT d.id FROM ${s}.delivery d
    WHERE d.subscription_id = k.lane AND d.order_key = k.key AND ${queued("d")} AND (${late}) IS NOT TRUE
    ORDER BY d.order_at, d.id LIMIT 1
  ) AS f
  WHERE NOT k.busy AND f.id IS DISTINCT FROM k.head
), moved AS (
  UPDATE ${s}.delivery d
  SET due_at = CASE WHEN d.id = firsts.first THEN d.next_attempt_at + ${behindReplayedSql("d")} ELSE ${blockedAt} END
  FROM firsts
  WHERE ${oneOf("d.id", "SELECT first FROM firsts UNION ALL SELECT head FROM firsts WHERE head IS NOT NULL")}
    AND (d.id = firsts.first OR d.id = firsts.head) AND d.status = 'pending'
    AND NOT EXISTS (SELECT 1 FROM late WHERE late.id = d.id)
  RETURNING d.subscription_id
)
${wakeLanesSql(s, "SELECT moved.subscription_id FROM moved", "(SELECT now FROM t)")}
RETURNING 1 AS readied`,

    waiting: `SELECT d.id FROM ${s}.delivery d
WHERE d.subscription_id = $1::text AND ${queued("d")} AND d.due_at = ${blockedAt}`,

    drop: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text AS lane
), moved AS (
  UPDATE ${s}.delivery d SET order_key = NULL,
    due_at = CASE d.due_at WHEN ${blockedAt} THEN d.next_attempt_at + ${behindReplayedSql("d")} ELSE d.due_at END
  FROM t WHERE d.subscription_id = t.lane AND ${queued("d")}
  RETURNING d.subscription_id
)
${wakeLanesSql(s, "SELECT moved.subscription_id FROM moved", "(SELECT now FROM t)")}`,

    superseded: `SELECT count(*)::int AS superseded FROM ${s}.delivery d CROSS JOIN LATERAL (
  SELECT m.order_at FROM ${s}.delivery m
  WHERE m.subscription_id = d.subscription_id AND m.order_key = d.order_key AND m.order_key IS NOT NULL AND ${seen("m")}
  ORDER BY m.order_at DESC LIMIT 1
) AS mark
WHERE d.id = $1::text AND right(d.order_key, 1) = 'r' AND d.order_at < mark.order_at`,
  };
});
