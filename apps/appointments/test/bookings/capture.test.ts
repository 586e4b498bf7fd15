import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialects } from "../support/world.ts";
import { type BookingWorld, dataOf, ok, openBookingWorld } from "./support/booking-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** A host with an event type, and a booking of it at ten on Tuesday. */
  async function booked(fields: Record<string, unknown> = {}) {
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const creator = await world.user({ is_admin: true });
    const invited = await world.invite(creator, eventTypeId, fields);
    const booking = await world.book(invited, "2031-03-04T10:00:00Z");
    return { host, creator, eventTypeId, invited, booking };
  }

  test("bookings 1: booking an invitation captures booking.created beside the lifecycle event, before any poll", async () => {
    const { host, invited, booking } = await booked();
    // Through the connections of Hookwell, which are not those that wrote it.
    expect(await world.bookingEvents(booking.id)).toMatchObject([
      { type: "booking.created", revision: 1, state: "new", subject: `booking:${booking.id}` },
    ]);
    expect(await world.invitationEvents(invited.id)).toMatchObject([
      { type: "scheduling_invitation.created", state: "new" },
      { type: "scheduling_invitation.booked", state: "new" },
    ]);
    // The booking's own event is the last thing that its transaction writes.
    const [lifecycle, created] = (await world.events()).slice(-2);
    expect([lifecycle?.type, created?.type]).toEqual(["scheduling_invitation.booked", "booking.created"]);
    expect(dataOf(lifecycle!)).toMatchObject({ booking_id: booking.id, host_id: host.id, status: "booked" });
  });

  test("bookings 2: the snapshot holds every host, the answers by label, the organizer, the external triple, ids and duration", async () => {
    const [required, rotation, optional] = [await world.host(), await world.host(), await world.host()];
    const eventType = await world.eventType(
      [
        { user: required, role: "required" },
        { user: rotation, role: "rotation" },
        { user: optional, role: "optional" },
      ],
      {
        routing_mode: "round_robin",
        duration_min_minutes: 30,
        duration_max_minutes: 90,
        duration_increment_minutes: 15,
        questions: [
          { label: "What is it about?", type: "text", required: true },
          { label: "May we record?", type: "checkbox" },
        ],
      },
    );
    const { body } = await required.get(`/v1/event-types/${eventType.id}`);
    const [about, record] = (body as unknown as { questions: { id: string }[] }).questions;
    const external = { system: "crm", reference: "CASE-7", url: "https://crm.example.com/7" };
    const invited = await world.invite(required, eventType.id, {
      recipient: { name: "Zoë 汉字 🚀", email: "zoe@example.com" },
      external,
      duration_minutes: 45,
    });
    const booking = await world.book(invited, "2031-03-05T09:30:00Z", {
      timezone: "Asia/Kathmandu",
      answers: [
        { question_id: record!.id, value: true },
        { question_id: about!.id, value: "A compiler\nwith two lines" },
      ],
    });
    const [event, ...rest] = await world.bookingEvents(booking.id);
    expect(rest).toEqual([]);
    const others = [required.id, optional.id].sort();
    const nameOf = new Map([required, rotation, optional].map((user) => [user.id, user.email]));
    expect(dataOf(event!)).toEqual({
      id: booking.id,
      booking_id: booking.id,
      scheduling_invitation_id: invited.id,
      external,
      revision: 1,
      event_type_id: eventType.id,
      event_type_slug: eventType.slug,
      event_type_name: eventType.name,
      host_id: rotation.id,
      host_name: expect.stringMatching(/^User \d+$/),
      host_email: nameOf.get(rotation.id),
      hosts: [
        { id: rotation.id, name: expect.any(String), is_primary: true },
        ...others.map((id) => ({ id, name: expect.any(String), is_primary: false })),
      ],
      status: "confirmed",
      start_at: "2031-03-05T09:30:00.000Z",
      end_at: "2031-03-05T10:15:00.000Z",
      duration_minutes: 45,
      location_type: "meeting",
      location_value: "",
      created_at: event!.occurredAt.toISOString(),
      attendee_name: "Zoë 汉字 🚀",
      attendee_email: "zoe@example.com",
      attendee_timezone: "Asia/Kathmandu",
      answers: [
        { question: "What is it about?", answer: "A compiler\nwith two lines" },
        { question: "May we record?", answer: "yes" },
      ],
    });
  });

  test("bookings 3: recipients are the primary host and the creator, one id when they are the same", async () => {
    const { host, creator, eventTypeId, booking } = await booked();
    const [event] = await world.bookingEvents(booking.id);
    expect(event!.audience).toEqual([host.id, creator.id].sort());
    const own = await world.book(await world.invite(host, eventTypeId), "2031-03-04T11:00:00Z");
    expect((await world.bookingEvents(own.id))[0]!.audience).toEqual([host.id]);
  });

  const moves = {
    "bookings 4: a move by manage token": (_: unknown, manage: string, __: string, body: object) =>
      world.customer.post(`${manage}/reschedule`, body),
    "bookings 5: a move by staff": (
      host: { patch: BookingWorld["customer"]["patch"] },
      _: string,
      id: string,
      body: object,
    ) => host.patch(`/v1/bookings/${id}/reschedule`, body),
  };
  test.each(Object.entries(moves))("%s captures both intervals under revision 2", async (_, move) => {
    const { host, booking } = await booked();
    const [created] = await world.bookingEvents(booking.id);
    const answer = await move(host, booking.manage, booking.id, { start_at: "2031-03-06T16:30:00+02:00" });
    expect(ok(answer, 200).body).toMatchObject({ id: booking.id, start_at: "2031-03-06T14:30:00.000Z" });
    const [, moved, ...rest] = await world.bookingEvents(booking.id);
    expect(rest).toEqual([]);
    expect(moved).toMatchObject({ type: "booking.rescheduled", revision: 2, state: "new" });
    expect(dataOf(moved!)).toEqual({
      ...dataOf(created!),
      revision: 2,
      start_at: "2031-03-06T14:30:00.000Z",
      end_at: "2031-03-06T15:00:00.000Z",
      previous_start_at: booking.start_at,
      previous_end_at: booking.end_at,
    });
    expect(moved!.audience).toEqual(created!.audience);
  });

  test("bookings 6: the previous interval of revision 3 is the new one of revision 2", async () => {
    const { host, booking } = await booked();
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-03-05T12:00:00Z" }), 200);
    ok(await host.patch(`/v1/bookings/${booking.id}/reschedule`, { start_at: "2031-03-07T15:00:00Z" }), 200);
    const [, second, third] = await world.bookingEvents(booking.id);
    expect([second!.revision, third!.revision]).toEqual([2, 3]);
    const [two, three] = [dataOf(second!), dataOf(third!)];
    expect([three.previous_start_at, three.previous_end_at]).toEqual([two.start_at, two.end_at]);
    expect(three.start_at).toBe("2031-03-07T15:00:00.000Z");
  });

  test.each([
    ["bookings 7: cancelling by manage token", "customer"],
    ["bookings 8: cancelling by the host", "host"],
  ])("%s captures one booking.cancelled with the reason and the last interval", async (_, by) => {
    const { host, booking } = await booked();
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-03-05T12:00:00Z" }), 200);
    const answer =
      by === "host"
        ? await host.post(`/v1/bookings/${booking.id}/cancel`, { reason: "Ill\nsince today" })
        : await world.customer.post(`${booking.manage}/cancel`, { reason: "Ill\nsince today" });
    expect(ok(answer, 200).body.status).toBe("cancelled");
    const events = await world.bookingEvents(booking.id);
    expect(events.map((event) => event.type)).toEqual([
      "booking.created",
      "booking.rescheduled",
      "booking.cancelled",
    ]);
    expect(dataOf(events[2]!)).toMatchObject({
      status: "cancelled",
      revision: 3,
      cancellation_reason: "Ill\nsince today",
      start_at: "2031-03-05T12:00:00.000Z",
      end_at: "2031-03-05T12:30:00.000Z",
    });
  });

  test("bookings 9: cancelling by an admin who is no host is one event, and archiving the member is none of a booking", async () => {
    const { host, booking } = await booked();
    expect((await world.admin.post(`/v1/users/${host.id}/archive`)).status).toBe(409);
    ok(await world.admin.post(`/v1/bookings/${booking.id}/cancel`, { reason: "Leaves" }), 200);
    ok(await world.admin.post(`/v1/users/${host.id}/archive`), 200);
    expect((await world.bookingEvents(booking.id)).map((event) => event.type)).toEqual([
      "booking.created",
      "booking.cancelled",
    ]);
    expect((await world.eventsOf(host.id)).at(-1)).toMatchObject({ type: "user.deactivated" });
  });

  test("bookings 10: two moves and a cancellation before the first poll are four events, each as it was, all delivered", async () => {
    const { host, booking } = await booked();
    const hook = await world.hook(host);
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-03-05T12:00:00Z" }), 200);
    ok(await host.patch(`/v1/bookings/${booking.id}/reschedule`, { start_at: "2031-03-06T09:00:00Z" }), 200);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    const events = await world.bookingEvents(booking.id);
    expect(
      events.map((event) => [event.revision, dataOf(event).status, dataOf(event).start_at, event.state]),
    ).toEqual([
      [1, "confirmed", "2031-03-04T10:00:00.000Z", "new"],
      [2, "confirmed", "2031-03-05T12:00:00.000Z", "new"],
      [3, "confirmed", "2031-03-06T09:00:00.000Z", "new"],
      [4, "cancelled", "2031-03-06T09:00:00.000Z", "new"],
    ]);
    await world.poll();
    const bodies = hook.bodies().sort((a, b) => a.data.revision - b.data.revision);
    expect(bodies.map((body) => [body.id, body.event, body.data.start_at])).toEqual(
      events.map((event) => [event.id, event.type, dataOf(event).start_at]),
    );
  });

  test("bookings 11: occurred_at is the booking's updated_at of that transition, and event ids differ", async () => {
    const { booking } = await booked();
    const times = [(await world.bookingRow(booking.id))!.updated_at];
    const steps: [string, object][] = [
      ["reschedule", { start_at: "2031-03-05T12:00:00Z" }],
      ["reschedule", { start_at: "2031-03-05T13:00:00Z" }],
      ["cancel", { reason: "" }],
    ];
    for (const [step, body] of steps) {
      world.clock.advance(1_001);
      ok(await world.customer.post(`${booking.manage}/${step}`, body), 200);
      times.push((await world.bookingRow(booking.id))!.updated_at);
    }
    const events = await world.bookingEvents(booking.id);
    expect(events.map((event) => event.occurredAt.toISOString())).toEqual(times);
    expect(new Set(times).size).toBe(4);
    expect(new Set(events.map((event) => event.id)).size).toBe(4);
  });

  test("bookings 12: of submits of one token at once, one books", async () => {
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const invited = await world.invite(host, eventTypeId);
    const starts = ["09:00", "10:00", "11:00", "09:00"].map((time) => `2031-03-04T${time}:00Z`);
    const answers = await Promise.all(starts.map((start) => world.tryBook(invited.token, start)));
    const [won, ...lost] = answers.map((answer) => answer.status).sort();
    expect(won).toBe(201);
    for (const status of lost) expect([409, 410]).toContain(status);
    const bookings = await world.db
      .selectFrom("bookings")
      .select("id")
      .where("scheduling_invitation_id", "=", invited.id)
      .execute();
    expect(bookings).toHaveLength(1);
    expect(await world.bookingEvents(bookings[0]!.id)).toHaveLength(1);
    expect((await world.invitationEvents(invited.id)).map((event) => event.type)).toEqual([
      "scheduling_invitation.created",
      "scheduling_invitation.booked",
    ]);
  });

  test("bookings 12: of two customers who take one host's hour at once, one gets it", async () => {
    const host = await world.host();
    const { id: first } = await world.eventType([host]);
    const { id: second } = await world.eventType([host]);
    const tokens = [
      await world.invite(host, first),
      await world.invite(host, second),
      await world.invite(host, first),
      await world.invite(host, second),
    ];
    const starts = ["10:00", "10:00", "10:00", "10:00"];
    const answers = await Promise.all(
      tokens.map(({ token }, index) => world.tryBook(token, `2031-03-04T${starts[index]}:00Z`)),
    );
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409, 409, 409]);
  });

  test("bookings 13: the body shows what was true at the transition, whatever changed before the poll", async () => {
    const { host, creator, eventTypeId, booking } = await booked();
    const hook = await world.hook(creator, { fields: ["host_name", "event_type_slug", "event_type_name"] });
    const [event] = await world.bookingEvents(booking.id);
    const captured = dataOf(event!);
    ok(await world.admin.patch(`/v1/users/${host.id}`, { name: "Renamed" }), 200);
    ok(await creator.patch("/v1/users/me", { name: "Somebody else" }), 200);
    const other = await world.host();
    ok(
      await host.patch(`/v1/event-types/${eventTypeId}`, {
        slug: `renamed-${eventTypeId.slice(0, 8)}`,
        name: "Renamed",
        duration_minutes: 60,
      }),
      200,
    );
    ok(await host.post(`/v1/event-types/${eventTypeId}/hosts`, { user_id: other.id, role: "required" }), 201);
    await world.poll();
    const [body] = hook.bodies();
    expect(body!.data).toMatchObject({
      host_name: captured.host_name,
      event_type_slug: captured.event_type_slug,
      event_type_name: captured.event_type_name,
      duration_minutes: 30,
      hosts: captured.hosts,
    });
    expect(JSON.stringify(body)).not.toContain("Renamed");
  });
});
