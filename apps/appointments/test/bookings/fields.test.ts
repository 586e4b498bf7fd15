import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { dialects, type UserClient } from "../support/world.ts";
import { type Body, type BookingWorld, type Hook, ok, openBookingWorld } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;

const mandatory = [
  "booking_id",
  "scheduling_invitation_id",
  "event_type_id",
  "duration_minutes",
  "start_at",
  "end_at",
  "status",
  "hosts",
  "location_type",
  "location_value",
  "external",
  "revision",
];
const byDefault = ["id", "event_type_slug", "host_id", "created_at"];
const personal = ["host_email", "attendee_name", "attendee_email", "attendee_timezone", "answers"];
const optional = ["event_type_name", "host_name", ...personal];

const keys = (body: Body | undefined): string[] => Object.keys(body?.data ?? {}).sort();

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function scene() {
    const host = await world.host();
    const eventType = await world.eventType([host], {
      questions: [{ label: "Language?", type: "select", options: ["TypeScript", "Go"] }],
    });
    const { body } = await host.get(`/v1/event-types/${eventType.id}`);
    const [question] = (body as unknown as { questions: { id: string }[] }).questions;
    const book = async (time: string) =>
      world.book(await world.invite(host, eventType.id), at(time), {
        answers: [{ question_id: question!.id, value: "Go" }],
      });
    return { host, book };
  }

  /** The same three events for every webhook: created, rescheduled, cancelled without a reason. */
  async function threeEvents(host: UserClient, book: (time: string) => ReturnType<BookingWorld["book"]>) {
    const booking = await book("10:00");
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at("11:00") }), 200);
    ok(await host.post(`/v1/bookings/${booking.id}/cancel`), 200);
    await world.poll();
  }

  async function validated(hook: Hook): Promise<Body[]> {
    const catalogue = (await world.operator.get("/v1/catalogue")).body.items;
    const bodies = hook.bodies();
    for (const body of bodies) {
      const { json_schema: schema } = catalogue.find(({ type }) => type === body.event)!;
      z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).parse(body.data);
    }
    return bodies.sort((a, b) => a.data.revision - b.data.revision);
  }

  test("bookings 44: without a selection a body has the default set and the mandatory one, and nothing personal", async () => {
    const { host, book } = await scene();
    const hook = await world.hook(host);
    await threeEvents(host, book);
    const [created, moved, cancelled] = await validated(hook);
    const expected = [...mandatory, ...byDefault].sort();
    expect(keys(created)).toEqual(expected);
    expect(keys(moved)).toEqual([...expected, "previous_start_at", "previous_end_at"].sort());
    expect(keys(cancelled)).toEqual(expected);
    const text = JSON.stringify(hook.bodies());
    for (const word of ["grace", "Grace", "@example.com", "New_York", "Language"])
      expect(text).not.toContain(word);
  });

  test("bookings 45: the selection of id is id and the mandatory set", async () => {
    const { host, book } = await scene();
    const hook = await world.hook(host, { fields: ["id"] });
    await threeEvents(host, book);
    const [created, moved] = await validated(hook);
    expect(keys(created)).toEqual([...mandatory, "id"].sort());
    expect(keys(moved)).toEqual([...mandatory, "id", "previous_start_at", "previous_end_at"].sort());
    expect(created!.data.id).toBe(created!.data.booking_id);
  });

  test("bookings 46: what is selected of the personal fields is there", async () => {
    const { host, book } = await scene();
    const hook = await world.hook(host, { fields: [...byDefault, ...optional, "cancellation_reason"] });
    await threeEvents(host, book);
    const [created] = await validated(hook);
    expect(keys(created)).toEqual([...mandatory, ...byDefault, ...optional].sort());
    expect(created!.data).toMatchObject({
      host_email: host.email,
      attendee_name: "Grace Hopper",
      attendee_email: expect.stringMatching(/^grace\d+@example.com$/),
      attendee_timezone: "America/New_York",
      answers: [{ question: "Language?", answer: "Go" }],
    });
  });

  test("bookings 47: an empty selection, and one of unknown names, is the default set", async () => {
    const { host, book } = await scene();
    const hooks = [
      await world.hook(host, { fields: [] }),
      await world.hook(host, { fields: ["password", "attendee"] }),
      await world.hook(host, { fields: null }),
    ];
    await threeEvents(host, book);
    for (const hook of hooks) {
      const [created] = await validated(hook);
      expect(keys(created)).toEqual([...mandatory, ...byDefault].sort());
    }
  });

  test("bookings 48: the mandatory fields are there under every selection and in all three events", async () => {
    const { host, book } = await scene();
    const selections = [
      null,
      ["id"],
      ["host_name"],
      ["attendee_email", "answers"],
      ["start_at"],
      ["nothing"],
    ];
    const hooks = [];
    for (const fields of selections) hooks.push(await world.hook(host, { fields }));
    await threeEvents(host, book);
    for (const hook of hooks) {
      const bodies = await validated(hook);
      expect(bodies.map(({ event }) => event)).toEqual([
        "booking.created",
        "booking.rescheduled",
        "booking.cancelled",
      ]);
      for (const { data } of bodies) for (const name of mandatory) expect(data).toHaveProperty(name);
      expect(bodies.map(({ data }) => [data.revision, data.status, data.start_at, data.end_at])).toEqual([
        [1, "confirmed", "2031-03-04T10:00:00.000Z", "2031-03-04T10:30:00.000Z"],
        [2, "confirmed", "2031-03-04T11:00:00.000Z", "2031-03-04T11:30:00.000Z"],
        [3, "cancelled", "2031-03-04T11:00:00.000Z", "2031-03-04T11:30:00.000Z"],
      ]);
    }
  });

  test("bookings 49: changing fields and events after dispatch leaves queued bodies as they are", async () => {
    const { host, book } = await scene();
    const hook = await world.hook(host, { fields: ["attendee_email"] }, (_, index) =>
      index < 2 ? 503 : 200,
    );
    await book("10:00");
    await world.poll();
    const changes = { fields: ["id"], events: ["booking.cancelled"] };
    ok(await host.patch(`/v1/webhooks/${hook.id}`, changes), 200);
    for (const seconds of [60, 300]) {
      world.clock.advance(seconds * 1_000);
      await world.poll();
    }
    const [first, second, third] = hook.requests;
    expect(hook.requests).toHaveLength(3);
    expect(second!.body.equals(first!.body) && third!.body.equals(first!.body)).toBe(true);
    expect(keys(hook.bodies()[2])).toContain("attendee_email");
  });

  test("bookings 50: the envelope is id, event, created_at and data; the id is one for all, the time that of the change", async () => {
    const { host, book } = await scene();
    const hooks = [await world.hook(host), await world.hook(host, { fields: ["answers"] })];
    const booking = await book("10:00");
    const [event] = await world.bookingEvents(booking.id);
    world.clock.advance(7 * 3_600_000);
    await world.poll();
    for (const hook of hooks) {
      const [body] = hook.bodies();
      expect(Object.keys(body!)).toEqual(["id", "event", "created_at", "data"]);
      expect(body).toMatchObject({
        id: event!.id,
        event: "booking.created",
        created_at: (await world.bookingRow(booking.id))!.updated_at,
      });
      expect(hook.requests[0]!.headers["webhook-id"]).toBe(event!.id);
    }
  });

  test("bookings 51: a reason that was not given is left out, an unknown location is empty", async () => {
    const { host, book } = await scene();
    const hook = await world.hook(host);
    const bookings = [await book("15:00"), await book("16:00"), await book("16:30")];
    ok(await world.customer.post(`${bookings[0]!.manage}/cancel`, { reason: "" }), 200);
    ok(await world.customer.post(`${bookings[1]!.manage}/cancel`), 200);
    ok(await world.customer.post(`${bookings[2]!.manage}/cancel`, { reason: " Ill " }), 200);
    await world.poll();
    const cancelled = hook.bodies().filter(({ event }) => event === "booking.cancelled");
    expect(cancelled).toHaveLength(3);
    for (const { data } of hook.bodies()) expect(data.location_value).toBe("");
    expect(cancelled.map(({ data }) => data.cancellation_reason).sort()).toEqual([
      "Ill",
      undefined,
      undefined,
    ]);
    expect(cancelled.filter(({ data }) => "cancellation_reason" in data)).toHaveLength(1);
  });

  test("bookings 71: the lifecycle of an invitation is one event of each type, to its creator only, as the catalogue says", async () => {
    const creator = await world.user({ is_admin: true });
    const { host } = await scene();
    const eventType = await world.eventType([host]);
    const events = ["scheduling_invitation.*"];
    const [ofCreator, ofHost] = [await world.hook(creator, { events }), await world.hook(host, { events })];
    const external = { system: "erp", reference: "4711", url: "https://erp.example.com/4711" };
    const invited = await world.invite(creator, eventType.id, { external });
    const cancelled = await world.invite(creator, eventType.id);
    ok(await creator.post(`/v1/scheduling-invitations/${cancelled.id}/cancel`), 200);
    const booking = await world.book(invited, at("13:00"));
    for (const time of ["14:00", "15:00", "13:00"])
      ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at(time) }), 200);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    expect((await world.bookingEvents(booking.id)).map(({ revision }) => revision)).toEqual([1, 2, 3, 4, 5]);
    await world.poll();
    expect(ofHost.requests).toEqual([]);
    const catalogue = (await world.operator.get("/v1/catalogue")).body.items;
    const seen = ofCreator.bodies().map((body) => {
      const { json_schema: schema } = catalogue.find(({ type }) => type === body.event)!;
      z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).parse(body.data);
      return [body.event, body.data.scheduling_invitation_id, body.data.status].join(" ");
    });
    expect(seen.sort()).toEqual(
      [
        `scheduling_invitation.booked ${invited.id} booked`,
        `scheduling_invitation.cancelled ${cancelled.id} cancelled`,
        `scheduling_invitation.created ${cancelled.id} active`,
        `scheduling_invitation.created ${invited.id} active`,
      ].sort(),
    );
    // Cancelling the booking leaves the invitation booked.
    const after = await creator.get(`/v1/scheduling-invitations/${invited.id}`);
    expect(after.body).toMatchObject({ status: "booked", booking_id: booking.id });
    expect((await world.tryBook(invited.token, at("16:00"))).status).toBe(410);
  });
});
