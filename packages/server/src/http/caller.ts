import type { HookwellCore, Visibility } from "hookwell";
import { apiProblem, invalidRequest } from "./problems.ts";
import { isScope, type Scope } from "./scopes.ts";

/** Who makes a request: what it may do, and what exists for it. Absent parts do not limit. */
export interface Caller {
  /**
   * Names the caller, such as the id of its key: an `Idempotency-Key` is the caller's own. Absent: all callers of the
   * same project, tenant and owner share theirs.
   */
  readonly id?: string;
  readonly scopes: readonly Scope[];
  /** For people: the name of the key. */
  readonly name?: string;
  readonly projectId?: string;
  readonly tenantId?: string;
  readonly ownerId?: string;
}

/** Says who makes a request; undefined = nobody we know (401). */
export type Authorize = (request: Request) => Caller | undefined | Promise<Caller | undefined>;

/** Knows callers by the Bearer keys that the store holds. */
export function authorizeByKey(hooks: Pick<HookwellCore, "keys">): Authorize {
  return async (request) => {
    const key = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    if (key === undefined) return undefined;
    const record = await hooks.keys.authenticate(key);
    if (!record) return undefined;
    const { id, name, projectId } = record;
    return { id, name, scopes: record.scopes.filter(isScope), projectId };
  };
}

/** @throws ProblemError 401 when nobody is known, 403 when none of the wanted scopes is held */
export async function requireCaller(
  request: Request,
  authorize: Authorize,
  wanted: readonly Scope[],
): Promise<Caller> {
  const caller = await authorize(request);
  if (!caller) {
    const given = request.headers.has("authorization");
    throw apiProblem(
      "unauthorized",
      given
        ? "The key is not known, has expired, or was deleted."
        : "Send a key as `Authorization: Bearer <key>`.",
      { headers: { "www-authenticate": given ? 'Bearer error="invalid_token"' : "Bearer" } },
    );
  }
  if (!caller.scopes.includes("admin") && !wanted.some((scope) => caller.scopes.includes(scope)))
    throw apiProblem(
      "missing_scope",
      `This needs a key with the scope ${wanted.join(" or ")}; the key has ${caller.scopes.join(", ") || "none"}.`,
    );
  return caller;
}

/** What exists for a caller. */
export function visibilityOf(caller: Caller): Visibility {
  return { projectId: caller.projectId, tenantId: caller.tenantId, ownerId: caller.ownerId };
}

/** A filter narrowed to what the caller sees; undefined when it asks for something of another. */
export function narrowed<Filter extends Visibility>(caller: Caller, filter: Filter): Filter | undefined {
  for (const part of ["projectId", "tenantId", "ownerId"] as const)
    if (caller[part] !== undefined && filter[part] !== undefined && filter[part] !== caller[part])
      return undefined;
  return {
    ...filter,
    projectId: caller.projectId ?? filter.projectId,
    tenantId: caller.tenantId ?? filter.tenantId,
    ownerId: caller.ownerId ?? filter.ownerId,
  };
}

/** The same for what a body creates. @throws ProblemError 400 when it names another project, tenant or owner */
export function ownParts(
  caller: Caller,
  body: { readonly project_id?: string; readonly tenant_id?: string; readonly owner_id?: string },
  prefix = "",
): Visibility {
  const pairs = [
    ["project_id", caller.projectId],
    ["tenant_id", caller.tenantId],
    ["owner_id", caller.ownerId],
  ] as const;
  const problems = pairs
    .filter(([field, bound]) => bound !== undefined && body[field] !== undefined && body[field] !== bound)
    .map(([field]) => ({
      pointer: `${prefix}/${field}`,
      message: "must be absent or the one that the key is bound to",
    }));
  if (problems.length > 0) throw invalidRequest(problems);
  return {
    projectId: caller.projectId ?? body.project_id,
    tenantId: caller.tenantId ?? body.tenant_id,
    ownerId: caller.ownerId ?? body.owner_id,
  };
}
