import type { HookwellCore } from "../publish/surface.ts";

/** Media type of the Prometheus text format. */
export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

/** Metrics are of all projects: a key must have the scope read (or admin) and be bound to none. */
export async function mayReadMetrics(
  hooks: Pick<HookwellCore, "keys">,
  authorization: string | undefined,
): Promise<"yes" | "unknown" | "forbidden"> {
  const key = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(authorization ?? "")?.[1];
  const record = key === undefined ? undefined : await hooks.keys.authenticate(key);
  if (!record) return "unknown";
  const reads = record.scopes.includes("read") || record.scopes.includes("admin");
  return reads && record.projectId === undefined ? "yes" : "forbidden";
}
