/** Columns that `probes` needs: what matching knows of an event (model/matching.ts, said in SQL). */
export interface MatchColumns {
  /** CTE with the columns ord, project_id, tenant_id ('' = none), audience (jsonb array or null), filters (jsonb array), operational (boolean). */
  readonly from: string;
  /** Condition on its rows `q`. */
  readonly where: string;
}

/**
 * A query that answers (ord, subscription_id, endpoint_id, fields, ordering) of every active or paused subscription that
 * matches. The parts of the rule are keys of subscription_filter's primary key:
 * owner: each one of the audience, or '' without one; tenant: the event's and '', or every tenant when the event
 * has none; operational events reach only '' and ''.
 */
export function matchesSql(s: string, { from, where }: MatchColumns): string {
  return `SELECT DISTINCT q.ord, s.id AS subscription_id, s.endpoint_id, s.fields, s.ordering
FROM ${from} q
CROSS JOIN LATERAL jsonb_array_elements_text(q.filters) AS covering(filter)
CROSS JOIN LATERAL (
  SELECT '' AS owner WHERE q.audience IS NULL
  UNION ALL
  SELECT a.owner FROM jsonb_array_elements_text(coalesce(q.audience, '[]')) AS a(owner)
  WHERE a.owner <> '' AND q.operational IS NOT TRUE
) AS reached
CROSS JOIN LATERAL (
  SELECT f.subscription_id FROM ${s}.subscription_filter f
  WHERE f.project_id = q.project_id AND f.filter = covering.filter AND f.owner_id = reached.owner
    AND f.tenant_id = '' AND (q.tenant_id <> '' OR q.operational)
  UNION ALL
  SELECT f.subscription_id FROM ${s}.subscription_filter f
  WHERE f.project_id = q.project_id AND f.filter = covering.filter AND f.owner_id = reached.owner
    AND f.tenant_id = q.tenant_id AND q.tenant_id <> '' AND q.operational IS NOT TRUE
  UNION ALL
  SELECT f.subscription_id FROM ${s}.subscription_filter f
  WHERE f.project_id = q.project_id AND f.filter = covering.filter AND f.owner_id = reached.owner
    AND q.tenant_id = '' AND q.operational IS NOT TRUE
  -- A fence: whatever the planner guesses, these stay probes of the key.
  OFFSET 0
) AS hit
CROSS JOIN LATERAL (
  SELECT s.id, s.endpoint_id, s.fields, s.ordering FROM ${s}.subscription s
  WHERE s.id = hit.subscription_id AND s.status IN ('active', 'paused') LIMIT 1
) AS s
WHERE ${where}`;
}
