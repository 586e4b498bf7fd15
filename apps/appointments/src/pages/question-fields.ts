import { html } from "hono/html";
import type { Question } from "../scheduling/answers.ts";
import type { Html } from "./page-layout.ts";

/** The questions of an event type as fields; `browser/schedule.js` reads them by `data-question`. */
export function questionFields(questions: readonly Question[]): Html {
  return html`${questions.map(field)}`;
}

function field(question: Question, index: number): Html {
  const id = `question-${index + 1}`;
  const problem = html`<p id="${id}-problem" class="field-problem"></p>`;
  if (question.type === "checkbox")
    return html`<div class="field">
<label class="check"><input type="checkbox" id="${id}" data-question="${question.id}" aria-describedby="${id}-problem"> <span>${question.label}</span></label>
${problem}
</div>`;
  return html`<div class="field">
<label for="${id}">${question.label}${question.required ? html` <span class="hint">(required)</span>` : ""}</label>
${control(question, id)}
${problem}
</div>`;
}

function control(question: Question, id: string): Html {
  const required = question.required ? "required" : "";
  if (question.type === "select")
    return html`<select id="${id}" data-question="${question.id}" aria-describedby="${id}-problem" ${required}>
<option value="">Choose…</option>
${question.options.map((option) => html`<option value="${option}">${option}</option>`)}
</select>`;
  return html`<textarea id="${id}" rows="2" data-question="${question.id}" aria-describedby="${id}-problem" ${required}></textarea>`;
}
