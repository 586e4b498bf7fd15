import { html } from "hono/html";
import { timestampOf } from "../scheduling/calendar.ts";
import { type Reach, startLimits, type Window, windowBounds } from "../scheduling/window.ts";
import type { Html } from "./page-layout.ts";

/** When appointments may begin at all, both included, in epoch milliseconds. Nothing may when `earliest > latest`. */
export interface StartBounds {
  readonly earliest: number;
  readonly latest: number;
}

export function startBounds(
  now: number,
  rules: Reach & { readonly window?: Window; readonly durationMinutes: number },
): StartBounds {
  const limits = startLimits(now, rules);
  const window = windowBounds(rules.window ?? { from: null, until: null, timeZone: null });
  return {
    earliest: Math.max(limits.earliest, window.start),
    latest: Math.min(limits.latest, window.end - rules.durationMinutes * 60_000),
  };
}

const weekdays = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

/** Zone, day and time: the skeleton that `browser/picker.js` fills. */
export function pickerFields({ earliest, latest }: StartBounds): Html {
  return html`<div id="picker" class="picker" data-earliest="${timestampOf(earliest)}" data-latest="${timestampOf(latest)}">
<div class="field">
<label for="zone">Time zone</label>
<select id="zone"></select>
</div>
<div class="columns">
<div>
<div class="month-bar">
<button type="button" id="previous-month" class="quiet" aria-label="Previous month">‹</button>
<p id="month" class="month"></p>
<button type="button" id="next-month" class="quiet" aria-label="Next month">›</button>
</div>
<fieldset class="days">
<legend>Day</legend>
<div class="weekdays" aria-hidden="true">${weekdays.map((day) => html`<span>${day}</span>`)}</div>
<div id="day-tiles" class="day-tiles"></div>
</fieldset>
<p id="month-state" class="hint" role="status"></p>
</div>
<fieldset class="times" aria-describedby="zone-note">
<legend id="times-title">Time</legend>
<p id="zone-note" class="hint"></p>
<div id="time-tiles" class="time-tiles"></div>
</fieldset>
</div>
</div>`;
}

/** What was chosen, what went wrong, and the button that does it. */
export function confirmFields(label: string): Html {
  return html`<p class="choice"><span class="hint">Your choice</span> <output id="chosen" for="zone">No time chosen yet.</output></p>
<button type="submit" class="main">${label}</button>`;
}

/** Where `browser/messages.js` says what went wrong. */
export function problemBox(): Html {
  return html`<div class="problem-box" role="alert" tabindex="-1"></div>`;
}

/** Without scripts there are no free times to choose from. */
export function scriptsNeeded(): Html {
  return html`<noscript><p class="problem-box">This page needs JavaScript, from this application only. Allow it and reload the page.</p></noscript>`;
}
