import { afterEach, expect, test } from "vitest";
import { type BookingWorld, openBookingWorld } from "../bookings/support/booking-world.ts";
import { describeInBrowser, type WatchedPage, watchedPage } from "./support/browser.ts";

let world: BookingWorld;
let view: WatchedPage | undefined;

/**
 * Every visible text whose contrast with what is behind it is below what WCAG 2.2 AA asks for: 4.5, or 3 when it is
 * large. Days that cannot be chosen and buttons that do nothing just now are exempt there.
 */
const faintTexts = `(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).slice(0, 3).map((c) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((channels(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const style = getComputedStyle(element);
    if (!own || !element.checkVisibility() || element.matches(".taken, [aria-disabled=true], option, noscript *")) continue;
    const [a, b] = [luminance(style.color), luminance(backgroundOf(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) faint.push(element.textContent.trim() + " " + contrast.toFixed(2));
  }
  return faint;
})()`;

/** Controls that are too small to hit with a finger: WCAG 2.2 AA asks for 24 by 24 CSS pixels. */
const tinyControls = `[...document.querySelectorAll("button, select, textarea, summary, label.tile, .check")]
  .filter((one) => one.checkVisibility())
  .map((one) => [one.textContent.trim(), one.getBoundingClientRect()])
  .filter(([, box]) => box.width < 24 || box.height < 24)
  .map(([text]) => text)`;

/** Controls without a name that a screen reader could say. */
const nameless = `[...document.querySelectorAll("button, select, textarea, input, a, summary")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute("aria-label") ?? [...(one.labels ?? [])].map((l) => l.textContent).join("") ?? "").trim() && !one.textContent.trim())
  .map((one) => one.outerHTML)`;

describeInBrowser("how the pages look", () => {
  afterEach(async () => {
    await view?.close();
    await world[Symbol.asyncDispose]();
  });

  test.each([
    ["light", 320],
    ["light", 1100],
    ["dark", 375],
  ] as const)(
    "in %s at %i pixels every text can be read, nothing is cut off, and every control has a name and a size",
    async (colorScheme, width) => {
      world = await openBookingWorld("sqlite");
      const host = await world.host({ name: `Ada ${"W".repeat(120)}` });
      const eventType = await world.eventType([host], {
        name: "Talk".repeat(40),
        questions: [
          { label: "What about?", type: "text", required: true },
          { label: "Which?", type: "select", options: ["A very long option ".repeat(9).trim()] },
          { label: "Remind me", type: "checkbox" },
        ],
      });
      const { token } = await world.invite(host, eventType.id);
      view = await watchedPage(world.url, { colorScheme, viewport: { width, height: 800 } });
      const { page } = view;
      const looksRight = async () => {
        expect(await page.evaluate(faintTexts)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
        expect(await page.evaluate(tinyControls)).toEqual([]);
        expect(await page.evaluate(nameless)).toEqual([]);
      };
      await page.goto(`${world.url}/s/${token}`);
      await page.locator("input[name=time]").first().check();
      await page.getByRole("button", { name: "Book this time" }).click();
      await page.getByText("Please answer this question.").waitFor();
      await looksRight();
      await page.getByLabel("What about?").fill("long".repeat(100));
      await page.getByRole("button", { name: "Book this time" }).click();
      await page.locator("#manage-link").waitFor();
      await looksRight();
      await page.locator("#manage-link").click();
      await page.getByText("Move to another time").click();
      await page.getByText("Cancel the appointment").first().click();
      await page.locator("input[name=time]").first().waitFor();
      await looksRight();
      await page.getByRole("button", { name: "Move to this time" }).click();
      await page.getByText("Choose a day and a time first.").waitFor();
      await looksRight();
      await page.goto(`${world.url}/s/${token}`);
      await looksRight();
      expect(view.faults).toEqual([]);
    },
  );
});
