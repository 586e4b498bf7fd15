import type { HostRole, RoutingMode } from "../database/scheduling-tables.ts";
import { type CalendarMemo, type HostHours, isIn, merge, workingPeriods } from "./availability.ts";
import { type Buffers, type BusyPeriod, blockedStarts } from "./busy.ts";
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
  const memo: CalendarMemo = new Map();
  const days = input.hosts.map((host) => hostDays(host, input, reach, memo));
  const grid = new Set(
    gridHosts(input.routingMode, days).flatMap((host) =>
      gridStarts(host, input.slotIntervalMinutes * minuteMs, starts).filter((start) => isFree(host, start)),
    ),
  );
  return [...grid]
    .sort((left, right) => left - right)
    .flatMap((start) => {
      const hostIds = assignHosts(
        input.routingMode,
        days.map((host) => ({ ...host, isFree: isFree(host, start) })),
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
  /** Starts of appointments that fit into the working time; one may go across midnight. Merged. */
  readonly fitting: readonly Period[];
  /** Starts that something busy is in the way of. Merged. */
  readonly blocked: readonly Period[];
}

function hostDays(host: SlotHost, input: SlotsInput, reach: Period, memo: CalendarMemo): HostDays {
  const durationMs = input.durationMinutes * minuteMs;
  const working = workingPeriods(host, input.eventTypeId, reach, memo);
  return {
    userId: host.userId,
    role: host.role,
    upcomingBookings: host.upcomingBookings,
    working,
    fitting: merge(working)
      .map(({ start, end }) => ({ start, end: end - durationMs + 1 }))
      .filter(({ start, end }) => start < end),
    blocked: merge(host.busy.map((busy) => blockedStarts(busy, input, durationMs))),
  };
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

function isFree(host: HostDays, start: number): boolean {
  return isIn(host.fitting, start) && !isIn(host.blocked, start);
}
