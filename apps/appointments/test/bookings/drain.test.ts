import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialects, type TestDialect, type UserClient } from "../support/world.ts";
import { type BookingWorld, dataOf, ok, openBookingWorld, testClock } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function booked(options: { readonly creator?: UserClient; readonly host?: UserClient } = {}) {
    const host = options.host ?? (await world.host());
    const creator = options.creator ?? host;
    const { id: eventTypeId } = await world.eventType([host]);
    // Only the owner and admins invite, so that another creator is an admin.
    const invited = await world.invite(creator, eventTypeId);
    const booking = await world.book(invited, at("10:00"));
    const [event] = await world.bookingEvents(booking.id);
    return { host, creator, eventTypeId, invited, booking, event: event! };
  }

  const event = async (id: string) => await world.hooks.events.get(id);

  test("bookings 33: polling again makes no delivery and leaves the mark as it is", async () => {
    const host = await world.host();
    const hook = await world.hook(host);
    const { event: captured } = await booked({ host });
    await world.poll();
    const first = await event(captured.id);
    const deliveries = await world.deliveriesOf(captured.id);
    expect(deliveries).toHaveLength(1);
    for (const _ of [1, 2, 3]) {
      world.clock.advance(3_600_000);
      await world.poll();
    }
    expect((await event(captured.id)).dispatchedAt).toEqual(first.dispatchedAt);
    expect(await world.deliveriesOf(captured.id)).toEqual(deliveries);
    expect(hook.requests).toHaveLength(1);
  });

  test("bookings 34: two workers that drain at once make one delivery of each event and subscription", async () => {
    const host = await world.host();
    const hooks = [await world.hook(host), await world.hook(host, { fields: ["id"] })];
    const { booking } = await booked({ host });
    for (const [index, time] of ["11:00", "12:00", "13:00", "14:00"].entries())
      ok(
        await world.customer.post(`${booking.manage}/reschedule`, { start_at: at(time) }),
        index < 4 ? 200 : 409,
      );
    const other = world.anotherHooks();
    await other.ready();
    await Promise.all([world.poll(), other.drain({ deadlineMs: 30_000 })]);
    for (const { id } of await world.bookingEvents(booking.id))
      expect((await world.deliveriesOf(id)).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
    for (const hook of hooks) {
      expect(hook.requests).toHaveLength(5);
      expect(new Set(hook.bodies().map(({ id }) => id)).size).toBe(5);
    }
  });

  test("bookings 35: an event whose dispatched mark was cleared by hand is marked again and delivered no second time", async () => {
    const host = await world.host();
    const hook = await world.hook(host);
    const { event: captured } = await booked({ host });
    await world.poll();
    const deliveries = await world.deliveriesOf(captured.id);
    await world.sql(
      `UPDATE ${world.table("event")} SET state = 'new', dispatched_at = NULL WHERE id = '${captured.id}'`,
    );
    expect((await event(captured.id)).state).toBe("new");
    world.clock.advance(1_000);
    await world.poll();
    expect(await event(captured.id)).toMatchObject({ state: "dispatched", dispatchedAt: world.clock.now() });
    expect(await world.deliveriesOf(captured.id)).toEqual(deliveries);
    expect(hook.requests).toHaveLength(1);
  });

  test("bookings 36: who subscribes before the poll receives; who was deleted, deactivated or unsubscribed does not", async () => {
    const host = await world.host();
    const [deleted, inactive, unsubscribed] = [
      await world.hook(host),
      await world.hook(host),
      await world.hook(host),
    ];
    await booked({ host });
    const late = await world.hook(host);
    ok(await host.delete(`/v1/webhooks/${deleted.id}`), 204);
    const off = await host.patch(`/v1/webhooks/${inactive.id}`, { is_active: false });
    expect(ok(off, 200).body).toMatchObject({ is_active: false, status: "disabled" });
    ok(await host.patch(`/v1/webhooks/${unsubscribed.id}`, { events: ["booking.cancelled"] }), 200);
    await world.poll();
    expect(late.bodies().map(({ event: type }) => type)).toEqual(["booking.created"]);
    for (const hook of [deleted, inactive, unsubscribed]) expect(hook.requests).toEqual([]);
  });

  test("bookings 37: without a subscription the event is dispatched, and one made later receives nothing of it", async () => {
    const { host, event: captured } = await booked();
    await world.poll();
    expect(await event(captured.id)).toMatchObject({ state: "dispatched", outcome: "unmatched" });
    const late = await world.hook(host);
    world.clock.advance(60_000);
    await world.poll();
    expect(late.requests).toEqual([]);
  });

  test("bookings 38: two subscriptions of one owner are two deliveries of one event, each with its own fields", async () => {
    const host = await world.host();
    const [few, many] = [
      await world.hook(host, { fields: ["id"] }),
      await world.hook(host, { fields: ["attendee_email", "answers"] }),
    ];
    const { event: captured } = await booked({ host });
    await world.poll();
    const [[one], [two]] = [few.bodies(), many.bodies()];
    expect([one!.id, two!.id]).toEqual([captured.id, captured.id]);
    const ids = [few, many].map((hook) => hook.requests[0]!.headers["x-hookwell-delivery"]);
    expect(new Set(ids).size).toBe(2);
    expect(ids.sort()).toEqual((await world.deliveriesOf(captured.id)).map(({ id }) => id).sort());
    expect(one!.data).not.toHaveProperty("attendee_email");
    expect(two!.data).toHaveProperty("attendee_email");
  });

  test("bookings 39: creator and host get one delivery each, or one for each subscription when they are the same", async () => {
    const creator = await world.user({ is_admin: true });
    const host = await world.host();
    const [ofCreator, ofHost] = [await world.hook(creator), await world.hook(host)];
    const { event: captured } = await booked({ host, creator });
    await world.poll();
    expect(await world.deliveriesOf(captured.id)).toHaveLength(2);
    expect([ofCreator.requests.length, ofHost.requests.length]).toEqual([1, 1]);
    const second = await world.hook(host);
    const own = await world.eventType([host]);
    const same = await world.book(await world.invite(host, own.id), at("11:00"));
    const [next] = await world.bookingEvents(same.id);
    await world.poll();
    expect(await world.deliveriesOf(next!.id)).toHaveLength(2);
    expect([ofCreator.requests.length, ofHost.requests.length, second.requests.length]).toEqual([1, 2, 1]);
  });

  test("bookings 40: another assigned host, and the owner of the event type, get nothing", async () => {
    const [owner, primary, second] = [await world.host(), await world.host(), await world.host()];
    const creator = await world.user({ is_admin: true });
    const eventType = ok(
      await owner.post("/v1/event-types", {
        slug: `both-${owner.id}`,
        name: "Both",
        routing_mode: "collective",
        hosts: [
          { user_id: primary.id, role: "required", priority: 0 },
          { user_id: second.id, role: "required", priority: 1 },
        ],
      }),
      201,
    ).body;
    const others = [await world.hook(owner), await world.hook(second)];
    const [ofPrimary, ofCreator] = [await world.hook(primary), await world.hook(creator)];
    const invited = await world.invite(creator, eventType.id);
    const booking = await world.book(invited, at("10:00"));
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at("12:00") }), 200);
    ok(await primary.post(`/v1/bookings/${booking.id}/cancel`), 200);
    await world.poll();
    for (const hook of [ofPrimary, ofCreator]) expect(hook.requests).toHaveLength(3);
    expect(ofPrimary.bodies()[0]!.data.hosts).toHaveLength(2);
    for (const hook of others) expect(hook.requests).toEqual([]);
  });

  test("bookings 42: a delivery that cannot be inserted keeps its whole event back, and no other", async () => {
    const host = await world.host();
    const [good, bad] = [await world.hook(host), await world.hook(host)];
    const bystander = await world.host();
    const fine = await world.hook(bystander);
    const mend = await refuseDeliveries(world, dialect, bad.id);
    const { event: held } = await booked({ host });
    const { event: free } = await booked({ host: bystander });
    try {
      await world.poll();
      expect(await event(held.id)).toMatchObject({
        state: "new",
        tries: 1,
        error: expect.stringContaining("no room"),
      });
      expect(await world.deliveriesOf(held.id)).toEqual([]);
      expect(good.requests).toEqual([]);
      expect(await event(free.id)).toMatchObject({ state: "dispatched" });
      expect(fine.requests).toHaveLength(1);
    } finally {
      await mend();
    }
    world.clock.advance(1_000);
    await world.poll();
    expect([good.requests.length, bad.requests.length]).toEqual([1, 1]);
  });

  test("bookings 42: a snapshot that is damaged is set aside with its error, where the operator sees it", async () => {
    const host = await world.host();
    const hook = await world.hook(host);
    const { event: broken } = await booked({ host });
    await world.sql(`UPDATE ${world.table("event")} SET data = '{"id": "cut of' WHERE id = '${broken.id}'`);
    const other = await booked({ host: await world.host() });
    for (const seconds of [0, 1, 2, 4, 8, 16]) {
      world.clock.advance(seconds * 1_000);
      await world.poll();
    }
    expect(await event(broken.id)).toMatchObject({ state: "parked", error: expect.stringMatching(/JSON/) });
    expect(await event(other.event.id)).toMatchObject({ state: "dispatched" });
    expect(hook.requests).toEqual([]);
    const seen = await world.operator.get(`/v1/events?outcome=parked&id=${broken.id}`);
    expect(ok(seen, 200).body.items).toHaveLength(1);
    // What comes after it is not held up.
    const eventType = await world.eventType([host]);
    await world.book(await world.invite(host, eventType.id), at("15:00"));
    await world.poll();
    expect(hook.requests).toHaveLength(1);
  });

  test("bookings 43: subscriptions of a recipient who was archived get nothing", async () => {
    const creator = await world.user({ is_admin: true });
    const host = await world.host();
    const [ofCreator, ofHost] = [await world.hook(creator), await world.hook(host)];
    const { event: captured } = await booked({ host, creator });
    expect(captured.audience).toContain(creator.id);
    ok(await world.admin.post(`/v1/users/${creator.id}/archive`), 200);
    await world.poll();
    expect([ofCreator.requests.length, ofHost.requests.length]).toEqual([0, 1]);
  });
});

test.each(dialects)(
  "bookings 41: on %s more events than a batch are dispatched over several, in capture order of each booking",
  async (dialect) => {
    // Every look at this clock is later than the one before, so that batches can be told apart.
    const clock = testClock();
    const ticking = {
      ...clock,
      now: () => {
        clock.advance(1);
        return clock.now();
      },
    };
    await using world = await openBookingWorld(dialect, { testClock: ticking });
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const hook = await world.hook(host, { events: ["booking.rescheduled"] });
    const bookings = [];
    for (const time of ["09:00", "11:00", "13:00"])
      bookings.push(await world.book(await world.invite(host, eventTypeId), at(time)));
    const spare = ["10:00", "12:00", "14:00"];
    for (let round = 0; round < 36; round++)
      for (const [index, booking] of bookings.entries()) {
        const start = round % 2 === 0 ? at(spare[index]!) : booking.start_at;
        ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: start }), 200);
      }
    await world.poll();
    const batches = new Set<number>();
    for (const booking of bookings) {
      const events = (await allEvents(world, booking.id)).filter(
        ({ type }) => type === "booking.rescheduled",
      );
      expect(events).toHaveLength(36);
      const inOrder = [...events].sort((a, b) => a.revision! - b.revision!);
      const times = inOrder.map((event) => event.dispatchedAt!.getTime());
      expect(times).toEqual([...times].sort((a, b) => a - b));
      for (const time of times) batches.add(time);
      expect(inOrder.map((event) => dataOf(event).revision)).toEqual(
        Array.from({ length: 36 }, (_, index) => index + 2),
      );
    }
    expect(batches.size).toBeGreaterThan(1);
    expect(hook.requests).toHaveLength(108);
    expect(new Set(hook.bodies().map(({ id }) => id)).size).toBe(108);
  },
);

async function allEvents(world: BookingWorld, bookingId: string) {
  return (await world.events()).filter(({ subject }) => subject === `booking:${bookingId}`);
}

/** From now on, no delivery to this subscription can be written. Answers how to end that. */
async function refuseDeliveries(world: BookingWorld, dialect: TestDialect, subscriptionId: string) {
  const table = world.table("delivery");
  if (dialect === "sqlite") {
    await world.sql(
      `CREATE TRIGGER no_room BEFORE INSERT ON ${table} WHEN NEW.subscription_id = '${subscriptionId}' BEGIN SELECT RAISE(ABORT, 'no room'); END`,
    );
    return () => world.sql("DROP TRIGGER no_room");
  }
  await world.sql(
    "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$",
  );
  await world.sql(
    `CREATE TRIGGER no_room BEFORE INSERT ON ${table} FOR EACH ROW WHEN (NEW.subscription_id = '${subscriptionId}') EXECUTE FUNCTION no_room()`,
  );
  return () => world.sql(`DROP TRIGGER no_room ON ${table}; DROP FUNCTION no_room()`);
}
