import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialects } from "../support/world.ts";
import { type BookingWorld, dataOf, openBookingWorld } from "./support/booking-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("bookings 1: booking an invitation captures booking.created beside the lifecycle event, before any poll", async () => {
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const invited = await world.invite(host, eventTypeId);
    const booked = await world.book(invited, "2031-03-04T10:00:00Z");
    // Through the connections of Hookwell, which are not those that wrote it.
    expect(await world.bookingEvents(booked.id)).toMatchObject([
      { type: "booking.created", revision: 1, state: "new", subject: `booking:${booked.id}` },
    ]);
    expect(await world.invitationEvents(invited.id)).toMatchObject([
      { type: "scheduling_invitation.created", state: "new" },
      { type: "scheduling_invitation.booked", state: "new" },
    ]);
    const all = await world.events();
    const [lifecycle, created] = all.slice(-2);
    expect([lifecycle?.type, created?.type]).toEqual(["scheduling_invitation.booked", "booking.created"]);
    expect(dataOf(lifecycle!)).toMatchObject({ booking_id: booked.id, host_id: host.id, status: "booked" });
  });
});
