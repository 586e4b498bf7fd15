import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BookingWorld, openBookingWorld } from "../bookings/support/booking-world.ts";
import type { UserClient, WorldOptions } from "../support/world.ts";
import { describeInBrowser, phone, type WatchedPage, watchedPage } from "./support/browser.ts";

let world: BookingWorld;
let view: WatchedPage;
let page: Page;
let host: UserClient;

/** A world with one host (9 to 17 UTC every day), an event type and an invitation; answers the path of its page. */
async function invite(
  fields: Record<string, unknown> = {},
  options: { readonly invitation?: Record<string, unknown>; readonly start?: WorldOptions["start"] } = {},
): Promise<string> {
  world = await openBookingWorld("sqlite", options.start === undefined ? {} : { start: options.start });
  host = await world.host({ name: "Ada Lovelace" });
  const eventType = await world.eventType([host], { name: "First talk", ...fields });
  return `/s/${(await world.invite(host, eventType.id, options.invitation)).token}`;
}

async function visit(path: string, options: Parameters<typeof watchedPage>[1] = {}): Promise<void> {
  view = await watchedPage(world.url, options);
  page = view.page;
  await page.goto(world.url + path);
}

const time = (name: string | RegExp) => page.getByRole("radio", { name });
const alertText = () => page.getByRole("alert").first().textContent();
const bookButton = () => page.getByRole("button", { name: /Book this time|Booking/ });
const booked = () => page.getByRole("heading", { name: "Your appointment is booked" });
const bookings = () => world.db.selectFrom("bookings").selectAll().execute();

/** What has the focus, as a screen reader names it. */
const focused = () =>
  page.evaluate<string>(
    `(() => { const e = document.activeElement; return e.getAttribute("aria-label") ?? e.labels?.[0]?.textContent.trim() ?? e.textContent.trim().split("\\n")[0]; })()`,
  );

describeInBrowser("choosing a time in a browser", () => {
  beforeEach(() => {
    view = undefined as unknown as WatchedPage;
  });
  afterEach(async () => {
    const faults = view?.faults ?? [];
    await view?.close();
    await world[Symbol.asyncDispose]();
    expect(faults).toEqual([]);
  });

  test("with the keyboard alone, on a phone, from the zone to the manage link", async () => {
    await visit(
      await invite({
        questions: [
          { label: "What about?", type: "text", required: true },
          { label: "Which?", type: "select", options: ["This", "That"] },
          { label: "Remind me", type: "checkbox" },
        ],
      }),
      phone,
    );
    await time(/^10:00/).waitFor();
    // The zone of this device, and 9 UTC in it.
    expect(await page.getByLabel("Time zone").inputValue()).toBe("Europe/Vienna");
    expect(await page.getByText("Times in Europe/Vienna (GMT+1)").isVisible()).toBe(true);

    const order: string[] = [];
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const tabTo = async (name: RegExp): Promise<void> => {
      for (let at = ""; !name.test(at); ) {
        await press("Tab");
        at = await focused();
        if (at === order.at(-1)) throw new Error(`The focus does not move on from ${at}.`);
        order.push(at);
        expect(
          await page.evaluate<string>(`(() => {
          const e = document.activeElement;
          const shown = e.type === "radio" ? e.nextElementSibling : e;
          return getComputedStyle(shown).outlineStyle;
        })()`),
        ).toBe("solid");
      }
    };
    await tabTo(/Monday,? 3 March/);
    // Arrows go on to the next day that has times, and choose it.
    await press("ArrowRight");
    expect(await focused()).toMatch(/^Tuesday,? 4 March 2031$/);
    await page.getByText(/^Time on Tuesday,? 4 March 2031$/).waitFor();
    await tabTo(/^10:00/);
    await press("Space", "ArrowDown");
    expect(await focused()).toBe("10:30 to 11:00");
    await tabTo(/What about/);
    await page.keyboard.type("Compilers");
    await tabTo(/Which/);
    await page.keyboard.type("Th");
    await tabTo(/Remind me/);
    await press("Space");
    await tabTo(/Book this time/);
    expect(order.map((name) => name.replace(/\s*\(required\)/, ""))).toEqual([
      "Time zone",
      "Previous month",
      "Next month",
      expect.stringMatching(/^Monday,? 3 March 2031$/),
      "10:00 to 10:30",
      "What about?",
      "Which?",
      "Remind me",
      "Book this time",
    ]);
    await press("Enter");
    await booked().waitFor();
    expect(await focused()).toBe("Your appointment is booked");
    expect(await page.locator(".when").textContent()).toMatch(
      /Tuesday,? 4 March 2031, 10:30 to 11:00, Europe\/Vienna \(GMT\+1\)/,
    );
    const [booking] = await bookings();
    expect(booking).toMatchObject({ start_at: "2031-03-04T09:30:00.000Z", revision: 1 });
    const attendee = await world.db.selectFrom("booking_attendees").selectAll().executeTakeFirstOrThrow();
    expect(attendee.timezone).toBe("Europe/Vienna");
    const answers = await world.db.selectFrom("booking_answers").select("value").execute();
    expect(answers.map(({ value }) => value).sort()).toEqual(["Compilers", "This", "yes"]);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(375);

    // The link works, and the invitation's own page says that it was used.
    const used = page.url();
    await press("Tab");
    await press("Enter");
    await page.getByRole("heading", { name: "Your appointment" }).waitFor();
    await page.goto(used);
    await page.getByRole("heading", { name: "This invitation was used" }).waitFor();
  });

  test("another zone keeps the chosen time and says it in that zone, over the end of a month too", async () => {
    await visit(
      await invite(
        { max_future_days: 365 },
        { invitation: { available_from: "2031-03-31", available_until: "2031-03-31" } },
      ),
    );
    await time(/^18:30/).check();
    await page.getByLabel("Time zone").selectOption("Pacific/Kiritimati");
    const chosen = page.locator("#chosen");
    expect(await chosen.textContent()).toMatch(
      /^Tuesday,? 1 April 2031, 06:30 to 07:00, Pacific\/Kiritimati \(GMT\+14\)$/,
    );
    await page.getByText("April 2031", { exact: true }).waitFor();
    await time("06:30 to 07:00").waitFor();
    expect(await time("06:30 to 07:00").isChecked()).toBe(true);
    await bookButton().click();
    await booked().waitFor();
    expect(await page.locator(".when").textContent()).toContain("Pacific/Kiritimati");
    expect(await bookings()).toMatchObject([{ start_at: "2031-03-31T16:30:00.000Z" }]);
  });

  test("days on which the clocks change have every hour they have, and none that they have not", async () => {
    const path = await invite(
      { max_future_days: 365, slot_interval_minutes: 60, duration_minutes: 30 },
      { invitation: { available_from: "2031-03-29", availability_timezone: "Europe/Vienna" } },
    );
    const rules = Array.from({ length: 7 }, (_, day) => ({
      day_of_week: day,
      start_time: "00:00",
      end_time: "24:00",
    }));
    await world.admin.patch(`/v1/users/${host.id}`, { iana_timezone: "Europe/Vienna" });
    await world.admin.put(`/v1/users/${host.id}/availability`, { rules, overrides: [] });
    await visit(path);
    const texts = () => page.locator("#time-tiles label").allTextContents();
    await page.getByRole("radio", { name: /^Sunday,? 30 March 2031$/ }).check();
    const spring = await texts();
    expect(spring).toHaveLength(23);
    expect(spring.slice(0, 4)).toEqual(["00:00 GMT+1", "01:00 GMT+1", "03:00 GMT+2", "04:00 GMT+2"]);

    for (let month = 3; month < 10; month++) {
      await page.getByRole("button", { name: "Next month" }).click();
      await page.locator('#picker[aria-busy="false"]').waitFor();
    }
    await page.getByRole("radio", { name: /^Sunday,? 26 October 2031$/ }).check();
    const autumn = await texts();
    expect(autumn).toHaveLength(25);
    expect(autumn.slice(1, 5)).toEqual(["01:00 GMT+2", "02:00 GMT+2", "02:00 GMT+1", "03:00 GMT+1"]);
    await page.getByText("The clocks change on this day").waitFor();
    // The second of the two hours that look alike.
    await time(/^02:00 GMT\+1 to/).check();
    await bookButton().click();
    await booked().waitFor();
    expect(await bookings()).toMatchObject([{ start_at: "2031-10-26T01:00:00.000Z" }]);
  });

  test("a time that somebody else took is refused; what is left can be booked", async () => {
    const path = await invite();
    await visit(path);
    await time(/^10:00/).check();
    const { id } = (await world.db.selectFrom("event_types").select("id").executeTakeFirst())!;
    await world.book(await world.invite(host, id), "2031-03-03T09:00:00.000Z");
    await bookButton().click();
    await page.getByText("That time has just been taken").waitFor();
    expect(await alertText()).toContain("Nothing was booked");
    expect(await focused()).toContain("That time has just been taken");
    expect(await time(/^10:00/).count()).toBe(0);
    expect(await page.locator("#chosen").textContent()).toBe("No time chosen yet.");
    expect(await bookings()).toHaveLength(1);
    await time(/^10:30/).check();
    await bookButton().click();
    await booked().waitFor();
    expect(await bookings()).toHaveLength(2);
  });

  test("nothing is sent without a time or a required answer; the field says so and has the focus", async () => {
    await visit(await invite({ questions: [{ label: "What about?", type: "text", required: true }] }));
    await time(/^10:00/).waitFor();
    const sent: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") sent.push(request.url());
    });
    await bookButton().click();
    expect(await alertText()).toBe("Choose a day and a time first.");
    await time(/^10:00/).check();
    await page.getByLabel("What about?").fill("  ");
    await bookButton().click();
    expect(await page.getByText("Please answer this question.").isVisible()).toBe(true);
    expect(await focused()).toContain("What about?");
    expect(await page.getByLabel("What about?").getAttribute("aria-invalid")).toBe("true");
    expect(sent).toEqual([]);
    // What only the server knows: an answer with a character that cannot be kept.
    await page.getByLabel("What about?").fill("bell\u0007");
    await bookButton().click();
    await page.getByText(/^Your answer must not contain control characters/).waitFor();
    await page.getByLabel("What about?").fill("bell");
    await bookButton().click();
    await booked().waitFor();
    expect(sent).toHaveLength(2);
  });

  test("a question that was added meanwhile asks for a reload", async () => {
    await visit(await invite());
    await time(/^10:00/).check();
    const { id } = (await world.db.selectFrom("event_types").select("id").executeTakeFirst())!;
    await host.post(`/v1/event-types/${id}/questions`, { label: "New?", type: "text", required: true });
    await bookButton().click();
    await page.getByText(/The questions have changed\. Nothing was booked\./).waitFor();
    await page.reload();
    await page.getByLabel("New?").fill("Yes");
    await time(/^10:00/).check();
    await bookButton().click();
    await booked().waitFor();
  });

  test("an event that cannot be captured, then no network: each says what is known, and trying again books once", async () => {
    await visit(await invite());
    await time(/^10:00/).check();
    const mend = await world.breakCapture();
    await bookButton().click();
    await page.getByText(/Something went wrong\. Nothing was booked\./).waitFor();
    await mend();
    await page.context().setOffline(true);
    await bookButton().click();
    await page.getByText(/it is not known whether this worked/).waitFor();
    await page.context().setOffline(false);
    await bookButton().click();
    await booked().waitFor();
    expect(await bookings()).toHaveLength(1);
  });

  test("an invitation that was used in another tab says so on booking; so do too many requests", async () => {
    const path = await invite({}, { start: { tokenRouteLimits: { reads: 60, submissions: 2 } } });
    await visit(path);
    await time(/^10:00/).check();
    await world.tryBook(path.slice(3), "2031-03-03T12:00:00.000Z");
    await bookButton().click();
    await page.getByText(/This link cannot be used any more\. Nothing was booked\./).waitFor();
    await bookButton().click();
    await page.getByText(/Too many requests\. Nothing was booked\./).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "This invitation was used" }).waitFor();
  });

  test("a month without free times says so and the first later one that has some is shown", async () => {
    const path = await invite({ max_future_days: 365 });
    const off = (from: string, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        date: new Date(Date.parse(from) + index * 86_400_000).toISOString().slice(0, 10),
        is_available: false,
      }));
    const rules = [{ day_of_week: 1, start_time: "09:00", end_time: "10:00" }];
    // Away in March and April.
    await world.admin.put(`/v1/users/${host.id}/availability`, { rules, overrides: off("2031-03-01", 61) });
    await visit(path);
    await page.getByText("May 2031", { exact: true }).waitFor();
    await time(/^11:00/).waitFor();
    await page.getByRole("button", { name: "Previous month" }).click();
    await page.getByText("No free times in April 2031.").waitFor();
    expect(await page.locator("#time-tiles label").count()).toBe(0);
    await page.getByRole("button", { name: "Previous month" }).click();
    await page.getByText("No free times in March 2031.").waitFor();
    const back = page.getByRole("button", { name: "Previous month" });
    expect(await back.getAttribute("aria-disabled")).toBe("true");
    await back.focus();
    await page.keyboard.press("Enter");
    expect(await page.getByText("March 2031", { exact: true }).isVisible()).toBe(true);
    expect(await focused()).toBe("Previous month");
  });

  test("script in names and labels does nothing in a real browser, before and after booking", async () => {
    const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`;
    const path = await invite(
      {
        name: evil,
        location_type: "in_person",
        location_value: evil,
        questions: [
          { label: evil, type: "text" },
          { label: `Which ${evil}`, type: "select", options: [evil] },
        ],
      },
      { invitation: { recipient: { name: evil, email: "grace@example.com" } } },
    );
    await visit(path, phone);
    await time(/^10:00/).check();
    await page.getByRole("textbox").fill(evil);
    await page.getByRole("combobox").nth(1).selectOption(evil);
    await bookButton().click();
    await booked().waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(375);
    await page.locator("#manage-link").click();
    await page.getByText("Cancel the appointment").first().click();
    await page.getByLabel(/^Reason/).fill(evil);
    await page.getByRole("button", { name: "Cancel the appointment" }).click();
    await page.getByRole("heading", { name: "Your appointment was cancelled" }).waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.locator(".given").allTextContents()).toEqual([evil, evil, evil]);
  });
});
