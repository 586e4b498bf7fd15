import { type CalendarBusy, loadSlotHosts } from "../availability/slot-hosts.ts";
import type { AppTransaction } from "../database/schema.ts";
import type { EventType, EventTypeHost } from "../event-types/event-type.ts";
import type { Period } from "../scheduling/calendar.ts";
import type { SlotsInput } from "../scheduling/slots.ts";

/** Everything that the slots of an event type follow from when there is no invitation: all of it as it is now. */
export async function ordinarySlotsInput(
  trx: AppTransaction,
  eventType: EventType,
  hosts: readonly EventTypeHost[],
  at: {
    readonly range: Period;
    readonly now: Date;
    readonly calendarBusy: CalendarBusy;
  },
): Promise<SlotsInput> {
  const now = at.now.getTime();
  return {
    now,
    range: at.range,
    eventTypeId: eventType.id,
    durationMinutes: eventType.durationMinutes,
    slotIntervalMinutes: eventType.slotIntervalMinutes,
    bufferBeforeMinutes: eventType.bufferBeforeMinutes,
    bufferAfterMinutes: eventType.bufferAfterMinutes,
    minNoticeMinutes: eventType.minNoticeMinutes,
    maxFutureDays: eventType.maxFutureDays,
    routingMode: eventType.routingMode,
    hosts: await loadSlotHosts(trx, { ...at, now, hosts }),
  };
}
