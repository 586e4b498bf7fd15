import type {
  HostRole,
  InvitationStatus,
  LocationType,
  RoutingMode,
  SchedulingInvitationHostsTable,
  SchedulingInvitationsTable,
} from "../database/scheduling-tables.ts";
import type { Buffers } from "../scheduling/busy.ts";
import type { Reach, Window } from "../scheduling/window.ts";

/** Where the creator's own system keeps what the invitation is about. */
export interface External {
  readonly system: string | null;
  readonly reference: string | null;
  readonly url: string | null;
}

export interface InvitationHost {
  readonly userId: string;
  readonly role: HostRole;
  readonly priority: number;
}

/** A scheduling invitation as the code works with it: everything that was retained when it was issued. */
export interface Invitation extends Buffers, Reach {
  readonly id: string;
  readonly projectId: string;
  readonly tenantId?: string;
  readonly eventTypeId: string;
  readonly creatorId: string;
  readonly recipient: { readonly name: string; readonly email: string };
  readonly durationMinutes: number;
  readonly slotIntervalMinutes: number;
  readonly routingMode: RoutingMode;
  readonly window: Window;
  readonly external: External | null;
  readonly locationType: LocationType;
  readonly locationValue: string;
  /** As stored: one that nobody has swept yet may be active although its time is over. See {@link statusAt}. */
  readonly status: InvitationStatus;
  /** Set exactly when the status is booked. */
  readonly bookingId: string | null;
  readonly expiresAt: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** In their order. */
  readonly hosts: readonly InvitationHost[];
}

/** What an invitation is at this moment: expired from the instant `expiresAt <= now`, before any sweep. */
export function statusAt(invitation: Pick<Invitation, "status" | "expiresAt">, now: Date): InvitationStatus {
  return invitation.status === "active" && invitation.expiresAt <= now.toISOString()
    ? "expired"
    : invitation.status;
}

export function invitationFromRow(
  row: SchedulingInvitationsTable,
  hosts: readonly SchedulingInvitationHostsTable[],
): Invitation {
  const external = { system: row.external_system, reference: row.external_reference, url: row.external_url };
  return {
    id: row.id,
    projectId: row.project_id,
    ...(row.tenant_id === "" ? {} : { tenantId: row.tenant_id }),
    eventTypeId: row.event_type_id,
    creatorId: row.creator_id,
    recipient: { name: row.recipient_name, email: row.recipient_email },
    durationMinutes: row.duration_minutes,
    slotIntervalMinutes: row.slot_interval_minutes,
    bufferBeforeMinutes: row.buffer_before_minutes,
    bufferAfterMinutes: row.buffer_after_minutes,
    minNoticeMinutes: row.min_notice_minutes,
    maxFutureDays: row.max_future_days,
    routingMode: row.routing_mode,
    window: {
      from: row.available_from,
      until: row.available_until,
      timeZone: row.availability_timezone,
    },
    external: Object.values(external).every((value) => value === null) ? null : external,
    locationType: row.location_type,
    locationValue: row.location_value,
    status: row.status,
    bookingId: row.booking_id,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    hosts: hosts.map((host) => ({ userId: host.user_id, role: host.role, priority: host.priority })),
  };
}

export function invitationToRow(invitation: Invitation): SchedulingInvitationsTable {
  return {
    id: invitation.id,
    project_id: invitation.projectId,
    tenant_id: invitation.tenantId ?? "",
    event_type_id: invitation.eventTypeId,
    creator_id: invitation.creatorId,
    recipient_name: invitation.recipient.name,
    recipient_email: invitation.recipient.email,
    duration_minutes: invitation.durationMinutes,
    slot_interval_minutes: invitation.slotIntervalMinutes,
    buffer_before_minutes: invitation.bufferBeforeMinutes,
    buffer_after_minutes: invitation.bufferAfterMinutes,
    min_notice_minutes: invitation.minNoticeMinutes,
    max_future_days: invitation.maxFutureDays,
    routing_mode: invitation.routingMode,
    available_from: invitation.window.from,
    available_until: invitation.window.until,
    availability_timezone: invitation.window.timeZone,
    external_system: invitation.external?.system ?? null,
    external_reference: invitation.external?.reference ?? null,
    external_url: invitation.external?.url ?? null,
    location_type: invitation.locationType,
    location_value: invitation.locationValue,
    status: invitation.status,
    booking_id: invitation.bookingId,
    expires_at: invitation.expiresAt,
    created_at: invitation.createdAt,
    updated_at: invitation.updatedAt,
  };
}

/** The invitation as the API shows it. Its token and its address are in the answer to its creation only. */
export function invitationToJson(invitation: Invitation, now: Date) {
  return {
    id: invitation.id,
    event_type_id: invitation.eventTypeId,
    creator_id: invitation.creatorId,
    recipient: invitation.recipient,
    duration_minutes: invitation.durationMinutes,
    slot_interval_minutes: invitation.slotIntervalMinutes,
    buffer_before_minutes: invitation.bufferBeforeMinutes,
    buffer_after_minutes: invitation.bufferAfterMinutes,
    min_notice_minutes: invitation.minNoticeMinutes,
    max_future_days: invitation.maxFutureDays,
    routing_mode: invitation.routingMode,
    available_from: invitation.window.from,
    available_until: invitation.window.until,
    availability_timezone: invitation.window.timeZone,
    external: invitation.external,
    location_type: invitation.locationType,
    location_value: invitation.locationValue,
    hosts: invitation.hosts.map(({ userId, role, priority }) => ({ user_id: userId, role, priority })),
    status: statusAt(invitation, now),
    booking_id: invitation.bookingId,
    expires_at: invitation.expiresAt,
    created_at: invitation.createdAt,
    updated_at: invitation.updatedAt,
  };
}
