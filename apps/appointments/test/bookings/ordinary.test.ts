import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { dialects, type UserClient } from "../support/world.ts";
import {
  type Body,
  type BookingWorld,
  dataOf,
  type Hook,
  ok,
  openBookingWorld,
} from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;

async function bookOrdinary(staff: UserClient, slug: string, time: string) {
  const answer = await staff.post("/v1/bookings", {
    event_type_slug: slug,
    start_at: at(time),
    timezone: "Europe/Vienna",
    name: "Edsger Dijkstra",
    email: "edsger@example.com",
  });
  const { id, manage_token: token } = ok(answer, 201).body;
  return { id, manage: `/manage/${token}` };
}

async function validated(world: BookingWorld, hook: Hook): Promise<Body[]> {
  const catalogue = (await world.operator.get("/v1/catalogue")).body.items;
  return hook.bodies().map((body) => {
    const { json_schema: schema } = catalogue.find(({ type }) => type === body.event)!;
    z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).parse(body.data);
    return body;
  });
}

describe.each(dialects)("on %s, published after commit", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("bookings 68: an ordinary booking is published to the primary host only, without id, revision and invitation", async () => {
    const [host, second] = [await world.host(), await world.host()];
    const staff = await world.user({ is_admin: true });
    const eventType = await world.eventType([host, second], { routing_mode: "collective" });
    const [hook, ofSecond, ofStaff] = [
      await world.hook(host),
      await world.hook(second),
      await world.hook(staff),
    ];
    const booking = await bookOrdinary(staff, eventType.slug, "10:00");
    await world.poll();
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at("11:00") }), 200);
    await world.poll();
    ok(await host.post(`/v1/bookings/${booking.id}/cancel`, { reason: "Ill" }), 200);
    await world.poll();
    const bodies = await validated(world, hook);
    expect(
      bodies.map(({ event, data }) => [event, data.status, data.start_at, data.previous_start_at]),
    ).toEqual([
      ["booking.created", "confirmed", "2031-03-04T10:00:00.000Z", undefined],
      ["booking.rescheduled", "confirmed", "2031-03-04T11:00:00.000Z", "2031-03-04T10:00:00.000Z"],
      ["booking.cancelled", "cancelled", "2031-03-04T11:00:00.000Z", undefined],
    ]);
    for (const body of bodies) {
      expect(Object.keys(body)).toEqual(["event", "created_at", "data"]);
      for (const absent of ["revision", "scheduling_invitation_id", "external"])
        expect(body.data).not.toHaveProperty(absent);
      expect(body.data).toMatchObject({ booking_id: booking.id, host_id: host.id });
      expect(body.data.hosts).toHaveLength(2);
    }
    expect([ofSecond.requests, ofStaff.requests]).toEqual([[], []]);
    for (const event of await world.bookingEvents(booking.id)) {
      expect(event.revision).toBeUndefined();
      expect(event.audience).toEqual([host.id]);
    }
    expect(await world.bookingRow(booking.id)).toMatchObject({ revision: 0 });
  });

  test("bookings 68: what cannot be published of an ordinary booking is logged, and the booking stands", async () => {
    const host = await world.host();
    const eventType = await world.eventType([host]);
    const logged = world.log.length;
    const mend = await world.breakCapture();
    let booking: { readonly id: string; readonly manage: string };
    try {
      booking = await bookOrdinary(host, eventType.slug, "10:00");
      ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at("11:00") }), 200);
      ok(await host.post(`/v1/bookings/${booking.id}/cancel`), 200);
    } finally {
      await mend();
    }
    expect(await world.bookingRow(booking.id)).toMatchObject({ status: "cancelled" });
    const lines = world.log.slice(logged).filter((line) => line.includes(booking.id));
    for (const type of ["booking.created", "booking.rescheduled", "booking.cancelled"])
      expect(lines.filter((line) => line.includes(type) && line.includes("disk is full"))).toHaveLength(1);
    await world.poll();
    expect(await world.bookingEvents(booking.id)).toEqual([]);
  });

  test("bookings 69: giving an ordinary booking to another host is one booking.rescheduled without previous times", async () => {
    const [first, second] = [await world.host(), await world.host()];
    const eventType = await world.eventType([first, second], { routing_mode: "priority" });
    const [ofFirst, ofSecond] = [await world.hook(first), await world.hook(second)];
    const booking = await bookOrdinary(first, eventType.slug, "12:00");
    ok(await first.post(`/v1/bookings/${booking.id}/reassign`, { host_id: second.id }), 200);
    // The host it has already.
    ok(await world.admin.post(`/v1/bookings/${booking.id}/reassign`, { host_id: second.id }), 200);
    await world.poll();
    expect((await validated(world, ofFirst)).map(({ event }) => event)).toEqual(["booking.created"]);
    const [moved, ...rest] = await validated(world, ofSecond);
    expect(rest).toEqual([]);
    expect(moved).toMatchObject({ event: "booking.rescheduled", data: { host_id: second.id } });
    expect(moved!.data).not.toHaveProperty("previous_start_at");
    expect(await world.bookingRow(booking.id)).toMatchObject({
      host_id: second.id,
      start_at: "2031-03-04T12:00:00.000Z",
    });
    // The first host is free again at that time, the second is not.
    expect((await first.get(`/v1/bookings/${booking.id}`)).status).toBe(404);
    ok(await second.get(`/v1/bookings/${booking.id}`), 200);
  });
});

describe.each(dialects)("on %s, with ORDINARY_BOOKINGS=captured", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect, { start: { captureOrdinary: true } });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("bookings 68: an ordinary booking has the full guarantee", async () => {
    const host = await world.host();
    const eventType = await world.eventType([host]);
    const hook = await world.hook(host);
    const choice = {
      event_type_slug: eventType.slug,
      start_at: at("10:00"),
      timezone: "Europe/Vienna",
      name: "Edsger",
      email: "edsger@example.com",
    };
    for (const fault of ["breakCapture", "breakCommit"] as const) {
      const mend = await world[fault]();
      expect((await host.post("/v1/bookings", choice)).status).toBe(503);
      await mend();
    }
    const booking = await bookOrdinary(host, eventType.slug, "10:00");
    const steps = [
      () => world.customer.post(`${booking.manage}/reschedule`, { start_at: at("11:00") }),
      () => host.post(`/v1/bookings/${booking.id}/cancel`, { reason: "Ill" }),
    ];
    for (const step of steps) {
      const mend = await world.breakCapture();
      expect((await step()).status).toBe(500);
      await mend();
      ok(await step(), 200);
    }
    const events = await world.bookingEvents(booking.id);
    expect(events.map(({ type, revision, state }) => [type, revision, state])).toEqual([
      ["booking.created", 1, "new"],
      ["booking.rescheduled", 2, "new"],
      ["booking.cancelled", 3, "new"],
    ]);
    await world.poll();
    const bodies = await validated(world, hook);
    for (const [index, body] of bodies.sort((a, b) => a.data.revision - b.data.revision).entries()) {
      expect(Object.keys(body)).toEqual(["id", "event", "created_at", "data"]);
      expect(body.id).toBe(events[index]!.id);
      expect(body.data).toMatchObject({
        scheduling_invitation_id: null,
        external: null,
        revision: index + 1,
      });
    }
  });

  test("bookings 69: another host is one captured booking.rescheduled without previous times", async () => {
    const [first, second] = [await world.host(), await world.host()];
    const eventType = await world.eventType([first, second], { routing_mode: "priority" });
    const booking = await bookOrdinary(first, eventType.slug, "12:00");
    ok(await world.admin.post(`/v1/bookings/${booking.id}/reassign`, { host_id: second.id }), 200);
    const [, event, ...rest] = await world.bookingEvents(booking.id);
    expect(rest).toEqual([]);
    expect(event).toMatchObject({ type: "booking.rescheduled", revision: 2, audience: [second.id] });
    expect(dataOf(event!)).not.toHaveProperty("previous_start_at");
  });
});
