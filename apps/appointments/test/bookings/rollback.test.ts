import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { issueManageToken } from "../../src/bookings/manage-token.ts";
import type { Answered } from "../support/client.ts";
import { dialects, type UserClient } from "../support/world.ts";
import {
  type BookedBooking,
  type BookingWorld,
  type Invited,
  ok,
  openBookingWorld,
} from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;
const moved = { start_at: at("15:00") };

interface Scene {
  readonly host: UserClient;
  readonly eventTypeId: string;
  readonly invited: Invited;
  readonly booking: BookedBooking;
}

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** Everything that the bookings half stores; equal = nothing was changed anywhere. */
  async function everything(): Promise<Record<string, unknown[]>> {
    const tables = [
      "bookings",
      "booking_hosts",
      "booking_attendees",
      "booking_answers",
      "booking_manage_tokens",
      "scheduling_invitations",
      "scheduling_invitation_tokens",
      "side_effects",
    ] as const;
    const found: Record<string, unknown[]> = {};
    for (const table of tables) {
      const rows = await world.db.selectFrom(table).selectAll().execute();
      found[table] = rows.map((row) => JSON.stringify(row)).sort();
    }
    found.events = (await world.events()).map((event) => event.id);
    return found;
  }

  async function scene(): Promise<Scene> {
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host], {
      questions: [{ label: "Why?", type: "text" }],
    });
    const invited = await world.invite(host, eventTypeId);
    const booking = await world.book(invited, at("10:00"));
    return { host, eventTypeId, invited, booking };
  }

  const ways: Record<string, (scene: Scene) => Promise<Answered>> = {
    "reschedule by the customer": ({ booking }) => world.customer.post(`${booking.manage}/reschedule`, moved),
    "reschedule by the host": ({ host, booking }) =>
      host.patch(`/v1/bookings/${booking.id}/reschedule`, moved),
    "cancel by the customer": ({ booking }) =>
      world.customer.post(`${booking.manage}/cancel`, { reason: "No time" }),
    "cancel by the host": ({ host, booking }) => host.post(`/v1/bookings/${booking.id}/cancel`),
    "cancel by an admin": ({ booking }) => world.admin.post(`/v1/bookings/${booking.id}/cancel`),
  };

  describe.each([
    ["the outbox insert fails", "14", "breakCapture"],
    ["COMMIT fails", "17", "breakCommit"],
  ] as const)("when %s", (_, number, fault) => {
    test(`bookings ${number}: a booking is 503 and leaves nothing; the same token books afterwards`, async () => {
      const host = await world.host();
      const { id: eventTypeId } = await world.eventType([host], {
        questions: [{ label: "Why?", type: "text", required: true }],
      });
      const { body } = await host.get(`/v1/event-types/${eventTypeId}`);
      const [question] = (body as unknown as { questions: { id: string }[] }).questions;
      const answers = [{ question_id: question!.id, value: "Because" }];
      const invited = await world.invite(host, eventTypeId);
      const before = await everything();
      const mend = await world[fault]();
      try {
        const refused = await world.tryBook(invited.token, at("10:00"), { answers });
        expect(refused).toMatchObject({ status: 503, body: { code: "event_not_captured" } });
        expect(refused.headers.get("retry-after")).toBe("1");
        expect(await everything()).toEqual(before);
      } finally {
        await mend();
      }
      const booked = await world.book(invited, at("10:00"), { answers });
      expect(await world.bookingEvents(booked.id)).toHaveLength(1);
      expect(await world.invitationEvents(invited.id)).toHaveLength(2);
    });

    const numbered = Object.entries(ways).map(([name, walk]) => {
      const own = name.startsWith("reschedule") ? "15" : "16";
      return [`bookings ${number === "14" ? own : number}: ${name}`, walk] as const;
    });
    test.each(numbered)("%s is 500 and changes nothing", async (_, walk) => {
      const made = await scene();
      world.clock.advance(1_000);
      const before = await everything();
      const mend = await world[fault]();
      try {
        expect(await walk(made)).toMatchObject({ status: 500, body: { code: "change_not_recorded" } });
        expect(await everything()).toEqual(before);
        expect(await world.bookingRow(made.booking.id)).toMatchObject({
          status: "confirmed",
          revision: 1,
          start_at: "2031-03-04T10:00:00.000Z",
        });
      } finally {
        await mend();
      }
      ok(await walk(made), 200);
      expect(await world.bookingEvents(made.booking.id)).toHaveLength(2);
    });
  });

  test("bookings 18: cancelling twice is 200, then 409, and one event", async () => {
    const { host, booking } = await scene();
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    expect((await world.customer.post(`${booking.manage}/cancel`)).status).toBe(409);
    expect((await host.post(`/v1/bookings/${booking.id}/cancel`)).status).toBe(409);
    expect((await world.admin.post(`/v1/bookings/${booking.id}/cancel`)).status).toBe(409);
    expect(await world.bookingEvents(booking.id)).toHaveLength(2);
  });

  test("bookings 19: of cancellations by host, admin and customer at once, one is made", async () => {
    const { host, booking } = await scene();
    const answers = await Promise.all([
      host.post(`/v1/bookings/${booking.id}/cancel`),
      world.customer.post(`${booking.manage}/cancel`),
      world.admin.post(`/v1/bookings/${booking.id}/cancel`),
    ]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409, 409]);
    expect(await world.bookingEvents(booking.id)).toHaveLength(2);
  });

  test("bookings 19: a move and a cancellation at once are two revisions, or the move comes too late", async () => {
    const { booking } = await scene();
    const [move, cancel] = await Promise.all([
      world.customer.post(`${booking.manage}/reschedule`, moved),
      world.customer.post(`${booking.manage}/cancel`),
    ]);
    expect(cancel.status).toBe(200);
    expect([200, 409]).toContain(move.status);
    const events = await world.bookingEvents(booking.id);
    expect(events).toHaveLength(move.status === 200 ? 3 : 2);
    expect(events.map((event) => event.revision)).toEqual(events.map((_, index) => index + 1));
    expect(events.at(-1)!.type).toBe("booking.cancelled");
  });

  test("bookings 20: a cancelled booking does not move", async () => {
    const { host, booking } = await scene();
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    const before = await everything();
    expect((await world.customer.post(`${booking.manage}/reschedule`, moved)).status).toBe(409);
    expect((await host.patch(`/v1/bookings/${booking.id}/reschedule`, moved)).status).toBe(409);
    const same = { start_at: booking.start_at };
    expect((await host.patch(`/v1/bookings/${booking.id}/reschedule`, same)).status).toBe(409);
    expect(await everything()).toEqual(before);
  });

  test("bookings 21: a move to the interval it has changes nothing, in any spelling", async () => {
    const { host, booking } = await scene();
    world.clock.advance(60_000);
    const before = await everything();
    for (const start of [booking.start_at, "2031-03-04T10:00:00+00:00", "2031-03-04T15:45:00.000+05:45"]) {
      const byCustomer = await world.customer.post(`${booking.manage}/reschedule`, { start_at: start });
      expect(ok(byCustomer, 200).body.start_at).toBe(booking.start_at);
      ok(await host.patch(`/v1/bookings/${booking.id}/reschedule`, { start_at: start }), 200);
    }
    expect(await everything()).toEqual(before);
  });

  test("bookings 22: a move that is refused writes nothing", async () => {
    const { host, eventTypeId, booking } = await scene();
    const window = {
      available_from: "2031-03-04",
      available_until: "2031-03-04",
      availability_timezone: "UTC",
    };
    const inWindow = await world.book(await world.invite(host, eventTypeId, window), at("11:00"));
    const before = await everything();
    const refusals: [string, BookedBooking, object][] = [
      ["busy", booking, { start_at: at("11:00") }],
      ["off the grid", booking, { start_at: at("11:40") }],
      ["a fraction of a second off", booking, { start_at: "2031-03-04T12:00:00.0004Z" }],
      ["before the hours", booking, { start_at: at("08:30") }],
      ["beyond the hours", booking, { start_at: at("17:00") }],
      ["outside the window", inWindow, { start_at: "2031-03-05T11:00:00Z" }],
      ["too far away", booking, { start_at: "2031-12-04T11:00:00Z" }],
      ["another duration", booking, { start_at: at("13:00"), end_at: at("14:00") }],
      ["over", booking, { start_at: "2031-03-03T07:00:00Z" }],
    ];
    for (const [why, which, body] of refusals) {
      const byCustomer = await world.customer.post(`${which.manage}/reschedule`, body);
      expect(byCustomer.status, why).toBe(409);
      const byStaff = await host.patch(`/v1/bookings/${which.id}/reschedule`, body);
      expect(byStaff.status, why).toBe(why === "over" ? 400 : 409);
    }
    expect(await everything()).toEqual(before);
  });

  test("bookings 22: of two bookings that move to one time at once, one moves", async () => {
    const { host, eventTypeId, booking } = await scene();
    const other = await world.book(await world.invite(host, eventTypeId), at("12:00"));
    const answers = await Promise.all(
      [booking, other, booking, other].map((each) => world.customer.post(`${each.manage}/reschedule`, moved)),
    );
    const counts = answers.map((answer) => answer.status).sort();
    // The winner's second request finds its booking there already.
    expect(counts.filter((status) => status === 409)).toHaveLength(2);
    const events = [...(await world.bookingEvents(booking.id)), ...(await world.bookingEvents(other.id))];
    expect(events.filter((event) => event.type === "booking.rescheduled")).toHaveLength(1);
    // Whoever moved freed the hour it had.
    const free = counts.length === 4 && answers[0]!.status === 200 ? at("10:00") : at("12:00");
    await world.book(await world.invite(host, eventTypeId), free);
  });

  test("bookings 23: a meeting link and a new token make no event and raise no revision", async () => {
    const { host, booking } = await scene();
    const events = (await world.events()).length;
    const before = await world.bookingRow(booking.id);
    world.clock.advance(5_000);
    const link = "https://meet.example.com/abc";
    const saved = await host.put(`/v1/bookings/${booking.id}/location`, { location_value: link });
    expect(ok(saved, 200).body).toMatchObject({ location_value: link, revision: 1 });
    const token = await issueManageToken(world.db, booking.id, world.clock.now());
    expect(await world.bookingRow(booking.id)).toEqual({ ...before, location_value: link });
    expect(await world.events()).toHaveLength(events);
    // Both tokens are good.
    ok(await world.customer.post(`/manage/${token}/reschedule`, moved), 200);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
  });

  test("bookings 24: an unbooked invitation that is cancelled or expires makes its lifecycle event only", async () => {
    const { host, eventTypeId } = await scene();
    const cancelled = await world.invite(host, eventTypeId);
    const expiring = await world.invite(host, eventTypeId, {
      expires_at: new Date(world.clock.now().getTime() + 60_000).toISOString(),
    });
    const earlier = (await world.events()).length;
    ok(await host.post(`/v1/scheduling-invitations/${cancelled.id}/cancel`), 200);
    ok(await host.post(`/v1/scheduling-invitations/${cancelled.id}/cancel`), 200);
    world.clock.advance(60_000);
    const { sweepExpired } = await import("../../src/invitations/expiry.ts");
    const deps = {
      db: world.db,
      dialect,
      hooks: world.hooks,
      now: world.clock.now,
      logger: { error: (line: string) => expect(line).toBe("") },
    };
    await Promise.all([sweepExpired(deps), sweepExpired(deps)]);
    await sweepExpired(deps);
    expect((await world.events()).slice(earlier).map((event) => [event.type, event.subject])).toEqual([
      ["scheduling_invitation.cancelled", `scheduling_invitation:${cancelled.id}`],
      ["scheduling_invitation.expired", `scheduling_invitation:${expiring.id}`],
    ]);
    expect((await world.tryBook(cancelled.token, at("13:00"))).status).toBe(410);
    expect((await world.tryBook(expiring.token, at("13:00"))).status).toBe(410);
  });
});
