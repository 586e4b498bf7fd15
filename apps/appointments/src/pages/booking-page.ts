import { html } from "hono/html";
import { currentLocation } from "../bookings/location.ts";
import { instantOf } from "../scheduling/calendar.ts";
import type { BookingView } from "./booking-view.ts";
import { appointmentText } from "./browser/times.js";
import { minutesText } from "./invitation-page.ts";
import { type Html, pageLayout } from "./page-layout.ts";
import { confirmFields, pickerFields, problemBox, scriptsNeeded } from "./picker-fields.ts";
import { placeBooked } from "./place.ts";

const titles = {
  coming: "Your appointment",
  begun: "Your appointment",
  cancelled: "Your appointment was cancelled",
} as const;

/** Where the one who booked sees, moves and cancels the appointment. `wasMoved`: a moment ago, on this page. */
export function bookingPage(view: BookingView, { wasMoved }: { readonly wasMoved: boolean }): Html {
  const title = titles[view.state];
  return pageLayout({
    title: `${title}: ${view.facts.eventType.name}`,
    script: "manage.js",
    main: html`<header>
${
  wasMoved && view.state === "coming"
    ? html`<p id="done" class="notice" role="status" tabindex="-1">Your appointment was moved.</p>`
    : ""
}
<h1 tabindex="-1">${title}</h1>
<p class="lead">${view.facts.eventType.name}</p>
${details(view)}
</header>
${view.state === "coming" ? html`${scriptsNeeded()}${moveForm(view)}${cancelForm()}` : ""}
${view.state === "begun" ? html`<section class="card message"><p>It has begun or is over, so it cannot be changed here.</p></section>` : ""}
${view.state === "cancelled" ? html`<section class="card message"><p>It does not take place. For another time, ask for a new invitation.</p></section>` : ""}`,
  });
}

function details({ facts, durationMinutes, state }: BookingView): Html {
  const { booking, hosts, organizer, answers } = facts;
  const { start_at: start, end_at: end, location_type: type } = booking;
  const value = currentLocation(booking);
  const zone = organizer.timezone;
  const when = appointmentText({ start: instantOf(start), end: instantOf(end), zone, cycle: "h23" });
  return html`<dl class="facts">
<div class="wide"><dt>When</dt><dd><time id="when" class="when" datetime="${start}" data-start="${start}" data-end="${end}" data-zone="${zone}">${when}</time></dd></div>
<div><dt>With</dt><dd>${new Intl.ListFormat("en-GB").format(hosts.map((host) => host.name))}</dd></div>
<div><dt>Length</dt><dd>${minutesText(durationMinutes)}</dd></div>
<div><dt>For</dt><dd>${organizer.name}</dd></div>
${state === "cancelled" ? "" : html`<div class="wide"><dt>Where</dt><dd>${placeBooked({ type, value })}</dd></div>`}
${
  booking.status === "cancelled" && booking.cancellation_reason
    ? html`<div class="wide"><dt>Reason</dt><dd class="given">${booking.cancellation_reason}</dd></div>`
    : ""
}
${answers.map(({ question, answer }) => html`<div class="wide"><dt>${question}</dt><dd class="given">${answer}</dd></div>`)}
</dl>`;
}

function moveForm({ moves }: BookingView): Html {
  if (moves === undefined)
    return html`<section class="card message"><p>It cannot be moved: no other time is offered. You can cancel it.</p></section>`;
  return html`<details id="moving" class="card">
<summary>Move to another time</summary>
<form id="move" novalidate>
${problemBox()}
${pickerFields(moves)}
<div class="confirm">${confirmFields("Move to this time")}</div>
</form>
</details>`;
}

function cancelForm(): Html {
  return html`<details id="cancelling" class="card">
<summary>Cancel the appointment</summary>
<form id="cancel" novalidate>
${problemBox()}
<div class="field">
<label for="reason">Reason <span class="hint">(they will read it; you may leave it empty)</span></label>
<textarea id="reason" rows="2" maxlength="2000" aria-describedby="reason-problem"></textarea>
<p id="reason-problem" class="field-problem"></p>
</div>
<p class="hint">This cannot be undone.</p>
<button type="submit" class="danger">Cancel the appointment</button>
</form>
</details>`;
}
