// @ts-check
import { find } from "./elements.js";
import { messagesOf } from "./messages.js";
import { createPicker } from "./picker.js";
import { explain, submit } from "./requests.js";
import { appointmentText, hourCycleOf } from "./times.js";

const page = location.pathname;
const unchanged = "Nothing was changed.";
const when = find(document, "#when", HTMLElement);
const start = Date.parse(when.dataset.start ?? "");
const end = Date.parse(when.dataset.end ?? "");
const zone = when.dataset.zone ?? "UTC";

when.textContent = appointmentText({ start, end, zone, cycle: hourCycleOf(navigator.language) });
// An appointment that has begun or was cancelled has neither.
const moving = document.querySelector("#moving");
const cancelling = document.querySelector("#cancelling");
if (cancelling) prepareCancelling(find(cancelling, "form", HTMLFormElement));
// Free times are asked for only by those who want to move.
moving?.addEventListener("toggle", () => prepareMoving(find(moving, "form", HTMLFormElement)), {
  once: true,
});

/** @param {HTMLFormElement} form */
function prepareMoving(form) {
  const messages = messagesOf(form);
  const picker = createPicker(find(form, "#picker", HTMLElement), {
    slotsPath: `${page}/slots`,
    zone,
    unchanged,
    output: find(form, "#chosen", HTMLElement),
  });

  const move = async () => {
    messages.clear();
    const slot = picker.chosen();
    if (!slot) return messages.say("Choose a day and a time first.");
    if (slot.start === start) return messages.say("This is the time it has already. Choose another one.");
    const answer = await submit(`${page}/reschedule`, { start_at: new Date(slot.start).toISOString() });
    if (answer.status === 200) return location.replace(`${page}?done=moved`);
    if (answer.status === 409 && answer.body.code === "slot_unavailable") {
      await picker.lost();
      return messages.say(`That time has just been taken. ${unchanged} Choose another time.`);
    }
    if (answer.status === 409)
      return messages.say(
        `This appointment cannot be moved any more. ${unchanged} Reload the page to see why.`,
      );
    messages.say(explain(answer, unchanged));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void messages.busy("Moving…", move);
  });
}

/** @param {HTMLFormElement} form */
function prepareCancelling(form) {
  const messages = messagesOf(form);
  const reason = find(form, "#reason", HTMLTextAreaElement);
  const cancel = async () => {
    messages.clear();
    const text = reason.value.trim();
    const answer = await submit(`${page}/cancel`, text === "" ? {} : { reason: text });
    // 409: it was cancelled by somebody else a moment ago, which the page then shows.
    if (answer.status === 200 || answer.status === 409) return location.replace(page);
    if (answer.status === 400) {
      messages.mark(reason, "The reason is too long, or has characters that cannot be kept.");
      return reason.focus();
    }
    messages.say(explain(answer, unchanged));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void messages.busy("Cancelling…", cancel);
  });
}

if (new URLSearchParams(location.search).has("done")) {
  // The address without it is the one to keep, and a reload does not say it again.
  history.replaceState(null, "", page);
  find(document, "#done", HTMLElement).focus();
}
