// @ts-check
import { find } from "./elements.js";
import { messagesOf } from "./messages.js";
import { createPicker } from "./picker.js";
import { explain, fieldProblems, submit } from "./requests.js";
import { appointmentText, clock, dateIn, dayName, hourCycleOf } from "./times.js";
import { deviceZone } from "./zones.js";

const token = location.pathname.split("/")[2] ?? "";
const api = `/v1/schedule/${token}`;
const unchanged = "Nothing was booked.";

const main = find(document, "main", HTMLElement);
const form = find(document, "#schedule", HTMLFormElement);
const expiry = find(document, "#expiry", HTMLTimeElement);
const messages = messagesOf(form);
const cycle = hourCycleOf(navigator.language);
const picker = createPicker(find(form, "#picker", HTMLElement), {
  slotsPath: `${api}/slots`,
  zone: deviceZone(),
  unchanged,
  output: find(form, "#chosen", HTMLElement),
});

/** The controls of the questions, in their order. */
const questions = [...form.querySelectorAll("[data-question]")].filter(
  (one) =>
    one instanceof HTMLTextAreaElement || one instanceof HTMLSelectElement || one instanceof HTMLInputElement,
);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void messages.busy("Booking…", book);
});

async function book() {
  messages.clear();
  const slot = picker.chosen();
  const missing = questions.filter((one) => one.required && one.value.trim() === "");
  for (const one of missing) messages.mark(one, "Please answer this question.");
  if (!slot) return messages.say("Choose a day and a time first.");
  if (missing[0]) return missing[0].focus();
  const answered = questions.filter((one) => isCheckbox(one) || one.value.trim() !== "");
  const answer = await submit(`${api}/book`, {
    start_at: new Date(slot.start).toISOString(),
    timezone: picker.zone(),
    answers: answered.map((one) => ({
      question_id: one.dataset.question,
      value: isCheckbox(one) ? one.checked : one.value,
    })),
  });
  if (answer.status === 201) return showBooked(answer.body);
  if (answer.status === 409 && answer.body.code === "slot_unavailable") {
    await picker.lost();
    return messages.say(`That time has just been taken. ${unchanged} Choose another time.`);
  }
  if (answer.status === 409)
    return messages.say(
      `You have as many of these appointments as you may have at once. ${unchanged} Cancel one of them first.`,
    );
  if (answer.status === 400) return refuse(answer, answered);
  messages.say(explain(answer, unchanged));
}

/** @param {Element} one @returns {one is HTMLInputElement} */
function isCheckbox(one) {
  return one instanceof HTMLInputElement && one.type === "checkbox";
}

/**
 * Each problem beside its question, the others in the message.
 * @param {import("./requests.js").Answer} answer
 * @param {(HTMLTextAreaElement | HTMLSelectElement | HTMLInputElement)[]} answered
 */
function refuse(answer, answered) {
  let first;
  let zoneRefused = false;
  for (const { pointer, message } of fieldProblems(answer)) {
    zoneRefused ||= pointer === "/timezone";
    const question = answered[Number(/^\/answers\/(\d+)\/value$/.exec(pointer)?.[1] ?? -1)];
    if (!question) continue;
    messages.mark(question, `Your answer ${message}.`);
    first ??= question;
  }
  if (first) return first.focus();
  messages.say(
    zoneRefused
      ? `This time zone is not known here. ${unchanged} Choose another one, such as UTC.`
      : `The questions have changed. ${unchanged} Reload the page and answer them again.`,
  );
}

/** @param {Record<string, unknown>} booking */
function showBooked(booking) {
  const shown = find(document, "#booked", HTMLTemplateElement).content.cloneNode(true);
  if (!(shown instanceof DocumentFragment)) return;
  const zone = picker.zone();
  find(shown, ".when", HTMLElement).textContent = appointmentText({
    start: Date.parse(String(booking.start_at)),
    end: Date.parse(String(booking.end_at)),
    zone,
    cycle,
  });
  const address = `${location.origin}/manage/${booking.manage_token}`;
  const link = find(shown, "#manage-link", HTMLAnchorElement);
  link.href = address;
  link.textContent = address;
  const copy = find(shown, "#copy-link", HTMLButtonElement);
  // Only secure pages may write to the clipboard.
  copy.hidden = !navigator.clipboard;
  const said = find(shown, "#copy-state", HTMLElement);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(address);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "It could not be copied: select the link instead.";
    }
  });
  main.replaceChildren(shown);
  document.title = "Your appointment is booked";
  find(main, "h1", HTMLElement).focus();
  scrollTo(0, 0);
}

const expiresAt = Date.parse(expiry.dateTime);
expiry.textContent = `${dayName(dateIn(deviceZone(), expiresAt))}, ${clock(deviceZone(), expiresAt, cycle)}`;
