import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { linkIn, place, running, shell } from "../support/npm-start.ts";
import { describeInBrowser, watchedPage } from "./support/browser.ts";

/** The webhook of this type on the receiver page, once it is there. */
async function received(receiver: Page, type: string) {
  const article = receiver.locator("article").filter({ has: receiver.getByRole("heading", { name: type }) });
  await article.waitFor();
  return {
    count: await article.count(),
    text: (await article.textContent()) ?? "",
    body: JSON.parse((await article.locator("pre").textContent())!) as {
      id: string;
      event: string;
      data: Record<string, unknown>;
    },
  };
}

describeInBrowser("npm start, in a browser", () => {
  test("booking, moving and cancelling the example shows three verified webhooks with revisions 1, 2 and 3", async () => {
    const environment = await place("sqlite");
    const first = await running(environment);
    const link = linkIn(first.output)!;
    const key = /^ {2}(hwk_\S+)$/m.exec(first.output)![1]!;
    const customer = await watchedPage(new URL(link).origin);
    const receiver = await watchedPage(first.url);
    await receiver.page.goto(`${first.url}/receiver`);

    const { page } = customer;
    await page.goto(link);
    await page.locator("input[name=time]").first().check();
    await page.getByLabel(/^What would you like to talk about/).fill("Compilers");
    await page.getByRole("button", { name: "Book this time" }).click();
    await page.getByRole("heading", { name: "Your appointment is booked" }).waitFor();
    const manage = await page.locator("#manage-link").getAttribute("href");
    const created = await received(receiver.page, "booking.created");

    await page.locator("#manage-link").click();
    await page.getByText("Move to another time").click();
    // On the last day of a month that is shown, nothing may be left but what is booked.
    const days = page.locator("input[name=day]");
    await days.first().waitFor();
    if ((await days.count()) === 1) {
      await page.getByRole("button", { name: "Next month" }).click();
      await days.nth(1).waitFor();
    }
    await days.last().check();
    await page.locator("input[name=time]").last().check();
    await page.getByRole("button", { name: "Move to this time" }).click();
    await page.getByText("Your appointment was moved.").waitFor();
    const moved = await received(receiver.page, "booking.rescheduled");

    await page.getByText("Cancel the appointment").first().click();
    await page.getByLabel(/^Reason/).fill("Away");
    await page.getByRole("button", { name: "Cancel the appointment" }).click();
    await page.getByRole("heading", { name: "Your appointment was cancelled" }).waitFor();
    const cancelled = await received(receiver.page, "booking.cancelled");

    for (const [revision, webhook] of [created, moved, cancelled].entries()) {
      expect(webhook.count).toBe(1);
      expect(webhook.text).toContain("Standard Webhooks signature verified");
      expect(webhook.text).toContain("Body signature verified");
      expect(webhook.text).toContain("First time");
      expect(webhook.text).toMatch(new RegExp(`Revision\\s*${revision + 1}\\b`));
      expect(webhook.body.data.revision).toBe(revision + 1);
      expect(webhook.body.data.external).toMatchObject({ reference: "CASE-1042" });
    }
    expect(moved.body.data.previous_start_at).toBe(created.body.data.start_at);
    expect(cancelled.body.data).toMatchObject({
      status: "cancelled",
      start_at: moved.body.data.start_at,
      cancellation_reason: "Away",
    });
    // The lifecycle of the invitation is there too.
    expect((await received(receiver.page, "scheduling_invitation.booked")).count).toBe(1);
    const whole = await receiver.page.content();
    expect(whole).not.toContain("NOT verified");
    // No token in what was sent, nor in what was logged after the link was printed.
    for (const token of [link, manage!].map((address) => new URL(address).pathname.split("/")[2]!)) {
      expect(whole).not.toContain(token);
      expect(first.output.split(token).length - 1).toBe(link.includes(token) ? 1 : 0);
    }
    expect([...customer.faults, ...receiver.faults.filter((fault) => !fault.startsWith("referrer"))]).toEqual(
      [],
    );
    await customer.close();
    await receiver.close();
    first.child.kill("SIGTERM");
    expect(await first.ended()).toBe(0);

    // The second start says that the link was shown, and how to get another one.
    const second = await running(environment);
    expect(linkIn(second.output)).toBeUndefined();
    expect(second.output).not.toMatch(/[0-9a-f]{64}/);
    const command = /^ {2}(curl .*scheduling-invitations)$/m.exec(second.output)![1]!;
    const answer = JSON.parse(await shell(command, { HOOKWELL_API_KEY: key })) as { scheduling_url: string };
    expect((await fetch(answer.scheduling_url)).status).toBe(200);
    second.child.kill("SIGTERM");
    expect(await second.ended()).toBe(0);
  });
});
