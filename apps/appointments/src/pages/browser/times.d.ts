/**
 * Times as a person in a time zone reads them; the same in the browser and on the server. Dates are `YYYY-MM-DD`,
 * months `YYYY-MM`, instants epoch milliseconds, zones IANA names. Which local time an instant is comes from Intl;
 * dates are counted on the calendar, without any zone.
 */

/** Twelve hours with AM and PM, or twenty-four. */
export type HourCycle = "h12" | "h23";

/** How people of this language write times; twenty-four hours when it is not known. */
export function hourCycleOf(language: string | undefined): HourCycle;

/** Whether this runtime knows the zone. */
export function isZone(zone: string): boolean;

/** The date that a calendar in the zone shows. */
export function dateIn(zone: string, instant: number): string;

/** What a clock in the zone shows, such as `09:30`. */
export function clock(zone: string, instant: number, cycle: HourCycle): string;

/** How far the zone is from UTC at that instant, such as `GMT+1`, or `GMT` when it is not. */
export function offsetName(zone: string, instant: number): string;

/** `Europe/Vienna (GMT+1)`, as it is at that instant. */
export function zoneText(zone: string, instant: number): string;

export interface Appointment {
  readonly start: number;
  readonly end: number;
  readonly zone: string;
  readonly cycle: HourCycle;
}

/** `Monday 10 March 2031, 09:00 to 09:30, Europe/Vienna (GMT+1)`; the end says its date or offset when it is another. */
export function appointmentText(appointment: Appointment): string;

/** `Monday 10 March 2031`. */
export function dayName(date: string): string;

/** `March 2031`. */
export function monthName(month: string): string;

export function monthOf(date: string): string;

export function addMonths(month: string, count: number): string;

export function addDays(date: string, count: number): string;

/** Every date of a month, in order. */
export function datesOf(month: string): string[];

/** 0 = Monday … 6 = Sunday. */
export function weekdayOf(date: string): number;
