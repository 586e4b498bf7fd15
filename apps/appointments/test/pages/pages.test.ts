import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type BookingWorld, openBookingWorld } from "../bookings/support/booking-world.ts";
import { dialects } from "../support/world.ts";

const ten = "2031-03-04T10:00:00.000Z";
const dayMs = 86_400_000;
let world: BookingWorld;

async function open(path: string): Promise<{ status: number; headers: Headers; text: string }> {
  const response = await fetch(world.url + path, { redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** What a person would read: tags away, entities as they were written. */
const words = (text: string): string =>
  text
    .replaceAll(/<(head|template|noscript)[\s>].*?<\/\1>/gs, " ")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ");

function expectPageHeaders(headers: Headers): void {
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|nonce|http|\*/);
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("x-robots-tag")).toBe("noindex");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("content-type")).toBe("text/html; charset=UTF-8");
}

async function invited(fields: Record<string, unknown> = {}, invitation: Record<string, unknown> = {}) {
  const host = await world.host({ name: "Ada Lovelace" });
  const eventType = await world.eventType([host], { name: "First talk", ...fields });
  return { host, eventType, ...(await world.invite(host, eventType.id, invitation)) };
}

describe.each(dialects)("the pages of customers on %s", (dialect) => {
  beforeEach(async () => {
    world = await openBookingWorld(dialect);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  test("an open invitation says what it is for, with nothing inline and nothing from elsewhere", async () => {
    const { token } = await invited(
      { location_type: "in_person", location_value: "Room 7", duration_minutes: 90 },
      { recipient: { name: "Grace Hopper", email: "grace@example.com" } },
    );
    const page = await open(`/s/${token}`);
    expect(page.status).toBe(200);
    expectPageHeaders(page.headers);
    const read = words(page.text);
    for (const part of [
      "First talk",
      "Grace Hopper",
      "Ada Lovelace",
      "1 hour 30 minutes",
      "In person: Room 7",
    ])
      expect(read).toContain(part);
    expect(page.text).not.toMatch(/<style|<script(?! type="module" src="\/)[^>]*>|\son\w+=|\sstyle=/i);
    for (const [, address] of page.text.matchAll(/\s(?:src|href|action)="([^"]*)"/g))
      expect(address).toMatch(/^\/pages\/[0-9a-f]{16}\/[a-z]+\.(js|css|svg)$/);
    // The token is in the address only: nothing that reads the page gets it.
    expect(page.text).not.toContain(token);
    // Nobody's address is anybody's business.
    expect(page.text).not.toContain("@example.com");
  });

  test("used, cancelled, expired, unknown and withdrawn invitations each say what happened", async () => {
    const { token, id, host, eventType } = await invited();
    const expect410 = async (text: string) => {
      const page = await open(`/s/${token}`);
      expect([page.status, words(page.text)]).toEqual([410, expect.stringContaining(text)]);
      expectPageHeaders(page.headers);
      expect(page.text).not.toContain("First talk");
      return page;
    };
    for (const unknown of ["0".repeat(64), token.toUpperCase(), "abc", "%00", "..%2f..%2fhealthz"]) {
      const page = await open(`/s/${unknown}`);
      expect([unknown, page.status]).toEqual([unknown, 404]);
      expect(words(page.text)).toContain("There is no such invitation");
      expectPageHeaders(page.headers);
    }
    await host.patch(`/v1/event-types/${eventType.id}`, { is_active: false });
    await expect410("not offered at present");
    await host.patch(`/v1/event-types/${eventType.id}`, { is_active: true });
    expect((await open(`/s/${token}`)).status).toBe(200);

    await world.book({ id, token }, ten);
    await expect410("This invitation was used");

    const second = await world.invite(host, eventType.id);
    await host.post(`/v1/scheduling-invitations/${second.id}/cancel`);
    expect(words((await open(`/s/${second.token}`)).text)).toContain("This invitation was cancelled");

    const expiresAt = new Date(world.clock.now().getTime() + 60_000).toISOString();
    const third = await world.invite(host, eventType.id, { expires_at: expiresAt });
    world.clock.advance(59_999);
    expect((await open(`/s/${third.token}`)).status).toBe(200);
    // From the instant, before any sweep.
    world.clock.advance(1);
    const page = await open(`/s/${third.token}`);
    expect([page.status, words(page.text)]).toEqual([410, expect.stringContaining("has expired")]);
  });

  test("the page of a booking shows it in the customer's zone, with answers and a link; then moved, cancelled, over", async () => {
    const { id, token } = await invited({
      location_type: "link",
      location_value: "https://meet.example.com/a?b=1&c=2",
      questions: [{ label: "What about?", type: "text", required: true }],
    });
    const question = await world.db.selectFrom("questions").select("id").executeTakeFirstOrThrow();
    const booking = await world.book({ id, token }, ten, {
      timezone: "America/New_York",
      answers: [{ question_id: question.id, value: "Compilers\nand more" }],
    });
    const page = await open(booking.manage);
    expect(page.status).toBe(200);
    expectPageHeaders(page.headers);
    const read = words(page.text);
    expect(read).toMatch(/Tuesday,? 4 March 2031, 05:00 to 05:30, America\/New_York \(GMT-5\)/);
    for (const part of ["Ada Lovelace", "Grace Hopper", "What about?", "Compilers and more"])
      expect(read).toContain(part);
    expect(page.text).toContain(
      '<a href="https://meet.example.com/a?b=1&amp;c=2" rel="noopener noreferrer">',
    );
    expect(page.text).not.toContain(booking.manage.slice("/manage/".length));

    await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-03-05T12:00:00Z" });
    const moved = words((await open(`${booking.manage}?done=moved`)).text);
    expect(moved).toContain("Your appointment was moved");
    expect(moved).toMatch(/Wednesday,? 5 March 2031, 07:00 to 07:30/);

    await world.customer.post(`${booking.manage}/cancel`, { reason: "Ill\n& tired" });
    const cancelled = await open(`${booking.manage}?done=moved`);
    expect(cancelled.status).toBe(200);
    expect(words(cancelled.text)).toContain("Your appointment was cancelled");
    expect(words(cancelled.text)).toContain("Ill &amp; tired");
    expect(cancelled.text).not.toContain("<form");
    expect(words(cancelled.text)).not.toContain("was moved");
  });
});

describe("the pages of customers", () => {
  beforeEach(async () => {
    world = await openBookingWorld("sqlite");
  });
  afterEach(() => world[Symbol.asyncDispose]());

  test("whom one will meet follows the routing, and what lets one into a meeting is not shown before", async () => {
    const ada = await world.host({ name: "Ada" });
    const bob = await world.host({ name: "Bob" });
    const cyd = await world.host({ name: "Cyd" });
    const eventType = await world.eventType(
      [
        { user: ada, role: "required" },
        { user: bob, role: "rotation" },
        { user: cyd, role: "rotation" },
      ],
      { routing_mode: "round_robin", location_type: "link", location_value: "https://meet.example.com/room" },
    );
    const { token } = await world.invite(ada, eventType.id);
    const page = await open(`/s/${token}`);
    expect(words(page.text)).toContain("With Ada and Bob or Cyd");
    expect(page.text).not.toContain("meet.example.com");
  });

  test("an invitation whose period is over says that no time is left", async () => {
    const { token } = await invited({}, { available_from: "2031-03-03", available_until: "2031-03-05" });
    expect((await open(`/s/${token}`)).text).toContain('id="schedule"');
    world.clock.advance(3 * dayMs);
    const page = await open(`/s/${token}`);
    expect(words(page.text)).toContain("No time is left");
    expect(page.text).not.toContain('id="schedule"');
  });

  test("a booking that has begun cannot be changed on its page; after 60 days, and for no token, there is none", async () => {
    const { id, token } = await invited();
    const booking = await world.book({ id, token }, ten);
    world.clock.advance(Date.parse(ten) - world.clock.now().getTime());
    const begun = await open(booking.manage);
    expect(words(begun.text)).toContain("It has begun or is over");
    expect(begun.text).not.toContain("<form");
    world.clock.advance(60 * dayMs);
    for (const path of [booking.manage, `/manage/${"f".repeat(64)}`, "/manage/x"]) {
      const page = await open(path);
      expect([page.status, words(page.text)]).toEqual([404, expect.stringContaining("no such appointment")]);
      expectPageHeaders(page.headers);
    }
  });

  test("a link that was made for an earlier time of the booking is not shown for its present one", async () => {
    const { id, token, host } = await invited();
    const booking = await world.book({ id, token }, ten);
    const put = (body: object) => host.put(`/v1/bookings/${booking.id}/location`, body);
    expect((await put({ location_value: "https://meet.example.com/one" })).status).toBe(200);
    expect((await open(booking.manage)).text).toContain("meet.example.com/one");
    await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-03-05T12:00:00Z" });
    await put({ location_value: "", revision: 2 });
    await put({ location_value: "https://meet.example.com/late", revision: 1 });
    expect((await open(booking.manage)).text).not.toContain("meet.example.com/late");
  });

  test("script in every text that somebody gives is text", async () => {
    const evil = (where: string): string =>
      `"'><script>alert("${where}")</script><img src=x onerror=alert(1)>&amp;`;
    const host = await world.host({ name: evil("host") });
    const refused = await host.post("/v1/event-types", { slug: evil("slug"), name: "x", hosts: [] });
    expect(refused.status).toBe(400);
    const eventType = await world.eventType([host], {
      name: evil("name"),
      location_type: "in_person",
      location_value: evil("place"),
      questions: [
        { label: evil("text"), type: "text" },
        { label: evil("select"), type: "select", options: [evil("option"), "other"] },
        { label: evil("checkbox"), type: "checkbox" },
      ],
    });
    const { id, token } = await world.invite(host, eventType.id, {
      recipient: { name: evil("recipient"), email: "grace@example.com" },
    });
    const harmless = (text: string, places: readonly string[]) => {
      for (const place of places) expect(text).toContain(`alert(&quot;${place}&quot;)`);
      expect(text.match(/<script/g)).toHaveLength(1);
      expect(text).not.toContain("<img");
    };
    harmless((await open(`/s/${token}`)).text, [
      "host",
      "name",
      "place",
      "text",
      "select",
      "option",
      "checkbox",
      "recipient",
    ]);
    const questions = await world.db.selectFrom("questions").selectAll().orderBy("position").execute();
    const booking = await world.book({ id, token }, ten, {
      answers: [
        { question_id: questions[0]!.id, value: evil("answer") },
        { question_id: questions[1]!.id, value: evil("option") },
      ],
    });
    harmless((await open(`${booking.manage}?done=${encodeURIComponent(evil("query"))}`)).text, [
      "host",
      "name",
      "place",
      "answer",
      "option",
      "recipient",
    ]);
    await world.customer.post(`${booking.manage}/cancel`, { reason: evil("reason") });
    harmless((await open(booking.manage)).text, ["reason"]);
  });

  test("a place that is not a web address never becomes a link", async () => {
    const { id, token } = await invited({ location_type: "link", location_value: "javascript:alert(1)" });
    const booking = await world.book({ id, token }, ten);
    const page = await open(booking.manage);
    expect(words(page.text)).toContain("Online: javascript:alert(1)");
    expect(page.text).not.toContain("<a ");
  });

  test("no token comes into the log, and a failure of ours is a page that tells nothing of it", async () => {
    const { id, token } = await invited();
    const booking = await world.book({ id, token }, ten);
    await open(`/s/${token}`);
    await open(booking.manage);
    await world.sql("ALTER TABLE booking_manage_tokens RENAME TO gone_away");
    const page = await open(booking.manage);
    expect([page.status, words(page.text)]).toEqual([500, expect.stringContaining("Something went wrong")]);
    expectPageHeaders(page.headers);
    expect(page.text).not.toMatch(/booking_manage_tokens|req_/);
    const log = world.log.join("\n");
    expect(log).toMatch(/GET \/manage\S* 500/);
    expect(log).not.toContain(token);
    expect(log).not.toContain(booking.manage.slice("/manage/".length));
  });
});

describe("what belongs to the pages", () => {
  test("too many reads get a page that says so", async () => {
    world = await openBookingWorld("sqlite", { start: { tokenRouteLimits: { reads: 2, submissions: 9 } } });
    await open(`/s/${"0".repeat(64)}`);
    await open(`/manage/${"0".repeat(64)}`);
    const page = await open(`/s/${"0".repeat(64)}`);
    expect([page.status, words(page.text)]).toEqual([429, expect.stringContaining("Too many requests")]);
    expect(Number(page.headers.get("retry-after"))).toBeGreaterThan(0);
    expectPageHeaders(page.headers);
    // A program gets a document for programs.
    const slots = await open(`/v1/schedule/${"0".repeat(64)}/slots`);
    expect([slots.status, slots.headers.get("content-type")]).toEqual([429, "application/problem+json"]);
    world.clock.advance(60_000);
    expect((await open(`/s/${"0".repeat(64)}`)).status).toBe(404);
    await world[Symbol.asyncDispose]();
  });

  test("files are kept for ever under their version, not at all under another, and are not counted as reads", async () => {
    world = await openBookingWorld("sqlite", { start: { tokenRouteLimits: { reads: 1, submissions: 9 } } });
    const { text } = await open(`/s/${"0".repeat(64)}`);
    const style = /href="(\/pages\/[0-9a-f]{16}\/pages\.css)"/.exec(text)![1]!;
    for (const name of ["pages.css", "schedule.js", "manage.js", "picker.js", "icon.svg"]) {
      const file = await open(style.replace("pages.css", name));
      expect([name, file.status]).toEqual([name, 200]);
      expect(file.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(file.headers.get("content-type")).toMatch(/^(text\/(css|javascript)|image\/svg\+xml)/);
    }
    // A page of another version that is still open, during a deploy.
    const old = await open("/pages/0123456789abcdef/schedule.js");
    expect([old.status, old.headers.get("cache-control")]).toEqual([200, "no-store"]);
    for (const name of ["tsconfig.json", "times.d.ts", "..%2fpage-routes.ts", "x.js"])
      expect((await open(style.replace("pages.css", name))).status).toBe(404);
    await world[Symbol.asyncDispose]();
  });
});
