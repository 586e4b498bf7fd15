import { describe, expect, test } from "vitest";
import { instantOf } from "../../src/scheduling/calendar.ts";
import { computeSlots, type SlotHost, type SlotsInput, slotAt } from "../../src/scheduling/slots.ts";

const week = [0, 1, 2, 3, 4, 5, 6];
const daily = (startTime: string, endTime: string) =>
  week.map((dayOfWeek) => ({ eventTypeId: null, dayOfWeek, startTime, endTime }));

function host(userId: string, more: Partial<SlotHost> = {}): SlotHost {
  return {
    userId,
    role: "required",
    timeZone: "UTC",
    rules: daily("09:00", "11:00"),
    overrides: [],
    busy: [],
    upcomingBookings: 0,
    ...more,
  };
}

const busy = (from: string, to: string, bufferBeforeMinutes = 0, bufferAfterMinutes = 0) => ({
  start: instantOf(from),
  end: instantOf(to),
  bufferBeforeMinutes,
  bufferAfterMinutes,
});

const dateInput = (date: string, hosts: readonly SlotHost[], more: Partial<SlotsInput> = {}): SlotsInput => ({
  now: instantOf(`${date}T00:00:00Z`) - 86_400_000,
  range: { start: instantOf(`${date}T00:00:00Z`), end: instantOf(`${date}T23:59:59Z`) + 1000 },
  eventTypeId: "type",
  durationMinutes: 30,
  slotIntervalMinutes: 30,
  bufferBeforeMinutes: 0,
  bufferAfterMinutes: 0,
  minNoticeMinutes: 0,
  maxFutureDays: 60,
  routingMode: "fixed",
  hosts,
  ...more,
});
const input = (hosts: readonly SlotHost[], more: Partial<SlotsInput> = {}) =>
  dateInput("2031-06-02", hosts, more);
const starts = (given: SlotsInput) => computeSlots(given).map((slot) => slot.startAt.slice(11, 16));

describe("slots", () => {
  test("lie on the grid of a working period, and the last ends with it", () => {
    expect(starts(input([host("a")]))).toEqual(["09:00", "09:30", "10:00", "10:30"]);
    expect(starts(input([host("a")], { durationMinutes: 45 }))).toEqual(["09:00", "09:30", "10:00"]);
    const odd = host("a", { rules: daily("09:10", "10:50") });
    expect(starts(input([odd], { slotIntervalMinutes: 20, durationMinutes: 40 }))).toEqual([
      "09:10",
      "09:30",
      "09:50",
      "10:10",
    ]);
  });

  test("each working period of a day has a grid of its own; periods that touch are one", () => {
    const split = host("a", { rules: [...daily("09:00", "09:50"), ...daily("10:05", "11:00")] });
    expect(starts(input([split]))).toEqual(["09:00", "10:05"]);
    const touching = host("a", { rules: [...daily("09:00", "09:45"), ...daily("09:45", "11:00")] });
    expect(starts(input([touching]))).toEqual(["09:00", "09:30", "10:00", "10:30"]);
  });

  test("an appointment may go across midnight where the host works on both sides", () => {
    const always = host("a", { rules: daily("00:00", "24:00") });
    expect(starts(input([always], { durationMinutes: 60 })).at(-1)).toBe("23:30");
    const evening = host("a", { rules: daily("20:00", "24:00") });
    expect(starts(input([evening], { durationMinutes: 60 })).at(-1)).toBe("23:00");
  });

  test("hours for the event type count instead of general ones; an override replaces the whole day", () => {
    const own = [1].map((dayOfWeek) => ({
      eventTypeId: "type",
      dayOfWeek,
      startTime: "15:00",
      endTime: "16:00",
    }));
    const other = own.map((rule) => ({
      ...rule,
      eventTypeId: "other",
      startTime: "18:00",
      endTime: "19:00",
    }));
    const rules = [...daily("09:00", "11:00"), ...own, ...other];
    expect(starts(input([host("a", { rules })]))).toEqual(["15:00", "15:30"]);
    // 2031-06-03 is a Tuesday, for which there are no hours of this event type.
    expect(starts(dateInput("2031-06-03", [host("a", { rules })]))).toEqual([]);
    const override = { date: "2031-06-02", isAvailable: true, startTime: "12:00", endTime: "13:00" };
    expect(starts(input([host("a", { rules, overrides: [override] })]))).toEqual(["12:00", "12:30"]);
    const off = { ...override, isAvailable: false, startTime: null, endTime: null };
    expect(starts(input([host("a", { rules, overrides: [off] })]))).toEqual([]);
  });

  test("a busy period is half-open, and nothing comes into its buffers or has it in its own", () => {
    const with30 = (from: string, to: string, before = 0, after = 0) =>
      host("a", { busy: [busy(`2031-06-02T${from}:00Z`, `2031-06-02T${to}:00Z`, before, after)] });
    expect(starts(input([with30("09:30", "10:00")]))).toEqual(["09:00", "10:00", "10:30"]);
    expect(starts(input([with30("09:30", "10:00", 0, 15)]))).toEqual(["09:00", "10:30"]);
    expect(starts(input([with30("09:30", "10:00", 15, 0)]))).toEqual(["10:00", "10:30"]);
    expect(starts(input([with30("09:30", "10:00")], { bufferAfterMinutes: 15 }))).toEqual(["10:00", "10:30"]);
    expect(starts(input([with30("09:30", "10:00")], { bufferBeforeMinutes: 15 }))).toEqual([
      "09:00",
      "10:30",
    ]);
    // The two buffers lie over each other: nobody meets in either.
    const both = { bufferAfterMinutes: 30 };
    expect(starts(input([with30("10:00", "10:30", 30, 0)], both))).toEqual(["09:00", "10:30"]);
    // Time that is taken outside of the working hours counts with its buffers too.
    expect(starts(input([with30("08:30", "09:00", 0, 10)]))).toEqual(["09:30", "10:00", "10:30"]);
  });

  test("notice and future limit are inclusive", () => {
    const at = (now: string, more: Partial<SlotsInput>) =>
      starts(input([host("a")], { now: instantOf(now), ...more }));
    expect(at("2031-06-02T08:30:00Z", { minNoticeMinutes: 60 })).toEqual(["09:30", "10:00", "10:30"]);
    expect(at("2031-06-02T08:30:00.001Z", { minNoticeMinutes: 60 })).toEqual(["10:00", "10:30"]);
    expect(at("2031-06-01T10:00:00Z", { maxFutureDays: 1 })).toEqual(["09:00", "09:30", "10:00"]);
    expect(at("2030-06-02T09:30:00Z", { maxFutureDays: 0 })).toEqual(["09:00", "09:30"]);
  });

  test("the whole appointment fits into the window and may end exactly at its end", () => {
    const within = (from: string | null, until: string | null, timeZone: string | null = null) =>
      starts(input([host("a")], { window: { from, until, timeZone } }));
    expect(within("2031-06-02T09:30:00Z", "2031-06-02T10:30:00Z")).toEqual(["09:30", "10:00"]);
    expect(within("2031-06-02T09:30:00.001Z", "2031-06-02T10:29:59.999Z")).toEqual([]);
    expect(within("2031-06-02T09:29:00Z", "2031-06-02T10:29:59.999Z")).toEqual(["09:30"]);
    expect(within("2031-06-02", "2031-06-02", "Asia/Kathmandu")).toHaveLength(4);
    expect(within("2031-06-03", null, "Pacific/Kiritimati")).toEqual(["10:00", "10:30"]);
    expect(within(null, "2031-06-02", "Asia/Tokyo")).toHaveLength(4);
    expect(within(null, "2031-06-01", "America/New_York")).toEqual([]);
  });

  test("a host keeps its local hours over a change of the clocks", () => {
    const vienna = host("a", { timeZone: "Europe/Vienna", rules: daily("09:00", "10:00") });
    expect(starts(dateInput("2031-03-29", [vienna]))).toEqual(["08:00", "08:30"]);
    expect(starts(dateInput("2031-03-31", [vienna]))).toEqual(["07:00", "07:30"]);
    // On 30 March 2031, 02:00 to 03:00 is left out; on 26 October it is there twice.
    const night = host("a", { timeZone: "Europe/Vienna", rules: daily("01:30", "03:30") });
    const ofNextNight = "23:30";
    expect(starts(dateInput("2031-03-30", [night]))).toEqual(["00:30", "01:00", ofNextNight]);
    expect(starts(dateInput("2031-10-26", [night]))).toEqual(["00:00", "00:30", "01:00", "01:30", "02:00"]);
    const inTheGap = host("a", { timeZone: "Europe/Vienna", rules: daily("02:15", "02:45") });
    expect(starts(dateInput("2031-03-30", [inTheGap], { slotIntervalMinutes: 15 }))).toEqual(["01:15"]);
  });

  test("a date that a zone left out has no hours: they do not move to the next", () => {
    // 30 December 2011, a Friday, did not exist in Samoa.
    const fridays = host("a", {
      timeZone: "Pacific/Apia",
      rules: [{ eventTypeId: null, dayOfWeek: 5, startTime: "09:00", endTime: "10:00" }],
    });
    const override = { date: "2011-12-30", isAvailable: true, startTime: "09:00", endTime: "10:00" };
    expect(starts(dateInput("2011-12-30", [fridays]))).toEqual([]);
    expect(starts(dateInput("2011-12-30", [{ ...fridays, overrides: [override] }]))).toEqual([]);
    expect(starts(dateInput("2012-01-05", [fridays]))).toEqual(["19:00", "19:30"]);
  });

  test("say who is assigned, the primary first", () => {
    const hosts = [
      host("r", { role: "required" }),
      host("a", { role: "rotation", upcomingBookings: 2 }),
      host("b", {
        role: "rotation",
        upcomingBookings: 1,
        busy: [busy("2031-06-02T09:00:00Z", "2031-06-02T09:30:00Z")],
      }),
      host("o", { role: "optional", rules: daily("10:00", "11:00") }),
    ];
    const slots = computeSlots(input(hosts, { routingMode: "round_robin" }));
    expect(slots.map((slot) => slot.hostIds)).toEqual([
      ["a", "r"],
      ["b", "r"],
      ["b", "r", "o"],
      ["b", "r", "o"],
    ]);
  });

  test("of hosts in different zones, those count that are free; each has its own grid", () => {
    const early = host("a", { rules: daily("09:00", "10:00") });
    const late = host("b", { timeZone: "Asia/Kolkata", rules: daily("15:15", "16:15") });
    const both = { durationMinutes: 15, slotIntervalMinutes: 30 };
    expect(starts(input([early, late], { ...both, routingMode: "collective" }))).toEqual(["09:45"]);
    expect(starts(input([early, late], { ...both, routingMode: "priority" }))).toEqual([
      "09:00",
      "09:30",
      "09:45",
      "10:15",
    ]);
  });

  test("one that is asked for is found if it is offered, whatever offset it is said with", () => {
    const given = input([host("a")]);
    expect(slotAt(given, "2031-06-02T11:30:00+02:00")?.startAt).toBe("2031-06-02T09:30:00.000Z");
    for (const off of ["2031-06-02T09:31:00Z", "2031-06-02T09:30:00.0001Z", "2031-06-02T11:00:00Z"])
      expect(slotAt(given, off)).toBeUndefined();
  });
});
