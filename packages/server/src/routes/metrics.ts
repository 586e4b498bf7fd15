import { z } from "@hono/zod-openapi";
import type { HookwellCore } from "hookwell";
import { type MetricsAccess, metricsType } from "hookwell/environment";
import type { Api } from "../http/api.ts";
import type { Caller } from "../http/caller.ts";
import { apiProblem } from "../http/problems.ts";

export function addMetricsRoute(api: Api, hooks: HookwellCore, access: MetricsAccess): void {
  if (access === "off") return;
  api.open(
    "/metrics",
    {
      id: "getMetrics",
      tag: "Stats",
      summary: "Counts of this process and gauges of the database, for Prometheus",
      mediaType: "text/plain",
      answers: { 200: { description: "The text format of Prometheus, version 0.0.4.", schema: z.string() } },
      ...(access === "key" && { scopes: ["read"], errors: ["unauthorized", "missing_scope"] }),
    },
    async (caller) => {
      if (caller) refuseBound(caller);
      return new Response(await hooks.metrics(), { headers: { "content-type": metricsType } });
    },
  );
}

/** They count what belongs to every project. */
function refuseBound({ projectId, tenantId, ownerId }: Caller): void {
  if ([projectId, tenantId, ownerId].some((bound) => bound !== undefined))
    throw apiProblem(
      "missing_scope",
      "Metrics are of all projects, and this key or caller is bound to a part.",
    );
}
