import ICAL from "ical.js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hook, ok } from "../bookings/support/booking-world.ts";
import type { UserClient } from "../support/world.ts";
import { dialects } from "../support/world.ts";
import { json } from "./support/calendar-server.ts";
import { type EffectWorld, eventually, hour, minute, openEffectWorld } from "./support/effect-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: EffectWorld;
  let host: UserClient;
  let second: UserClient;
  let eventTypeId: string;
  beforeAll(async () => {
    world = await openEffectWorld(dialect);
    host = await world.host({ name: "Ada Lovelace" });
    second = await world.host({ name: "Bob" });
    ({ id: eventTypeId } = await world.eventType([host, second], {
      routing_mode: "collective",
      name: "Intake",
    }));
  });
  afterAll(() => world[Symbol.asyncDispose]());
  beforeEach(() => {
    world.calendar.respond = undefined;
    world.calendar.requests.length = 0;
    world.mail.refuse = undefined;
    world.mail.mails.length = 0;
  });

  let made = 0;
  /** Each on a day of its own, at 10:00, a week and more ahead. */
  async function book() {
    const customer = `customer${++made}@example.com`;
    const day = new Date(world.clock.now().getTime() + (7 + made) * 24 * hour).toISOString().slice(0, 10);
    const invited = await world.invite(host, eventTypeId, {
      recipient: { name: "Grace Hopper", email: customer },
    });
    const booked = await world.book(invited, `${day}T10:00:00Z`);
    return { ...booked, customer, day };
  }
  const move = (booked: { manage: string; day: string }, time = "14:00") =>
    world.customer.post(`${booked.manage}/reschedule`, { start_at: `${booked.day}T${time}:00Z` });
  const cancel = (booked: { manage: string }) =>
    world.customer.post(`${booked.manage}/cancel`, { reason: "Not needed" });

  test("bookings 67: booking, moving and cancelling reach the calendars of all hosts and the mail of everybody", async () => {
    const booked = await book();
    await world.effects.runOnce();
    const key = (user: UserClient) => `${booked.id}.${user.id}`;
    expect(world.calendar.calls("PUT")).toHaveLength(2);
    for (const user of [host, second])
      expect(world.calendar.events.get(key(user))).toMatchObject({
        uid: `${booked.id}@appointments.hookwell`,
        sequence: 1,
        host: { id: user.id, email: user.email },
        start_at: booked.start_at,
        meeting_link: user.id === host.id,
      });
    const rows = await world.db
      .selectFrom("booking_hosts")
      .select(["external_event_id", "needs_sync"])
      .where("booking_id", "=", booked.id)
      .execute();
    expect(rows.map((row) => row.needs_sync)).toEqual([0, 0]);
    expect(rows.map((row) => row.external_event_id).sort()).toEqual(
      [`entry-${key(host)}`, `entry-${key(second)}`].sort(),
    );
    expect(world.mail.mails.map((mail) => mail.to[0]).sort()).toEqual(
      [booked.customer, host.email, second.email].sort(),
    );

    ok(await move(booked), 200);
    await world.effects.runOnce();
    expect(world.calendar.events.get(key(second))).toMatchObject({
      sequence: 2,
      start_at: `${booked.day}T14:00:00.000Z`,
    });
    ok(await cancel(booked), 200);
    await world.effects.runOnce();
    expect(world.calendar.events.size).toBe(0);
    expect(world.calendar.calls("PUT")).toHaveLength(4);
    expect(world.calendar.calls("DELETE")).toHaveLength(2);
    expect(world.mail.mails).toHaveLength(9);

    const invites = world.mail.to(booked.customer).map((mail) => {
      const calendar = new ICAL.Component(ICAL.parse(mail.invite));
      const event = new ICAL.Event(calendar.getFirstSubcomponent("vevent")!);
      return {
        method: calendar.getFirstPropertyValue("method"),
        uid: event.uid,
        sequence: event.sequence,
        start: event.startDate.toJSDate().toISOString(),
      };
    });
    const uid = `${booked.id}@appointments.hookwell`;
    expect(invites).toEqual([
      { method: "REQUEST", uid, sequence: 1, start: booked.start_at },
      { method: "REQUEST", uid, sequence: 2, start: `${booked.day}T14:00:00.000Z` },
      { method: "CANCEL", uid, sequence: 3, start: `${booked.day}T14:00:00.000Z` },
    ]);
    const subjects = world.mail.to(booked.customer).map((mail) => mail.parsed.subject?.split(":")[0]);
    expect(subjects).toEqual(["Confirmed", "Changed", "Cancelled"]);
    // Hosts have a calendar that is kept for them: an invite would put the appointment there twice.
    expect(world.mail.to(host.email).map((mail) => mail.invite)).toEqual(["", "", ""]);
    expect(world.mail.to(booked.customer)[2]?.parsed.text).toContain("Not needed");
  });

  test("bookings 67: reminders come a day and an hour before, are planned anew by a move and dropped by a cancel", async () => {
    const booked = await book();
    const moved = await book();
    const cancelled = await book();
    await world.effects.runOnce();
    ok(await move(moved, "15:00"), 200);
    ok(await cancel(cancelled), 200);
    await world.effects.runOnce();
    const reminded = ({ customer }: { customer: string }) =>
      world.mail.to(customer).filter((mail) => mail.parsed.subject?.startsWith("Reminder"));
    const until = async (time: string, before: number) => {
      world.clock.advance(Date.parse(time) - before - world.clock.now().getTime());
      await world.effects.runOnce();
    };

    await until(booked.start_at, 24 * hour + 1);
    expect(reminded(booked)).toHaveLength(0);
    await until(booked.start_at, 24 * hour);
    await until(booked.start_at, 23 * hour);
    expect(reminded(booked)).toHaveLength(1);
    await until(booked.start_at, hour);
    expect(reminded(booked)).toHaveLength(2);
    expect(reminded(booked)[1]?.invite).toBe("");
    expect(reminded(booked)[1]?.parsed.text).toContain("/manage/");

    // The old time of the moved one passes in silence.
    await until(moved.start_at, 24 * hour);
    expect(reminded(moved)).toHaveLength(0);
    await until(moved.start_at, 19 * hour);
    expect(reminded(moved)).toHaveLength(1);
    expect(reminded(moved)[0]?.parsed.subject).toContain("11:00 to 11:30 (America/New_York");
    await until(`${moved.day}T15:00:00Z`, hour);
    expect(reminded(moved)).toHaveLength(2);
    await until(cancelled.start_at, -1);
    expect(reminded(cancelled)).toHaveLength(0);
    const dropped = (await world.steps(cancelled.id)).filter(({ kind }) => kind.startsWith("reminder"));
    expect(dropped.map(({ status, error }) => [status, error])).toEqual([
      ["skipped", "the booking was cancelled"],
      ["skipped", "the booking was cancelled"],
    ]);
  });

  test("bookings 67: the customer's mails hold a link that works; nobody else's mail, no invite, row or log does", async () => {
    const booked = await book();
    await world.effects.runOnce();
    const [mail] = world.mail.to(booked.customer);
    const link = /http\S+\/manage\/[0-9a-f]{64}/.exec(mail?.parsed.text ?? "")?.[0] ?? "";
    const token = link.slice(-64);
    expect(booked.manage).not.toContain(token);
    expect(mail?.invite).not.toContain("manage");
    for (const user of [host, second]) expect(world.mail.to(user.email)[0]?.raw).not.toContain("manage");
    expect(JSON.stringify(world.calendar.requests)).not.toContain("manage");
    const stored = JSON.stringify([
      await world.db.selectFrom("side_effects").selectAll().execute(),
      await world.db.selectFrom("booking_manage_tokens").selectAll().execute(),
      world.log,
    ]);
    expect(stored).not.toContain(token);
    expect(stored).not.toContain("/manage/");
    const { pathname } = new URL(link);
    ok(await world.customer.post(`${pathname}/reschedule`, { start_at: `${booked.day}T11:00:00Z` }), 200);
    // And so does the one of the answer, as long as it is valid.
    ok(await cancel(booked), 200);
  });

  test("bookings 64: a calendar that never answers holds back neither the booking nor its event", async () => {
    const hook = await world.hook(host);
    world.calendar.respond = (request) => (request.method === "PUT" ? true : undefined);
    const booked = await book();
    const stuck = world.effects.runOnce();
    await eventually(() => world.calendar.calls("PUT").length).toBe(2);
    await world.poll();
    expect(bodiesOf(hook, booked.id).map((body) => body.event)).toEqual(["booking.created"]);
    expect(await world.statuses(booked.id)).toContain("calendar_create waiting");
    for (const socket of [...world.calendar.open]) socket.destroy();
    await stuck;
    // The mails waited for one try of the calendar, which may bring a link, and not for another.
    expect(world.mail.to(booked.customer)).toHaveLength(1);
    expect(await world.statuses(booked.id)).toEqual([
      "calendar_create waiting",
      "calendar_create waiting",
      "mail_confirmation done",
      "mail_confirmation done",
      "mail_confirmation done",
      "reminder_24h waiting",
      "reminder_1h waiting",
    ]);
    world.calendar.respond = undefined;
    world.clock.advance(minute);
    await world.effects.runOnce();
    expect((await world.steps(booked.id))[0]).toMatchObject({ status: "done", attempts: 2, error: null });
  });

  test("bookings 64: when free/busy cannot be asked, nothing is booked", async () => {
    const invited = await world.invite(host, eventTypeId);
    world.calendar.respond = (_request, response) => {
      json(response, 500, {});
      return true;
    };
    const refused = await world.tryBook(invited.token, "2031-05-05T10:00:00Z");
    expect([refused.status, refused.body.code]).toEqual([503, "calendar_unreachable"]);
    world.calendar.respond = undefined;
    world.calendar.busy.push({
      host_id: second.id,
      start_at: "2031-04-15T10:15:00Z",
      end_at: "2031-04-15T10:20:00Z",
    });
    expect((await world.tryBook(invited.token, "2031-04-15T10:00:00Z")).status).toBe(409);
    ok(await world.tryBook(invited.token, "2031-04-15T10:30:00Z"), 201);
    world.calendar.busy.length = 0;
  });

  test("bookings 65: a mail server that refuses everything stops neither event, calendar nor reminders", async () => {
    const hook = await world.hook(host);
    world.mail.refuse = () => ({ code: 451, text: "the disk is full" });
    const booked = await book();
    await world.effects.runOnce();
    await world.poll();
    expect(bodiesOf(hook, booked.id).map((body) => body.event)).toEqual(["booking.created"]);
    expect(world.calendar.events.has(`${booked.id}.${host.id}`)).toBe(true);
    const steps = await world.steps(booked.id);
    const mail = steps.find(({ target }) => target === booked.customer);
    expect(mail).toMatchObject({ status: "waiting", attempts: 1 });
    expect(mail?.error).toContain("the disk is full");
    world.mail.refuse = undefined;
    world.clock.advance(Date.parse(booked.start_at) - 24 * hour - world.clock.now().getTime());
    await world.effects.runOnce();
    const subjects = world.mail.to(booked.customer).map((mail) => mail.parsed.subject?.split(":")[0]);
    expect(subjects.sort()).toEqual(["Confirmed", "Reminder"]);
  });

  test.each(["first", "last"])(
    "bookings 66: with the side effects %s, every event is delivered once to each subscription",
    async (order) => {
      const hook = await world.hook(host);
      const other = await world.hook(host);
      const both = async () => {
        const [first, last] =
          order === "first"
            ? [() => world.effects.runOnce(), () => world.poll()]
            : [() => world.poll(), () => world.effects.runOnce()];
        await first();
        await last();
      };
      const booked = await book();
      await both();
      ok(await move(booked), 200);
      await both();
      ok(await cancel(booked), 200);
      await both();
      await both();
      const types = ["booking.created", "booking.rescheduled", "booking.cancelled"];
      expect((await world.bookingEvents(booked.id)).map((event) => event.type)).toEqual(types);
      for (const receiver of [hook, other])
        expect(bodiesOf(receiver, booked.id).map((body) => body.event)).toEqual(types);
      for (const receiver of [hook, other]) ok(await host.delete(`/v1/webhooks/${receiver.id}`), 204);
    },
  );

  test("bookings 23: a link that arrives, a calendar that heals, a link of its own and a reminder make no event", async () => {
    world.calendar.respond = (request, response) => {
      if (request.method !== "PUT") return undefined;
      json(response, 422, {});
      return true;
    };
    const booked = await book();
    const before = await world.bookingRow(booked.id);
    await world.effects.runOnce();
    const sync = () =>
      world.db
        .selectFrom("booking_hosts")
        .select("needs_sync")
        .where("booking_id", "=", booked.id)
        .execute()
        .then((rows) => rows.map((row) => row.needs_sync));
    expect(await sync()).toEqual([1, 1]);
    expect((await world.statuses(booked.id)).slice(0, 2)).toEqual([
      "calendar_create failed",
      "calendar_create failed",
    ]);
    world.calendar.respond = undefined;
    expect(await world.effects.reconcile()).toBe(2);
    await world.effects.runOnce();
    expect(await sync()).toEqual([0, 0]);
    expect(await world.effects.reconcile()).toBe(0);
    world.clock.advance(Date.parse(booked.start_at) - hour - world.clock.now().getTime());
    await world.effects.runOnce();
    expect(world.mail.to(booked.customer).map((mail) => mail.parsed.subject?.split(":")[0])).toEqual([
      "Confirmed",
      "Reminder",
    ]);
    expect(await world.bookingEvents(booked.id)).toHaveLength(1);
    expect(await world.bookingRow(booked.id)).toEqual({
      ...before,
      location_value: `https://meet.example.com/${booked.id.slice(0, 8)}`,
    });
  });

  test("bookings 23: a calendar that somebody marked is brought in line, also one without a step to repeat", async () => {
    const booked = await book();
    await world.effects.runOnce();
    world.calendar.events.clear();
    await world.db
      .updateTable("booking_hosts")
      .set({ needs_sync: 1 })
      .where("booking_id", "=", booked.id)
      .where("user_id", "=", second.id)
      .execute();
    const older = await book();
    await world.db.deleteFrom("side_effects").where("booking_id", "=", older.id).execute();
    await world.db
      .updateTable("booking_hosts")
      .set({ needs_sync: 1 })
      .where("booking_id", "=", older.id)
      .execute();
    expect(await world.effects.reconcile()).toBe(3);
    await world.effects.runOnce();
    expect([...world.calendar.events.keys()].sort()).toEqual(
      [`${booked.id}.${second.id}`, `${older.id}.${host.id}`, `${older.id}.${second.id}`].sort(),
    );
    expect(await world.bookingEvents(older.id)).toHaveLength(1);
  });

  test("bookings 57: a link that the calendar made for revision 1 and that comes after revision 2 enriches nothing newer", async () => {
    const hook = await world.hook(host);
    let answer: (() => void) | undefined;
    world.calendar.respond = (request, response) => {
      if (request.method !== "PUT" || request.body.host.id !== host.id || request.body.sequence !== 1)
        return undefined;
      answer = () => json(response, 201, { id: "late", meeting_url: "https://meet.example.com/first" });
      return true;
    };
    const booked = await book();
    const running = world.effects.runOnce();
    await eventually(() => answer !== undefined).toBe(true);
    ok(await move(booked), 200);
    answer?.();
    // Only what was begun: the step of revision 2 is not taken up before the first poll.
    world.calendar.respond = () => true;
    await eventually(async () => (await world.bookingRow(booked.id))?.location_value).toBe(
      "https://meet.example.com/first",
    );
    expect(await world.bookingRow(booked.id)).toMatchObject({ revision: 2, location_revision: 1 });
    await world.poll();
    expect(
      bodiesOf(hook, booked.id).map(({ event, data }) => [event, data.revision, data.location_value]),
    ).toEqual([
      ["booking.created", 1, ""],
      ["booking.rescheduled", 2, ""],
    ]);
    for (const socket of [...world.calendar.open]) socket.destroy();
    world.calendar.respond = undefined;
    await running;
    world.clock.advance(minute);
    await world.effects.runOnce();
    // The link of revision 2, made with the move, takes its place; no event tells of it.
    expect(await world.bookingRow(booked.id)).toMatchObject({
      revision: 2,
      location_revision: 2,
      location_value: `https://meet.example.com/${booked.id.slice(0, 8)}`,
    });
    expect(await world.bookingEvents(booked.id)).toHaveLength(2);
    // Nor does the entry of the new time name the link of the old one.
    const moved = world.calendar.calls("PUT").filter(({ body }) => body.sequence === 2);
    expect(moved.length).toBeGreaterThanOrEqual(2);
    for (const { body } of moved) expect(body.location).not.toBe("https://meet.example.com/first");
  });

  test("bookings 57: a link that is there before the first poll is in the body of its revision", async () => {
    const hook = await world.hook(host);
    const booked = await book();
    await world.effects.runOnce();
    await world.poll();
    expect(bodiesOf(hook, booked.id)[0]?.data).toMatchObject({
      revision: 1,
      location_value: `https://meet.example.com/${booked.id.slice(0, 8)}`,
    });
    expect(world.mail.to(booked.customer)[0]?.parsed.text).toContain("https://meet.example.com/");
  });
});

/** What a receiver got about one booking, in the order of the revisions: the order of arrival is not promised. */
function bodiesOf(hook: Hook, bookingId: string) {
  return hook
    .bodies()
    .filter((body) => body.data.booking_id === bookingId)
    .sort((left, right) => left.data.revision - right.data.revision);
}
