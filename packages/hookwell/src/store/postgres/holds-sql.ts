import { asideAt } from "../hold-contract.ts";
import { behindLive, blockedAt } from "../ordering.ts";
import { nowSql, oneOf, textsFor } from "./database.ts";
import { wakeLanesSql } from "./lanes.ts";

/** True where one of the holds in `h` (a table or a list of them) covers delivery `d`: the rule of model/hold.ts. */
export function coveredSql(h: string, d = "d"): string {
  return `EXISTS (SELECT 1 FROM ${h} h WHERE ${coversSql(d)})`;
}

function coversSql(d: string): string {
  return `h.kind = 'all' OR (h.kind = 'project' AND h.value = ${d}.project_id)
    OR (h.kind = 'type' AND (h.value = ${d}.type OR (right(h.value, 2) = '.*' AND starts_with(${d}.type, left(h.value, -1)))))`;
}

/** True where `d` is set aside for a hold. */
export function isAsideSql(d: string): string {
  return `${d}.due_at >= ${asideAt.live} AND ${d}.due_at < ${blockedAt}`;
}

/**
 * A query for due_at of the first pending row of a lane that no hold covers: looks past what is held and not set aside
 * yet, a bounded way, because claims set it aside.
 */
export function firstUnheldSql(s: string, lane: string, and = ""): string {
  return `SELECT head.due_at FROM (
    SELECT d.due_at, d.type, d.project_id FROM ${s}.delivery d
    WHERE d.subscription_id = ${lane} AND d.status = 'pending'${and}
    ORDER BY d.due_at LIMIT (SELECT CASE WHEN EXISTS (SELECT 1 FROM ${s}.hold) THEN 1000 ELSE 1 END)
  ) AS head
  WHERE NOT ${coveredSql(`${s}.hold`, "head")}
  ORDER BY head.due_at LIMIT 1`;
}

/** Rows that one claim sets aside: so much longer may it take. */
export const mostAside = 500;
const lanesPerBatch = 1_000;
/** Due rows looked at for that: of a lane that gave nothing, and of one that gave some. */
const deepLook = 500;
const shortLook = 50;

interface HoldTexts {
  /** $1 now, $2 id, $3 kind, $4 value, $5 reason, $6 who. Answers a row when it was written. */
  readonly set: string;
  readonly count: string;
  /** $1 kind, $2 value. */
  readonly get: string;
  /** $1 kind, $2 value. */
  readonly release: string;
  /** $1 id. */
  readonly releaseById: string;
  readonly list: string;
  /** $1 now, $2 `[{lane, gave}]`. Answers a row for each delivery that was set aside. */
  readonly setAside: string;
  /** Locks lanes with rows aside for released holds; answers seq and subscription_id. */
  readonly lanesToGiveBack: string;
  /** $1 now, $2 most, $3 lanes as those (JSON array). Answers how many rows are due again. */
  readonly giveBack: string;
  /** $1 lanes as those. Forgets those without rows aside. */
  readonly done: string;
  /** $1 most. */
  readonly countToGiveBack: string;
}

export const holdTexts = textsFor((s): HoldTexts => {
  const columns = "h.id, h.kind, h.value, h.reason, h.held_by, h.created_at";
  const lanes = (parameter: string): string =>
    `jsonb_to_recordset(${parameter}::text::jsonb) AS x(seq bigint, lane text)`;
  // Numbers that rows are set aside for, one probe each, and of them those that are no hold's any more.
  const released = `numbers AS (
  (SELECT l.seq FROM ${s}.hold_lane l ORDER BY l.seq LIMIT 1)
  UNION ALL
  SELECT (SELECT l.seq FROM ${s}.hold_lane l WHERE l.seq > numbers.seq ORDER BY l.seq LIMIT 1)
  FROM numbers WHERE numbers.seq IS NOT NULL
), released AS MATERIALIZED (
  SELECT numbers.seq FROM numbers
  WHERE numbers.seq IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${s}.hold h WHERE h.seq = numbers.seq)
)`;
  // What is live, and what a replay queued behind it.
  const due = [
    "d.due_at <= (SELECT now FROM t)",
    `d.due_at >= ${behindLive} AND d.due_at <= ${behindLive} + (SELECT now FROM t)`,
  ];
  const look = (
    range: string,
  ): string => `(SELECT d.id, d.subscription_id, d.type, d.project_id FROM ${s}.delivery d
    WHERE d.subscription_id = w.lane AND d.status = 'pending' AND ${range}
    ORDER BY d.due_at, d.id LIMIT CASE WHEN w.gave THEN ${shortLook} ELSE ${deepLook} END)`;
  const asideRows = (lane: string, seq: string): string => `${s}.delivery d
    WHERE d.subscription_id = ${lane} AND d.status = 'pending' AND d.due_at IN (${asideAt.live} + ${seq}, ${asideAt.behind} + ${seq})`;
  return {
    set: `INSERT INTO ${s}.hold (id, kind, value, reason, held_by, created_at)
SELECT i.id, i.kind, i.value, i.reason, i.held_by, i.now FROM (
  SELECT ${nowSql("$1")} AS now, $2::text AS id, $3::text AS kind, $4::text AS value, $5::text AS reason,
    $6::text AS held_by
) AS i
ON CONFLICT DO NOTHING
RETURNING id`,

    count: `SELECT count(*)::int AS count FROM ${s}.hold`,

    get: `SELECT ${columns} FROM ${s}.hold h WHERE h.kind = $1::text AND h.value = $2::text`,

    release: `DELETE FROM ${s}.hold h WHERE h.kind = $1::text AND h.value = $2::text RETURNING ${columns}`,

    releaseById: `DELETE FROM ${s}.hold h WHERE h.id = $1::text RETURNING ${columns}`,

    list: `SELECT ${columns} FROM ${s}.hold h ORDER BY h.seq`,

    // Holds are locked, so that a release waits for this and then finds what was set aside; one that is just being
    // released is left out. Claims wait for neither.
    setAside: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now
), h AS MATERIALIZED (
  SELECT hold.seq, hold.kind, hold.value FROM ${s}.hold ORDER BY hold.seq FOR SHARE SKIP LOCKED
), w AS MATERIALIZED (
  SELECT x.lane, x.gave FROM jsonb_to_recordset($2::text::jsonb) AS x(lane text, gave boolean)
), met AS MATERIALIZED (
  SELECT d.id, d.subscription_id, hold.seq
  FROM w CROSS JOIN LATERAL (
    ${due.map(look).join("\n    UNION ALL\n    ")}
  ) AS d
  CROSS JOIN LATERAL (SELECT min(h.seq) AS seq FROM h WHERE ${coversSql("d")}) AS hold
  WHERE hold.seq IS NOT NULL
  LIMIT ${mostAside}
), locked AS MATERIALIZED (
  SELECT d.id FROM ${s}.delivery d
  WHERE ${oneOf("d.id", "SELECT met.id FROM met")} AND d.status = 'pending' AND (${due.join(" OR ")})
  ORDER BY d.id FOR UPDATE OF d SKIP LOCKED
), moving AS MATERIALIZED (
  SELECT met.id, met.seq FROM met WHERE met.id IN (SELECT locked.id FROM locked) LIMIT ${mostAside}
), moved AS (
  UPDATE ${s}.delivery d
  SET due_at = CASE WHEN d.due_at < ${behindLive} THEN ${asideAt.live} ELSE ${asideAt.behind} END + moving.seq
  FROM moving WHERE d.id = moving.id
  RETURNING d.subscription_id, moving.seq
), marked AS (
  INSERT INTO ${s}.hold_lane (seq, subscription_id)
  SELECT DISTINCT moved.seq, moved.subscription_id FROM moved ORDER BY 1, 2
  ON CONFLICT DO NOTHING
)
SELECT 1 AS aside FROM moved`,

    lanesToGiveBack: `WITH RECURSIVE ${released}
SELECT l.seq, l.subscription_id FROM released CROSS JOIN LATERAL (
  SELECT l.seq, l.subscription_id FROM ${s}.hold_lane l WHERE l.seq = released.seq
  ORDER BY l.subscription_id LIMIT ${lanesPerBatch}
  FOR UPDATE SKIP LOCKED
) AS l
LIMIT ${lanesPerBatch}`,

    giveBack: `WITH t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text::int AS most
), w AS MATERIALIZED (
  SELECT x.seq, x.lane FROM ${lanes("$3")}
), aside AS MATERIALIZED (
  SELECT d.id FROM w CROSS JOIN LATERAL (
    SELECT d.id FROM ${asideRows("w.lane", "w.seq")}
    LIMIT (SELECT most FROM t)
    FOR UPDATE SKIP LOCKED
  ) AS d
  LIMIT (SELECT most FROM t)
), back AS (
  -- A row whose lease had ended was due at that end.
  UPDATE ${s}.delivery d SET due_at = coalesce(d.lease_until, d.next_attempt_at)
    + CASE WHEN d.due_at < ${asideAt.behind} THEN 0 ELSE ${behindLive} END
  WHERE ${oneOf("d.id", "SELECT aside.id FROM aside")}
  RETURNING d.subscription_id
), woken AS (
  ${wakeLanesSql(s, "SELECT back.subscription_id FROM back", "(SELECT now FROM t)")}
)
SELECT count(*)::int AS rows FROM back`,

    done: `DELETE FROM ${s}.hold_lane l USING ${lanes("$1")}
WHERE l.seq = x.seq AND l.subscription_id = x.lane
  AND NOT EXISTS (SELECT 1 FROM ${asideRows("l.subscription_id", "l.seq")})
RETURNING 1 AS done`,

    countToGiveBack: `WITH RECURSIVE t AS MATERIALIZED (
  SELECT $1::text::int AS most
), ${released}
SELECT count(*)::int AS count FROM (
  SELECT 1 FROM released CROSS JOIN LATERAL (
    SELECT 1 FROM ${s}.hold_lane l CROSS JOIN LATERAL (
      SELECT 1 FROM ${asideRows("l.subscription_id", "l.seq")} LIMIT (SELECT most FROM t)
    ) AS d
    WHERE l.seq = released.seq LIMIT (SELECT most FROM t)
  ) AS found
  LIMIT (SELECT most FROM t)
) AS counted`,
  };
});
