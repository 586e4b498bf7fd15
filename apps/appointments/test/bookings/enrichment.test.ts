import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialects } from "../support/world.ts";
import { type BookingWorld, dataOf, ok, openBookingWorld } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;
const link = "https://meet.example.com/first";
const newer = "https://meet.example.com/second";

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function booked(fields: Record<string, unknown> = {}, respond?: Parameters<BookingWorld["hook"]>[2]) {
    const host = await world.host();
    const eventType = await world.eventType([host], fields);
    const hook = await world.hook(host, {}, respond);
    const booking = await world.book(await world.invite(host, eventType.id), at("10:00"));
    const save = async (value: string, revision?: number) =>
      ok(
        await host.put(`/v1/bookings/${booking.id}/location`, {
          location_value: value,
          ...(revision === undefined ? {} : { revision }),
        }),
        200,
      ).body;
    const move = async (time: string) =>
      ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at(time) }), 200);
    /** What each body says, by revision. */
    const told = () =>
      Object.fromEntries(hook.bodies().map(({ data }) => [data.revision, data.location_value]));
    return { host, eventType, hook, booking, save, move, told };
  }

  test("bookings 52: a link that was saved before the first poll is in the body", async () => {
    const { booking, save, told } = await booked();
    await save(link);
    await world.poll();
    expect(told()).toEqual({ 1: link });
    // What was captured stays what it was.
    const [event] = await world.bookingEvents(booking.id);
    expect(dataOf(event!).location_value).toBe("");
    expect(JSON.parse(event!.patch!)).toEqual({ location_value: link });
  });

  test("bookings 53: without a link the first poll dispatches the snapshot", async () => {
    const { hook, told } = await booked();
    await world.poll();
    expect(hook.requests).toHaveLength(1);
    expect(told()).toEqual({ 1: "" });
  });

  test("bookings 54: a link saved after a move goes with the move, not with what came before it", async () => {
    const { save, move, told } = await booked();
    await move("11:00");
    await save(link);
    await world.poll();
    expect(told()).toEqual({ 1: "", 2: link });
  });

  test("bookings 55: a link saved after dispatch changes no body and makes no event", async () => {
    const { host, booking, hook, save } = await booked({}, (_, index) => (index === 0 ? 500 : 200));
    await world.poll();
    await save(link);
    world.clock.advance(60_000);
    const late = await world.hook(host);
    await world.poll();
    const [first, second] = hook.requests;
    expect(second!.body.equals(first!.body)).toBe(true);
    expect(second!.headers["x-hookwell-delivery"]).toBe(first!.headers["x-hookwell-delivery"]);
    expect(hook.requests).toHaveLength(2);
    expect(await world.bookingEvents(booking.id)).toHaveLength(1);
    expect(late.requests).toEqual([]);
  });

  test.each([
    ["in_person", "Room 4, 1st floor"],
    ["phone", "+43 1 234567"],
    ["link", "https://example.com/room"],
  ])(
    "bookings 56: a location that was given (%s) is the same in all events, whatever the event type says later",
    async (type, value) => {
      const { host, eventType, booking, move, told } = await booked({
        location_type: type,
        location_value: value,
      });
      ok(await host.patch(`/v1/event-types/${eventType.id}`, { location_value: "Elsewhere" }), 200);
      await move("12:00");
      ok(await world.customer.post(`${booking.manage}/cancel`), 200);
      await world.poll();
      expect(told()).toEqual({ 1: value, 2: value, 3: value });
    },
  );

  test("bookings 57: a link of revision 1 that arrives after revision 2 enriches neither, and nothing newer", async () => {
    const { booking, save, move, told } = await booked();
    await move("11:00");
    // The side effect of revision 1 was slow.
    expect(await save(link, 1)).toMatchObject({ location_value: link, revision: 2 });
    await world.poll();
    expect(told()).toEqual({ 1: "", 2: "" });
    expect(await world.bookingRow(booking.id)).toMatchObject({ location_value: link, location_revision: 1 });
    await move("13:00");
    await world.poll();
    expect(told()).toEqual({ 1: "", 2: "", 3: "" });
    // The link of revision 3 takes its place, and the old one never again that one's.
    await save(newer, 3);
    expect((await save(link, 1)).location_value).toBe(newer);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    await world.poll();
    expect(told()).toEqual({ 1: "", 2: "", 3: "", 4: newer });
  });

  test("bookings 57: a link that was there at a move goes with it, and may be taken back", async () => {
    const { save, move, told } = await booked();
    await save(link, 1);
    await move("11:00");
    await world.poll();
    expect(told()).toEqual({ 1: "", 2: link });
    await save("", 2);
    await move("14:00");
    await world.poll();
    expect(told()).toEqual({ 1: "", 2: link, 3: "" });
  });

  test("bookings 57: a link of a revision that is still to come is refused", async () => {
    const { host, booking } = await booked();
    const early = { location_value: link, revision: 2 };
    expect((await host.put(`/v1/bookings/${booking.id}/location`, early)).status).toBe(400);
    expect(await world.bookingRow(booking.id)).toMatchObject({ location_value: "" });
  });
});
