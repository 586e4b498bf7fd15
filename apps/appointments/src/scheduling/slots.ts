import type { HostRole, RoutingMode } from "../database/scheduling-tables.ts";
import { type HostHours, merge, workingPeriods } from "./availability.ts";
import { type Buffers, type BusyPeriod, conflicts } from "./busy.ts";
import { instantOf, minuteMs, type Period, timestampOf } from "./calendar.ts";
import { assignHosts, gridHosts } from "./routing.ts";
import { type Reach, startLimits, type Window, windowBounds } from "./window.ts";

/** A time that can be booked, and who would be there. */
export interface Slot {
  /** RFC 3339, UTC, with milliseconds. */
  readonly startAt: string;
  readonly endAt: string;
  /** Every host that is assigned, the primary first. */
  readonly hostIds: readonly string[];
}

/** A host with everything that decides when it is free. */
export interface SlotHost extends HostHours {
  readonly userId: string;
  readonly role: HostRole;
  /** Bookings of every event type, and entries of calendars. */
  readonly busy: readonly BusyPeriod[];
  /** Confirmed bookings that are still to come. */
  readonly upcomingBookings: number;
}

/** What is asked for, and the rules of the appointment. */
export interface SlotRules extends Buffers, Reach {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Starts that are asked for, half-open, in epoch milliseconds. */
  readonly range: Period;
  readonly eventTypeId: string;
  readonly durationMinutes: number;
  readonly slotIntervalMinutes: number;
  readonly routingMode: RoutingMode;
  /** Absent = any time. */
  readonly window?: Window;
}

export interface SlotsInput extends SlotRules {
  /** Active users only, in their order (priority, then position). */
  readonly hosts: readonly SlotHost[];
}

/**
 * Every slot whose start is in the range, in order. Starts are multiples of the interval from the start of a working
 * period of a host that is needed and free; the whole appointment fits into the working time of each host and into
 * the window, keeps the notice and the future limit, and no busy period comes into it or its buffers.
 */
export function computeSlots(input: SlotsInput): Slot[] {
  const durationMs = input.durationMinutes * minuteMs;
  const starts = allowedStarts(input);
  if (starts.start === starts.end) return [];
  const reach = { start: starts.start, end: starts.end + durationMs };
  const days = input.hosts.map((host) => hostDays(host, input, reach));
  const grid = new Set(
    gridHosts(input.routingMode, days).flatMap((host) =>
      gridStarts(host, input.slotIntervalMinutes * minuteMs, starts).filter((start) =>
        isFree(host, start, durationMs, input),
      ),
    ),
  );
  return [...grid]
    .sort((left, right) => left - right)
    .flatMap((start) => {
      const hostIds = assignHosts(
        input.routingMode,
        days.map((host) => ({ ...host, isFree: isFree(host, start, durationMs, input) })),
      );
      return hostIds
        ? [{ startAt: timestampOf(start), endAt: timestampOf(start + durationMs), hostIds }]
        : [];
    });
}

/**
 * The slot that begins at this instant, by the same rules whatever range `input` has, or undefined when there is
 * none: lost, off the grid, or outside the window.
 */
export function slotAt(input: SlotsInput, startAt: string): Slot | undefined {
  const start = instantOf(startAt);
  return computeSlots({ ...input, range: { start, end: start + 1 } }).find(
    (slot) => instantOf(slot.startAt) === instantOf(startAt, "ceil"),
  );
}

/** The half-open span of starts that the range, notice, future limit and window allow; empty when they allow none. */
export function allowedStarts(rules: SlotRules): Period {
  const durationMs = rules.durationMinutes * minuteMs;
  const { earliest, latest } = startLimits(rules.now, rules);
  const window = windowBounds(rules.window ?? { from: null, until: null, timeZone: null });
  const start = Math.max(rules.range.start, earliest, window.start);
  return { start, end: Math.max(start, Math.min(rules.range.end, latest + 1, window.end - durationMs + 1)) };
}

interface HostDays {
  readonly userId: string;
  readonly role: HostRole;
  readonly upcomingBookings: number;
  /** Each begins a grid. */
  readonly working: readonly Period[];
  /** The same time without its borders at midnight: an appointment may go across. */
  readonly united: readonly Period[];
  readonly busy: readonly BusyPeriod[];
}

function hostDays(host: SlotHost, input: SlotsInput, reach: Period): HostDays {
  const working = workingPeriods(host, input.eventTypeId, reach);
  const { userId, role, upcomingBookings } = host;
  // Periods that end within the reach of any buffer: everything else cannot matter to these slots.
  const busy = host.busy.filter((period) => conflicts(reach, input, period));
  return { userId, role, upcomingBookings, working, united: merge(working), busy };
}

function gridStarts(host: HostDays, intervalMs: number, starts: Period): number[] {
  return host.working.flatMap((period) => {
    const first = Math.max(0, Math.ceil((starts.start - period.start) / intervalMs));
    const count = Math.ceil((Math.min(period.end, starts.end) - period.start) / intervalMs) - first;
    return Array.from(
      { length: Math.max(0, count) },
      (_, index) => period.start + (first + index) * intervalMs,
    );
  });
}

function isFree(host: HostDays, start: number, durationMs: number, buffers: Buffers): boolean {
  const appointment = { start, end: start + durationMs };
  return (
    host.united.some((period) => period.start <= appointment.start && appointment.end <= period.end) &&
    !host.busy.some((period) => conflicts(appointment, buffers, period))
  );
}
