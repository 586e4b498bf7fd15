// @ts-check

/** Making a format is slow, and one is needed for every slot. @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/**
 * @param {string} zone
 * @param {Intl.DateTimeFormatOptions} options
 */
function formatFor(zone, options) {
  const key = `${zone} ${JSON.stringify(options)}`;
  const known = formats.get(key);
  if (known) return known;
  const made = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
  formats.set(key, made);
  return made;
}

/** @type {typeof import("./times.js").hourCycleOf} */
export const hourCycleOf = (language) => {
  try {
    const { hourCycle } = new Intl.DateTimeFormat(language, { hour: "numeric" }).resolvedOptions();
    return hourCycle === "h11" || hourCycle === "h12" ? "h12" : "h23";
  } catch {
    return "h23";
  }
};

/** @type {typeof import("./times.js").isZone} */
export const isZone = (zone) => {
  try {
    formatFor(zone, {});
    return true;
  } catch {
    return false;
  }
};

/** @type {typeof import("./times.js").dateIn} */
export const dateIn = (zone, instant) => {
  const parts = formatFor(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(instant);
  /** @param {string} type */
  const part = (type) => parts.find((one) => one.type === type)?.value ?? "";
  return `${part("year").padStart(4, "0")}-${part("month")}-${part("day")}`;
};

/** @type {typeof import("./times.js").clock} */
export const clock = (zone, instant, cycle) =>
  formatFor(zone, {
    hour: cycle === "h12" ? "numeric" : "2-digit",
    minute: "2-digit",
    hourCycle: cycle,
  }).format(instant);

/** @type {typeof import("./times.js").offsetName} */
export const offsetName = (zone, instant) => {
  const parts = formatFor(zone, { timeZoneName: "shortOffset" }).formatToParts(instant);
  const name = parts.find((part) => part.type === "timeZoneName")?.value ?? "";
  // Runtimes name it differently.
  return ["UTC", "GMT+0", "GMT-0"].includes(name) ? "GMT" : name;
};

/** @type {typeof import("./times.js").zoneText} */
export const zoneText = (zone, instant) => (zone === "UTC" ? zone : `${zone} (${offsetName(zone, instant)})`);

/** @type {typeof import("./times.js").appointmentText} */
export const appointmentText = ({ start, end, zone, cycle }) => {
  const [day, lastDay] = [dateIn(zone, start), dateIn(zone, end)];
  const [offset, lastOffset] = [offsetName(zone, start), offsetName(zone, end)];
  const changes = offset !== lastOffset;
  const from = `${clock(zone, start, cycle)}${changes ? ` ${offset}` : ""}`;
  const to = `${lastDay === day ? "" : `${dayName(lastDay)}, `}${clock(zone, end, cycle)}${changes ? ` ${lastOffset}` : ""}`;
  return `${dayName(day)}, ${from} to ${to}, ${changes ? zone : zoneText(zone, start)}`;
};

/** @param {string} date */
const atNoon = (date) => Date.parse(`${date}T12:00:00Z`);

/** @type {typeof import("./times.js").dayName} */
export const dayName = (date) =>
  formatFor("UTC", { weekday: "long", day: "numeric", month: "long", year: "numeric" }).format(atNoon(date));

/** @type {typeof import("./times.js").monthName} */
export const monthName = (month) =>
  formatFor("UTC", { month: "long", year: "numeric" }).format(atNoon(`${month}-01`));

/** @type {typeof import("./times.js").monthOf} */
export const monthOf = (date) => date.slice(0, 7);

/** @param {number} year @param {number} month January = 0 @param {number} day */
const calendarDate = (year, month, day) => new Date(Date.UTC(year, month, day)).toISOString().slice(0, 10);

/** @type {typeof import("./times.js").addMonths} */
export const addMonths = (month, count) =>
  monthOf(calendarDate(Number(month.slice(0, 4)), Number(month.slice(5)) - 1 + count, 1));

/** @type {typeof import("./times.js").addDays} */
export const addDays = (date, count) =>
  calendarDate(Number(date.slice(0, 4)), Number(date.slice(5, 7)) - 1, Number(date.slice(8)) + count);

/** @type {typeof import("./times.js").datesOf} */
export const datesOf = (month) => {
  const dates = [];
  for (let date = `${month}-01`; monthOf(date) === month; date = addDays(date, 1)) dates.push(date);
  return dates;
};

/** @type {typeof import("./times.js").weekdayOf} */
export const weekdayOf = (date) => (new Date(atNoon(date)).getUTCDay() + 6) % 7;
