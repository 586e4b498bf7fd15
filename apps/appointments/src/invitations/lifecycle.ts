import type { Actor } from "hookwell";
import type { InvitationEventData } from "../bookings/events.ts";
import type { InvitationStatus } from "../database/scheduling-tables.ts";
import type { AppTransaction } from "../database/schema.ts";
import type { AppHooks } from "../hooks.ts";
import { ProblemError } from "../http/problem.ts";
import type { Invitation } from "./invitation.ts";

/** Where the lifecycle events of invitations go. */
export type LifecycleHooks = Pick<AppHooks, "emit">;

type Terminal = Exclude<InvitationStatus, "active">;

/** active -> booked | cancelled | expired. The three are final; every other transition is refused. */
const transitions: Readonly<Record<InvitationStatus, readonly Terminal[]>> = {
  active: ["booked", "cancelled", "expired"],
  booked: [],
  cancelled: [],
  expired: [],
};

export type InvitationMove = {
  /** When it happens, which is the event's time too. */
  readonly at: Date;
  readonly actor: Actor;
} & (
  | { readonly to: "cancelled" | "expired" }
  | {
      readonly to: "booked";
      readonly bookingId: string;
      readonly startAt: string;
      readonly endAt: string;
      /** The primary host. */
      readonly hostId: string;
    }
);

/**
 * The one place that changes the status of an invitation: the row, its token (consumed by booking and cancelling) and
 * its lifecycle event, all in the given transaction. The status is changed only if the row is still active, and it is
 * booked or cancelled only before, expired only from its `expires_at`.
 *
 * @returns the invitation as it is now, or undefined when another transition came first: nothing was written then
 * @throws ProblemError 503 when the event could not be captured, 409 when the token was used without a transition:
 * the transaction must not commit then
 */
export async function moveInvitation(
  hooks: LifecycleHooks,
  trx: AppTransaction,
  invitation: Invitation,
  move: InvitationMove,
): Promise<Invitation | undefined> {
  if (!transitions[invitation.status].includes(move.to)) return undefined;
  const at = move.at.toISOString();
  const moved = await trx
    .updateTable("scheduling_invitations")
    .set({ status: move.to, booking_id: move.to === "booked" ? move.bookingId : null, updated_at: at })
    .where("id", "=", invitation.id)
    .where("status", "=", "active")
    .where("booking_id", "is", null)
    .where("expires_at", move.to === "expired" ? "<=" : ">", at)
    .executeTakeFirst();
  if (moved.numUpdatedRows === 0n) return undefined;
  if (move.to !== "expired") await consumeToken(trx, invitation.id, at);
  const after: Invitation = {
    ...invitation,
    status: move.to,
    bookingId: move.to === "booked" ? move.bookingId : null,
    updatedAt: at,
  };
  await emitLifecycle(hooks, trx, after, lifecycleData(after, move), move);
  return after;
}

/** Who made an invitation, and who hears of it: absent = its creator. */
export interface Announced {
  readonly actor: Actor;
  readonly audience?: readonly string[];
}

/** Captures the event of an invitation that was just written. @throws ProblemError 503 */
export async function emitInvitationCreated(
  hooks: LifecycleHooks,
  trx: AppTransaction,
  invitation: Invitation,
  announced: Announced,
): Promise<void> {
  const data = { ...common(invitation), status: "active" as const };
  await emitLifecycle(hooks, trx, invitation, data, { at: new Date(invitation.createdAt), ...announced });
}

/** @throws ProblemError 409, so that the transaction is rolled back */
async function consumeToken(trx: AppTransaction, invitationId: string, at: string): Promise<void> {
  const consumed = await trx
    .updateTable("scheduling_invitation_tokens")
    .set({ consumed_at: at })
    .where("invitation_id", "=", invitationId)
    .where("consumed_at", "is", null)
    .executeTakeFirst();
  if (consumed.numUpdatedRows !== 1n)
    throw new ProblemError("conflict", `The token of invitation ${invitationId} was used already.`);
}

const eventTypes = {
  active: "scheduling_invitation.created",
  booked: "scheduling_invitation.booked",
  cancelled: "scheduling_invitation.cancelled",
  expired: "scheduling_invitation.expired",
} as const;

/** To the creator's subscriptions only. The revision makes a second event of one transition impossible. */
async function emitLifecycle(
  hooks: LifecycleHooks,
  trx: AppTransaction,
  invitation: Invitation,
  data: InvitationEventData,
  { at, actor, audience = [invitation.creatorId] }: Announced & { readonly at: Date },
): Promise<void> {
  const options = {
    tx: trx,
    projectId: invitation.projectId,
    ...(invitation.tenantId === undefined ? {} : { tenantId: invitation.tenantId }),
    occurredAt: at,
    revision: data.status === "active" ? 1 : 2,
    actor,
    audience,
  };
  try {
    await hooks.emit(eventTypes[data.status], data, options);
  } catch (error) {
    throw new ProblemError(
      "event_not_captured",
      "The event of this change could not be recorded, so nothing was changed. Try again.",
      { cause: error },
    );
  }
}

function lifecycleData(invitation: Invitation, move: InvitationMove): InvitationEventData {
  if (move.to !== "booked") return { ...common(invitation), status: move.to };
  return {
    ...common(invitation),
    status: "booked",
    booking_id: move.bookingId,
    start_at: move.startAt,
    end_at: move.endAt,
    host_id: move.hostId,
  };
}

function common(invitation: Invitation) {
  return {
    scheduling_invitation_id: invitation.id,
    event_type_id: invitation.eventTypeId,
    duration_minutes: invitation.durationMinutes,
    expires_at: invitation.expiresAt,
    external: invitation.external,
  };
}
