// @ts-check
import { find, make, makeTile } from "./elements.js";
import { explain } from "./requests.js";
import { slotsOf } from "./slots.js";
import * as times from "./times.js";
import { fillZones } from "./zones.js";

/** Months that are looked through for the first free time before the visitor is asked to look on. */
const lookedThrough = 3;

/**
 * Lets the visitor choose a zone, a day and a time on the skeleton that the server made.
 * @param {HTMLElement} root with data-earliest and data-latest: when appointments may begin at all
 * @param {{ slotsPath: string, zone: string, unchanged: string, output: HTMLElement }} options
 */
export function createPicker(root, { slotsPath, zone: firstZone, unchanged, output }) {
  const zoneList = find(root, "#zone", HTMLSelectElement);
  const monthTitle = find(root, "#month", HTMLElement);
  const state = find(root, "#month-state", HTMLElement);
  const previous = find(root, "#previous-month", HTMLButtonElement);
  const next = find(root, "#next-month", HTMLButtonElement);
  const dayTiles = find(root, "#day-tiles", HTMLElement);
  const timeTiles = find(root, "#time-tiles", HTMLElement);
  const timesTitle = find(root, "#times-title", HTMLElement);
  const zoneNote = find(root, "#zone-note", HTMLElement);
  const earliest = Date.parse(root.dataset.earliest ?? "");
  const latest = Date.parse(root.dataset.latest ?? "");
  const cycle = times.hourCycleOf(navigator.language);
  const source = slotsOf(slotsPath);

  let zone = firstZone;
  let month = "";
  let day = "";
  /** @type {import("./slots.js").Slot[]} */
  let slots = [];
  /** @type {import("./slots.js").Slot | undefined} */
  let chosen;
  let asked = 0;

  const firstMonth = () => times.monthOf(times.dateIn(zone, earliest));
  const lastMonth = () => times.monthOf(times.dateIn(zone, latest));
  /** @param {import("./slots.js").Slot} slot */
  const dayOf = (slot) => times.dateIn(zone, slot.start);

  /** @param {import("./slots.js").Slot | undefined} slot */
  function choose(slot) {
    chosen = slot;
    showChosen();
  }

  function showChosen() {
    output.textContent = chosen ? times.appointmentText({ ...chosen, zone, cycle }) : "No time chosen yet.";
    output.classList.toggle("is-chosen", chosen !== undefined);
  }

  /**
   * Shows a month, or with `search` the first one from it that has free times.
   * @param {string} wanted
   * @param {{ search?: boolean }} [options]
   */
  async function show(wanted, { search = false } = {}) {
    const turn = ++asked;
    month = wanted;
    monthTitle.textContent = times.monthName(month);
    state.textContent = "Looking for free times…";
    root.setAttribute("aria-busy", "true");
    let found = await source.of(month, zone);
    for (let looked = 1; turn === asked && search && looked < lookedThrough; looked++) {
      if (!Array.isArray(found) || found.length > 0 || month >= lastMonth()) break;
      month = times.addMonths(month, 1);
      found = await source.of(month, zone);
    }
    // Another month or zone was asked for while this one was on its way.
    if (turn !== asked) return;
    root.setAttribute("aria-busy", "false");
    slots = Array.isArray(found) ? found : [];
    const days = new Set(slots.map(dayOf));
    day = chosen && days.has(dayOf(chosen)) ? dayOf(chosen) : slots[0] ? dayOf(slots[0]) : "";
    renderMonth(days);
    renderTimes();
    state.textContent = Array.isArray(found) ? countText(days.size) : explain(found, unchanged);
  }

  /** @param {number} count */
  const countText = (count) =>
    count === 0
      ? `No free times in ${times.monthName(month)}.`
      : `${count === 1 ? "One day" : `${count} days`} with free times in ${times.monthName(month)}.`;

  /** @param {Set<string>} days with free times */
  function renderMonth(days) {
    monthTitle.textContent = times.monthName(month);
    // A button that has the focus must not lose it, so none is ever disabled for good.
    previous.setAttribute("aria-disabled", String(month <= firstMonth()));
    next.setAttribute("aria-disabled", String(month >= lastMonth()));
    const dates = times.datesOf(month);
    const blanks = Array.from({ length: times.weekdayOf(dates[0] ?? "") }, () => make("span", {}));
    dayTiles.replaceChildren(
      ...blanks,
      ...dates.map((date) => {
        const text = String(Number(date.slice(8)));
        return days.has(date)
          ? makeTile({ group: "day", value: date, text, name: times.dayName(date), checked: date === day })
          : make("span", { class: "taken", "aria-hidden": "true" }, text);
      }),
    );
  }

  function renderTimes() {
    const ofDay = slots.filter((slot) => dayOf(slot) === day);
    const offsets = new Set(ofDay.map((slot) => times.offsetName(zone, slot.start)));
    timesTitle.textContent = day === "" ? "Time" : `Time on ${times.dayName(day)}`;
    const first = ofDay[0]?.start ?? earliest;
    zoneNote.textContent =
      offsets.size > 1
        ? `Times in ${zone}. The clocks change on this day: each time says which one it is.`
        : `Times in ${times.zoneText(zone, first)}`;
    timeTiles.replaceChildren(
      ...ofDay.map((slot) => {
        const mark = offsets.size > 1 ? ` ${times.offsetName(zone, slot.start)}` : "";
        const text = `${times.clock(zone, slot.start, cycle)}${mark}`;
        const name = `${text} to ${times.clock(zone, slot.end, cycle)}`;
        const checked = chosen?.start === slot.start;
        return makeTile({ group: "time", value: String(slot.start), text, name, checked });
      }),
    );
  }

  /** @param {HTMLButtonElement} button @param {number} step */
  function turnBy(button, step) {
    button.addEventListener("click", () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      choose(undefined);
      void show(times.addMonths(month, step));
    });
  }
  turnBy(previous, -1);
  turnBy(next, 1);

  dayTiles.addEventListener("change", (event) => {
    if (!(event.target instanceof HTMLInputElement)) return;
    day = event.target.value;
    choose(undefined);
    renderTimes();
  });
  timeTiles.addEventListener("change", (event) => {
    const { target } = event;
    if (target instanceof HTMLInputElement) choose(slots.find((slot) => String(slot.start) === target.value));
  });
  zoneList.addEventListener("change", () => {
    zone = zoneList.value;
    showChosen();
    void show(chosen ? times.monthOf(dayOf(chosen)) : month);
  });

  fillZones(zoneList, zone);
  zone = zoneList.value;
  showChosen();
  void show(firstMonth(), { search: true });

  return {
    /** The time that was chosen, if any. */
    chosen: () => chosen,
    zone: () => zone,
    /** Somebody else has the chosen time: shows what is left. */
    async lost() {
      choose(undefined);
      source.forget();
      await show(month);
    },
  };
}
