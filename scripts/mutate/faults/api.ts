import type { Mutation } from "../mutation.ts";

const server = "packages/server/src";

/** The REST API. */
export const apiFaults: readonly Mutation[] = [
  {
    name: "any key may do anything",
    file: `${server}/http/caller.ts`,
    from: 'if (!caller.scopes.includes("admin") && !wanted.some((scope) => caller.scopes.includes(scope)))',
    to: 'if (!caller.scopes.includes("admin") && wanted.length === 0)',
    item: "each scope opens its routes and no other",
  },
  {
    name: "lists do not heed the tenant of the caller",
    file: `${server}/http/caller.ts`,
    from: "tenantId: caller.tenantId ?? filter.tenantId,",
    to: "tenantId: filter.tenantId,",
    item: "field-faults G8",
  },
  {
    name: "what is asked for by its id may be another project's",
    file: `${server}/http/caller.ts`,
    from: "return { projectId: caller.projectId, tenantId: caller.tenantId, ownerId: caller.ownerId };",
    to: "return { tenantId: caller.tenantId, ownerId: caller.ownerId };",
    item: "field-faults G8",
  },
  {
    name: "a key of one project deletes keys of all",
    file: `${server}/routes/keys.ts`,
    from: "await keys.delete(params.id, { projectId: caller.projectId });",
    to: "await keys.delete(params.id, {});",
    item: "field-faults G8",
  },
  {
    name: "If-Match is not looked at",
    file: `${server}/http/api.ts`,
    from: 'const ifVersion = spec.conditional && versionsOf(c.req.header("if-match") ?? null);',
    to: "const ifVersion = spec.conditional && versionsOf(null);",
    item: "412 for a change of what is no more",
  },
  {
    name: "an Idempotency-Key answers whatever is asked",
    file: `${server}/http/idempotency.ts`,
    from: "const fingerprint = sha256(canonicalJson(request.content));",
    to: 'const fingerprint = sha256("");',
    item: "another request with the key is 422",
  },
];
