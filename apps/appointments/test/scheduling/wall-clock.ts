import { dayMs, minuteMs } from "../../src/scheduling/calendar.ts";

/** What clocks show, from Intl and minute by minute: slow and simple, and nothing of the code under test is in it. */

const formats = new Map<string, Intl.DateTimeFormat>();

/** `YYYY-MM-DD HH:MM` in a zone. */
export function wallClock(instant: number, timeZone: string): string {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-CA", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
    formats.set(timeZone, format);
  }
  return format.format(instant).replace(", ", " ");
}

/** Every minute of a span and what clocks show in it, in order. */
export type MinuteTable = readonly (readonly [instant: number, wall: string])[];

const tables = new Map<string, MinuteTable>();

/** Four days and a half around the start of a UTC date. */
export function minutesAround(date: string, timeZone: string): MinuteTable {
  const key = `${date} ${timeZone}`;
  let table = tables.get(key);
  if (table === undefined) {
    const first = Date.parse(`${date}T00:00:00Z`) - 2 * dayMs;
    table = Array.from({ length: 4.5 * 1440 }, (_, index) => {
      const instant = first + index * minuteMs;
      return [instant, wallClock(instant, timeZone)] as const;
    });
    tables.set(key, table);
  }
  return table;
}

/** The instant of a local time by looking for it: the first minute that shows it; of a missing one, by the gap later. */
export function findLocal(table: MinuteTable, date: string, time: string): number {
  const wanted = time === "24:00" ? `${nextDate(date)} 00:00` : `${date} ${time}`;
  const exact = table.find(([, wall]) => wall === wanted);
  if (exact !== undefined) return exact[0];
  // The clock jumps over it: the last minute before the gap tells how far into the gap the time is.
  const after = table.findIndex(
    ([, wall], index) => wall > wanted && (table[index - 1]?.[1] ?? "~") < wanted,
  );
  const before = table[after - 1];
  if (before === undefined) throw new Error(`${wanted} is not in this table`);
  return before[0] + minutesFrom(before[1], wanted) * minuteMs;
}

function nextDate(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + dayMs).toISOString().slice(0, 10);
}

function minutesFrom(left: string, right: string): number {
  const at = (wall: string): number => Date.parse(`${wall.replace(" ", "T")}:00Z`);
  return (at(right) - at(left)) / minuteMs;
}

/** Zones and dates whose clocks do something: gaps and overlaps of an hour, of half an hour, at midnight; a lost day. */
export const transitions = [
  ["Europe/Vienna", "2026-03-29"],
  ["Europe/Vienna", "2026-10-25"],
  ["America/New_York", "2026-03-08"],
  ["America/New_York", "2026-11-01"],
  ["Australia/Lord_Howe", "2026-10-04"],
  ["Australia/Lord_Howe", "2026-04-05"],
  ["America/Sao_Paulo", "2018-11-04"],
  ["America/Sao_Paulo", "2018-02-18"],
  ["America/Havana", "2026-11-01"],
  ["Africa/Cairo", "2026-04-24"],
  ["Asia/Kathmandu", "2026-05-05"],
  ["Pacific/Apia", "2011-12-31"],
  ["UTC", "2026-06-15"],
] as const;
