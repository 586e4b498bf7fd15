import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialects } from "../support/world.ts";
import { type BookingWorld, ok, openBookingWorld } from "./support/booking-world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const valid = { url: "http://127.0.0.1:9/hook", events: ["booking.created"] };

  test("a webhook is made, shown without its secret, changed and deleted by its owner", async () => {
    const owner = await world.user();
    const made = ok(await owner.post("/v1/webhooks", { ...valid, fields: ["answers"] }), 201);
    expect(made.headers.get("cache-control")).toBe("no-store");
    const { secret, ...shown } = made.body as unknown as Record<string, unknown>;
    expect(secret).toMatch(/^whsec_/);
    expect(shown).toMatchObject({ ...valid, fields: ["answers"], is_active: true, status: "active" });
    const path = `/v1/webhooks/${shown.id}`;
    expect(ok(await owner.get(path), 200).body).toEqual(shown);
    expect(ok(await owner.get("/v1/webhooks"), 200).body.items).toEqual([shown]);
    const changes = { url: "http://127.0.0.1:9/other", events: ["booking.*"], fields: null };
    expect(ok(await owner.patch(path, changes), 200).body).toMatchObject(changes);
    expect(ok(await owner.patch(path, { is_active: false }), 200).body).toMatchObject({
      is_active: false,
      status: "disabled",
      status_reason: "by_hand",
    });
    expect(ok(await owner.patch(path, { is_active: true }), 200).body).toMatchObject({ is_active: true });
    expect(ok(await owner.get(`${path}/deliveries`), 200).body.items).toEqual([]);
    ok(await owner.delete(path), 204);
    for (const answer of [await owner.get(path), await owner.delete(path), await owner.patch(path, {})])
      expect(answer.status).toBe(404);
    expect((await owner.get("/v1/webhooks")).body.items).toEqual([]);
  });

  test("bad urls, private addresses, no events and events without an audience are 400 with the field", async () => {
    const owner = await world.user();
    const { id } = ok(await owner.post("/v1/webhooks", valid), 201).body;
    const bad: [Record<string, unknown>, string][] = [
      [{ url: "not a url" }, "/url"],
      [{ url: "ftp://example.com/x" }, "/url"],
      [{ url: "https://user:secret@example.com/" }, "/url"],
      [{ url: "http://10.1.2.3/hook" }, "/url"],
      [{ url: "http://[fd00::1]/hook" }, "/url"],
      [{ url: "http://169.254.169.254/latest/meta-data" }, "/url"],
      [{ events: [] }, "/events"],
      [{ events: ["booking.deleted"] }, "/events/0"],
      [{ events: ["booking.created", "user.updated"] }, "/events/1"],
      [{ events: ["user.*"] }, "/events/0"],
      [{ events: ["*"] }, "/events/0"],
      [{ events: ["hookwell.delivery.failed"] }, "/events/0"],
      [{ fields: "id" }, "/fields"],
      [{ secret: "mine" }, "/secret"],
    ];
    for (const [fields, pointer] of bad) {
      const answers = [
        await owner.post("/v1/webhooks", { ...valid, ...fields }),
        await owner.patch(`/v1/webhooks/${id}`, fields),
      ];
      for (const answer of answers) {
        expect(answer.status, JSON.stringify(fields)).toBe(400);
        expect(answer.body.errors.map((error) => error.pointer)).toContain(pointer);
      }
    }
    expect((await owner.post("/v1/webhooks", { events: ["booking.*"] })).status).toBe(400);
    expect((await owner.get("/v1/webhooks")).body.items).toHaveLength(1);
  });

  test("another's webhook is 404, also for admins, and for one without an owner", async () => {
    const [owner, other] = [await world.user(), await world.user()];
    const { id } = ok(await owner.post("/v1/webhooks", valid), 201).body;
    const ownerless = await world.hooks.subscriptions.create({
      projectId: "live",
      url: "http://127.0.0.1:9/all",
      eventTypes: ["user.*"],
    });
    for (const client of [other, world.admin])
      for (const path of [`/v1/webhooks/${id}`, `/v1/webhooks/${ownerless.id}`, "/v1/webhooks/sub_nobody"]) {
        expect((await client.get(path)).status).toBe(404);
        expect((await client.patch(path, { fields: [] })).status).toBe(404);
        expect((await client.patch(path, "no json")).status).toBe(404);
        expect((await client.delete(path)).status).toBe(404);
        expect((await client.get(`${path}/deliveries`)).status).toBe(404);
      }
    expect((await world.customer.get("/v1/webhooks")).status).toBe(401);
    ok(await owner.get(`/v1/webhooks/${id}`), 200);
    expect((await world.hooks.subscriptions.get(ownerless.id)).status).toBe("active");
  });

  test("the deliveries of a webhook are its newest fifty, with every attempt", async () => {
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const hook = await world.hook(host, { events: ["booking.rescheduled"] }, ({ index }) =>
      index === 0 ? { status: 500, body: "oh no" } : 200,
    );
    const booking = await world.book(await world.invite(host, eventTypeId), "2031-03-04T09:00:00Z");
    for (let move = 1; move <= 52; move++) {
      const start = `2031-03-04T09:${move % 2 === 0 ? "00" : "30"}:00Z`;
      ok(await world.customer.post(`${booking.manage}/reschedule`, { start_at: start }), 200);
      world.clock.advance(1_000);
      if (move === 1 || move === 52) await world.poll();
    }
    const { items } = ok(await host.get(`/v1/webhooks/${hook.id}/deliveries`), 200).body;
    expect(items).toHaveLength(50);
    expect(items[0]).toMatchObject({
      event: "booking.rescheduled",
      status: "delivered",
      attempts: 1,
      status_code: 200,
      error: null,
    });
    world.clock.advance(60_000);
    await world.poll();
    // The oldest, whose first attempt failed, has fallen off the list; the operator still sees it.
    const [first] = await world.deliveriesOf((await world.bookingEvents(booking.id))[1]!.id);
    const { attemptLog } = await world.hooks.deliveries.get(first!.id);
    expect(attemptLog.map(({ statusCode }) => statusCode)).toEqual([500, 200]);
    expect(items.map(({ id }) => id)).not.toContain(first!.id);
  });

  test("a delivery that failed shows its status and why", async () => {
    const host = await world.host();
    const { id: eventTypeId } = await world.eventType([host]);
    const refusing = await world.hook(host, {}, () => ({ status: 503, body: "closed" }));
    const resetting = await world.hook(host, {}, () => "reset");
    await world.book(await world.invite(host, eventTypeId), "2031-03-04T09:00:00Z");
    for (const seconds of [0, 60, 300]) {
      world.clock.advance(seconds * 1_000);
      await world.poll();
    }
    const [refused] = (await host.get(`/v1/webhooks/${refusing.id}/deliveries`)).body.items;
    expect(refused).toMatchObject({
      status: "failed",
      attempts: 3,
      status_code: 503,
      error_code: "http_503",
    });
    expect((refused as unknown as { attempt_log: unknown[] }).attempt_log).toHaveLength(3);
    const [reset] = (await host.get(`/v1/webhooks/${resetting.id}/deliveries`)).body.items;
    expect(reset).toMatchObject({ status: "failed", attempts: 3, status_code: null, error_code: "reset" });
  });
});
