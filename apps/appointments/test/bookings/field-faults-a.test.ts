import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bookingExamples } from "../../src/bookings/event-examples.ts";
import { inTransaction } from "../../src/database/transaction-guard.ts";
import type { Answered } from "../support/client.ts";
import { dialects } from "../support/world.ts";
import {
  type BookedBooking,
  type BookingWorld,
  dataOf,
  ok,
  openBookingWorld,
} from "./support/booking-world.ts";

const at = (time: string, day = 4): string => `2031-03-0${day}T${time}:00Z`;

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function scene(fields: Record<string, unknown> = {}) {
    const [host, second, third] = [await world.host(), await world.host(), await world.host()];
    const eventType = await world.eventType([host, second, third], { routing_mode: "collective", ...fields });
    const book = async (time: string, more = {}) =>
      world.book(await world.invite(host, eventType.id), at(time), more);
    return { host, second, third, eventType, book };
  }
  type Scene = Awaited<ReturnType<typeof scene>>;

  /** Every way to move a booking. */
  const moves: Record<string, (made: Scene, booking: BookedBooking, start: string) => Promise<Answered>> = {
    "the customer's link": (_, { manage }, start_at) =>
      world.customer.post(`${manage}/reschedule`, { start_at }),
    "the primary host": ({ host }, { id }, start_at) =>
      host.patch(`/v1/bookings/${id}/reschedule`, { start_at }),
    "another assigned host": ({ second }, { id }, start_at) =>
      second.patch(`/v1/bookings/${id}/reschedule`, { start_at }),
    "an admin": (_, { id }, start_at) => world.admin.patch(`/v1/bookings/${id}/reschedule`, { start_at }),
  };

  test("field-faults A1: with the outbox failing every other time, there are as many events as revisions", async () => {
    const made = await scene();
    const bookings = [await made.book("09:00"), await made.book("09:30")];
    const ways = Object.values(moves);
    let refused = 0;
    for (let step = 0; step < 12; step++) {
      const fault = step % 4 === 1 ? "breakCapture" : step % 4 === 3 ? "breakCommit" : undefined;
      const mend = fault && (await world[fault]());
      const booking = bookings[step % 2]!;
      const { status } = await ways[step % ways.length]!(
        made,
        booking,
        at(`1${step % 6}:${step % 2}0`.replace(":10", ":30")),
      );
      await mend?.();
      expect(status).toBe(fault ? 500 : 200);
      if (fault) refused++;
    }
    expect(refused).toBe(6);
    for (const { id } of bookings) {
      const events = await world.bookingEvents(id);
      const row = await world.bookingRow(id);
      expect(events.map(({ revision }) => revision)).toEqual(
        Array.from({ length: Number(row!.revision) }, (_, index) => index + 1),
      );
      expect(dataOf(events.at(-1)!).start_at).toBe(row!.start_at);
    }
  });

  test("field-faults A2: nothing is seen of a transition before its commit, and nothing ever when it is taken back", async () => {
    const made = await scene();
    const booking = await made.book("10:00");
    const hook = await world.hook(made.host);
    await world.poll();
    const seen = hook.requests.length;
    const data = { ...bookingExamples.rescheduled, booking_id: booking.id, id: booking.id, revision: 2 };
    const taken = inTransaction(world.db, async (trx) => {
      await trx
        .updateTable("bookings")
        .set({ revision: 2, start_at: at("12:00") })
        .where("id", "=", booking.id)
        .execute();
      await world.hooks.emit("booking.rescheduled", data, { tx: trx, revision: 2, audience: [made.host.id] });
      expect(await world.bookingEvents(booking.id)).toHaveLength(1);
      // On SQLite the open transaction is the only writer there can be.
      if (dialect === "postgres") await world.poll();
      throw new Error("the customer changed their mind");
    });
    await expect(taken).rejects.toThrow("changed their mind");
    await world.poll();
    expect(hook.requests).toHaveLength(seen);
    expect(await world.bookingEvents(booking.id)).toHaveLength(1);
    expect(await world.bookingRow(booking.id)).toMatchObject({ revision: 1 });
    // The revision that was taken back is free.
    ok(await moves["the customer's link"]!(made, booking, at("12:00")), 200);
  });

  test("field-faults A3: what a savepoint takes back takes its event with it; the rest of the transaction keeps its own", async () => {
    const made = await scene();
    const [first, second] = [await made.book("10:00"), await made.book("11:00")];
    const move = (id: string) => ({ ...bookingExamples.rescheduled, booking_id: id, id, revision: 2 });
    const options = { revision: 2, audience: [made.host.id] };
    const trx = await world.db.startTransaction().execute();
    const raise = (id: string) =>
      trx.updateTable("bookings").set({ revision: 2 }).where("id", "=", id).execute();
    await raise(first.id);
    await world.hooks.emit("booking.rescheduled", move(first.id), { tx: trx, ...options });
    const saved = await trx.savepoint("inner").execute();
    await raise(second.id);
    await world.hooks.emit("booking.rescheduled", move(second.id), { tx: saved, ...options });
    await saved.rollbackToSavepoint("inner").execute();
    await trx.commit().execute();
    expect((await world.bookingEvents(first.id)).map(({ revision }) => revision)).toEqual([1, 2]);
    expect((await world.bookingEvents(second.id)).map(({ revision }) => revision)).toEqual([1]);
    expect([
      (await world.bookingRow(first.id))!.revision,
      (await world.bookingRow(second.id))!.revision,
    ]).toEqual([2, 1]);
  });
});
