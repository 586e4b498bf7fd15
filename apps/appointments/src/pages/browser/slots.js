// @ts-check
import { read } from "./requests.js";
import { addDays, dateIn, datesOf, monthOf } from "./times.js";

/** @typedef {{ readonly start: number, readonly end: number }} Slot instants in epoch milliseconds */

/**
 * The free times of a month of dates in a zone, read once: an instant is the same in every zone, so a day more is
 * asked for on both sides, and another zone needs no other request.
 * @param {string} path of the slots, without its query
 */
export function slotsOf(path) {
  /** @type {Map<string, Slot[]>} */
  const months = new Map();
  return {
    /** Forgets what was read: somebody else was faster. */
    forget: () => months.clear(),

    /**
     * @param {string} month
     * @param {string} zone
     * @returns {Promise<Slot[] | import("./requests.js").Answer>} a refusal when there are none to be had
     */
    async of(month, zone) {
      const known = months.get(month);
      if (known) return inMonth(known, month, zone);
      const dates = datesOf(month);
      const from = addDays(dates[0] ?? "", -1);
      const to = addDays(dates.at(-1) ?? "", 1);
      const answer = await read(`${path}?from=${from}&to=${to}&tz=UTC`);
      if (answer.status !== 200 || !Array.isArray(answer.body.slots)) return answer;
      /** @type {Slot[]} */
      const slots = answer.body.slots.map((slot) => ({
        start: Date.parse(slot.start_at),
        end: Date.parse(slot.end_at),
      }));
      months.set(month, slots);
      return inMonth(slots, month, zone);
    },
  };
}

/**
 * @param {readonly Slot[]} slots
 * @param {string} month
 * @param {string} zone
 */
function inMonth(slots, month, zone) {
  return slots.filter((slot) => monthOf(dateIn(zone, slot.start)) === month);
}
