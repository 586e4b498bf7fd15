import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isInTransaction } from "../../src/database/transaction-guard.ts";
import { calendarClient } from "../../src/side-effects/calendar-client.ts";
import { smtpMailer } from "../../src/side-effects/mailer.ts";
import { ok } from "../bookings/support/booking-world.ts";
import { dialects, type UserClient } from "../support/world.ts";
import { type EffectWorld, openEffectWorld } from "./support/effect-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  const inside: boolean[] = [];
  let fault: (() => Promise<unknown>) | undefined;
  let world: EffectWorld;
  let host: UserClient;
  beforeAll(async () => {
    world = await openEffectWorld(dialect, {
      wrap: (effects) => ({
        ...effects,
        async plan(trx, transition) {
          await fault?.();
          await effects.plan(trx, transition);
        },
        freeBusy(...asked) {
          inside.push(isInTransaction());
          return effects.freeBusy(...asked);
        },
        kick() {
          inside.push(isInTransaction());
          effects.kick();
        },
      }),
    });
    host = await world.host();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("bookings 25: no entry point asks a calendar or sends a mail while its transaction is open", async () => {
    const other = await world.host();
    const type = await world.eventType([host, { user: other, role: "optional" }], { routing_mode: "fixed" });
    const at = (hour: number) => `2031-03-20T${String(hour).padStart(2, "0")}:00:00Z`;
    const booked = [];
    for (const hour of [9, 10, 11])
      booked.push(await world.book(await world.invite(host, type.id), at(hour)));
    const [first, second, third] = booked as [(typeof booked)[0], (typeof booked)[0], (typeof booked)[0]];
    const ordinary = ok(
      await host.post("/v1/bookings", {
        event_type_slug: type.slug,
        start_at: at(12),
        timezone: "UTC",
        name: "Grace",
        email: "grace@example.com",
      }),
      201,
    );
    ok(await world.customer.post(`${first.manage}/reschedule`, { start_at: at(13) }), 200);
    ok(await host.patch(`/v1/bookings/${second.id}/reschedule`, { start_at: at(14) }), 200);
    ok(
      await world.admin.put(`/v1/bookings/${second.id}/location`, {
        location_value: "https://meet.example.com/x",
      }),
      200,
    );
    ok(await world.admin.post(`/v1/bookings/${ordinary.body.id}/reassign`, { host_id: other.id }), 200);
    ok(await world.customer.post(`${first.manage}/cancel`, {}), 200);
    ok(await host.post(`/v1/bookings/${second.id}/cancel`, {}), 200);
    ok(await world.admin.post(`/v1/bookings/${third.id}/cancel`, {}), 200);
    await world.effects.runOnce();
    // Asked for 4 bookings and 2 moves at least, told after 10 transitions.
    expect(inside.length).toBeGreaterThanOrEqual(16);
    expect(inside).not.toContain(true);
    expect(world.log.join("\n")).not.toContain("while a transaction is open");
    for (const { id } of [...booked, ordinary.body]) {
      const open = (await world.steps(id)).filter(
        ({ status, kind }) => status === "failed" || (status === "waiting" && !kind.startsWith("reminder")),
      );
      expect(open).toEqual([]);
    }
  });

  test("bookings 25: a call that sneaks into a transaction is refused, and the change with it", async () => {
    const type = await world.eventType([host], { slug: `guarded-${dialect}` });
    const calendar = calendarClient({ url: world.calendar.url });
    const mailer = smtpMailer({ url: world.mail.url, from: "a@example.com" });
    const sneaks = [
      () => calendar.remove("k", 1),
      () => calendar.freeBusy([{ id: host.id, email: host.email, name: "Ada" }], 0, 1),
      () => world.effects.freeBusy([host.id], 0, 1),
      () => mailer.send({ id: "x", to: { name: "", email: "x@example.com" }, subject: "x", text: "x" }),
    ];
    const invited = await world.invite(host, type.id);
    const counts = () => [world.mail.mails.length, world.calendar.requests.length];
    for (const sneak of sneaks) {
      // Free/busy is asked before, and counts.
      const before = counts();
      const lines = world.log.length;
      fault = sneak;
      const refused = await world.tryBook(invited.token, "2031-03-21T10:00:00Z");
      fault = undefined;
      expect(refused.status).toBe(500);
      expect(world.log.slice(lines).join("\n")).toContain("while a transaction is open");
      expect(counts()).toEqual([before[0], before[1]! + 1]);
    }
    ok(await world.tryBook(invited.token, "2031-03-21T10:00:00Z"), 201);
  });
});
