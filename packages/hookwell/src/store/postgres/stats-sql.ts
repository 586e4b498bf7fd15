import { everyProject, minuteMs, minutesShown } from "../minute-counts.ts";
import { mostCounted } from "../stats-contract.ts";
import { nowSql, textsFor } from "./database.ts";
import { firstUnheldSql } from "./holds-sql.ts";
import { restsUntilSql } from "./lanes.ts";

/** One statement for each part; $1 is now, $2 the project ('' = all of them). Texts with a project look into its subscriptions. */
interface StatsTexts {
  /** Answers minute, dispatched, delivered, failed_attempts, failed. */
  readonly minutes: string;
  /** Answers now, pending, new_events, oldest_due, oldest_new, and full: more subscriptions than are looked at. */
  readonly backlog: string;
  /** Answers the lanes that may need somebody: see LaneFacts; and full for the kind of look that was at its limit. */
  readonly lanes: string;
}

const most = mostCounted;
/** Lanes of each kind that are looked at when no project is asked for. */
const mostLanes = 1_000;
const now = "(SELECT now FROM t)";

/** The undispatched events by route: the first of each route's line has the oldest, but for a few that were tried. */
export function oldestNewSql(s: string): string {
  return `(
  WITH RECURSIVE routes AS (
    (SELECT e.route FROM ${s}.event e WHERE e.state = 'new' ORDER BY e.route LIMIT 1)
    UNION ALL
    SELECT (SELECT e.route FROM ${s}.event e WHERE e.state = 'new' AND e.route > r.route ORDER BY e.route LIMIT 1)
    FROM routes r WHERE r.route IS NOT NULL
  )
  SELECT min(head.captured_at) FROM routes r CROSS JOIN LATERAL (
    SELECT e.captured_at FROM ${s}.event e WHERE e.state = 'new' AND e.route = r.route
    ORDER BY e.due_at, e.seq LIMIT 1000
  ) AS head WHERE r.route IS NOT NULL
)`;
}

const laneColumns =
  "l.subscription_id, l.failures, l.failing_since, l.opened_at, (l.rate_limit IS NOT NULL)::int AS limited";

function subscriptionsSql(s: string): string {
  return `subs AS MATERIALIZED (
  SELECT s.id, s.project_id, s.status, s.status_changed_at FROM ${s}.subscription s
  WHERE s.project_id = (SELECT project_id FROM t)
  ORDER BY s.project_id, s.created_at, s.id LIMIT ${most + 1}
)`;
}

const given = `t AS MATERIALIZED (
  SELECT ${nowSql("$1")} AS now, $2::text COLLATE "C" AS project_id
)`;

const minutesText = (s: string): string => `WITH ${given}
SELECT m.minute, c.* FROM t
CROSS JOIN LATERAL generate_series(t.now / ${minuteMs} - ${minutesShown}, t.now / ${minuteMs}) AS m(minute)
CROSS JOIN LATERAL (
  SELECT sum(c.dispatched)::bigint AS dispatched, sum(c.delivered)::bigint AS delivered,
    sum(c.failed_attempts)::bigint AS failed_attempts, sum(c.failed)::bigint AS failed
  FROM ${s}.minute_count c WHERE c.minute = m.minute AND c.project_id = t.project_id
) AS c
WHERE c.delivered IS NOT NULL ORDER BY m.minute`;

/** For every project, and for one. `runnable` must answer subscription_id and rests_until. */
export const statsTexts = textsFor((s): { readonly all: StatsTexts; readonly one: StatsTexts } => {
  const oldestDue = (runnable: string): string => `(
  SELECT min(greatest(head.due_at, r.rests_until)) FROM (${runnable}) AS r
  CROSS JOIN LATERAL (
    ${firstUnheldSql(s, "r.subscription_id", ` AND d.due_at <= ${now}`)}
  ) AS head
  WHERE coalesce(r.rests_until, 0) <= ${now}
)::text AS oldest_due`;
  const laneFacts = (from: string): string => `SELECT l.*, head.due_at AS oldest_due FROM (${from}) AS l
LEFT JOIN LATERAL (
  ${firstUnheldSql(s, "l.subscription_id", " AND l.limited = 1")}
) AS head ON true`;
  const bySubscription = `CROSS JOIN LATERAL (
  SELECT s.project_id, s.status, s.status_changed_at FROM ${s}.subscription s WHERE s.id = l.subscription_id LIMIT 1
) AS s`;

  const all: StatsTexts = {
    minutes: minutesText(s),
    backlog: `WITH ${given}
SELECT t.now::text AS now, 0 AS full, (
  SELECT count(*) FROM (
    SELECT 1 FROM ${s}.delivery d WHERE d.status = 'pending'
    ORDER BY d.subscription_id, d.due_at, d.id LIMIT ${most + 1}
  ) AS counted
)::int AS pending, (
  SELECT count(*) FROM (
    SELECT 1 FROM ${s}.event e WHERE e.state = 'new' ORDER BY e.route, e.due_at, e.seq LIMIT ${most + 1}
  ) AS counted
)::int AS new_events, ${oldestDue(`
  (SELECT l.subscription_id, ${restsUntilSql} AS rests_until FROM ${s}.lane l
  WHERE l.ready AND l.held = 0 ORDER BY l.subscription_id LIMIT ${most})
  UNION ALL
  (SELECT l.subscription_id, ${restsUntilSql} AS rests_until FROM ${s}.lane l
  WHERE NOT l.ready AND l.held = 0 AND l.next_due <= ${now} ORDER BY l.next_due LIMIT ${most})`)},
  ${oldestNewSql(s)}::text AS oldest_new
FROM t`,
    lanes: `WITH ${given}, failing AS MATERIALIZED (
  SELECT ${laneColumns} FROM ${s}.lane l
  WHERE l.failing_since IS NOT NULL AND l.held = 0 ORDER BY l.failing_since DESC LIMIT ${mostLanes}
), limited AS MATERIALIZED (
  SELECT ${laneColumns} FROM ${s}.lane l
  WHERE l.rate_limit IS NOT NULL AND l.held = 0 ORDER BY l.subscription_id LIMIT ${mostLanes}
), stopped AS MATERIALIZED (
  SELECT s.id, s.project_id, s.status, s.status_changed_at FROM ${s}.subscription s
  WHERE s.status = 'disabled' AND s.status IN ('disabled', 'deleted')
  ORDER BY s.status_changed_at DESC LIMIT ${mostLanes}
)
SELECT 'failing' AS look, l.*, s.project_id, s.status, s.status_changed_at
FROM (${laneFacts("SELECT * FROM failing")}) AS l ${bySubscription}
UNION ALL
SELECT 'limited' AS look, l.*, s.project_id, s.status, s.status_changed_at
FROM (${laneFacts("SELECT * FROM limited")}) AS l ${bySubscription}
UNION ALL
SELECT 'stopped' AS look, s.id, 0, NULL, NULL, 0, NULL, s.project_id, s.status, s.status_changed_at FROM stopped s`,
  };

  const ofProject = `subs CROSS JOIN LATERAL (
    SELECT l.*, ${restsUntilSql} AS rests_until FROM ${s}.lane l WHERE l.subscription_id = subs.id LIMIT 1
  ) AS l`;
  const one: StatsTexts = {
    minutes: minutesText(s),
    backlog: `WITH ${given}, ${subscriptionsSql(s)}, looked AS MATERIALIZED (
  SELECT e.project_id, e.captured_at FROM ${s}.event e WHERE e.state = 'new'
  ORDER BY e.route, e.due_at, e.seq LIMIT ${most + 1}
)
SELECT t.now::text AS now, ((SELECT count(*) FROM subs) > ${most})::int AS full, (
  SELECT count(*) FROM (
    SELECT 1 FROM subs CROSS JOIN LATERAL (
      SELECT 1 FROM ${s}.delivery d WHERE d.subscription_id = subs.id AND d.status = 'pending' LIMIT ${most + 1}
    ) AS d LIMIT ${most + 1}
  ) AS counted
)::int AS pending,
  (SELECT count(*) FROM looked)::int AS looked,
  (SELECT count(*) FROM looked e WHERE e.project_id = t.project_id)::int AS new_events,
  ${oldestDue(`SELECT l.subscription_id, l.rests_until FROM ${ofProject}
    WHERE l.held = 0 AND (l.ready OR l.next_due <= ${now})`)},
  (SELECT min(e.captured_at) FROM looked e WHERE e.project_id = t.project_id)::text AS oldest_new
FROM t`,
    lanes: `WITH ${given}, ${subscriptionsSql(s)}
SELECT 'project' AS look, l.*, subs.project_id, subs.status, subs.status_changed_at FROM (${laneFacts(`
  SELECT ${laneColumns} FROM ${ofProject}
  WHERE l.failing_since IS NOT NULL OR (l.rate_limit IS NOT NULL AND l.held = 0)`)}) AS l
JOIN subs ON subs.id = l.subscription_id
UNION ALL
SELECT 'project', subs.id, 0, NULL, NULL, 0, NULL, subs.project_id, subs.status, subs.status_changed_at
FROM subs WHERE subs.status = 'disabled'`,
  };
  return { all, one };
});

export { everyProject, mostLanes };
