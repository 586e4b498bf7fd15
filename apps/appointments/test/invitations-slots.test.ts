import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type BookingWorld,
  dataOf,
  type Invited,
  ok,
  openBookingWorld,
} from "./bookings/support/booking-world.ts";
import { wallClock } from "./scheduling/wall-clock.ts";
import { dialects, type UserClient } from "./support/world.ts";

/** The world's time is Monday, 3 March 2031, 08:00 UTC. */
describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  let owner: UserClient;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
    owner = await world.host();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const hours = (user: UserClient, start: string, end: string, overrides: readonly unknown[] = []) =>
    world.admin.put(`/v1/users/${user.id}/availability`, {
      rules: [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day_of_week: day, start_time: start, end_time: end })),
      overrides,
    });
  const slots = async ({ token }: Invited, from: string, to = from, tz = "UTC") => {
    const { body } = ok(
      await world.customer.get(
        `/v1/schedule/${token}/slots?from=${from}&to=${to}&tz=${encodeURIComponent(tz)}`,
      ),
      200,
    );
    return body.slots;
  };
  const starts = async (invited: Invited, from: string, to = from, tz = "UTC") =>
    (await slots(invited, from, to, tz)).map((slot) => slot.start_at.slice(11, 16));

  test("slots are local dates of tz, inclusive; staff and customer are shown the same", async () => {
    const type = await world.eventType([owner]);
    const invited = await world.invite(owner, type.id);
    const morning = ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30", "12:00", "12:30"];
    const afternoon = ["13:00", "13:30", "14:00", "14:30", "15:00", "15:30", "16:00", "16:30"];
    expect(await starts(invited, "2031-03-04")).toEqual([...morning, ...afternoon]);
    expect(await slots(invited, "2031-03-04")).toContainEqual({
      start_at: "2031-03-04T09:00:00.000Z",
      end_at: "2031-03-04T09:30:00.000Z",
      host_ids: [owner.id],
    });
    // In Auckland it is the next day from 11:00 UTC on.
    expect((await starts(invited, "2031-03-05", "2031-03-05", "Pacific/Auckland")).slice(0, 2)).toEqual([
      "11:00",
      "11:30",
    ]);
    const query = "?from=2031-03-04&to=2031-03-05&tz=UTC";
    const staff = ok(await owner.get(`/v1/scheduling-invitations/${invited.id}/slots${query}`), 200).body;
    expect(staff).toEqual({ slots: await slots(invited, "2031-03-04", "2031-03-05") });
    expect(staff.slots).toHaveLength(32);
  });

  test.each([
    "from=2031-02-30",
    "from=2031-03-05&to=2031-03-04",
    "from=2031-03-04&to=2033-03-04",
    "tz=Mars",
    "tz=%2B01:00",
  ])("%s is 400", async (query) => {
    const type = await world.eventType([owner]);
    const { token } = await world.invite(owner, type.id);
    expect((await world.customer.get(`/v1/schedule/${token}/slots?${query}`)).status).toBe(400);
  });

  test("a window of dates holds over the change of the clocks; its last appointment ends at its end", async () => {
    const vienna = await world.user({ iana_timezone: "Europe/Vienna" });
    await hours(vienna, "00:00", "24:00");
    const type = await world.eventType([vienna], { duration_minutes: 60, slot_interval_minutes: 60 });
    // 30 March 2031 has 23 hours in Vienna.
    const invited = await world.invite(vienna, type.id, {
      available_from: "2031-03-30",
      available_until: "2031-03-30",
      availability_timezone: "Europe/Vienna",
    });
    const all = await slots(invited, "2031-03-28", "2031-04-02");
    expect(all).toHaveLength(23);
    expect(all[0]?.start_at).toBe("2031-03-29T23:00:00.000Z");
    expect(all.at(-1)?.end_at).toBe("2031-03-30T22:00:00.000Z");
    const local = all.map((slot) => wallClock(Date.parse(slot.start_at), "Europe/Vienna"));
    expect(local.every((wall) => wall.startsWith("2031-03-30"))).toBe(true);
    expect(local).not.toContain("2031-03-30 02:00");
    // The last one can be booked, the one after it cannot.
    expect((await world.tryBook(invited.token, "2031-03-30T22:00:00Z")).status).toBe(409);
    ok(await world.tryBook(invited.token, "2031-03-30T21:00:00Z"), 201);
  });

  test("exact bounds are exact: the whole appointment fits, and may end exactly at the upper one", async () => {
    const type = await world.eventType([owner]);
    const fits = await world.invite(owner, type.id, {
      available_from: "2031-03-06T10:00:00+01:00",
      available_until: "2031-03-06T10:30:00Z",
    });
    expect(await starts(fits, "2031-03-06")).toEqual(["09:00", "09:30", "10:00"]);
    const tight = await world.invite(owner, type.id, {
      available_from: "2031-03-06T09:00:00.001Z",
      available_until: "2031-03-06T10:29:59.999Z",
    });
    expect(await starts(tight, "2031-03-06")).toEqual(["09:30"]);
    for (const start of ["09:00", "10:00"])
      expect((await world.tryBook(tight.token, `2031-03-06T${start}:00Z`)).status).toBe(409);
    ok(await world.tryBook(tight.token, "2031-03-06T09:30:00Z"), 201);
  });

  test("a window without a zone is in the zone of its creator, and stays there when the creator moves", async () => {
    const creator = await world.user({ iana_timezone: "Asia/Tokyo" });
    await hours(creator, "00:00", "24:00");
    const type = await world.eventType([creator]);
    const invited = await world.invite(creator, type.id, {
      available_from: "2031-03-07",
      available_until: "2031-03-07",
    });
    ok(await creator.patch("/v1/users/me", { iana_timezone: "America/New_York" }), 200);
    const all = await slots(invited, "2031-03-05", "2031-03-09");
    expect(all[0]?.start_at).toBe("2031-03-06T15:00:00.000Z");
    expect(all.at(-1)?.end_at).toBe("2031-03-07T15:00:00.000Z");
  });

  test("notice and future limit are the stricter of what was retained and what the event type says now", async () => {
    const type = await world.eventType([owner], { min_notice_minutes: 120, max_future_days: 10 });
    const invited = await world.invite(owner, type.id);
    const at = `/v1/event-types/${type.id}`;
    const bounds = async () => {
      const all = await slots(invited, "2031-03-03", "2031-03-31");
      return [all[0]?.start_at, all.at(-1)?.start_at].map((start) => start?.slice(5, 16));
    };
    expect(await bounds()).toEqual(["03-03T10:00", "03-12T16:30"]);
    ok(await owner.patch(at, { min_notice_minutes: 0, max_future_days: 0 }), 200);
    expect(await bounds()).toEqual(["03-03T10:00", "03-12T16:30"]);
    ok(await owner.patch(at, { min_notice_minutes: 26 * 60, max_future_days: 3 }), 200);
    expect(await bounds()).toEqual(["03-04T10:00", "03-05T16:30"]);
    expect((await world.tryBook(invited.token, "2031-03-03T11:00:00Z")).status).toBe(409);
    expect((await world.tryBook(invited.token, "2031-03-07T11:00:00Z")).status).toBe(409);
  });

  test("duration, interval, buffers, routing and hosts are those of the issue; hours and overrides those of now", async () => {
    const [first, second] = [await world.host(), await world.host()];
    const type = await world.eventType([first, second], { slot_interval_minutes: 60 });
    const invited = await world.invite(first, type.id);
    const change = {
      duration_minutes: 90,
      slot_interval_minutes: 15,
      buffer_before_minutes: 240,
      routing_mode: "collective",
      location_value: "elsewhere",
    };
    ok(await first.patch(`/v1/event-types/${type.id}`, change), 200);
    ok(await first.patch(`/v1/event-types/${type.id}/hosts/${second.id}`, { priority: -5 }), 200);
    expect(await slots(invited, "2031-03-10")).toHaveLength(8);
    expect((await slots(invited, "2031-03-10"))[0]).toEqual({
      start_at: "2031-03-10T09:00:00.000Z",
      end_at: "2031-03-10T09:30:00.000Z",
      host_ids: [first.id],
    });
    await hours(first, "09:00", "17:00", [
      { date: "2031-03-10", is_available: true, start_time: "12:00", end_time: "13:00" },
      { date: "2031-03-11", is_available: false },
    ]);
    expect(await starts(invited, "2031-03-10", "2031-03-11")).toEqual(["12:00"]);
  });

  test("host_id is one required host, who is never replaced by another, in any routing mode", async () => {
    for (const mode of ["fixed", "collective", "priority", "round_robin"]) {
      const [named, free] = [await world.host(), await world.host()];
      const type = await world.eventType(
        [
          { user: free, role: "rotation" },
          { user: named, role: "optional" },
        ],
        { routing_mode: mode },
      );
      const invited = await world.invite(free, type.id, { host_id: named.id });
      const read = ok(await free.get(`/v1/scheduling-invitations/${invited.id}`), 200).body;
      expect(read).toMatchObject({ hosts: [{ user_id: named.id, role: "required", priority: 0 }] });
      await hours(named, "09:00", "10:00");
      const offered = await slots(invited, "2031-03-10");
      expect(offered.map((slot) => [slot.start_at.slice(11, 16), slot.host_ids])).toEqual([
        ["09:00", [named.id]],
        ["09:30", [named.id]],
      ]);
      expect((await world.tryBook(invited.token, "2031-03-10T11:00:00Z")).status).toBe(409);
      // Busy in another appointment.
      const other = await world.invite(free, type.id, { host_id: named.id });
      await world.book(other, "2031-03-10T09:00:00Z");
      expect(await starts(invited, "2031-03-10")).toEqual(["09:30"]);
      expect((await world.tryBook(invited.token, "2031-03-10T09:00:00Z")).status).toBe(409);
      // Gone altogether.
      ok(await world.admin.post(`/v1/users/${named.id}/suspend`), 200);
      expect(await slots(invited, "2031-03-10")).toEqual([]);
      expect((await world.tryBook(invited.token, "2031-03-10T09:30:00Z")).status).toBe(409);
    }
  });

  test("round robin gives the slot to who has the fewest upcoming bookings; archived hosts are left out", async () => {
    const [lead, busy, idle] = [await world.host(), await world.host(), await world.host()];
    const type = await world.eventType(
      [
        { user: lead, role: "required" },
        { user: busy, role: "rotation" },
        { user: idle, role: "rotation" },
      ],
      { routing_mode: "round_robin" },
    );
    const invite = () => world.invite(lead, type.id);
    const hostsAt = async (start: string) =>
      (await slots(await invite(), start.slice(0, 10))).find((slot) => slot.start_at === start)?.host_ids;
    expect(await hostsAt("2031-03-10T09:00:00.000Z")).toEqual([busy.id, lead.id]);
    await world.book(await invite(), "2031-03-10T09:00:00Z");
    expect(await hostsAt("2031-03-11T09:00:00.000Z")).toEqual([idle.id, lead.id]);
    // The lead is in that appointment too, so that time is gone for all.
    expect(await hostsAt("2031-03-10T09:00:00.000Z")).toBeUndefined();
    ok(await world.admin.post(`/v1/users/${idle.id}/archive`), 200);
    expect(await hostsAt("2031-03-11T09:00:00.000Z")).toEqual([busy.id, lead.id]);
  });

  test("a booking keeps its buffers free, for appointments of every kind", async () => {
    const host = await world.host();
    const wide = await world.eventType([host], { buffer_before_minutes: 30, buffer_after_minutes: 60 });
    const bare = await world.eventType([host]);
    await world.book(await world.invite(host, wide.id), "2031-03-10T12:00:00Z");
    const around = async (typeId: string) =>
      (await starts(await world.invite(host, typeId), "2031-03-10")).filter(
        (start) => start >= "10:00" && start < "15:00",
      );
    expect(await around(bare.id)).toEqual(["10:00", "10:30", "11:00", "13:30", "14:00", "14:30"]);
    expect(await around(wide.id)).toEqual(["10:00", "10:30", "13:30", "14:00", "14:30"]);
  });

  test("entries of calendars are busy; one that cannot be asked hides no slots, and booking then refuses", async () => {
    let fault: Error | undefined;
    const asked: string[][] = [];
    const taken = { start: Date.parse("2031-03-10T09:00:00Z"), end: Date.parse("2031-03-10T16:30:00Z") };
    const other = await openBookingWorld(dialect, {
      start: {
        calendars: {
          async freeBusy(ids) {
            asked.push([...ids]);
            if (fault !== undefined) throw fault;
            return new Map(ids.map((id) => [id, [taken]]));
          },
        },
      },
    });
    try {
      const host = await other.host();
      const invited = await other.invite(host, (await other.eventType([host])).id);
      const path = `/v1/schedule/${invited.token}/slots?from=2031-03-10&to=2031-03-10&tz=UTC`;
      const offered = async () => ok(await other.customer.get(path), 200).body.slots.length;
      expect(await offered()).toBe(1);
      expect(asked.at(-1)).toEqual([host.id]);
      fault = new Error("the calendar is away");
      expect(await offered()).toBe(16);
      expect(other.log.some((line) => line.includes("the calendar is away"))).toBe(true);
      expect((await other.tryBook(invited.token, "2031-03-10T16:30:00Z")).status).toBe(503);
    } finally {
      await other[Symbol.asyncDispose]();
    }
  });

  test("field-faults B8: an appointment in a doubled hour is one instant in slots, bookings and every event", async () => {
    const host = await world.user({ iana_timezone: "America/New_York" });
    await hours(host, "00:00", "05:00");
    const type = await world.eventType([host], { max_future_days: 0, duration_minutes: 45 });
    const invited = await world.invite(host, type.id, {
      available_from: "2031-11-02",
      available_until: "2031-11-02",
      availability_timezone: "America/New_York",
    });
    // 01:00 to 02:00 is there twice: 05:30Z and 06:30Z are both half past one.
    const twice = (await slots(invited, "2031-11-02", "2031-11-02", "America/New_York")).filter((slot) =>
      wallClock(Date.parse(slot.start_at), "America/New_York").endsWith("01:30"),
    );
    expect(twice.map((slot) => slot.start_at)).toEqual([
      "2031-11-02T05:30:00.000Z",
      "2031-11-02T06:30:00.000Z",
    ]);
    const hook = await world.hook(host, { events: ["booking.*", "scheduling_invitation.*"] });
    const booking = await world.book(invited, "2031-11-02T01:30:00-05:00");
    expect(booking.start_at).toBe("2031-11-02T06:30:00.000Z");
    const read = ok(await host.get(`/v1/bookings/${booking.id}`), 200).body;
    ok(
      await world.customer.post(`${booking.manage}/reschedule`, { start_at: "2031-11-02T01:30:00-04:00" }),
      200,
    );
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    await world.poll();

    const [created, moved, cancelled] = (await world.bookingEvents(booking.id)).map(dataOf);
    const first = { start_at: "2031-11-02T06:30:00.000Z", end_at: "2031-11-02T07:15:00.000Z" };
    const second = { start_at: "2031-11-02T05:30:00.000Z", end_at: "2031-11-02T06:15:00.000Z" };
    expect(read).toMatchObject(first);
    expect(created).toMatchObject({ ...first, duration_minutes: 45 });
    expect(moved).toMatchObject({
      ...second,
      previous_start_at: first.start_at,
      previous_end_at: first.end_at,
      duration_minutes: 45,
    });
    expect(cancelled).toMatchObject(second);
    const booked = (await world.invitationEvents(invited.id)).map(dataOf)[1];
    expect(booked).toMatchObject(first);

    // Every time in every body is written one way.
    const bodies = hook.requests.map((request) => request.body.toString("utf8"));
    expect(bodies).toHaveLength(5);
    for (const body of bodies) {
      const times = body.match(/"\d{4}-\d\d-\d\d[^"]*"/g) ?? [];
      expect(times.length).toBeGreaterThanOrEqual(2);
      for (const time of times) expect(time).toMatch(/^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"$/);
    }
  });
});
