import type { Generated } from "kysely";

/**
 * The tables of the scheduling half. Times are RFC 3339 text in UTC with milliseconds, dates are YYYY-MM-DD, times of
 * day HH:MM; truth values are 0 and 1; lists are JSON text; an absent project part is NULL unless said otherwise.
 */
export interface SchedulingTables {
  readonly event_types: EventTypesTable;
  readonly event_type_hosts: EventTypeHostsTable;
  readonly questions: QuestionsTable;
  readonly availability_rules: AvailabilityRulesTable;
  readonly availability_overrides: AvailabilityOverridesTable;
  readonly scheduling_invitations: SchedulingInvitationsTable;
  readonly scheduling_invitation_hosts: SchedulingInvitationHostsTable;
  readonly scheduling_invitation_tokens: SchedulingInvitationTokensTable;
  readonly bookings: BookingsTable;
  readonly booking_hosts: BookingHostsTable;
  readonly booking_attendees: BookingAttendeesTable;
  readonly booking_answers: BookingAnswersTable;
  readonly booking_manage_tokens: BookingManageTokensTable;
  readonly side_effects: SideEffectsTable;
}

export type RoutingMode = "fixed" | "round_robin" | "collective" | "priority";
export type HostRole = "required" | "rotation" | "optional";
export type LocationType = "in_person" | "phone" | "link" | "meeting";
export type QuestionType = "text" | "select" | "checkbox";
export type InvitationStatus = "active" | "booked" | "cancelled" | "expired";
export type BookingStatus = "confirmed" | "cancelled";

export interface EventTypesTable {
  readonly id: string;
  readonly project_id: string;
  readonly tenant_id: string;
  /** The owner. */
  readonly user_id: string;
  /** Unique in its project and tenant. */
  readonly slug: string;
  readonly name: string;
  readonly duration_minutes: number;
  /** All three null = fixed duration. */
  readonly duration_min_minutes: number | null;
  readonly duration_max_minutes: number | null;
  readonly duration_increment_minutes: number | null;
  readonly slot_interval_minutes: number;
  readonly location_type: LocationType;
  readonly location_value: string;
  readonly routing_mode: RoutingMode;
  readonly buffer_before_minutes: number;
  readonly buffer_after_minutes: number;
  readonly min_notice_minutes: number;
  /** 0 = 365. */
  readonly max_future_days: number;
  /** Upcoming bookings one attendee may have; 0 = no limit. */
  readonly max_active_bookings: number;
  readonly is_active: number;
  readonly archived_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface EventTypeHostsTable {
  readonly event_type_id: string;
  readonly user_id: string;
  readonly role: HostRole;
  /** Lower comes first. */
  readonly priority: number;
  /** Order of those with the same priority. */
  readonly position: number;
}

export interface QuestionsTable {
  readonly id: string;
  readonly event_type_id: string;
  readonly label: string;
  readonly type: QuestionType;
  /** JSON list, for select. */
  readonly options: string;
  readonly required: number;
  readonly position: number;
}

export interface AvailabilityRulesTable {
  readonly id: string;
  readonly user_id: string;
  /** NULL = for every event type of the user. */
  readonly event_type_id: string | null;
  /** 0 = Sunday. */
  readonly day_of_week: number;
  readonly start_time: string;
  /** "24:00" is allowed. */
  readonly end_time: string;
}

export interface AvailabilityOverridesTable {
  readonly id: string;
  readonly user_id: string;
  readonly date: string;
  readonly is_available: number;
  readonly start_time: string | null;
  readonly end_time: string | null;
}

export interface SchedulingInvitationsTable {
  readonly id: string;
  readonly project_id: string;
  readonly tenant_id: string;
  readonly event_type_id: string;
  readonly creator_id: string;
  readonly recipient_name: string;
  readonly recipient_email: string;
  readonly duration_minutes: number;
  readonly slot_interval_minutes: number;
  readonly buffer_before_minutes: number;
  readonly buffer_after_minutes: number;
  readonly min_notice_minutes: number;
  readonly max_future_days: number;
  readonly routing_mode: RoutingMode;
  /** As given: a date (inclusive, local to the window's time zone) or an RFC 3339 instant. */
  readonly available_from: string | null;
  readonly available_until: string | null;
  readonly availability_timezone: string | null;
  readonly external_system: string | null;
  readonly external_reference: string | null;
  readonly external_url: string | null;
  readonly location_type: LocationType;
  readonly location_value: string;
  readonly status: InvitationStatus;
  /** Set exactly when status is booked. */
  readonly booking_id: string | null;
  readonly expires_at: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The hosts as they were when the invitation was issued. */
export interface SchedulingInvitationHostsTable {
  readonly invitation_id: string;
  readonly user_id: string;
  readonly role: HostRole;
  readonly priority: number;
  readonly position: number;
}

export interface SchedulingInvitationTokensTable {
  /** SHA-256 of the token, hex. The token itself is nowhere. */
  readonly hash: string;
  readonly invitation_id: string;
  readonly consumed_at: string | null;
}

export interface BookingsTable {
  readonly id: string;
  readonly project_id: string;
  readonly tenant_id: string;
  readonly event_type_id: string;
  /** The primary host. */
  readonly host_id: string;
  readonly start_at: string;
  readonly end_at: string;
  readonly status: BookingStatus;
  readonly cancellation_reason: string | null;
  readonly location_type: LocationType;
  readonly location_value: string;
  /** The booking's revision that location_value was made for: a link of an older one enriches nothing newer. */
  readonly location_revision: number;
  /** 0 before the first captured transition. */
  readonly revision: number;
  readonly scheduling_invitation_id: string | null;
  /** Minutes that hosts are busy before and after, as they were when it was booked. */
  readonly buffer_before_minutes: number;
  readonly buffer_after_minutes: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface BookingHostsTable {
  readonly booking_id: string;
  readonly user_id: string;
  readonly is_primary: number;
  readonly external_event_id: string | null;
  readonly needs_sync: number;
}

export interface BookingAttendeesTable {
  readonly id: string;
  readonly booking_id: string;
  readonly name: string;
  readonly email: string;
  readonly email_key: string;
  readonly timezone: string;
  readonly is_organizer: number;
}

export interface BookingAnswersTable {
  readonly booking_id: string;
  readonly question_id: string;
  readonly value: string;
}

export interface BookingManageTokensTable {
  readonly hash: string;
  readonly booking_id: string;
  readonly expires_at: string;
}

/** Work that runs after commit: written in the transition's transaction, done by the runner, at most so often. */
export interface SideEffectsTable {
  readonly id: string;
  readonly booking_id: string;
  /** The booking's revision it belongs to. */
  readonly revision: number;
  /** Order of the steps of one booking: the revision, and of ordinary bookings, which have none, a count. */
  readonly sequence: number;
  /** Steps of one booking, lane and target are done one at a time, in their sequence. */
  readonly lane: "calendar" | "mail" | "reminder";
  /** calendar_create, calendar_move, calendar_delete, mail_confirmation, mail_moved, mail_cancelled, reminder_24h … */
  readonly kind: string;
  /** The host (calendar) or the address (mail) it is for. */
  readonly target: string;
  readonly status: "waiting" | "done" | "failed" | "skipped";
  readonly attempts: number;
  readonly run_at: string;
  /** Somebody does it now, and it is theirs until then. */
  readonly lease_until: Generated<string | null>;
  /** What went wrong last, or why it was skipped; no token, no address of a page. */
  readonly last_error: Generated<string | null>;
  /** JSON the step needs and that may be gone later, such as the old interval. */
  readonly detail: string;
  readonly created_at: string;
  readonly updated_at: string;
}
