import { expect, test } from "vitest";
import { dialects, type UserClient } from "../support/world.ts";
import { ok, openBookingWorld } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;

test.each(dialects)(
  "field-faults G7: on %s columns that bookings, hosts and invitations gain reach no event and no body",
  async (dialect) => {
    await using world = await openBookingWorld(dialect);
    const added: Record<string, string> = {
      bookings: "internal_note",
      booking_hosts: "cost_centre",
      booking_attendees: "passport_number",
      scheduling_invitations: "deal_size",
      event_types: "price",
      users: "salary",
    };
    for (const [table, column] of Object.entries(added))
      await world.sql(`ALTER TABLE ${table} ADD COLUMN ${column} text DEFAULT 'xx-${column}-xx'`);
    const host = await world.host();
    const all = [
      "id",
      "host_email",
      "host_name",
      "attendee_name",
      "attendee_email",
      "answers",
      "event_type_name",
    ];
    const hook = await world.hook(host, {
      events: ["booking.*", "scheduling_invitation.*"],
      // Asking by name does not help.
      fields: [...all, ...Object.values(added)],
    });
    const { id: eventTypeId } = await world.eventType([host]);
    const booking = await world.book(await world.invite(host, eventTypeId), at("10:00"));
    ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: at("11:00") }), 200);
    ok(await host.post(`/v1/bookings/${booking.id}/cancel`), 200);
    await world.poll();
    const rows = await world.db.selectFrom("bookings").selectAll().execute();
    expect(JSON.stringify(rows)).toContain("xx-internal_note-xx");
    const texts = [
      ...hook.requests.map(({ body }) => body.toString("utf8")),
      ...(await world.events()).map(({ data }) => data),
      JSON.stringify((await host.get(`/v1/bookings/${booking.id}`)).body),
    ];
    expect(hook.requests).toHaveLength(5);
    for (const text of texts)
      for (const word of [...Object.values(added), "xx-", "email_key", "location_revision", "hash"])
        expect(text).not.toContain(word);
  },
);

test.each(dialects)(
  "field-faults G8: on %s one tenant sees no booking, event, delivery or webhook of the other, over any route",
  async (dialect) => {
    await using world = await openBookingWorld(dialect);
    const inTenant = async (tenant: string) => {
      const host = await world.host({ tenant_id: tenant });
      const admin = await world.user({ tenant_id: tenant, is_admin: true });
      const eventType = await world.eventType([host], { slug: "intake" });
      const hooks = [
        await world.hook(host),
        await world.hook(admin, { events: ["scheduling_invitation.*", "booking.*"] }),
      ];
      const invited = await world.invite(host, eventType.id);
      const booking = await world.book(invited, at("10:00"));
      return { host, admin, eventType, hooks, invited, booking };
    };
    // The same slug, the same time, the same kind of people: nothing but the tenant differs.
    const [north, south] = [await inTenant("north"), await inTenant("south")];
    await world.poll();
    for (const { hooks, booking } of [north, south]) {
      expect(hooks[0]!.bodies().map(({ data }) => data.booking_id)).toEqual([booking.id]);
      expect(hooks[1]!.requests).toEqual([]);
    }
    const walk = async (client: UserClient) => {
      const id = south.booking.id;
      const webhook = south.hooks[0]!.id;
      return [
        await client.get(`/v1/bookings/${id}`),
        await client.patch(`/v1/bookings/${id}/reschedule`, { start_at: at("11:00") }),
        await client.post(`/v1/bookings/${id}/cancel`),
        await client.post(`/v1/bookings/${id}/reassign`, { host_id: north.host.id }),
        await client.put(`/v1/bookings/${id}/location`, { location_value: "x" }),
        await client.get(`/v1/webhooks/${webhook}`),
        await client.patch(`/v1/webhooks/${webhook}`, { fields: ["attendee_email"] }),
        await client.delete(`/v1/webhooks/${webhook}`),
        await client.get(`/v1/webhooks/${webhook}/deliveries`),
        await client.get(`/v1/scheduling-invitations/${south.invited.id}`),
        await client.get(`/v1/scheduling-invitations/${south.invited.id}/slots`),
        await client.post(`/v1/scheduling-invitations/${south.invited.id}/cancel`),
        await client.get(`/v1/event-types/${south.eventType.id}`),
      ];
    };
    for (const client of [north.host, north.admin]) {
      for (const answer of await walk(client)) expect(answer.status).toBe(404);
      const lists = ["bookings", "webhooks", "scheduling-invitations", "event-types"];
      for (const list of lists) {
        const { items } = ok(await client.get(`/v1/${list}?limit=100`), 200).body;
        expect(JSON.stringify(items)).not.toContain("south");
        expect(items.map(({ id }) => id)).not.toContain(south.booking.id);
      }
    }
    // Booking by slug stays in the tenant, and somebody without one cannot reach into either.
    const choice = {
      event_type_slug: "intake",
      start_at: at("12:00"),
      timezone: "UTC",
      name: "Ada",
      email: "ada@example.com",
    };
    const own = ok(await north.admin.post("/v1/bookings", choice), 201).body;
    expect(own.host_id).toBe(north.host.id);
    const loose = await world.user();
    expect((await loose.post("/v1/bookings", choice)).status).toBe(404);
    const southern = await world.hooks.events.list({ projectId: "live", tenantId: "south" }, { limit: 100 });
    expect(southern.items.every(({ data }) => !data.includes(north.booking.id))).toBe(true);
    expect(await world.bookingRow(south.booking.id)).toMatchObject({ status: "confirmed", revision: 1 });
  },
);
