import { notFound } from "../http/problem.ts";
import type { User } from "./user.ts";

/** Who is asking: the user whose key it is, and which of its keys. */
export interface Caller {
  readonly user: User;
  readonly keyId: string;
}

/**
 * Who may do what to whom. An admin manages the users of its project and tenant, one without a tenant those of
 * every tenant; anybody sees and edits itself. For the rest the user does not exist.
 */
export function canSee(caller: Caller, user: User): boolean {
  return caller.user.projectId === user.projectId && (caller.user.id === user.id || canManage(caller, user));
}

export function canManage(caller: Caller, user: User): boolean {
  const { isAdmin, projectId, tenantId } = caller.user;
  return isAdmin && projectId === user.projectId && (tenantId === undefined || tenantId === user.tenantId);
}

/** @throws ProblemError 404: what only admins may do does not exist for others */
export function requireAdmin(caller: Caller, what: string, id: string): void {
  if (!caller.user.isAdmin) throw notFound(what, id);
}
