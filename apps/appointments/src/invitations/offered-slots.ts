import type { CalendarBusy } from "../availability/slot-hosts.ts";
import type { BusyCalendars } from "../bookings/side-effect-planner.ts";
import type { AppDatabase } from "../database/schema.ts";
import { findEventType } from "../event-types/event-type-queries.ts";
import { type ProblemCode, ProblemError } from "../http/problem.ts";
import { dayMs, type Period } from "../scheduling/calendar.ts";
import { allowedStarts, computeSlots, type Slot } from "../scheduling/slots.ts";
import type { Invitation } from "./invitation.ts";
import { invitationSlotRules, invitationSlotsInput, whyUnusable } from "./invitation-slots.ts";

export interface OfferedSlotsDeps {
  readonly db: AppDatabase;
  readonly calendars: BusyCalendars;
  readonly now: () => Date;
  readonly logger: { warn(message: string): void };
}

/**
 * The slots that an invitation offers now. A calendar that cannot be asked hides nothing here: booking asks again,
 * and refuses then.
 * @throws ProblemError with `unusable` (409 for staff, 410 for the customer) for an invitation that cannot be used
 */
export async function offeredSlots(
  deps: OfferedSlotsDeps,
  invitation: Invitation,
  range: (now: Date) => Period,
  unusable: ProblemCode & ("conflict" | "gone"),
): Promise<readonly Slot[]> {
  const now = deps.now();
  const eventType = await findEventType(deps.db, invitation.eventTypeId);
  const reason = whyUnusable(invitation, eventType, now);
  if (reason !== undefined || eventType === undefined) throw new ProblemError(unusable, reason ?? "");
  const starts = allowedStarts(invitationSlotRules(invitation, eventType, now, range(now)));
  if (starts.start === starts.end) return [];
  const calendarBusy = await askCalendars(deps, invitation, starts);
  return computeSlots(
    await invitationSlotsInput(deps.db, invitation, eventType, { range: starts, now, calendarBusy }),
  );
}

/** The slots as the API shows them. */
export function slotsToJson(slots: readonly Slot[]) {
  return {
    slots: slots.map(({ startAt, endAt, hostIds }) => ({
      start_at: startAt,
      end_at: endAt,
      host_ids: hostIds,
    })),
  };
}

async function askCalendars(
  deps: OfferedSlotsDeps,
  invitation: Invitation,
  starts: Period,
): Promise<CalendarBusy> {
  const ids = invitation.hosts.map((host) => host.userId);
  try {
    return await deps.calendars.freeBusy(ids, starts.start - dayMs, starts.end + 2 * dayMs);
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    deps.logger.warn(`Slots of invitation ${invitation.id} are shown without calendars: ${words}`);
    return new Map();
  }
}
