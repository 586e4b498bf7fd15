import { behindLive } from "../ordering.ts";
import { nowSql, oneOf } from "./database.ts";
import { coveredSql } from "./holds-sql.ts";
import { blockedUntilSql, policyRoomSql, rateFreeSql } from "./lanes.ts";

/** Empty lanes reported by one claim. */
const mostLanes = 1_000;
/** While something is held: due rows that a claim looks at for one it may take, and lanes it looks at in vain. */
const rowsAhead = 100;
const lanesAhead = 200;

/**
 * The form of a claim: for all cases but holds; the one for the usual case, which is planned in a fraction of the
 * time, and takes nothing where a lane on the way has a limit of its own; or the one for while an operator holds rows.
 */
export type TakeForm = "guarded" | "unguarded" | "unheld";

const now = "(SELECT now FROM t)";
/** Room of lane `r` by the caller's word. */
const room = "coalesce(((SELECT rooms FROM t) ->> r.subscription_id)::int, (SELECT room FROM t))";
/** The same, at most what its own state allows. */
const ownRoom = `least(${room}, CASE WHEN r.guarded THEN coalesce(own.room, 0) END)`;
/** A lane on the way has a limit of its own. */
const met = "EXISTS (SELECT 1 FROM first WHERE first.guarded)";

/**
 * The turn rule. `first` walks the ready lanes in id order after the cursor and takes the head of each until the
 * limit; then each turn takes the next row of every lane that still has one and has room. Every row is one probe of
 * (subscription_id, due_at, id) where pending, so the cost is that of the rows taken and of the ready lanes passed.
 * OFFSET 0 keeps an expression in one place: pulled up, it is copied to each place that uses it, and so are the
 * subqueries in it, which is most of the time that planning takes.
 * MATERIALIZED, because a planner may otherwise run a subquery with FOR UPDATE SKIP LOCKED LIMIT again for each row.
 *
 * While something is held the plain form takes nothing and says so (`holds`: all or some), and the other one looks past
 * held rows, a bounded way: what it meets is set aside afterwards.
 */
export function takeSql(s: string, form: TakeForm): string {
  const guarded = form !== "unguarded";
  const unheld = form === "unheld";
  const ready = (lap: number, after: string): string =>
    `(SELECT l.subscription_id, l.guarded, ${lap} AS lap FROM ${s}.lane l
      WHERE l.ready AND l.held = 0 AND l.subscription_id ${after} (SELECT cursor FROM t)
      ORDER BY l.subscription_id)`;
  const lanes = `${ready(0, ">")}
    UNION ALL
    ${ready(1, "<=")}`;
  const seen = unheld
    ? `SELECT r.* FROM (${lanes}) AS r WHERE ${room} > 0 LIMIT (SELECT most FROM t) + ${lanesAhead}`
    : lanes;
  const looked = (and: string, end: string): string =>
    `(SELECT l.subscription_id FROM ${s}.lane l
      WHERE l.ready AND l.held = 0 AND ${and}l.subscription_id <= (SELECT ${end} FROM passed)
      ORDER BY l.subscription_id)`;
  const due = (lane: string, range: string, after: string): string =>
    unheld ? unheldSql(s, lane, range, after) : plainSql(s, lane, range, after);
  // What a replay queued is looked for only where nothing live is due.
  const next = (lane: string, after: string): string =>
    `${due(lane, "d.due_at <= (SELECT now FROM t)", after)}
    UNION ALL
    ${due(lane, `d.due_at >= ${behindLive} AND d.due_at <= ${behindLive} + (SELECT now FROM t)`, after)}
    LIMIT 1`;
  const holds = unheld
    ? "hold.kind, hold.value"
    : "min(CASE hold.kind WHEN 'all' THEN 'all' ELSE 'some' END) AS holds";
  const most = unheld
    ? "$2::text::int"
    : "CASE WHEN (SELECT h.holds FROM h) IS NULL THEN $2::text::int ELSE 0 END";
  return `WITH RECURSIVE h AS MATERIALIZED (
  SELECT ${holds} FROM ${s}.hold
), t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, ${most} AS most, $3::text COLLATE "C" AS cursor, $4::text::int AS room,
    $5::text::jsonb AS rooms, $6::text::bigint AS lease,
    $7::text AS token
), first AS MATERIALIZED (
  SELECT lane.subscription_id, lane.lap, lane.room, lane.guarded, d.id, d.due_at, d.ordered
  FROM (
    SELECT r.subscription_id, r.lap, r.guarded, ${guarded ? ownRoom : room} AS room
    FROM (${seen}) AS r${guarded ? ownRoomSql(s) : ""}
    OFFSET 0
  ) AS lane
  ${guarded ? "CROSS" : "LEFT"} JOIN LATERAL (
    ${next("lane.subscription_id", "")}
  ) AS d${guarded ? "" : " ON NOT lane.guarded"}
  WHERE lane.room > 0${guarded ? "" : " AND (lane.guarded OR d.id IS NOT NULL)"}
  LIMIT (SELECT most FROM t)
), turns AS (
  SELECT f.subscription_id, f.lap, f.room, f.id, f.due_at, f.ordered, 1 AS turn, count(*) OVER () AS total FROM first f${
    guarded
      ? ""
      : `
  WHERE NOT ${met}`
  }
  UNION ALL
  SELECT r.subscription_id, r.lap, r.room, d.id, d.due_at, d.ordered, r.turn + 1, r.total + count(*) OVER ()
  FROM turns r
  CROSS JOIN LATERAL (
    ${next("r.subscription_id", " AND (d.due_at, d.id) > (r.due_at, r.id)")}
  ) AS d
  WHERE r.total < (SELECT most FROM t) AND r.turn < r.room
), picked AS MATERIALIZED (
  SELECT turns.id, turns.subscription_id, turns.turn, turns.lap, turns.ordered FROM turns
  ORDER BY turns.turn, turns.lap, turns.subscription_id
  LIMIT (SELECT most FROM t)
), claimed AS (
  UPDATE ${s}.delivery d
  SET due_at = t.now + t.lease, lease_until = t.now + t.lease, attempts = d.attempts + 1,
    lease_token = ${leaseTokenSql("d.order_key IS NOT NULL", "d.id")}
  FROM t WHERE ${oneOf("d.id", "SELECT picked.id FROM picked")}
${guarded ? spentSql(s) : ""}
), passed AS MATERIALIZED (
  -- How far each lap has come. Bounds of an index: lanes that nobody looked at cost nothing.
  SELECT CASE WHEN f.count < t.most OR f.lap = 1 THEN (SELECT max(l.subscription_id) FROM ${s}.lane l)
      WHEN f.lap = 0 THEN f.lane ELSE '' END AS first_end,
    CASE WHEN f.count < t.most THEN t.cursor WHEN f.lap = 1 THEN f.lane ELSE '' END AS second_end
  FROM t, (
    SELECT count(*) AS count, max(first.lap) AS lap,
      max(first.subscription_id) FILTER (WHERE first.lap = (SELECT max(first.lap) FROM first)) AS lane
    FROM first
  ) AS f
), empty AS (
  SELECT r.subscription_id
  FROM (${looked("l.subscription_id > (SELECT cursor FROM t) AND ", "first_end")}
    UNION ALL
    ${looked("", "second_end")}) AS r
  WHERE NOT EXISTS (SELECT 1 FROM first f WHERE f.subscription_id = r.subscription_id) AND ${room} > 0
  LIMIT ${unheld ? lanesAhead : mostLanes}
)
SELECT p.id, p.subscription_id, ${leaseTokenSql("p.ordered", "p.id")} AS lease_token, t.now, p.turn, p.lap,
  ${guarded ? `(SELECT min(spent.free) FROM spent WHERE spent.free > ${now}) - t.now` : "NULL::bigint"} AS again, NULL AS holds
FROM picked p, t
UNION ALL
SELECT NULL, e.subscription_id, NULL, t.now, NULL, NULL, NULL, NULL FROM empty e, t${
    unheld
      ? ""
      : `
UNION ALL
SELECT NULL, NULL, NULL, t.now, NULL, NULL, NULL, h.holds FROM h, t WHERE h.holds IS NOT NULL`
  }${
    guarded
      ? ""
      : `
UNION ALL
SELECT NULL, NULL, NULL, t.now, NULL, NULL, NULL, 'limits' FROM t WHERE ${met}`
  }
ORDER BY turn, lap, subscription_id`;
}

/** What a guarded lane `r` has room for by its own state, which is locked until it is written. */
function ownRoomSql(s: string): string {
  return `
    LEFT JOIN LATERAL (
      SELECT ${policyRoomSql(now)} AS room FROM (
        SELECT l.* FROM ${s}.lane l WHERE r.guarded AND l.subscription_id = r.subscription_id
        FOR UPDATE SKIP LOCKED
      ) AS l
    ) AS own ON true`;
}

/** Writes what was picked to the state of guarded lanes. */
function spentSql(s: string): string {
  return `
), taken AS (
  SELECT p.subscription_id, count(*) AS rows, min(p.id) AS first_id,
    jsonb_object_agg(p.id, (SELECT now + lease FROM t)) AS slots
  FROM picked p JOIN first f ON f.subscription_id = p.subscription_id
  WHERE f.guarded GROUP BY p.subscription_id
), spent AS (
  UPDATE ${s}.lane l SET (probe_at, probe_id, rate_tat, slots, blocked_until, ready, next_due) = (
    SELECT n.probe_at, n.probe_id, n.rate_tat, n.slots, b.until, b.until <= ${now},
      CASE WHEN b.until > ${now} THEN b.until END
    FROM (
      SELECT CASE WHEN l.opened_at IS NOT NULL THEN (SELECT now + lease FROM t) END AS probe_at,
        CASE WHEN l.opened_at IS NOT NULL THEN k.first_id END AS probe_id,
        coalesce(greatest(l.rate_tat, ${now} * 1000) + k.rows * l.rate_interval, l.rate_tat) AS rate_tat,
        CASE WHEN l.max_in_flight IS NULL THEN l.slots ELSE coalesce((
          SELECT jsonb_object_agg(slot.key, slot.value) FROM jsonb_each(l.slots) AS slot
          WHERE slot.value::text::bigint > ${now}), '{}') || k.slots END AS slots
      OFFSET 0
    ) AS n CROSS JOIN LATERAL (
      SELECT ${blockedUntilSql(now, "n.probe_at", "n.rate_tat", "n.slots")} AS until OFFSET 0
    ) AS b
  )
  FROM taken k WHERE l.subscription_id = k.subscription_id
  RETURNING ${rateFreeSql("l.rate_tat")} AS free`;
}

/** Locks the next due row of a lane. */
function plainSql(s: string, lane: string, range: string, after: string): string {
  return `SELECT found.id, found.due_at, found.ordered FROM (
      SELECT d.id, d.due_at, d.order_key IS NOT NULL AS ordered FROM ${s}.delivery d
      WHERE d.subscription_id = ${lane} AND d.status = 'pending' AND ${range}${after}
      ORDER BY d.due_at, d.id LIMIT 1
      FOR UPDATE SKIP LOCKED
    ) AS found`;
}

/** The same of those that no hold in `h` covers, among the next few. */
function unheldSql(s: string, lane: string, range: string, after: string): string {
  return `(SELECT d.id, d.due_at, d.ordered FROM (
      SELECT seen.id FROM (
        SELECT d.id, d.due_at, d.type, d.project_id FROM ${s}.delivery d
        WHERE d.subscription_id = ${lane} AND d.status = 'pending' AND ${range}${after}
        ORDER BY d.due_at, d.id LIMIT ${rowsAhead}
      ) AS seen
      WHERE NOT ${coveredSql("h", "seen")}
      ORDER BY seen.due_at, seen.id OFFSET 0
    ) AS free CROSS JOIN LATERAL (
      SELECT d.id, d.due_at, d.order_key IS NOT NULL AS ordered FROM ${s}.delivery d
      WHERE d.id = free.id AND d.status = 'pending' AND ${range}
      FOR UPDATE SKIP LOCKED
    ) AS d
    LIMIT 1)`;
}

/** What has a place in an order is recorded with its group: the token says so. */
function leaseTokenSql(ordered: string, id: string): string {
  return `t.token || CASE WHEN ${ordered} THEN '~' ELSE '.' END || ${id}`;
}
