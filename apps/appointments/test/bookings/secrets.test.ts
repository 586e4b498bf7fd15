import { createHash } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { dialects } from "../support/world.ts";
import { type BookingWorld, ok, openBookingWorld } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;

/** Tables whose every column is looked through, beside the log. Tokens have theirs, with hashes only. */
const ofHookwell = ["event", "body", "delivery", "attempt", "lane", "subscription"];
const ofApp = [
  "bookings",
  "booking_hosts",
  "booking_attendees",
  "booking_answers",
  "scheduling_invitations",
  "side_effects",
  "received_webhooks",
] as const;

async function everyText(world: BookingWorld): Promise<Map<string, string>> {
  const places = new Map([["the log", world.log.join("\n")]]);
  const names = [...ofHookwell.map((name) => world.table(name)), ...ofApp];
  for (const name of names) {
    const [schema, table] = name.includes(".") ? name.split(".") : [undefined, name];
    const from = schema === undefined ? sql.table(table!) : sql.table(`${schema}.${table}`);
    const { rows } = await sql<Record<string, unknown>>`SELECT * FROM ${from}`.execute(world.db);
    const words = rows.flatMap((row) =>
      Object.values(row).map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value),
      ),
    );
    places.set(name, words.join("\n"));
  }
  return places;
}

test.each(dialects)(
  "bookings 72: on %s a full run leaves no token, hash, address of a page or secret in snapshots, bodies, errors and logs",
  async (dialect) => {
    await using world = await openBookingWorld(dialect);
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const all = [
      "host_email",
      "attendee_name",
      "attendee_email",
      "attendee_timezone",
      "answers",
      "event_type_name",
      "host_name",
    ];
    const hooks = [
      await world.hook(host, { fields: all }),
      await world.hook(host, { events: ["booking.*", "scheduling_invitation.*"] }, () => ({
        status: 500,
        body: "no, thank you",
      })),
      await world.hook(host, {}, () => "reset"),
    ];
    const invitations = [];
    for (const _ of [1, 2, 3]) invitations.push(await world.invite(host, eventTypeId));
    const [used, cancelled, unused] = invitations;
    const tokens = invitations.map(({ token }) => token);
    const secrets = [...hooks.map(({ secret }) => secret), host.key, world.key];

    // Reads and submissions, good, bad and malformed, on every route with a token in it.
    const booking = await world.book(used!, at("10:00"));
    tokens.push(booking.manage.slice("/manage/".length));
    const oneMore = `${unused!.token.slice(1)}0`;
    for (const token of [used!.token, unused!.token, oneMore, "short", unused!.token.toUpperCase()]) {
      await world.customer.get(`/v1/schedule/${token}/slots?from=2031-03-04&to=2031-03-04&tz=UTC`);
      await world.tryBook(token, at("10:00"));
      await world.customer.post(`/v1/schedule/${token}/book`, { nonsense: true });
      await world.customer.get(`/v1/schedule/${token}/nothing`);
      await world.customer.get(`/manage/${token}/slots`);
      await world.customer.post(`/manage/${token}/cancel`, { reason: 7 });
      await fetch(`${world.url}/s/${token}`);
      await fetch(`${world.url}/manage/${token}`);
      await fetch(`${world.url}/%73/${token}`);
      await fetch(`${world.url}//manage//${token}`);
    }
    ok(await world.customer.get(`${booking.manage}/slots?from=2031-03-05&to=2031-03-05&tz=UTC`), 200);
    // A fault of the database with the token's request in the log.
    for (const fault of ["breakCapture", "breakCommit"] as const) {
      const mend = await world[fault]();
      expect((await world.tryBook(unused!.token, at("14:00"))).status).toBe(503);
      expect((await world.customer.post(`${booking.manage}/cancel`)).status).toBe(500);
      await mend();
    }
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at("11:00") }), 200);
    ok(await world.customer.post(`${booking.manage}/cancel`, { reason: "Ill" }), 200);
    ok(await host.post(`/v1/scheduling-invitations/${cancelled!.id}/cancel`), 200);
    for (const seconds of [0, 60, 300, 3_600]) {
      world.clock.advance(seconds * 1_000);
      await world.poll();
    }

    const places = await everyText(world);
    for (const hook of hooks)
      places.set(`requests to ${hook.id}`, hook.requests.map(({ body }) => body.toString("utf8")).join("\n"));
    expect(hooks[0]!.requests).toHaveLength(3);
    expect(places.get(world.table("attempt"))).toContain("no, thank you");
    const forbidden = [
      ...tokens,
      ...tokens.map((token) => createHash("sha256").update(token).digest("hex")),
      ...secrets,
      "/s/",
      "/v1/schedule/",
      "/manage/",
      "whsec_",
    ];
    for (const [place, text] of places)
      for (const word of forbidden)
        expect(text.toLowerCase().includes(word.toLowerCase()), `${word} in ${place}`).toBe(false);

    // What the request log shows instead.
    const log = places.get("the log")!;
    expect(log).toMatch(/req_\S+ POST \/v1\/schedule:\[token\]\/book 201/);
    expect(log).toMatch(/req_\S+ POST \/v1\/schedule:\[token\]\/book 410/);
    expect(log).toMatch(/req_\S+ GET \/v1\/schedule:\[token\]\/slots 200/);
    expect(log).toMatch(/req_\S+ POST \/manage:\[token\]\/reschedule 200/);
    expect(log).toMatch(/req_\S+ GET \/manage:\[token\] \d+/);
    expect(log).toMatch(/req_\S+ POST \/v1\/schedule:\[token\]\/book: .*disk is full/);
  },
);
