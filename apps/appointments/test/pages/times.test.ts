import { describe, expect, test } from "vitest";
import * as times from "../../src/pages/browser/times.js";

const at = (text: string): number => Date.parse(text);
const hours = (from: string, count: number): number[] =>
  Array.from({ length: count }, (_, index) => at(from) + index * 3_600_000);

describe("dates and clocks of a zone", () => {
  test.each([
    ["Europe/Vienna", "2031-03-10T23:30:00Z", "2031-03-11", "00:30", "GMT+1"],
    ["America/New_York", "2031-07-01T02:00:00Z", "2031-06-30", "22:00", "GMT-4"],
    ["Asia/Kathmandu", "2031-01-01T18:20:00Z", "2031-01-02", "00:05", "GMT+5:45"],
    ["Pacific/Kiritimati", "2031-12-31T10:00:00Z", "2032-01-01", "00:00", "GMT+14"],
    ["Pacific/Pago_Pago", "2031-01-01T10:59:00Z", "2030-12-31", "23:59", "GMT-11"],
    ["UTC", "2031-01-01T00:00:00Z", "2031-01-01", "00:00", "GMT"],
  ])("%s at %s is %s, %s", (zone, instant, date, clock, offset) => {
    expect(times.dateIn(zone, at(instant))).toBe(date);
    expect(times.clock(zone, at(instant), "h23")).toBe(clock);
    expect(times.offsetName(zone, at(instant))).toBe(offset);
  });

  test("midnight and noon with twelve hours", () => {
    expect(times.clock("UTC", at("2031-01-01T00:05:00Z"), "h12")).toMatch(/^12:05.am$/);
    expect(times.clock("UTC", at("2031-01-01T12:05:00Z"), "h12")).toMatch(/^12:05.pm$/);
  });

  test("a spring day has no second hour, an autumn day has it twice, by two names", () => {
    const clocks = (from: string, count: number, zone: string) =>
      hours(from, count).map((instant) => times.clock(zone, instant, "h23"));
    expect(clocks("2031-03-30T00:00:00Z", 2, "Europe/Vienna")).toEqual(["01:00", "03:00"]);
    expect(clocks("2031-10-26T00:00:00Z", 2, "Europe/Vienna")).toEqual(["02:00", "02:00"]);
    expect(
      hours("2031-10-26T00:00:00Z", 2).map((instant) => times.offsetName("Europe/Vienna", instant)),
    ).toEqual(["GMT+2", "GMT+1"]);
    // Half an hour only.
    expect(times.offsetName("Australia/Lord_Howe", at("2031-07-01T00:00:00Z"))).toBe("GMT+10:30");
  });
});

describe("an appointment in words", () => {
  const text = (start: string, minutes: number, zone: string) =>
    times.appointmentText({ start: at(start), end: at(start) + minutes * 60_000, zone, cycle: "h23" });
  test.each([
    [
      "2031-03-10T08:00:00Z",
      30,
      "Europe/Vienna",
      /^Monday,? 10 March 2031, 09:00 to 09:30, Europe\/Vienna \(GMT\+1\)$/,
    ],
    ["2031-03-10T08:00:00Z", 30, "UTC", /^Monday,? 10 March 2031, 08:00 to 08:30, UTC$/],
    // Over midnight, the end says its day.
    [
      "2031-03-10T22:30:00Z",
      60,
      "Europe/Vienna",
      /^Monday,? 10 March 2031, 23:30 to Tuesday,? 11 March 2031, 00:30, Europe\/Vienna \(GMT\+1\)$/,
    ],
    // Over a change of the clocks, both say which one.
    [
      "2031-03-30T00:30:00Z",
      60,
      "Europe/Vienna",
      /^Sunday,? 30 March 2031, 01:30 GMT\+1 to 03:30 GMT\+2, Europe\/Vienna$/,
    ],
    [
      "2031-10-26T00:30:00Z",
      60,
      "Europe/Vienna",
      /^Sunday,? 26 October 2031, 02:30 GMT\+2 to 02:30 GMT\+1, Europe\/Vienna$/,
    ],
  ])("%s for %i minutes in %s", (start, minutes, zone, expected) => {
    expect(text(start, minutes, zone)).toMatch(expected);
  });
});

describe("the calendar", () => {
  test("months have their days, in leap years too, and follow each other over years", () => {
    expect(times.datesOf("2032-02").at(-1)).toBe("2032-02-29");
    expect(times.datesOf("2100-02").at(-1)).toBe("2100-02-28");
    expect(times.datesOf("2031-03")).toHaveLength(31);
    expect(times.addMonths("2031-12", 1)).toBe("2032-01");
    expect(times.addMonths("2031-01", -1)).toBe("2030-12");
    expect(times.addDays("2031-03-01", -1)).toBe("2031-02-28");
    expect(times.addDays("2031-12-31", 1)).toBe("2032-01-01");
  });

  test("weeks begin on Monday", () => {
    expect(times.weekdayOf("2031-03-10")).toBe(0);
    expect(times.weekdayOf("2031-03-16")).toBe(6);
  });

  test("clocks follow the language of the reader", () => {
    expect(times.hourCycleOf("en-US")).toBe("h12");
    expect(times.hourCycleOf("de-AT")).toBe("h23");
    expect(times.hourCycleOf("not a language")).toBe("h23");
    expect(times.isZone("Europe/Vienna")).toBe(true);
    expect(times.isZone("Mars/Olympus")).toBe(false);
  });
});
