import { type CalendarBusy, loadSlotHosts } from "../availability/slot-hosts.ts";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import { type EventType, isBookable } from "../event-types/event-type.ts";
import type { Period } from "../scheduling/calendar.ts";
import type { SlotRules, SlotsInput } from "../scheduling/slots.ts";
import { stricterReach } from "../scheduling/window.ts";
import { type Invitation, statusAt } from "./invitation.ts";

/** Why an invitation cannot be used now, in words for the customer; undefined when it can. */
export function whyUnusable(
  invitation: Invitation,
  eventType: EventType | undefined,
  now: Date,
): string | undefined {
  const status = statusAt(invitation, now);
  if (status === "booked") return "This invitation was used: a time is booked.";
  if (status === "cancelled") return "This invitation was cancelled.";
  if (status === "expired") return "This invitation has expired.";
  if (eventType === undefined || !isBookable(eventType))
    return "This appointment is not offered any more at present.";
  return undefined;
}

/** The rules of its slots: what it retained; notice and future limit are the stricter of it and of today's. */
export function invitationSlotRules(
  invitation: Invitation,
  eventType: EventType,
  now: Date,
  range: Period,
): SlotRules {
  return {
    now: now.getTime(),
    range,
    eventTypeId: invitation.eventTypeId,
    durationMinutes: invitation.durationMinutes,
    slotIntervalMinutes: invitation.slotIntervalMinutes,
    bufferBeforeMinutes: invitation.bufferBeforeMinutes,
    bufferAfterMinutes: invitation.bufferAfterMinutes,
    routingMode: invitation.routingMode,
    ...stricterReach(invitation, eventType),
    window: invitation.window,
  };
}

export interface InvitationSlotsRequest {
  /** Starts that are asked for, in epoch milliseconds. */
  readonly range: Period;
  readonly now: Date;
  readonly calendarBusy?: CalendarBusy;
}

/**
 * Everything that the slots of an invitation follow from: its rules, and its hosts with their hours, overrides and
 * bookings as they are now.
 */
export async function invitationSlotsInput(
  db: AppDatabase | AppTransaction,
  invitation: Invitation,
  eventType: EventType,
  { range, now, calendarBusy }: InvitationSlotsRequest,
): Promise<SlotsInput> {
  const hosts = await loadSlotHosts(db, {
    hosts: invitation.hosts,
    range,
    now: now.getTime(),
    ...(calendarBusy === undefined ? {} : { calendarBusy }),
  });
  return { ...invitationSlotRules(invitation, eventType, now, range), hosts };
}
