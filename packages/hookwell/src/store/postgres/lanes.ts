/** `lane.held` as the status of a subscription `s` wants it; a lane without a subscription is nobody's to hold. */
export const heldByStatusSql = `CASE
  WHEN s.status = 'deleted' OR (s.status = 'disabled' AND s.status_reason = 'gone') THEN 2
  WHEN s.status IN ('paused', 'disabled') THEN 1
  ELSE 0 END`;

/**
 * Says that lanes may have due rows: the second half of giving work to a lane, in the same statement as the rows.
 * It always writes, in id order, so that a claim which is just putting the lane to sleep and has not seen the rows
 * comes before it. Under Retry-After the lane is looked at again when that ends.
 *
 * @param lanes a query that answers subscription_id; it must read what was written, so that the rows come first
 * @param now a scalar expression
 */
export function wakeLanesSql(s: string, lanes: string, now: string): string {
  return `INSERT INTO ${s}.lane AS l (subscription_id, held)
SELECT w.subscription_id, coalesce((SELECT ${heldByStatusSql} FROM ${s}.subscription s WHERE s.id = w.subscription_id), 0)
FROM (SELECT DISTINCT g.subscription_id FROM (${lanes}) AS g) AS w
ORDER BY w.subscription_id
ON CONFLICT (subscription_id) DO UPDATE SET
  ready = coalesce(l.hold_until, 0) <= ${now},
  next_due = CASE WHEN coalesce(l.hold_until, 0) > ${now} THEN l.hold_until END`;
}
