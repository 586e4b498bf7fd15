import type { Program, Row } from "../../adapters/seam.ts";
import type { Matchable } from "../../model/matching.ts";
import type { Match } from "../contract.ts";
import { optionalJson, statement, text } from "./rows.ts";

// The key of the filter table serves every condition, so the cost is that of the subscriptions found.
const matchText = (tenants: boolean): string => `
SELECT s.id, s.endpoint_id, s.fields, s.ordering
FROM hookwell_subscription_filter f
CROSS JOIN hookwell_subscription s ON s.id = f.subscription_id
WHERE f.project_id = ?
  AND f.filter IN (SELECT value FROM json_each(?))
  AND f.owner_id IN (SELECT value FROM json_each(?))
  ${tenants ? "AND f.tenant_id IN (SELECT value FROM json_each(?))" : ""}
  AND s.status IN ('active', 'paused')
GROUP BY s.id
ORDER BY s.id
LIMIT CAST(? AS INTEGER)`;
const matchAnyTenantText = matchText(false);
const matchTenantsText = matchText(true);

/** The rule of `matches()` (model/matching.ts) as one statement: matching subscriptions by id, at most `limit`. */
export function* matchProgram(query: Matchable, limit: number): Program<Match[]> {
  const owners = query.audience ? query.audience.filter((owner) => owner !== "") : [""];
  const base = [query.projectId, JSON.stringify(query.filters), JSON.stringify(owners)];
  const tenants = query.operational ? [""] : query.tenantId ? ["", query.tenantId] : undefined;
  const rows = yield tenants
    ? statement(matchTenantsText, ...base, JSON.stringify(tenants), limit)
    : statement(matchAnyTenantText, ...base, limit);
  return rows.map(toMatch);
}

function toMatch(row: Row): Match {
  const fields = optionalJson<string[]>(row.fields);
  return {
    subscriptionId: text(row.id),
    endpointId: text(row.endpoint_id),
    ...(fields && { fields }),
    ...(row.ordering === "subject" && { ordered: true as const }),
  };
}
