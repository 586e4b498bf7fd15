// @ts-check
import { find } from "./elements.js";

/**
 * The place of a form where what went wrong is said, and the button that sends it.
 * @param {HTMLFormElement} form
 */
export function messagesOf(form) {
  const box = find(form, ".problem-box", HTMLElement);
  const button = find(form, "button[type=submit]", HTMLButtonElement);
  const label = button.textContent ?? "";
  return {
    clear() {
      box.textContent = "";
      for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
      for (const note of form.querySelectorAll(".field-problem")) note.textContent = "";
    },

    /** Says it aloud, shows it, and lets the next Tab go on from there. @param {string} text */
    say(text) {
      box.textContent = text;
      box.focus();
    },

    /**
     * Marks a field, whose note is beside it.
     * @param {HTMLElement} field
     * @param {string} text
     */
    mark(field, text) {
      field.setAttribute("aria-invalid", "true");
      const note = document.getElementById(`${field.id}-problem`);
      if (note) note.textContent = text;
    },

    /**
     * Runs what the button is for, once at a time.
     * @param {string} text what the button says meanwhile
     * @param {() => Promise<void>} work
     */
    async busy(text, work) {
      if (button.getAttribute("aria-disabled") === "true") return;
      button.setAttribute("aria-disabled", "true");
      button.textContent = text;
      try {
        await work();
      } finally {
        button.removeAttribute("aria-disabled");
        button.textContent = label;
      }
    },
  };
}
