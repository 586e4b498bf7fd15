import type {
  EventTypesTable,
  HostRole,
  LocationType,
  QuestionsTable,
  RoutingMode,
} from "../database/scheduling-tables.ts";
import type { Question } from "../scheduling/answers.ts";
import type { Buffers } from "../scheduling/busy.ts";
import type { DurationPolicy } from "../scheduling/duration.ts";
import type { Reach } from "../scheduling/window.ts";

/** A kind of appointment that people can book. */
export interface EventType extends DurationPolicy, Buffers, Reach {
  readonly id: string;
  readonly projectId: string;
  readonly tenantId?: string;
  /** The owner. */
  readonly userId: string;
  /** Unique in its project and tenant. */
  readonly slug: string;
  readonly name: string;
  readonly slotIntervalMinutes: number;
  readonly locationType: LocationType;
  /** "" = unknown. */
  readonly locationValue: string;
  readonly routingMode: RoutingMode;
  /** Upcoming bookings that one attendee may have; 0 = no limit. */
  readonly maxActiveBookings: number;
  readonly isActive: boolean;
  readonly archivedAt: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface EventTypeHost {
  readonly userId: string;
  readonly role: HostRole;
  /** Lower comes first. */
  readonly priority: number;
}

/** Whether somebody can be invited to it, and book it. */
export function isBookable(eventType: Pick<EventType, "isActive" | "archivedAt">): boolean {
  return eventType.isActive && eventType.archivedAt === null;
}

export function eventTypeFromRow(row: EventTypesTable): EventType {
  return {
    id: row.id,
    projectId: row.project_id,
    ...(row.tenant_id === "" ? {} : { tenantId: row.tenant_id }),
    userId: row.user_id,
    slug: row.slug,
    name: row.name,
    durationMinutes: row.duration_minutes,
    durationMinMinutes: row.duration_min_minutes,
    durationMaxMinutes: row.duration_max_minutes,
    durationIncrementMinutes: row.duration_increment_minutes,
    slotIntervalMinutes: row.slot_interval_minutes,
    locationType: row.location_type,
    locationValue: row.location_value,
    routingMode: row.routing_mode,
    bufferBeforeMinutes: row.buffer_before_minutes,
    bufferAfterMinutes: row.buffer_after_minutes,
    minNoticeMinutes: row.min_notice_minutes,
    maxFutureDays: row.max_future_days,
    maxActiveBookings: row.max_active_bookings,
    isActive: row.is_active === 1,
    archivedAt: row.archived_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function eventTypeToRow(eventType: EventType): EventTypesTable {
  return {
    id: eventType.id,
    project_id: eventType.projectId,
    tenant_id: eventType.tenantId ?? "",
    user_id: eventType.userId,
    slug: eventType.slug,
    name: eventType.name,
    duration_minutes: eventType.durationMinutes,
    duration_min_minutes: eventType.durationMinMinutes,
    duration_max_minutes: eventType.durationMaxMinutes,
    duration_increment_minutes: eventType.durationIncrementMinutes,
    slot_interval_minutes: eventType.slotIntervalMinutes,
    location_type: eventType.locationType,
    location_value: eventType.locationValue,
    routing_mode: eventType.routingMode,
    buffer_before_minutes: eventType.bufferBeforeMinutes,
    buffer_after_minutes: eventType.bufferAfterMinutes,
    min_notice_minutes: eventType.minNoticeMinutes,
    max_future_days: eventType.maxFutureDays,
    max_active_bookings: eventType.maxActiveBookings,
    is_active: eventType.isActive ? 1 : 0,
    archived_at: eventType.archivedAt,
    created_at: eventType.createdAt,
    updated_at: eventType.updatedAt,
  };
}

/** The event type as the API shows it, with its hosts and questions. */
export function eventTypeToJson(
  eventType: EventType,
  hosts: readonly EventTypeHost[],
  questions: readonly Question[],
) {
  const { id, project_id, tenant_id, is_active, ...row } = eventTypeToRow(eventType);
  return {
    id,
    project_id,
    tenant_id: tenant_id === "" ? null : tenant_id,
    ...row,
    is_active: is_active === 1,
    hosts: hosts.map(hostToJson),
    questions: questions.map(questionToJson),
  };
}

export function hostToJson({ userId, role, priority }: EventTypeHost) {
  return { user_id: userId, role, priority };
}

export function questionFromRow(row: QuestionsTable): Question {
  return {
    id: row.id,
    label: row.label,
    type: row.type,
    options: JSON.parse(row.options),
    required: row.required === 1,
    position: row.position,
  };
}

export function questionToJson({ id, label, type, options, required, position }: Question) {
  return { id, label, type, options, required, position };
}
