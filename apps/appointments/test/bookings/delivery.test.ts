import { HttpSender } from "hookwell";
import { expect, test } from "vitest";
import { dialects } from "../support/world.ts";
import { ok, openBookingWorld, testClock } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;

test.each(dialects)(
  "bookings 62: on %s a webhook that is deleted while deliveries of it wait gets no request, and they end cancelled",
  async (dialect) => {
    await using world = await openBookingWorld(dialect);
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const hook = await world.hook(host, {}, () => 500);
    const kept = await world.hook(host);
    const booking = await world.book(await world.invite(host, eventTypeId), at("10:00"));
    await world.poll();
    expect(hook.requests).toHaveLength(1);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    ok(await host.delete(`/v1/webhooks/${hook.id}`), 204);
    world.clock.advance(60_000);
    await world.poll();
    await world.hooks.store.maintain(null, 100, world.clock.now());
    expect(hook.requests).toHaveLength(1);
    expect(kept.requests).toHaveLength(2);
    const ofHook = { projectId: "live", subscriptionId: hook.id };
    const { items } = await world.hooks.deliveries.list(ofHook, { limit: 100 });
    expect(items.map(({ status, attempts }) => [status, attempts])).toEqual([["cancelled", 1]]);
    expect((await host.get(`/v1/webhooks/${hook.id}`)).status).toBe(404);
    expect((await host.get(`/v1/webhooks/${hook.id}/deliveries`)).status).toBe(404);
    // Every row that is left belongs to an event that is there.
    const all = await world.hooks.deliveries.list({ projectId: "live" }, { limit: 100 });
    for (const { eventId } of all.items) await world.hooks.events.get(eventId);
  },
);

test.each(dialects)(
  "bookings 63: on %s a name that stands for a private address when it is sent to gets no connection, and an attempt is spent",
  async (dialect) => {
    const clock = testClock();
    let asked = 0;
    const sender = new HttpSender({
      clock: clock.now,
      // Http is allowed here, loopback is not.
      network: { http: true },
      resolver: async () => {
        asked++;
        return [{ address: "127.0.0.1", family: 4 }];
      },
    });
    await using world = await openBookingWorld(dialect, { testClock: clock, sender });
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const receiver = await world.hook(host);
    const url = `http://hooks.customer.example:${receiver.port}/hook`;
    ok(await host.patch(`/v1/webhooks/${receiver.id}`, { url }), 200);
    const booking = await world.book(await world.invite(host, eventTypeId), at("10:00"));
    const [event] = await world.bookingEvents(booking.id);
    for (const seconds of [0, 60, 300, 3_600]) {
      world.clock.advance(seconds * 1_000);
      await world.poll();
    }
    expect(receiver.connections).toBe(0);
    expect(asked).toBe(3);
    const log = await host.get(`/v1/webhooks/${receiver.id}/deliveries`);
    expect(ok(log, 200).body.items).toMatchObject([
      {
        event_id: event!.id,
        event: "booking.created",
        status: "failed",
        attempts: 3,
        status_code: null,
        error_code: "blocked_address",
      },
    ]);
    await sender.close();
  },
);
