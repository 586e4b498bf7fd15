import type {
  InvitationStatus,
  SchedulingInvitationHostsTable,
  SchedulingInvitationsTable,
} from "../database/scheduling-tables.ts";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { notFound } from "../http/problem.ts";
import type { Caller } from "../users/user-access.ts";
import { type Invitation, invitationFromRow } from "./invitation.ts";
import { hashInvitationToken, isInvitationToken } from "./invitation-token.ts";

type Reader = AppDatabase | AppTransaction;

export async function findInvitation(db: Reader, id: string): Promise<Invitation | undefined> {
  const row = await db
    .selectFrom("scheduling_invitations")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirst();
  return row && (await withHosts(db, [row]))[0];
}

/**
 * The invitation as it is now, and nobody changes it before the transaction ends: a row lock on PostgreSQL; on SQLite
 * the transaction, begun IMMEDIATE, is the only writer already.
 */
export async function lockInvitation(
  trx: AppTransaction,
  dialect: "sqlite" | "postgres",
  id: string,
): Promise<Invitation | undefined> {
  const query = trx.selectFrom("scheduling_invitations").selectAll().where("id", "=", id);
  const row = await (dialect === "postgres" ? query.forUpdate() : query).executeTakeFirst();
  return row && (await withHosts(trx, [row]))[0];
}

/** The invitation of a token, whatever its state; undefined for a token that is malformed or unknown. */
export async function findInvitationByToken(db: Reader, token: string): Promise<Invitation | undefined> {
  if (!isInvitationToken(token)) return undefined;
  const row = await db
    .selectFrom("scheduling_invitation_tokens as token")
    .innerJoin("scheduling_invitations as invitation", "invitation.id", "token.invitation_id")
    .selectAll("invitation")
    .where("token.hash", "=", hashInvitationToken(token))
    .executeTakeFirst();
  return row && (await withHosts(db, [row]))[0];
}

/** Its creator, and the admins of its project and tenant. */
export function canSeeInvitation(
  caller: Caller,
  invitation: Pick<Invitation, "projectId" | "tenantId" | "creatorId">,
): boolean {
  const { id, projectId, tenantId, isAdmin } = caller.user;
  if (projectId !== invitation.projectId) return false;
  if (id === invitation.creatorId) return true;
  return isAdmin && (tenantId === undefined || tenantId === invitation.tenantId);
}

/** @throws ProblemError 404, for another creator's too */
export function requireInvitation(
  caller: Caller,
  invitation: Invitation | undefined,
  id: string,
): Invitation {
  if (invitation === undefined || !canSeeInvitation(caller, invitation))
    throw notFound("scheduling invitation", id);
  return invitation;
}

export interface InvitationFilter {
  /** As it is at `now`: what is over counts as expired before any sweep. */
  readonly status?: InvitationStatus;
  readonly eventTypeId?: string;
}

/** Those the caller may see, newest first; one row more than the limit tells that there are more. */
export async function listInvitations(
  db: Reader,
  caller: Caller,
  filter: InvitationFilter,
  page: { readonly limit: number; readonly offset: number; readonly now: Date },
): Promise<{ readonly items: Invitation[]; readonly more: boolean }> {
  const { id, projectId, tenantId, isAdmin } = caller.user;
  let query = db
    .selectFrom("scheduling_invitations")
    .selectAll()
    .where("project_id", "=", projectId)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(page.limit + 1)
    .offset(page.offset);
  if (!isAdmin) query = query.where("creator_id", "=", id);
  else if (tenantId !== undefined) query = query.where("tenant_id", "=", tenantId);
  if (filter.eventTypeId !== undefined) query = query.where("event_type_id", "=", filter.eventTypeId);
  const now = page.now.toISOString();
  const status = filter.status;
  if (status === "active") query = query.where("status", "=", status).where("expires_at", ">", now);
  else if (status === "expired")
    query = query.where((where) =>
      where.or([
        where("status", "=", "expired"),
        where.and([where("status", "=", "active"), where("expires_at", "<=", now)]),
      ]),
    );
  else if (status !== undefined) query = query.where("status", "=", status);
  const rows = await query.execute();
  return { items: await withHosts(db, rows.slice(0, page.limit)), more: rows.length > page.limit };
}

async function withHosts(db: Reader, rows: readonly SchedulingInvitationsTable[]): Promise<Invitation[]> {
  if (rows.length === 0) return [];
  const hosts = await db
    .selectFrom("scheduling_invitation_hosts")
    .selectAll()
    .where(
      "invitation_id",
      "in",
      rows.map((row) => row.id),
    )
    .orderBy("priority")
    .orderBy("position")
    .execute();
  const ofRow = Map.groupBy(hosts, (host: SchedulingInvitationHostsTable) => host.invitation_id);
  return rows.map((row) => invitationFromRow(row, ofRow.get(row.id) ?? []));
}
