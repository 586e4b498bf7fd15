import { type CalendarBusy, loadSlotHosts } from "../availability/slot-hosts.ts";
import type { AppTransaction } from "../database/schema.ts";
import type { EventType, EventTypeHost } from "../event-types/event-type.ts";
import { hostsOf } from "../event-types/event-type-queries.ts";
import type { Period } from "../scheduling/calendar.ts";
import type { SlotsInput } from "../scheduling/slots.ts";
import { slotUnavailable } from "./times.ts";

/**
 * Everything that the slots of an event type follow from when there is no invitation: all of it as it is now. `asked`:
 * the hosts as they were when calendars were asked. @throws ProblemError 409 for a host who came since then
 */
export async function ordinarySlotsInput(
  trx: AppTransaction,
  eventType: EventType,
  asked: readonly EventTypeHost[],
  at: {
    readonly range: Period;
    readonly now: Date;
    readonly calendarBusy: CalendarBusy;
  },
): Promise<SlotsInput> {
  const now = at.now.getTime();
  const hosts = await hostsOf(trx, eventType.id);
  const known = new Set(asked.map((host) => host.userId));
  // Its calendar was not asked, nor is it locked.
  if (hosts.some((host) => !known.has(host.userId))) throw slotUnavailable();
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
