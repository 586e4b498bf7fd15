import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../src/database/open.ts";
import { sideEffects } from "../../src/side-effects/index.ts";
import { ok } from "../bookings/support/booking-world.ts";
import { dialects, type UserClient } from "../support/world.ts";
import { json } from "./support/calendar-server.ts";
import { type EffectWorld, eventually, hour, minute, openEffectWorld } from "./support/effect-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: EffectWorld;
  let host: UserClient;
  let eventTypeId: string;
  let customer: string;
  let made = 0;

  async function newHost(): Promise<void> {
    customer = `grace.of.test.${++made}@example.com`;
    host = await world.host({ name: "Ada" });
    ({ id: eventTypeId } = await world.eventType([host], { name: "Intake" }));
  }

  async function book(startAt = "2031-04-20T10:00:00Z", email = customer) {
    const recipient = { name: "Grace Hopper", email };
    return await world.book(await world.invite(host, eventTypeId, { recipient }), startAt);
  }
  const move = async (booked: { manage: string }, startAt: string) =>
    ok(await world.customer.post(`${booked.manage}/reschedule`, { start_at: startAt }), 200);
  const cancel = async (booked: { manage: string }) =>
    ok(await world.customer.post(`${booked.manage}/cancel`, {}), 200);
  const subjects = () => world.mail.to(customer).map((mail) => mail.parsed.subject?.split(":")[0]);

  describe("with both providers", () => {
    beforeAll(async () => {
      world = await openEffectWorld(dialect);
    });
    afterAll(() => world[Symbol.asyncDispose]());
    beforeEach(async () => {
      world.calendar.respond = undefined;
      world.calendar.requests.length = 0;
      world.calendar.events.clear();
      world.mail.refuse = undefined;
      world.mail.mails.length = 0;
      await world.db.deleteFrom("side_effects").execute();
      await newHost();
    });

    test("bookings 65: a mail is tried six times with growing waits, then it has failed, visibly", async () => {
      world.mail.refuse = (address) => (address === customer ? { code: 451, text: "greylisted" } : undefined);
      const booked = await book();
      const mail = async () =>
        (await world.steps(booked.id)).find(
          ({ target, kind }) => target === customer && kind === "mail_confirmation",
        );
      const waits: number[] = [];
      for (let tries = 1; tries <= 6; tries += 1) {
        await world.effects.runOnce();
        // Nothing more before its time.
        expect(await world.effects.runOnce()).toBe(0);
        const step = await mail();
        expect(step?.attempts).toBe(tries);
        if (step?.next_attempt_at == null) break;
        const wait = Date.parse(step.next_attempt_at) - world.clock.now().getTime();
        waits.push(wait);
        world.clock.advance(wait - 1);
        expect(await world.effects.runOnce()).toBe(0);
        world.clock.advance(1);
      }
      expect(waits).toEqual([0.5, 2, 10, 60, 240].map((minutes) => minutes * minute));
      expect(await mail()).toMatchObject({ status: "failed", attempts: 6, next_attempt_at: null });
      expect((await mail())?.error).toContain("greylisted");
      world.clock.advance(24 * hour);
      await world.effects.runOnce();
      expect(await mail()).toMatchObject({ status: "failed", attempts: 6 });
      expect(
        world.log.filter((line) => line.includes(`mail_confirmation of booking ${booked.id}`)),
      ).toHaveLength(6);
      expect(world.log.join("\n")).not.toContain("/manage/");
    });

    test("bookings 65: a mailbox that does not exist is tried once", async () => {
      world.mail.refuse = (address) => (address === customer ? { code: 550, text: "nobody" } : undefined);
      const booked = await book();
      await world.effects.runOnce();
      expect((await world.steps(booked.id)).find(({ target }) => target === customer)).toMatchObject({
        status: "failed",
        attempts: 1,
      });
    });

    test("bookings 65: mails of several changes arrive in their order; one that failed gives way to a later one", async () => {
      const booked = await book();
      await move(booked, "2031-04-20T11:00:00Z");
      await cancel(booked);
      await world.effects.runOnce();
      expect(subjects()).toEqual(["Confirmed", "Changed", "Cancelled"]);

      world.mail.refuse = () => ({ code: 451, text: "later" });
      world.mail.mails.length = 0;
      const other = await book("2031-04-21T10:00:00Z");
      await world.effects.runOnce();
      await move(other, "2031-04-21T11:00:00Z");
      world.mail.refuse = undefined;
      await world.effects.runOnce();
      world.clock.advance(hour);
      await world.effects.runOnce();
      expect(subjects()).toEqual(["Changed"]);
      expect((await world.steps(other.id)).find(({ kind }) => kind === "mail_confirmation")).toMatchObject({
        status: "skipped",
        error: "a later change came first",
      });
    });

    test("bookings 64: mails wait twenty seconds for a calendar that is not asked, and no longer", async () => {
      const booked = await book();
      await world.db
        .updateTable("side_effects")
        .set({ run_at: booked.start_at })
        .where("booking_id", "=", booked.id)
        .where("lane", "=", "calendar")
        .execute();
      world.clock.advance(19_999);
      expect(await world.effects.runOnce()).toBe(0);
      world.clock.advance(1);
      expect(await world.effects.runOnce()).toBe(2);
      expect(subjects()).toEqual(["Confirmed"]);
    });

    test("bookings 67: a calendar is told the last change only, and an entry that is gone is made again", async () => {
      const booked = await book();
      await move(booked, "2031-04-20T11:00:00Z");
      await world.effects.runOnce();
      expect(world.calendar.calls("PUT").map(({ body }) => [body.sequence, body.start_at])).toEqual([
        [2, "2031-04-20T11:00:00.000Z"],
      ]);
      world.calendar.events.clear();
      await move(booked, "2031-04-20T12:00:00Z");
      await world.effects.runOnce();
      expect([...world.calendar.events.values()]).toMatchObject([{ sequence: 3 }]);
    });

    test("bookings 67: a calendar that stays broken is tried by the reconciler, and in line again when it heals", async () => {
      world.calendar.respond = (request, response) => {
        if (request.method === "POST") return undefined;
        json(response, 500, {});
        return true;
      };
      const booked = await book();
      const step = async () => (await world.steps(booked.id))[0];
      const needsSync = async () =>
        (
          await world.db
            .selectFrom("booking_hosts")
            .select("needs_sync")
            .where("booking_id", "=", booked.id)
            .executeTakeFirstOrThrow()
        ).needs_sync;
      for (let tries = 0; tries < 6; tries += 1) {
        await world.effects.runOnce();
        world.clock.advance(4 * hour);
      }
      expect(await step()).toMatchObject({
        status: "failed",
        attempts: 6,
        error: "the calendar answered 500",
      });
      expect(await needsSync()).toBe(1);
      await world.effects.reconcile();
      await world.effects.runOnce();
      expect(await step()).toMatchObject({ status: "failed", attempts: 7 });
      await cancel(booked);
      world.calendar.respond = undefined;
      await world.effects.runOnce();
      expect(await needsSync()).toBe(0);
      expect(world.calendar.events.size).toBe(0);
      expect(await world.effects.reconcile()).toBe(0);
    });

    test("bookings 67: a step of a process that died is done by another when its lease ends, with the same Message-ID", async () => {
      const booked = await book();
      // What a process leaves behind that took the mail and was killed.
      await world.db
        .updateTable("side_effects")
        .set({ attempts: 1, lease_until: new Date(world.clock.now().getTime() + minute).toISOString() })
        .where("booking_id", "=", booked.id)
        .where("target", "=", customer)
        .where("lane", "=", "mail")
        .execute();
      await world.effects.runOnce();
      expect(subjects()).toEqual([]);
      world.clock.advance(minute);
      await world.effects.runOnce();
      expect(subjects()).toEqual(["Confirmed"]);
      const [row] = await world.db
        .selectFrom("side_effects")
        .selectAll()
        .where("booking_id", "=", booked.id)
        .where("target", "=", customer)
        .where("lane", "=", "mail")
        .execute();
      expect(row).toMatchObject({ status: "done", attempts: 2, lease_until: null });
      expect(world.mail.to(customer)[0]?.parsed.messageId).toBe(`<${row?.id}@book.example.com>`);
    });

    test("bookings 67: a process that dies at every try does not send for ever", async () => {
      const booked = await book();
      await world.db
        .updateTable("side_effects")
        .set({ attempts: 6, lease_until: world.clock.now().toISOString() })
        .where("booking_id", "=", booked.id)
        .where("lane", "=", "mail")
        .execute();
      await world.effects.runOnce();
      expect(world.mail.mails).toEqual([]);
      const mails = (await world.steps(booked.id)).filter(({ kind }) => kind === "mail_confirmation");
      expect(mails.map(({ status, error }) => [status, error])).toEqual([
        ["failed", "the process ended during try 6"],
        ["failed", "the process ended during try 6"],
      ]);
    });

    test("bookings 67: two processes on one database send every mail once", async () => {
      const addresses = Array.from({ length: 12 }, (_, index) => `grace${index}@example.com`);
      for (const [index, email] of addresses.entries())
        await book(`2031-04-${21 + Math.floor(index / 6)}T${10 + (index % 6)}:00:00Z`, email);
      // SQLite is for one process, which may have two runners at most.
      const second = dialect === "postgres" ? openDatabase(world.location) : undefined;
      const other = sideEffects({ ...world.deps, db: second?.db ?? world.db });
      const counts = await Promise.all([world.effects.runOnce(), other.runOnce()]);
      expect(counts[0]! + counts[1]!).toBe(36);
      expect(world.mail.mails).toHaveLength(24);
      for (const email of addresses) expect(world.mail.to(email)).toHaveLength(1);
      expect(world.calendar.calls("PUT")).toHaveLength(12);
      await second?.close();
    });

    test("bookings 67: an ordinary booking has its calendar, mails and rising sequence too; a new host takes it over", async () => {
      const other = await world.host({ name: "Bob" });
      ok(
        await host.post(`/v1/event-types/${eventTypeId}/hosts`, {
          user_id: other.id,
          role: "required",
          priority: 5,
        }),
        201,
      );
      const { body: kind } = await host.get(`/v1/event-types/${eventTypeId}`);
      const made = ok(
        await host.post("/v1/bookings", {
          event_type_slug: kind.slug,
          start_at: "2031-04-20T10:00:00Z",
          timezone: "Europe/Vienna",
          name: "Grace Hopper",
          email: customer,
        }),
        201,
      );
      await world.effects.runOnce();
      ok(await world.admin.post(`/v1/bookings/${made.body.id}/reassign`, { host_id: other.id }), 200);
      await world.effects.runOnce();
      expect([...world.calendar.events].map(([key, { sequence }]) => [key, sequence])).toEqual([
        [`${made.body.id}.${other.id}`, 1],
      ]);
      expect(world.mail.to(host.email).at(-1)?.parsed.text).toContain("Bob has taken it over");
      const sequences = world.mail.to(customer).map((mail) => /SEQUENCE:(\d+)/.exec(mail.invite)?.[1]);
      expect(sequences).toEqual(["0", "1"]);
    });

    test("bookings 64: stopping waits for what was begun, begins nothing, and the rest is done after a restart", async () => {
      let answer: (() => void) | undefined;
      world.calendar.respond = (request, response) => {
        if (request.method !== "PUT") return undefined;
        answer = () => json(response, 201, { id: "entry" });
        return true;
      };
      const background = sideEffects(world.deps);
      background.start();
      const booked = await book();
      background.kick();
      await eventually(() => answer !== undefined).toBe(true);
      let isStopped = false;
      const stopping = background.stop().then(() => {
        isStopped = true;
      });
      expect(isStopped).toBe(false);
      answer?.();
      await stopping;
      expect(await world.statuses(booked.id)).toContain("calendar_create done");
      expect(world.mail.mails).toEqual([]);
      await world.effects.runOnce();
      expect(subjects()).toEqual(["Confirmed"]);
    });

    test("bookings 64: in the background, a kick is enough", async () => {
      const background = sideEffects(world.deps);
      background.start();
      const booked = await book();
      background.kick();
      await eventually(() => subjects()).toEqual(["Confirmed"]);
      await eventually(() => world.statuses(booked.id)).toContain("mail_confirmation done");
      await background.stop();
    });
  });

  test("bookings 67: without CALENDAR_URL its steps are skipped, and hosts get invites by mail", async () => {
    world = await openEffectWorld(dialect, { without: "calendar" });
    await newHost();
    const booked = await book();
    expect((await world.steps(booked.id))[0]).toMatchObject({
      kind: "calendar_create",
      status: "skipped",
      error: "CALENDAR_URL is not set",
    });
    await world.effects.runOnce();
    expect(world.mail.to(host.email)[0]?.invite).toContain("METHOD:REQUEST");
    expect(world.mail.to(host.email)[0]?.invite).not.toContain("/manage/");
    expect(await world.effects.reconcile()).toBe(0);
    await world[Symbol.asyncDispose]();
  });

  test("bookings 67: without SMTP_URL mails are skipped at once, reminders when their time comes", async () => {
    world = await openEffectWorld(dialect, { without: "mail" });
    await newHost();
    const booked = await book();
    await world.effects.runOnce();
    expect(await world.statuses(booked.id)).toEqual([
      "calendar_create done",
      "mail_confirmation skipped",
      "mail_confirmation skipped",
      "reminder_24h waiting",
      "reminder_1h waiting",
    ]);
    world.clock.advance(Date.parse(booked.start_at) - world.clock.now().getTime());
    await world.effects.runOnce();
    expect((await world.statuses(booked.id)).slice(3)).toEqual([
      "reminder_24h skipped",
      "reminder_1h skipped",
    ]);
    expect(world.mail.mails).toEqual([]);
    await world[Symbol.asyncDispose]();
  });
});
