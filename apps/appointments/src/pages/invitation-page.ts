import { html } from "hono/html";
import type { OpenInvitation } from "./invitation-view.ts";
import { type Html, pageLayout } from "./page-layout.ts";
import { confirmFields, pickerFields, problemBox, scriptsNeeded } from "./picker-fields.ts";
import { questionFields } from "./question-fields.ts";

/** Where an invited person chooses a time. */
export function invitationPage(view: OpenInvitation): Html {
  return pageLayout({
    title: `${view.title}: choose a time`,
    script: "schedule.js",
    main: html`<header>
<h1>${view.title}</h1>
<p class="lead">Hello ${view.recipient}, choose a time that suits you.</p>
<dl class="facts">
${view.hosts === "" ? "" : html`<div><dt>With</dt><dd>${view.hosts}</dd></div>`}
<div><dt>Length</dt><dd>${minutesText(view.durationMinutes)}</dd></div>
<div><dt>Where</dt><dd>${view.place}</dd></div>
<div><dt>Book by</dt><dd><time id="expiry" datetime="${view.expiresAt}">${view.expiresAt}</time></dd></div>
</dl>
</header>
${scriptsNeeded()}
${view.bounds.earliest > view.bounds.latest ? nothingLeft() : form(view)}
<template id="booked">${booked(view)}</template>`,
  });
}

function form(view: OpenInvitation): Html {
  return html`<form id="schedule" novalidate>
${problemBox()}
<section class="card" aria-labelledby="step-time">
<h2 id="step-time">Day and time</h2>
${pickerFields(view.bounds)}
</section>
${
  view.questions.length === 0
    ? ""
    : html`<section class="card" aria-labelledby="step-questions">
<h2 id="step-questions">${view.questions.length === 1 ? "A question" : "Some questions"}</h2>
${questionFields(view.questions)}
</section>`
}
<section class="card confirm" aria-label="Confirm">${confirmFields("Book this time")}</section>
</form>`;
}

function nothingLeft(): Html {
  return html`<section class="card message">
<h2>No time is left</h2>
<p>The time for which you were invited is over, or too near. Ask whoever invited you for a new link.</p>
</section>`;
}

/** Shown by the script when it is done. */
function booked(view: OpenInvitation): Html {
  return html`<section class="card done">
<p class="tick" aria-hidden="true">✓</p>
<h1 tabindex="-1">Your appointment is booked</h1>
<p class="lead">${view.title}</p>
<p class="when"></p>
<h2>Keep this link</h2>
<p>With it you can move or cancel the appointment. It is shown only now.</p>
<p class="link"><a id="manage-link"></a></p>
<p><button type="button" id="copy-link">Copy the link</button> <span id="copy-state" role="status"></span></p>
</section>`;
}

/** `1 hour 30 minutes`. */
export function minutesText(minutes: number): string {
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  const count = (number: number, unit: string): string[] =>
    number === 0 ? [] : [`${number} ${unit}${number === 1 ? "" : "s"}`];
  return [...count(hours, "hour"), ...count(rest, "minute")].join(" ");
}
