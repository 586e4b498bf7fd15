import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addDays,
  dateAt,
  daysFrom,
  endOfDate,
  instantOf,
  instantOfLocal,
  isDate,
  isTimestamp,
  minuteMs,
  startOfDate,
  timestampOf,
} from "../../src/scheduling/calendar.ts";
import { findLocal, minutesAround, transitions, wallClock } from "./wall-clock.ts";

describe("local times", () => {
  test.each([
    [
      "a time in a gap moves forward by the gap",
      "2026-03-29",
      "02:30",
      "Europe/Vienna",
      "2026-03-29T01:30:00.000Z",
    ],
    [
      "of a doubled hour the first counts",
      "2026-10-25",
      "02:30",
      "Europe/Vienna",
      "2026-10-25T00:30:00.000Z",
    ],
    ["a gap of half an hour", "2026-10-04", "02:15", "Australia/Lord_Howe", "2026-10-03T15:45:00.000Z"],
    ["a doubled half hour", "2026-04-05", "01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00.000Z"],
    ["a gap at midnight", "2018-11-04", "00:00", "America/Sao_Paulo", "2018-11-04T03:00:00.000Z"],
    [
      "24:00 before a gap at midnight",
      "2018-11-03",
      "24:00",
      "America/Sao_Paulo",
      "2018-11-04T03:00:00.000Z",
    ],
    ["24:00 of the day before a lost day", "2011-12-29", "24:00", "Pacific/Apia", "2011-12-30T10:00:00.000Z"],
  ])("%s", (_, date, time, zone, instant) => {
    expect(timestampOf(instantOfLocal(date, time, zone))).toBe(instant);
  });

  test("are the instant at which clocks first show them, around every kind of transition", () => {
    const times = fc.integer({ min: 0, max: 24 * 60 }).map(hhmm);
    fc.assert(
      fc.property(fc.constantFrom(...transitions), times, ([zone, date], time) => {
        expect(timestampOf(instantOfLocal(date, time, zone))).toBe(
          timestampOf(findLocal(minutesAround(date, zone), date, time)),
        );
      }),
      { numRuns: 300 },
    );
  });
});

describe("local dates", () => {
  test("begin and end where the date of the clocks changes, and follow each other without a hole", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...transitions),
        fc.integer({ min: -1, max: 1 }),
        ([zone, around], shift) => {
          const date = addDays(around, shift);
          const [start, end] = [startOfDate(date, zone), endOfDate(date, zone)];
          expect(end).toBe(startOfDate(addDays(date, 1), zone));
          if (start === end) return; // The zone has no such date.
          expect(wallClock(start, zone).slice(0, 10)).toBe(date);
          expect(wallClock(start - minuteMs, zone) < date).toBe(true);
          expect(wallClock(end - minuteMs, zone).slice(0, 10)).toBe(date);
          expect(dateAt(start, zone)).toBe(date);
          expect(dateAt(end - 1, zone)).toBe(date);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("a day has 23, 24 or 25 hours, 23.5 or 24.5, or none at all", () => {
    const hours = (date: string, zone: string) =>
      (endOfDate(date, zone) - startOfDate(date, zone)) / (60 * minuteMs);
    expect(hours("2026-03-29", "Europe/Vienna")).toBe(23);
    expect(hours("2026-10-25", "Europe/Vienna")).toBe(25);
    expect(hours("2026-10-04", "Australia/Lord_Howe")).toBe(23.5);
    expect(hours("2026-04-05", "Australia/Lord_Howe")).toBe(24.5);
    expect(hours("2011-12-30", "Pacific/Apia")).toBe(0);
    expect(hours("2026-06-15", "Asia/Kathmandu")).toBe(24);
  });

  test("run over months and leap days, and know their day of the week", () => {
    expect(daysFrom("2028-02-27", "2028-03-01").map((day) => day.date)).toEqual([
      "2028-02-27",
      "2028-02-28",
      "2028-02-29",
      "2028-03-01",
    ]);
    expect(daysFrom("2026-03-02", "2026-03-01")).toEqual([]);
    expect(daysFrom("2026-03-01", "2026-03-07").map((day) => day.dayOfWeek)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});

describe("texts", () => {
  test.each(["2026-02-28", "2028-02-29", "0001-01-01"])("%s is a date", (text) => {
    expect(isDate(text)).toBe(true);
  });
  test.each([
    "2026-02-29",
    "2026-13-01",
    "2026-1-1",
    "20260101",
    "2026-01-01T00:00:00Z",
    "+002026-01-01",
    "",
  ])("%j is no date", (text) => {
    expect(isDate(text)).toBe(false);
  });
  test.each(["2026-03-29T02:30:00Z", "2026-03-29t02:30:00.5z", "2026-03-29T02:30:00.123456789-09:30"])(
    "%s is a timestamp",
    (text) => {
      expect(isTimestamp(text)).toBe(true);
    },
  );
  test.each([
    "2026-03-29",
    "2026-03-29T02:30:00",
    "2026-03-29T02:30Z",
    "2026-02-30T02:30:00Z",
    "2026-03-29T24:00:00Z",
    "20260329T023000Z",
    "2026-03-29T02:30:00+02:00[Europe/Vienna]",
    "2026-03-29 02:30:00Z",
    "2026-03-29T02:30:00+0200",
  ])("%s is no timestamp", (text) => {
    expect(isTimestamp(text)).toBe(false);
  });

  test("instants finer than a millisecond are rounded to the side that was asked for", () => {
    expect(instantOf("1970-01-01T00:00:00.0001Z")).toBe(0);
    expect(instantOf("1970-01-01T00:00:00.0001Z", "ceil")).toBe(1);
    expect(instantOf("1969-12-31T23:59:59.9999Z")).toBe(-1);
  });

  test("field-faults B8: an instant is the same whatever offset it was said with, and is written one way", () => {
    const offsets = fc.integer({ min: -14 * 60, max: 14 * 60 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), offsets, (instant, offset) => {
        const local = new Date(instant + offset * minuteMs).toISOString().slice(0, -1);
        const said = `${local}${offset < 0 ? "-" : "+"}${hhmm(Math.abs(offset))}`;
        expect(instantOf(said)).toBe(instant);
        expect(timestampOf(instantOf(said))).toBe(new Date(instant).toISOString());
      }),
    );
  });
});

function hhmm(minutes: number): string {
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}
