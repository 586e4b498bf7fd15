import { type HookwellCore, NotFoundError } from "hookwell";
import type { Api } from "../http/api.ts";
import { type Caller, narrowed } from "../http/caller.ts";
import { apiProblem } from "../http/problems.ts";
import { stats, statsQuery, statsToJson } from "../shapes/stats.ts";

export function addStatsRoute(api: Api, hooks: HookwellCore): void {
  api.route(
    {
      method: "get",
      path: "/v1/stats",
      id: "getStats",
      tag: "Stats",
      summary: "What happens: rates, backlog, and subscriptions that need attention",
      description:
        "Rates are sums of counters that are written with each outcome; everything else looks at a bounded number of rows. Cheap enough to be asked every few seconds.",
      scopes: ["read"],
      query: statsQuery,
      answers: { 200: { description: "As it is now.", schema: stats } },
      errors: ["not_found"],
    },
    async ({ caller, query }) => {
      refuseBound(caller);
      const seen = narrowed(caller, { projectId: query.project_id });
      if (!seen) throw new NotFoundError("project", query.project_id!);
      const { projectId } = seen;
      return { status: 200, body: statsToJson(await hooks.stats({ projectId }), projectId) };
    },
  );
}

/** Counts are kept by project, not by tenant or owner. */
function refuseBound(caller: Caller): void {
  if (caller.tenantId !== undefined || caller.ownerId !== undefined)
    throw apiProblem(
      "missing_scope",
      "Stats are of a whole project, and this caller sees one tenant or owner.",
    );
}
