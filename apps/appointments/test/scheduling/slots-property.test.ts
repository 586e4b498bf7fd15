import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays, dayMs, minuteMs, timestampOf } from "../../src/scheduling/calendar.ts";
import { assignHosts } from "../../src/scheduling/routing.ts";
import { computeSlots, type SlotHost, type SlotsInput, slotAt } from "../../src/scheduling/slots.ts";
import { findLocal, minutesAround, transitions } from "./wall-clock.ts";

/** The rules said a second time, as simply as they can be: minute by minute, with the clocks of Intl. */
function slotsByCounting(input: SlotsInput, around: string): string[] {
  const hosts = input.hosts.map((host) => countedHost(host, around));
  const found: string[] = [];
  for (let start = input.range.start; start < input.range.end; start += minuteMs) {
    if (start < input.now + input.minNoticeMinutes * minuteMs) continue;
    if (start > input.now + input.maxFutureDays * dayMs) continue;
    const minutes = Array.from({ length: input.durationMinutes }, (_, index) => start + index * minuteMs);
    const wide = Array.from(
      { length: input.bufferBeforeMinutes + input.durationMinutes + input.bufferAfterMinutes },
      (_, index) => start + (index - input.bufferBeforeMinutes) * minuteMs,
    );
    const candidates = hosts.map((host) => ({
      ...host,
      isFree:
        minutes.every((minute) => host.working.has(minute) && !host.buffered.has(minute)) &&
        wide.every((minute) => !host.taken.has(minute)),
    }));
    const offered = candidates
      .filter((host) => host.role !== "optional")
      .slice(0, input.routingMode === "fixed" ? 1 : undefined)
      .some(
        (host) =>
          host.isFree &&
          host.periods.some(
            ([from, to]) =>
              start >= from && start < to && (start - from) % (input.slotIntervalMinutes * minuteMs) === 0,
          ),
      );
    const hostIds = offered ? assignHosts(input.routingMode, candidates) : undefined;
    if (hostIds) found.push(`${timestampOf(start)} ${hostIds.join()}`);
  }
  return found;
}

function countedHost(host: SlotHost, around: string) {
  const table = minutesAround(around, host.timeZone);
  const dates = [...new Set(table.map(([, wall]) => wall.slice(0, 10)))].slice(1, -1);
  const periods = dates.flatMap((date) =>
    host.rules
      .filter((rule) => rule.dayOfWeek === new Date(`${date}T00:00:00Z`).getUTCDay())
      .map((rule) => [findLocal(table, date, rule.startTime), findLocal(table, date, rule.endTime)] as const),
  );
  return {
    ...host,
    periods,
    working: minutesOf(periods),
    taken: minutesOf(host.busy.map(({ start, end }) => [start, end])),
    buffered: minutesOf(
      host.busy.map(({ start, end, bufferBeforeMinutes, bufferAfterMinutes }) => [
        start - bufferBeforeMinutes * minuteMs,
        end + bufferAfterMinutes * minuteMs,
      ]),
    ),
  };
}

function minutesOf(periods: readonly (readonly [number, number])[]): Set<number> {
  const all = new Set<number>();
  for (const [from, to] of periods) for (let minute = from; minute < to; minute += minuteMs) all.add(minute);
  return all;
}

const quarter = (from: number, to: number) =>
  fc.integer({ min: from * 4, max: to * 4 }).map((quarters) => quarters * 15);
const hhmm = (minutes: number): string =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

/** One period a day, so that every grid begins with a rule. */
const rules = fc.array(fc.tuple(quarter(0, 23), quarter(0, 24)), { minLength: 7, maxLength: 7 }).map((days) =>
  days.flatMap(([left, right], index) =>
    left === right
      ? []
      : [
          {
            eventTypeId: null,
            dayOfWeek: index,
            startTime: hhmm(Math.min(left, right)),
            endTime: hhmm(Math.max(left, right)),
          },
        ],
  ),
);

/** A zone and a date at which its clocks change; the other hosts are in it or in a zone that is far away. */
const cases = fc.constantFrom(...transitions).chain(([zone, date]) => {
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const busy = fc.record({
    start: fc.integer({ min: -96, max: 96 }).map((quarters) => midnight + quarters * 15 * minuteMs),
    length: fc.integer({ min: 1, max: 180 }),
    bufferBeforeMinutes: fc.constantFrom(0, 0, 10),
    bufferAfterMinutes: fc.constantFrom(0, 0, 25),
  });
  const hosts = fc.array(
    fc.record({
      role: fc.constantFrom("required", "rotation", "rotation", "optional" as const),
      timeZone: fc.constantFrom(zone, zone, "Asia/Kathmandu"),
      rules,
      busy: fc.array(busy, { maxLength: 4 }),
      upcomingBookings: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 1, maxLength: 3 },
  );
  return fc.record({
    date: fc.constant(date),
    hosts: hosts.map((list) =>
      list.map((each, index) => ({
        ...each,
        userId: `u${index}`,
        overrides: [],
        busy: each.busy.map(({ length, ...period }) => ({
          ...period,
          end: period.start + length * minuteMs,
        })),
      })),
    ),
    from: fc.integer({ min: -24, max: 20 }),
    hours: fc.integer({ min: 1, max: 12 }),
    durationMinutes: fc.constantFrom(15, 30, 45, 60, 90),
    slotIntervalMinutes: fc.constantFrom(10, 15, 30, 50, 60),
    bufferBeforeMinutes: fc.constantFrom(0, 0, 15),
    bufferAfterMinutes: fc.constantFrom(0, 0, 20),
    minNoticeMinutes: fc.integer({ min: 0, max: 2880 }),
    maxFutureDays: fc.integer({ min: 1, max: 3 }),
    routingMode: fc.constantFrom("fixed", "collective", "priority", "round_robin" as const),
    midnight: fc.constant(midnight),
  });
});

type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

function inputOf({ date: _, from, hours, midnight, ...rest }: Case): SlotsInput {
  const start = midnight + from * 60 * minuteMs;
  return {
    ...rest,
    eventTypeId: "type",
    now: midnight - 2 * dayMs,
    range: { start, end: start + hours * 60 * minuteMs },
  };
}

test("the slots are those that counting minute by minute finds, around every kind of transition", () => {
  let seen = 0;
  fc.assert(
    fc.property(cases, (given) => {
      const input = inputOf(given);
      const slots = computeSlots(input);
      seen += slots.length;
      expect(slots.map((slot) => `${slot.startAt} ${slot.hostIds.join()}`)).toEqual(
        slotsByCounting(input, given.date),
      );
    }),
    { numRuns: 250 },
  );
  // A property over empty lists would show nothing.
  expect(seen).toBeGreaterThan(200);
});

test("a slot does not depend on the range that was asked for", () => {
  fc.assert(
    fc.property(cases, (given) => {
      const input = inputOf(given);
      const wide = {
        ...input,
        range: { start: input.range.start - 5 * dayMs, end: input.range.end + 9 * dayMs },
      };
      for (const slot of computeSlots(input).slice(0, 3)) expect(slotAt(wide, slot.startAt)).toEqual(slot);
    }),
    { numRuns: 60 },
  );
});

test("what an appointment takes is not offered again, to any of its hosts", () => {
  fc.assert(
    fc.property(cases, fc.nat(), (given, pick) => {
      const input = inputOf(given);
      const slots = computeSlots(input);
      if (slots.length === 0) return;
      const booked = slots[pick % slots.length]!;
      const busy = {
        start: Date.parse(booked.startAt),
        end: Date.parse(booked.endAt),
        bufferBeforeMinutes: input.bufferBeforeMinutes,
        bufferAfterMinutes: input.bufferAfterMinutes,
      };
      const after = computeSlots({
        ...input,
        hosts: input.hosts.map((host) =>
          booked.hostIds.includes(host.userId) ? { ...host, busy: [...host.busy, busy] } : host,
        ),
      });
      for (const slot of after) {
        if (!slot.hostIds.some((id) => booked.hostIds.includes(id))) continue;
        const gap = input.bufferBeforeMinutes * minuteMs;
        const gapAfter = input.bufferAfterMinutes * minuteMs;
        const [start, end] = [Date.parse(slot.startAt), Date.parse(slot.endAt)];
        expect(
          (start >= busy.end + gap && start >= busy.end + gapAfter) ||
            (end + gap <= busy.start && end + gapAfter <= busy.start),
        ).toBe(true);
      }
    }),
    { numRuns: 100 },
  );
});

test("the dates of a zone are all there: a host who always works can be booked at any multiple of the interval", () => {
  for (const [timeZone, date] of transitions) {
    const always = [0, 1, 2, 3, 4, 5, 6].map((day) => ({
      eventTypeId: null,
      dayOfWeek: day,
      startTime: "00:00",
      endTime: "24:00",
    }));
    const start = Date.parse(`${addDays(date, -1)}T00:00:00Z`);
    const slots = computeSlots({
      now: start - dayMs,
      range: { start, end: start + 3 * dayMs },
      eventTypeId: "type",
      durationMinutes: 30,
      slotIntervalMinutes: 30,
      bufferBeforeMinutes: 0,
      bufferAfterMinutes: 0,
      minNoticeMinutes: 0,
      maxFutureDays: 30,
      routingMode: "fixed",
      hosts: [
        {
          userId: "u",
          role: "required",
          timeZone,
          rules: always,
          overrides: [],
          busy: [],
          upcomingBookings: 0,
        },
      ],
    });
    expect(slots, timeZone).toHaveLength(3 * 48);
  }
});
