import { expect, test } from "vitest";
import { redact } from "../../src/http/redact.ts";
import { ok, openBookingWorld, testClock } from "./support/booking-world.ts";

const token = "ab".repeat(32);

test("every answer below a token's path is kept by nobody: no-store, no-referrer, noindex", async () => {
  await using world = await openBookingWorld("sqlite", {
    start: { tokenRouteLimits: { reads: 20, submissions: 4 } },
  });
  const host = await world.host();
  const { id: eventTypeId } = await world.eventType([host]);
  const invited = await world.invite(host, eventTypeId);
  const booking = await world.book(invited, "2031-03-04T10:00:00Z");
  const answers = [
    await fetch(`${world.url}/v1/schedule/${invited.token}/slots`),
    await fetch(`${world.url}/v1/schedule/${token}/slots`),
    await fetch(`${world.url}/v1/schedule/${token}/nothing`),
    await fetch(`${world.url}/s/${invited.token}`),
    await fetch(`${world.url}/s/${token}`),
    await fetch(`${world.url}${booking.manage}`),
    await fetch(`${world.url}${booking.manage}/slots`),
    await fetch(`${world.url}/manage/${token}`),
    await fetch(`${world.url}${booking.manage}/cancel`, { method: "POST" }),
    await fetch(`${world.url}${booking.manage}/cancel`, { method: "POST" }),
    await fetch(`${world.url}/v1/schedule/${token}/book`, { method: "POST" }),
    // Over the limit of submissions.
    await fetch(`${world.url}/v1/schedule/${token}/book`, { method: "POST" }),
  ];
  expect(answers.map(({ status }) => status).slice(-4)).toEqual([200, 409, 404, 429]);
  for (const answer of answers) {
    expect(answer.headers.get("cache-control"), answer.url).toBe("no-store");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("x-robots-tag")).toContain("noindex");
    await answer.body?.cancel();
  }
});

test("so is every answer that a new token is in: an invitation, an ordinary booking", async () => {
  await using world = await openBookingWorld("sqlite");
  const host = await world.host();
  const { id, slug } = await world.eventType([host]);
  const invitation = await host.post("/v1/scheduling-invitations", {
    event_type_id: id,
    recipient: { name: "Ada", email: "ada@example.com" },
    expires_at: "2031-05-05T00:00:00Z",
  });
  const booking = await host.post("/v1/bookings", {
    event_type_slug: slug,
    start_at: "2031-03-04T15:00:00Z",
    timezone: "Asia/Tokyo",
    name: "Ada",
    email: "ada@example.com",
  });
  expect(ok(invitation, 201).body.token).toHaveLength(64);
  expect(ok(booking, 201).body.manage_token).toHaveLength(64);
  for (const { headers } of [invitation, booking]) {
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-robots-tag")).toBe("noindex");
  }
});

test("an address has 60 reads and 20 submissions a minute, over all tokens, and says when to come back", async () => {
  const clock = testClock();
  await using world = await openBookingWorld("sqlite", {
    testClock: clock,
    start: { tokenRouteLimits: { reads: 60, submissions: 20 } },
  });
  const read = (id: number) => world.customer.get(`/v1/schedule/${String(id).padStart(64, "0")}/slots`);
  const submit = (id: number) => world.customer.post(`/manage/${String(id).padStart(64, "0")}/cancel`);
  for (let id = 0; id < 60; id++) expect((await read(id)).status).toBe(404);
  for (let id = 0; id < 20; id++) expect((await submit(id)).status).toBe(404);
  clock.advance(20_000);
  for (const answer of [await read(60), await submit(20)]) {
    expect(answer).toMatchObject({ status: 429, body: { code: "too_many_requests" } });
    expect(answer.headers.get("retry-after")).toBe("40");
  }
  // Keys are not limited by it.
  ok(await world.admin.get("/v1/users/me"), 200);
  clock.advance(40_000);
  expect([(await read(60)).status, (await submit(20)).status]).toEqual([404, 404]);
});

test.each([
  ["nobody trusted: the header counts for nothing", undefined, ["203.0.113.7", "203.0.113.8"], 429],
  ["a trusted proxy: clients are told apart", "127.0.0.1", ["203.0.113.7", "203.0.113.8"], 404],
  [
    "a forged first entry does not help",
    "127.0.0.0/8",
    ["1.1.1.1, 203.0.113.7", "2.2.2.2, 203.0.113.7"],
    429,
  ],
  [
    "proxies behind each other",
    "127.0.0.1, 10.0.0.0/8",
    ["203.0.113.7, 10.0.0.1", "203.0.113.8, 10.0.0.2"],
    404,
  ],
  ["nonsense is the proxy itself", "127.0.0.1", ["<script>", "unknown"], 429],
] as const)("X-Forwarded-For with %s", async (_, trustProxy, [first, second], status) => {
  await using world = await openBookingWorld("sqlite", {
    start: {
      tokenRouteLimits: { reads: 2, submissions: 2 },
      ...(trustProxy === undefined ? {} : { trustProxy }),
    },
  });
  const read = async (forwarded: string): Promise<number> =>
    (
      await fetch(`${world.url}/v1/schedule/${token}/slots`, {
        headers: { "x-forwarded-for": forwarded },
      })
    ).status;
  expect([await read(first), await read(first), await read(first)]).toEqual([404, 404, 429]);
  expect(await read(second)).toBe(status);
});

test.each([
  [`/s/${token}`, "/s:[token]"],
  [`/manage/${token}/cancel`, "/manage:[token]/cancel"],
  [`/v1/schedule/${token}/slots?tz=UTC`, "/v1/schedule:[token]/slots?tz=UTC"],
  [`//s//${token}/x`, "//s:[token]/x"],
  [`/%73/${token}`, "/s:[token]"],
  [`/manage/too-short`, "/manage:[token]"],
  [
    `no such row: ${token.toUpperCase()} (https://book.example.com/s/${token})`,
    "no such row: [token] (https://book.example.com/s:[token]",
  ],
  ["/v1/users/42", "/v1/users/42"],
])("redact(%j)", (text, expected) => {
  expect(redact(text)).toContain(expected);
  expect(redact(text).toLowerCase()).not.toContain(token);
});
