import { lockHosts } from "../bookings/booking-rows.ts";
import { notRecorded } from "../bookings/capture.ts";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { type EventType, type EventTypeHost, isBookable } from "../event-types/event-type.ts";
import {
  findEventType,
  findEventTypeBySlug,
  hostsOf,
  lockEventType,
  requireEventType,
} from "../event-types/event-type-queries.ts";
import { type FieldProblem, invalid, notFound } from "../http/problem.ts";
import { instantOf, timestampOf } from "../scheduling/calendar.ts";
import { allowsDuration, describeDurations } from "../scheduling/duration.ts";
import { type Window, windowBounds } from "../scheduling/window.ts";
import type { Caller } from "../users/user-access.ts";
import { type Invitation, type InvitationHost, invitationToRow } from "./invitation.ts";
import type { NewInvitation } from "./invitation-schemas.ts";
import { hashInvitationToken, newInvitationToken } from "./invitation-token.ts";
import { type Announced, emitInvitationCreated, type LifecycleHooks } from "./lifecycle.ts";

export interface InvitationDeps {
  readonly db: AppDatabase;
  readonly dialect: "sqlite" | "postgres";
  readonly hooks: LifecycleHooks;
  readonly now: () => Date;
  readonly newId: () => string;
}

export interface IssuedInvitation {
  readonly invitation: Invitation;
  /** Seen this once: only its hash is stored. */
  readonly token: string;
}

/**
 * Issues an invitation: what the event type says now is retained in it, and its event is captured with it.
 * @throws ProblemError 400, 404 for an event type that is missing, archived, inactive or another owner's, 503
 */
export async function issueInvitation(
  deps: InvitationDeps,
  caller: Caller,
  input: NewInvitation,
  announced: Announced = { actor: { type: "api_key", id: caller.keyId } },
): Promise<IssuedInvitation> {
  const at = deps.now();
  const expiresAt = timestampOf(instantOf(input.expires_at));
  if (expiresAt <= at.toISOString())
    throw invalid([{ pointer: "/expires_at", message: "must be in the future" }]);
  const window = readWindow(input, caller.user.ianaTimezone);
  const eventTypeId = await visibleEventType(deps, caller, input);

  return inTransaction(deps.db, async (trx) => {
    const eventType = await lockEventType(trx, deps.dialect, eventTypeId);
    if (eventType === undefined || !isBookable(eventType)) throw notFound("event type", eventTypeId);
    const durationMinutes = input.duration_minutes ?? eventType.durationMinutes;
    if (!allowsDuration(eventType, durationMinutes))
      throw invalid([
        { pointer: "/duration_minutes", message: `must be ${describeDurations(eventType)} minutes` },
      ]);
    const hosts = chooseHosts(await activeHosts(trx, deps.dialect, eventType.id), input);
    const token = newInvitationToken();
    const invitation: Invitation = {
      ...retained(eventType),
      id: deps.newId(),
      creatorId: caller.user.id,
      recipient: recipientOf(input),
      durationMinutes,
      window,
      external: externalOf(input),
      status: "active",
      bookingId: null,
      expiresAt,
      createdAt: at.toISOString(),
      updatedAt: at.toISOString(),
      hosts,
    };
    await insertInvitation(trx, invitation, token);
    await emitInvitationCreated(deps.hooks, trx, invitation, announced);
    return { invitation, token };
  }).catch(notRecorded("event_not_captured"));
}

/** @throws ProblemError 404 */
async function visibleEventType(deps: InvitationDeps, caller: Caller, input: NewInvitation): Promise<string> {
  const given = input.event_type_id ?? input.event_type_slug ?? "";
  const found =
    input.event_type_id === undefined
      ? await findEventTypeBySlug(deps.db, caller, given)
      : await findEventType(deps.db, given);
  return requireEventType(caller, found, given).id;
}

/** What later edits of the event type do not change. */
function retained(eventType: EventType) {
  return {
    projectId: eventType.projectId,
    ...(eventType.tenantId === undefined ? {} : { tenantId: eventType.tenantId }),
    eventTypeId: eventType.id,
    slotIntervalMinutes: eventType.slotIntervalMinutes,
    bufferBeforeMinutes: eventType.bufferBeforeMinutes,
    bufferAfterMinutes: eventType.bufferAfterMinutes,
    minNoticeMinutes: eventType.minNoticeMinutes,
    maxFutureDays: eventType.maxFutureDays,
    routingMode: eventType.routingMode,
    locationType: eventType.locationType,
    locationValue: eventType.locationValue,
  };
}

/** @throws ProblemError 400 for a window that is reversed or empty */
function readWindow(input: NewInvitation, ownTimeZone: string): Window {
  const from = input.available_from ?? null;
  const until = input.available_until ?? null;
  const open = from === null && until === null;
  const window: Window = {
    from,
    until,
    timeZone: input.availability_timezone ?? (open ? null : ownTimeZone),
  };
  const bounds = windowBounds(window);
  if (bounds.start >= bounds.end)
    throw invalid([{ pointer: "/available_until", message: "must be later than available_from" }]);
  return window;
}

/** The hosts of an event type that are active users, in their order: the pool. */
async function activeHosts(
  trx: AppTransaction,
  dialect: InvitationDeps["dialect"],
  eventTypeId: string,
): Promise<EventTypeHost[]> {
  const hosts = await hostsOf(trx, eventTypeId);
  if (hosts.length === 0) return [];
  const ids = hosts.map((host) => host.userId);
  // Nobody whom the invitation is about to name is deleted meanwhile.
  await lockHosts(trx, dialect, ids);
  const active = await trx
    .selectFrom("users")
    .select("id")
    .where("id", "in", ids)
    .where("status", "=", "active")
    .execute();
  const isActive = new Set(active.map((user) => user.id));
  return hosts.filter((host) => isActive.has(host.userId));
}

/** @throws ProblemError 400 for a host that is not in the pool, and when nobody can be the primary */
function chooseHosts(pool: readonly EventTypeHost[], input: NewInvitation): InvitationHost[] {
  const byId = new Map(pool.map((host) => [host.userId, host]));
  const outside = "is not an active host of this event type";
  if (input.host_id !== undefined) {
    if (!byId.has(input.host_id)) throw invalid([{ pointer: "/host_id", message: outside }]);
    return [{ userId: input.host_id, role: "required", priority: 0 }];
  }
  const problems: FieldProblem[] = [];
  const chosen = new Map<string, InvitationHost>();
  for (const [index, given] of (input.hosts ?? []).entries()) {
    const pointer = `/hosts/${index}/user_id`;
    const host = byId.get(given.user_id);
    if (host === undefined) problems.push({ pointer, message: outside });
    else if (chosen.has(host.userId)) problems.push({ pointer, message: "is named twice" });
    else
      chosen.set(host.userId, {
        userId: host.userId,
        role: given.role ?? host.role,
        priority: given.priority ?? 0,
      });
  }
  if (problems.length > 0) throw invalid(problems);
  const hosts = input.hosts === undefined ? [...pool] : [...chosen.values()];
  if (!hosts.some((host) => host.role !== "optional"))
    throw invalid([{ pointer: "/hosts", message: "must have a host that is required or in rotation" }]);
  // Sorted here, so that the answer has the order that is stored; equal priorities keep theirs.
  return hosts.sort((left, right) => left.priority - right.priority);
}

function recipientOf({ recipient, recipient_name: name, recipient_email: email }: NewInvitation) {
  return recipient ?? { name: name ?? "", email: email ?? "" };
}

function externalOf({ external }: NewInvitation): Invitation["external"] {
  if (external === undefined || external === null) return null;
  return Object.values(external).every((value) => value === null) ? null : external;
}

async function insertInvitation(trx: AppTransaction, invitation: Invitation, token: string): Promise<void> {
  const { id } = invitation;
  await trx.insertInto("scheduling_invitations").values(invitationToRow(invitation)).execute();
  await trx
    .insertInto("scheduling_invitation_hosts")
    .values(
      invitation.hosts.map(({ userId, role, priority }, position) => ({
        invitation_id: id,
        user_id: userId,
        role,
        priority,
        position,
      })),
    )
    .execute();
  await trx
    .insertInto("scheduling_invitation_tokens")
    .values({ hash: hashInvitationToken(token), invitation_id: id, consumed_at: null })
    .execute();
}
