import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Answered } from "../support/client.ts";
import { dialects } from "../support/world.ts";
import {
  type BookedBooking,
  type BookingWorld,
  dataOf,
  ok,
  openBookingWorld,
} from "./support/booking-world.ts";

const at = (time: string, day = 4): string => `2031-03-0${day}T${time}:00Z`;
const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function scene(fields: Record<string, unknown> = {}) {
    const [host, second, third] = [await world.host(), await world.host(), await world.host()];
    const eventType = await world.eventType([host, second, third], { routing_mode: "collective", ...fields });
    const book = async (time: string, more = {}) =>
      world.book(await world.invite(host, eventType.id), at(time), more);
    return { host, second, third, eventType, book };
  }
  type Scene = Awaited<ReturnType<typeof scene>>;

  /** Every way to end, and every way to move a booking. */
  const cancels: Record<string, (made: Scene, booking: BookedBooking) => Promise<Answered>> = {
    "the customer's link": (_, { manage }) => world.customer.post(`${manage}/cancel`, { reason: "x" }),
    "the primary host": ({ host }, { id }) => host.post(`/v1/bookings/${id}/cancel`),
    "another assigned host": ({ third }, { id }) => third.post(`/v1/bookings/${id}/cancel`),
    "an admin": (_, { id }) => world.admin.post(`/v1/bookings/${id}/cancel`, { reason: "y" }),
  };
  const moves: Record<string, (made: Scene, booking: BookedBooking, start: string) => Promise<Answered>> = {
    "the customer's link": (_, { manage }, start_at) =>
      world.customer.post(`${manage}/reschedule`, { start_at }),
    "the primary host": ({ host }, { id }, start_at) =>
      host.patch(`/v1/bookings/${id}/reschedule`, { start_at }),
    "another assigned host": ({ second }, { id }, start_at) =>
      second.patch(`/v1/bookings/${id}/reschedule`, { start_at }),
    "an admin": (_, { id }, start_at) => world.admin.patch(`/v1/bookings/${id}/reschedule`, { start_at }),
  };

  test("field-faults B1: however a booking ends, exactly one booking.cancelled tells of it, also after the other ways were tried", async () => {
    const made = await scene();
    for (const [name, cancel] of Object.entries(cancels)) {
      const booking = await made.book("09:00");
      ok(await cancel(made, booking), 200);
      for (const again of Object.values(cancels)) expect((await again(made, booking)).status).toBe(409);
      const events = await world.bookingEvents(booking.id);
      expect(
        events.map(({ type }) => type),
        name,
      ).toEqual(["booking.created", "booking.cancelled"]);
    }
  });

  test("field-faults B3: the type follows the transition: a move is booking.rescheduled by whatever way, to an earlier time and over days too", async () => {
    const made = await scene();
    const booking = await made.book("16:30");
    const starts = [at("09:00"), at("12:00", 6), at("16:30", 5), at("10:30")];
    for (const [index, move] of Object.values(moves).entries())
      ok(await move(made, booking, starts[index]!), 200);
    ok(await cancels["another assigned host"]!(made, booking), 200);
    const events = await world.bookingEvents(booking.id);
    expect(events.map(({ type }) => type)).toEqual([
      "booking.created",
      ...starts.map(() => "booking.rescheduled"),
      "booking.cancelled",
    ]);
    // The status that a type names is the one in its data.
    for (const event of events)
      expect(dataOf(event).status).toBe(event.type === "booking.cancelled" ? "cancelled" : "confirmed");
  });

  test("field-faults B4: nothing but a transition makes an event: no repetition, no technical column, no neighbour's edit", async () => {
    const made = await scene({ questions: [{ label: "Old?", type: "text" }] });
    const booking = await made.book("11:00");
    const earlier = (await world.events()).length;
    for (const move of Object.values(moves)) ok(await move(made, booking, booking.start_at), 200);
    for (const value of ["https://m.example.com/1", "https://m.example.com/1", ""])
      ok(await made.second.put(`/v1/bookings/${booking.id}/location`, { location_value: value }), 200);
    await world.db
      .updateTable("booking_hosts")
      .set({ needs_sync: 1, external_event_id: "cal-1" })
      .where("booking_id", "=", booking.id)
      .execute();
    const { host, eventType } = made;
    ok(
      await host.patch(`/v1/event-types/${eventType.id}`, { name: "New name", buffer_after_minutes: 15 }),
      200,
    );
    const { body } = await host.get(`/v1/event-types/${eventType.id}`);
    const [question] = (body as unknown as { questions: { id: string }[] }).questions;
    ok(await host.delete(`/v1/event-types/${eventType.id}/questions/${question!.id}`), 204);
    ok(await host.put(`/v1/users/${host.id}/availability`, { rules: [], overrides: [] }), 200);
    ok(await world.customer.get(`${booking.manage}/slots`), 200);
    expect(await world.events()).toHaveLength(earlier);
    expect(await world.bookingRow(booking.id)).toMatchObject({ revision: 1 });
  });

  test("field-faults B5: one booking of three hosts with four answers is one event of each kind, and one delivery to each webhook", async () => {
    const labels = ["Name of the project?", "Budget?", "When?", "Who decides?"];
    const made = await scene({ questions: labels.map((label) => ({ label, type: "text" })) });
    const hook = await world.hook(made.host);
    const { body } = await made.host.get(`/v1/event-types/${made.eventType.id}`);
    const { questions } = body as unknown as { questions: { id: string; label: string }[] };
    const answers = questions.map(({ id, label }) => ({ question_id: id, value: `To ${label}` }));
    const booking = await made.book("14:00", { answers });
    ok(await moves["another assigned host"]!(made, booking, at("15:00")), 200);
    ok(await cancels["the customer's link"]!(made, booking), 200);
    const events = await world.bookingEvents(booking.id);
    expect(events.map(({ type }) => type)).toEqual([
      "booking.created",
      "booking.rescheduled",
      "booking.cancelled",
    ]);
    for (const event of events) {
      expect(dataOf(event).hosts).toHaveLength(3);
      expect(dataOf(event).answers).toHaveLength(4);
    }
    await world.poll();
    expect(hook.requests).toHaveLength(3);
  });

  test("field-faults B6: under moves at once each event's previous interval is the one before it", async () => {
    const made = await scene();
    const booking = await made.book("09:00");
    const starts = ["09:30", "10:00", "10:30", "11:00", "11:30", "12:00", "12:30", "13:00"];
    const ways = Object.values(moves);
    const answers = await Promise.all(
      starts.map((start, index) => ways[index % ways.length]!(made, booking, at(start))),
    );
    expect(answers.map(({ status }) => status)).toEqual(starts.map(() => 200));
    const [created, ...moved] = (await world.bookingEvents(booking.id)).map(dataOf);
    expect(moved).toHaveLength(8);
    let before = created!;
    for (const data of moved) {
      expect(data.revision).toBe(Number(before.revision) + 1);
      expect([data.previous_start_at, data.previous_end_at]).toEqual([before.start_at, before.end_at]);
      before = data;
    }
    expect(await world.bookingRow(booking.id)).toMatchObject({ start_at: before.start_at, revision: 9 });
  });

  test("field-faults B7, C5: an attempt that is late by three changes has the first one's id and bytes; so has a replay by hand", async () => {
    const made = await scene();
    let open = false;
    const hook = await world.hook(made.host, { fields: ["answers", "host_name"] }, () => (open ? 200 : 500));
    const booking = await made.book("10:00");
    await world.poll();
    ok(await moves["an admin"]!(made, booking, at("13:00")), 200);
    ok(await world.admin.patch(`/v1/users/${made.host.id}`, { name: "Somebody new" }), 200);
    ok(await cancels["the primary host"]!(made, booking), 200);
    open = true;
    world.clock.advance(60_000);
    await world.poll();
    const [created] = await world.bookingEvents(booking.id);
    const ofCreated = () => hook.requests.filter(({ headers }) => headers["webhook-id"] === created!.id);
    expect(ofCreated()).toHaveLength(2);
    const [delivery] = await world.deliveriesOf(created!.id);
    ok(await world.operator.post(`/v1/deliveries/${delivery!.id}/retry`), 200);
    await world.poll();
    const [first, second, third] = ofCreated();
    for (const next of [second, third]) {
      expect(next!.body.equals(first!.body)).toBe(true);
      for (const name of ["x-hookwell-delivery", "x-hookwell-signature", "webhook-id"])
        expect(next!.headers[name]).toBe(first!.headers[name]);
    }
    expect(first!.headers["webhook-timestamp"]).not.toBe(second!.headers["webhook-timestamp"]);
    // The changes are events of their own.
    const later = hook.bodies().filter(({ id }) => id !== created!.id);
    expect(later.map(({ event, data }) => [event, data.revision]).sort()).toEqual([
      ["booking.cancelled", 3],
      ["booking.rescheduled", 2],
    ]);
    expect(JSON.parse(first!.body.toString()).data).toMatchObject({
      status: "confirmed",
      start_at: booking.start_at,
    });
  });

  test("field-faults B8: times are the same instants in every body and over REST, whatever offset they were given in, across a change of the clocks", async () => {
    const host = await world.host({ iana_timezone: "America/New_York" });
    const eventType = await world.eventType([host]);
    const hook = await world.hook(host);
    // The clocks there change on the 9th: 9 o'clock is 14:00Z on the 8th and 13:00Z on the 10th.
    const booking = await world.book(await world.invite(host, eventType.id), "2031-03-08T09:00:00-05:00");
    ok(
      await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-03-10T18:45:00+05:45" }),
      200,
    );
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    await world.poll();
    const rest = (await host.get(`/v1/bookings/${booking.id}`)).body;
    const bodies = hook.bodies().sort((a, b) => a.data.revision - b.data.revision);
    expect(bodies.map(({ data }) => data.start_at)).toEqual([
      "2031-03-08T14:00:00.000Z",
      "2031-03-10T13:00:00.000Z",
      "2031-03-10T13:00:00.000Z",
    ]);
    expect(bodies[1]!.data.previous_start_at).toBe(bodies[0]!.data.start_at);
    expect([rest.start_at, rest.end_at]).toEqual([bodies[2]!.data.start_at, bodies[2]!.data.end_at]);
    for (const { created_at, data } of bodies)
      for (const time of [created_at, data.start_at, data.end_at, data.created_at])
        expect(time).toMatch(rfc3339);
  });

  test("field-faults B9: every way of making, moving and ending gives a body of its type's one schema", async () => {
    const made = await scene({ questions: [{ label: "Text?", type: "text" }] });
    const hook = await world.hook(made.host, {
      fields: ["id", "host_email", "attendee_name", "answers", "cancellation_reason"],
    });
    for (const [index, [move, cancel]] of Object.values(moves)
      .map((move, i) => [move, Object.values(cancels)[i]!] as const)
      .entries()) {
      const booking = await made.book("09:00");
      ok(await move(made, booking, at("10:00", 5 + (index % 2))), 200);
      ok(await cancel(made, booking), 200);
      const ordinary = await made.second.post("/v1/bookings", {
        event_type_slug: made.eventType.slug,
        start_at: at("15:00"),
        timezone: "Asia/Tokyo",
        name: "Ordinary",
        email: "ordinary@example.com",
      });
      const { id, manage_token: token } = ok(ordinary, 201).body;
      const own: BookedBooking = {
        id,
        manage: `/manage/${token}`,
        start_at: at("15:00"),
        end_at: at("15:30"),
      };
      ok(await move(made, own, at("16:00")), 200);
      ok(await cancel(made, own), 200);
    }
    await world.poll();
    expect(hook.requests).toHaveLength(24);
    const catalogue = (await world.operator.get("/v1/catalogue")).body.items;
    const shapes = new Map<string, Set<string>>();
    for (const { event, data } of hook.bodies()) {
      const { json_schema: schema } = catalogue.find(({ type }) => type === event)!;
      z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).parse(data);
      const kind = `${event} ${"revision" in data ? "captured" : "ordinary"}`;
      const keys = Object.keys(data).filter((key) => key !== "cancellation_reason");
      shapes.set(kind, (shapes.get(kind) ?? new Set()).add(keys.join()));
    }
    // One builder: the keys come in one order, whoever made the change.
    expect([...shapes].map(([kind, { size }]) => [kind, size])).toEqual(
      [...shapes.keys()].map((kind) => [kind, 1]),
    );
    expect(shapes.size).toBe(6);
  });
});
