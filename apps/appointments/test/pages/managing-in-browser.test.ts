import type { Page } from "playwright-core";
import { afterEach, expect, test } from "vitest";
import { type BookingWorld, openBookingWorld } from "../bookings/support/booking-world.ts";
import type { UserClient } from "../support/world.ts";
import { describeInBrowser, desktop, phone, type WatchedPage, watchedPage } from "./support/browser.ts";

let world: BookingWorld;
let view: WatchedPage;
let page: Page;
let host: UserClient;
let bookingId: string;
let eventTypeId: string;

/** A booking on Tuesday from 10 to 10:30 UTC, made in New York, and a browser in Vienna on its page. */
async function visitBooking(options: Parameters<typeof watchedPage>[1] = {}): Promise<void> {
  world = await openBookingWorld("sqlite");
  host = await world.host({ name: "Ada Lovelace" });
  eventTypeId = (await world.eventType([host], { name: "First talk" })).id;
  const booking = await world.book(await world.invite(host, eventTypeId), "2031-03-04T10:00:00.000Z");
  bookingId = booking.id;
  view = await watchedPage(world.url, options);
  page = view.page;
  await page.goto(world.url + booking.manage);
}

const time = (name: string | RegExp) => page.getByRole("radio", { name });
const row = () => world.bookingRow(bookingId);

describeInBrowser("managing a booking in a browser", () => {
  afterEach(async () => {
    await view.close();
    await world[Symbol.asyncDispose]();
    expect(view.faults).toEqual([]);
  });

  test("it is shown in the zone it was booked in, moves twice and is cancelled, each with its event", async () => {
    await visitBooking(phone);
    const when = page.locator("#when");
    expect(await when.textContent()).toMatch(
      /^Tuesday,? 4 March 2031, 05:00 to 05:30, America\/New_York \(GMT-5\)$/,
    );
    for (const [from, to] of [
      [/^06:00/, "06:00 to 06:30"],
      [/^07:30/, "07:30 to 08:00"],
    ] as const) {
      await page.getByText("Move to another time").click();
      await page.getByRole("radio", { name: /^Tuesday,? 4 March 2031$/ }).check();
      await time(from).check();
      await page.getByRole("button", { name: "Move to this time" }).click();
      await page.getByText("Your appointment was moved.").waitFor();
      expect(await when.textContent()).toContain(to);
      // The address is the one to keep.
      expect(new URL(page.url()).search).toBe("");
    }
    await page.getByText("Cancel the appointment").first().click();
    await page.getByLabel(/^Reason/).fill("Away\nthat day");
    await page.getByRole("button", { name: "Cancel the appointment" }).click();
    await page.getByRole("heading", { name: "Your appointment was cancelled" }).waitFor();
    expect(await page.locator(".given").textContent()).toBe("Away\nthat day");
    expect(await page.locator("form, details").count()).toBe(0);
    const events = await world.bookingEvents(bookingId);
    expect(events.map(({ type, revision }) => [type, revision])).toEqual([
      ["booking.created", 1],
      ["booking.rescheduled", 2],
      ["booking.rescheduled", 3],
      ["booking.cancelled", 4],
    ]);
    expect(await row()).toMatchObject({
      start_at: "2031-03-04T12:30:00.000Z",
      status: "cancelled",
      cancellation_reason: "Away\nthat day",
    });
  });

  test("with the keyboard alone: open, choose, move", async () => {
    await visitBooking(desktop);
    const focused = () =>
      page.evaluate<string>(
        `document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()`,
      );
    const tabTo = async (name: RegExp): Promise<void> => {
      const seen: string[] = [];
      while (!name.test(seen.at(-1) ?? "")) {
        await page.keyboard.press("Tab");
        seen.push(await focused());
        if (seen.length > 20) throw new Error(`${name} is not among ${seen.join(", ")}.`);
      }
    };
    await tabTo(/^Move to another time$/);
    await page.keyboard.press("Enter");
    await time(/^09:30/).waitFor();
    await tabTo(/^Monday,? 3 March 2031$/);
    await page.keyboard.press("ArrowDown");
    await tabTo(/^04:00/);
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowUp");
    await tabTo(/^Move to this time$/);
    await page.keyboard.press("Enter");
    await page.getByText("Your appointment was moved.").waitFor();
    expect(await focused()).toBe("Your appointment was moved.");
    // From the first time of Tuesday, 4:00, one back: the last one.
    expect(await row()).toMatchObject({ start_at: "2031-03-04T16:30:00.000Z", revision: 2 });
  });

  test("its own time and one that was taken meanwhile are refused, and nothing changes", async () => {
    await visitBooking();
    await page.getByText("Move to another time").click();
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText("Choose a day and a time first.").waitFor();
    await page.getByRole("radio", { name: /^Tuesday,? 4 March 2031$/ }).check();
    await time("05:00 to 05:30").check();
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText("This is the time it has already.").waitFor();
    await time(/^06:00/).check();
    await world.book(await world.invite(host, eventTypeId), "2031-03-04T11:00:00.000Z");
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText(/That time has just been taken\. Nothing was changed\./).waitFor();
    await page.getByRole("radio", { name: /^Tuesday,? 4 March 2031$/ }).check();
    expect(await time(/^06:00/).count()).toBe(0);
    expect(await row()).toMatchObject({ start_at: "2031-03-04T10:00:00.000Z", revision: 1 });
  });

  test("an event that cannot be captured changes nothing, and says so; then both work", async () => {
    await visitBooking();
    await page.getByText("Move to another time").click();
    await page.getByRole("radio", { name: /^Tuesday,? 4 March 2031$/ }).check();
    await time(/^06:00/).check();
    const mend = await world.breakCapture();
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText(/Something went wrong\. Nothing was changed\./).waitFor();
    await page.getByText("Cancel the appointment").first().click();
    await page.getByRole("button", { name: "Cancel the appointment" }).click();
    await page
      .locator("#cancel")
      .getByText(/Something went wrong\. Nothing was changed\./)
      .waitFor();
    expect(await row()).toMatchObject({ status: "confirmed", revision: 1 });
    await mend();
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText("Your appointment was moved.").waitFor();
    expect(await row()).toMatchObject({ revision: 2 });
  });

  test("what staff cancelled meanwhile is said when the customer moves it, and shown when they cancel it", async () => {
    await visitBooking();
    await page.getByText("Move to another time").click();
    await time(/^06:00/)
      .first()
      .check();
    await host.post(`/v1/bookings/${bookingId}/cancel`, { reason: "Ada is ill" });
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText(/cannot be moved any more\. Nothing was changed\./).waitFor();
    await page.getByText("Cancel the appointment").first().click();
    await page.getByRole("button", { name: "Cancel the appointment" }).click();
    await page.getByRole("heading", { name: "Your appointment was cancelled" }).waitFor();
    expect(await page.locator(".given").textContent()).toBe("Ada is ill");
    expect(await world.bookingEvents(bookingId)).toHaveLength(2);
  });
});
