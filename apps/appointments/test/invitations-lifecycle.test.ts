import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sweepExpired } from "../src/invitations/expiry.ts";
import { type BookingWorld, dataOf, ok, openBookingWorld } from "./bookings/support/booking-world.ts";
import { dialects, type UserClient } from "./support/world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  let owner: UserClient;
  let typeId: string;
  beforeEach(async () => {
    world = await openBookingWorld(dialect);
    owner = await world.host();
    typeId = (await world.eventType([owner])).id;
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const at = (id: string) => `/v1/scheduling-invitations/${id}`;
  const expiresAt = "2031-03-03T10:00:00.000Z";
  const invite = (fields: Record<string, unknown> = {}) => world.invite(owner, typeId, fields);
  const sweep = () =>
    sweepExpired({
      db: world.db,
      dialect,
      hooks: world.hooks,
      now: world.clock.now,
      logger: world.hooks.logger,
    });
  const typesOf = async (id: string) => (await world.invitationEvents(id)).map((event) => event.type);
  const tokenRow = (id: string) =>
    world.db
      .selectFrom("scheduling_invitation_tokens")
      .select("consumed_at")
      .where("invitation_id", "=", id)
      .executeTakeFirstOrThrow();
  const bookingEvents = async () =>
    (await world.events()).filter((event) => event.type.startsWith("booking."));

  test("bookings 24: cancelling an unbooked invitation makes its lifecycle event and nothing else", async () => {
    const { id, token } = await invite();
    world.clock.advance(60_000);
    const cancelled = ok(await owner.post(`${at(id)}/cancel`), 200).body;
    expect(cancelled).toMatchObject({
      status: "cancelled",
      booking_id: null,
      updated_at: "2031-03-03T08:01:00.000Z",
    });
    const again = ok(await owner.post(`${at(id)}/cancel`), 200).body;
    expect(again).toEqual(cancelled);

    const events = await world.invitationEvents(id);
    expect(events.map((event) => event.type)).toEqual([
      "scheduling_invitation.created",
      "scheduling_invitation.cancelled",
    ]);
    expect(events[1]).toMatchObject({ audience: [owner.id], revision: 2 });
    expect(events[1]?.occurredAt.toISOString()).toBe("2031-03-03T08:01:00.000Z");
    expect(dataOf(events[1]!)).toEqual({
      scheduling_invitation_id: id,
      event_type_id: typeId,
      status: "cancelled",
      duration_minutes: 30,
      expires_at: "2031-12-31T00:00:00.000Z",
      external: null,
    });
    expect(await bookingEvents()).toEqual([]);
    expect(await tokenRow(id)).toEqual({ consumed_at: "2031-03-03T08:01:00.000Z" });
    expect((await world.customer.get(`/v1/schedule/${token}/slots`)).status).toBe(410);
    expect((await world.tryBook(token, "2031-03-04T09:00:00Z")).status).toBe(410);
    expect((await owner.get(`${at(id)}/slots`)).status).toBe(409);
  });

  test("bookings 24: an invitation is expired from the instant, and the sweep makes one event, ever", async () => {
    const { id, token } = await invite({ expires_at: expiresAt });
    const path = `/v1/schedule/${token}/slots`;
    world.clock.advance(2 * 3_600_000 - 1);
    ok(await world.customer.get(path), 200);
    expect((await owner.get(at(id))).body.status).toBe("active");
    expect(await sweep()).toBe(0);

    world.clock.advance(1);
    expect((await owner.get(at(id))).body.status).toBe("expired");
    expect((await world.customer.get(path)).status).toBe(410);
    expect((await world.tryBook(token, "2031-03-04T09:00:00Z")).status).toBe(410);
    expect((await owner.get(`${at(id)}/slots`)).status).toBe(409);
    expect((await owner.post(`${at(id)}/cancel`)).status).toBe(409);
    expect(await typesOf(id)).toEqual(["scheduling_invitation.created"]);

    world.clock.advance(30_000);
    expect(await sweep()).toBe(1);
    expect(await sweep()).toBe(0);
    const events = await world.invitationEvents(id);
    expect(events.map((event) => event.type)).toEqual([
      "scheduling_invitation.created",
      "scheduling_invitation.expired",
    ]);
    expect(dataOf(events[1]!)).toMatchObject({ status: "expired", expires_at: expiresAt });
    expect(await bookingEvents()).toEqual([]);
    expect((await owner.get(at(id))).body).toMatchObject({
      status: "expired",
      updated_at: "2031-03-03T10:00:30.000Z",
    });
    expect((await owner.post(`${at(id)}/cancel`)).status).toBe(409);
    expect((await world.customer.get(path)).status).toBe(410);
  });

  test("bookings 71: one lifecycle event per invitation and type, whoever comes at once", async () => {
    const cancelled = await invite();
    const cancels = [1, 2, 3, 4].map(() => owner.post(`${at(cancelled.id)}/cancel`));
    expect((await Promise.all(cancels)).map((answer) => answer.status)).toEqual([200, 200, 200, 200]);

    const raced = await invite();
    const [cancel, book] = await Promise.all([
      owner.post(`${at(raced.id)}/cancel`),
      world.tryBook(raced.token, "2031-03-04T09:00:00Z"),
    ]);
    expect([
      [200, 410],
      [200, 409],
      [409, 201],
    ]).toContainEqual([cancel.status, book.status]);

    const expired = await invite({ expires_at: expiresAt });
    world.clock.advance(3 * 3_600_000);
    const sweeps = await Promise.all([sweep(), sweep(), sweep()]);
    expect(sweeps.reduce((sum, swept) => sum + swept, 0)).toBe(1);

    for (const [id, type] of [
      [cancelled.id, "cancelled"],
      [raced.id, cancel.status === 200 ? "cancelled" : "booked"],
      [expired.id, "expired"],
    ] as const)
      expect(await typesOf(id)).toEqual(["scheduling_invitation.created", `scheduling_invitation.${type}`]);
  });

  test("bookings 71: a booked invitation stays booked, however often its booking moves and then ends", async () => {
    const invited = await invite();
    const booking = await world.book(invited, "2031-03-04T09:00:00Z");
    for (const startAt of ["2031-03-04T10:00:00Z", "2031-03-04T11:00:00Z", "2031-03-05T09:00:00Z"])
      ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: startAt }), 200);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);

    expect((await world.bookingEvents(booking.id)).map((event) => event.type)).toEqual([
      "booking.created",
      "booking.rescheduled",
      "booking.rescheduled",
      "booking.rescheduled",
      "booking.cancelled",
    ]);
    const events = await world.invitationEvents(invited.id);
    expect(events.map((event) => event.type)).toEqual([
      "scheduling_invitation.created",
      "scheduling_invitation.booked",
    ]);
    expect(dataOf(events[1]!)).toMatchObject({
      status: "booked",
      booking_id: booking.id,
      start_at: "2031-03-04T09:00:00.000Z",
      end_at: "2031-03-04T09:30:00.000Z",
      host_id: owner.id,
    });
    expect((await owner.get(at(invited.id))).body).toMatchObject({
      status: "booked",
      booking_id: booking.id,
    });
    expect((await owner.post(`${at(invited.id)}/cancel`)).status).toBe(409);
    expect((await world.customer.get(`/v1/schedule/${invited.token}/slots`)).status).toBe(410);
    // Its time runs out as well: that changes nothing any more.
    await world.db
      .updateTable("scheduling_invitations")
      .set({ expires_at: "2031-03-03T00:00:00.000Z" })
      .where("id", "=", invited.id)
      .execute();
    expect(await sweep()).toBe(0);
    expect((await owner.get(at(invited.id))).body.status).toBe("booked");
  });

  test("the status is booked exactly when there is a booking, in every state", async () => {
    const [active, booked, cancelled, expired] = [
      await invite(),
      await invite(),
      await invite(),
      await invite({ expires_at: expiresAt }),
    ];
    const booking = await world.book(booked, "2031-03-04T09:00:00Z");
    ok(await owner.post(`${at(cancelled.id)}/cancel`), 200);
    world.clock.advance(3 * 3_600_000);
    await sweep();
    const stored = await world.db
      .selectFrom("scheduling_invitations")
      .select(["id", "status", "booking_id"])
      .execute();
    const states = new Map(stored.map((row) => [row.id, [row.status, row.booking_id]]));
    expect([active, booked, cancelled, expired].map(({ id }) => states.get(id))).toEqual([
      ["active", null],
      ["booked", booking.id],
      ["cancelled", null],
      ["expired", null],
    ]);
  });

  test("an event that cannot be captured leaves the invitation, its token and the next sweep as they were", async () => {
    const kept = await invite();
    const due = await invite({ expires_at: expiresAt });
    world.clock.advance(3 * 3_600_000);
    for (const fault of [world.breakCapture, world.breakCommit]) {
      const mend = await fault();
      expect((await owner.post(`${at(kept.id)}/cancel`)).status).toBe(503);
      expect(await sweep()).toBe(0);
      await mend();
      expect((await owner.get(at(kept.id))).body.status).toBe("active");
      expect(await tokenRow(kept.id)).toEqual({ consumed_at: null });
    }
    expect(world.log.filter((line) => line.includes(due.id))).toHaveLength(2);
    expect(await sweep()).toBe(1);
    ok(await owner.post(`${at(kept.id)}/cancel`), 200);
    expect(await typesOf(kept.id)).toHaveLength(2);
    expect(await typesOf(due.id)).toHaveLength(2);
  });

  test("the sweep takes more than one batch, and one that fails stops no other", async () => {
    const source = await invite({ expires_at: expiresAt });
    const row = await world.db
      .selectFrom("scheduling_invitations")
      .selectAll()
      .where("id", "=", source.id)
      .executeTakeFirstOrThrow();
    const copies = Array.from({ length: 120 }, (_, index) => ({
      ...row,
      id: `copy-${String(index).padStart(3, "0")}`,
    }));
    await world.db.insertInto("scheduling_invitations").values(copies.slice(0, 30)).execute();
    for (let start = 30; start < 120; start += 30)
      await world.db
        .insertInto("scheduling_invitations")
        .values(copies.slice(start, start + 30))
        .execute();
    // No event can be written about this one: its duration is none.
    await world.db
      .updateTable("scheduling_invitations")
      .set({ duration_minutes: 0 })
      .where("id", "=", "copy-007")
      .execute();
    world.clock.advance(3 * 3_600_000);
    expect(await sweep()).toBe(120);
    expect(world.log.some((line) => line.includes("copy-007"))).toBe(true);
    const left = await world.db
      .selectFrom("scheduling_invitations")
      .select("id")
      .where("status", "=", "active")
      .execute();
    expect(left).toEqual([{ id: "copy-007" }]);
  });

  test("a token that is malformed or unknown is 404, whatever else is wrong", async () => {
    const { token } = await invite();
    const tokens = ["0".repeat(64), token.toUpperCase(), token.slice(1), `${token}0`, "x", "%00"];
    for (const wrong of tokens) {
      const slots = await world.customer.get(`/v1/schedule/${wrong}/slots?from=nonsense`);
      expect(slots).toMatchObject({ status: 404, body: { code: "not_found" } });
      expect(JSON.stringify(slots.body)).not.toContain(wrong.length > 10 ? wrong : "\u0000");
    }
    ok(await world.customer.get(`/v1/schedule/${token}/slots`), 200);
  });

  test("an event type that is archived or inactive makes its invitations unusable until it is back", async () => {
    const { id, token } = await invite();
    const path = `/v1/schedule/${token}/slots`;
    for (const [off, on] of [
      [{ is_active: false }, { is_active: true }],
      [{ archived: true }, { archived: false }],
    ]) {
      ok(await owner.patch(`/v1/event-types/${typeId}`, off), 200);
      expect((await world.customer.get(path)).status).toBe(410);
      expect((await world.tryBook(token, "2031-03-04T09:00:00Z")).status).toBe(410);
      expect((await owner.get(`${at(id)}/slots`)).status).toBe(409);
      ok(await owner.patch(`/v1/event-types/${typeId}`, on), 200);
      ok(await world.customer.get(path), 200);
    }
    expect(await typesOf(id)).toEqual(["scheduling_invitation.created"]);
  });

  test("the answers of a token are for nobody's cache, index or referrer, also when they refuse", async () => {
    const { token } = await invite();
    for (const path of [`/v1/schedule/${token}/slots`, `/v1/schedule/${"0".repeat(64)}/slots`]) {
      const { headers } = await world.customer.get(path);
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("x-robots-tag")).toContain("noindex");
    }
  });
});
