import { oneOf } from "./database.ts";

/** `lane.held` as the status of a subscription `s` wants it; a lane without a subscription is nobody's to hold. */
export const heldByStatusSql = `CASE
  WHEN s.status = 'deleted' OR (s.status = 'disabled' AND s.status_reason = 'gone') THEN 2
  WHEN s.status IN ('paused', 'disabled') THEN 1
  ELSE 0 END`;

/** Lane `l` sends nothing before this: Retry-After, or a policy of the lane. Null = no such time. */
export const restsUntilSql = "greatest(l.hold_until, l.blocked_until)";

/** What a lane `l` is set to, so that it is looked at, or looked at when it rests no more. */
export function awakeSql(now: string): string {
  return `ready = coalesce(${restsUntilSql}, 0) <= ${now},
  next_due = CASE WHEN ${restsUntilSql} > ${now} THEN ${restsUntilSql} END`;
}

/**
 * Says that lanes may have due rows: the second half of giving work to a lane, in the same statement as the rows.
 * It always writes, in id order, so that a claim which is just putting the lane to sleep and has not seen the rows
 * comes before it. Under Retry-After the lane is looked at again when that ends.
 *
 * Where rows may be the first pending ones of their lane, {@link newLanesSql} comes beside it. An insert for all of them that falls
 * back to an update costs milliseconds, because the server prepares every generated column of a row to be inserted.
 *
 * @param lanes a query that answers subscription_id; it must read what was written, so that the rows come first
 * @param now a scalar expression
 */
export function wakeLanesSql(s: string, lanes: string, now: string): string {
  return `UPDATE ${s}.lane l SET ${awakeSql(now)}
FROM (
  SELECT k.subscription_id FROM ${s}.lane k
  WHERE ${oneOf("k.subscription_id", `SELECT DISTINCT g.subscription_id FROM (${lanes}) AS g`)}
  ORDER BY k.subscription_id FOR UPDATE
) AS locked
WHERE l.subscription_id = locked.subscription_id`;
}

/** Makes the lanes that are not there, ready, as their subscriptions have them. The same parameters. */
export function newLanesSql(s: string, lanes: string, now: string): string {
  return `INSERT INTO ${s}.lane AS l (subscription_id, held, rate_limit, max_in_flight)
SELECT w.subscription_id, coalesce(s.held, 0), s.rate_limit, s.max_in_flight
FROM (SELECT DISTINCT g.subscription_id FROM (${lanes}) AS g) AS w
LEFT JOIN LATERAL (
  SELECT ${heldByStatusSql} AS held, s.rate_limit, s.max_in_flight FROM ${s}.subscription s
  WHERE s.id = w.subscription_id LIMIT 1
) AS s ON true
WHERE NOT EXISTS (SELECT 1 FROM ${s}.lane k WHERE k.subscription_id = w.subscription_id)
ORDER BY w.subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET
  ${awakeSql(now)}`;
}

/** How many of lane `l`'s slots are taken at `now`. */
export function takenSlotsSql(now: string): string {
  return `(SELECT count(*) FROM jsonb_each_text(l.slots) AS slot WHERE slot.value::bigint > ${now})`;
}

/** The most that a claim may take of the guarded lane `l`: open circuit, rate, slots. May be below 0. */
export function policyRoomSql(now: string): string {
  return `least(
  CASE WHEN l.opened_at IS NULL THEN NULL WHEN l.probe_at <= ${now} THEN 1 ELSE 0 END,
  l.rate_burst - (greatest(l.rate_tat - ${now} * 1000, 0) + l.rate_interval - 1) / l.rate_interval,
  l.max_in_flight - ${takenSlotsSql(now)}
)::int`;
}

/** When the rate lets lane `l` send again, given its theoretical arrival time; null without a rate. */
export function rateFreeSql(tat: string): string {
  return `greatest((${tat} - (l.rate_burst - 1) * l.rate_interval + 999) / 1000, 0)`;
}

/** Before this no claim may look at lane `l`, given what it is set to. */
export function blockedUntilSql(now: string, probeAt: string, tat: string, slots: string): string {
  const taken = `jsonb_each_text(${slots}) AS slot WHERE slot.value::bigint > ${now}`;
  return `greatest(0, ${probeAt}, ${rateFreeSql(tat)},
    CASE WHEN (SELECT count(*) FROM ${taken}) >= l.max_in_flight THEN (SELECT min(slot.value::bigint) FROM ${taken}) END)`;
}
