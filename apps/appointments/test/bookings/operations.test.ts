import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BusyCalendars } from "../../src/bookings/side-effect-planner.ts";
import { dialects } from "../support/world.ts";
import { type BookingWorld, ok, openBookingWorld } from "./support/booking-world.ts";

const at = (time: string): string => `2031-03-04T${time}:00Z`;
const nobody = "0".repeat(64);

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  let freeBusy: BusyCalendars["freeBusy"] = async () => new Map();
  beforeAll(async () => {
    world = await openBookingWorld(dialect, {
      start: { calendars: { freeBusy: (...asked) => freeBusy(...asked) } },
    });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  async function scene(fields: Record<string, unknown> = {}) {
    const host = await world.host();
    const eventType = await world.eventType([host], fields);
    return { host, eventType, invite: (more = {}) => world.invite(host, eventType.id, more) };
  }
  const choice = (slug: string, time: string, more = {}) => ({
    event_type_slug: slug,
    start_at: at(time),
    timezone: "UTC",
    name: "Ada",
    email: "ada@example.com",
    ...more,
  });

  test("POST /v1/schedule/{token}/book: 404, then 410 before anything about the body, then 400, then 409", async () => {
    const { host, eventType, invite } = await scene();
    for (const token of [nobody, "short", "%00", nobody.replace("0", "g")])
      expect((await world.tryBook(token, at("10:00"))).status, token).toBe(404);
    const used = await invite();
    await world.book(used, at("10:00"));
    expect((await world.customer.post(`/v1/schedule/${used.token}/book`, "no json")).status).toBe(410);
    const invited = await invite();
    const bad: [Record<string, unknown>, string][] = [
      [{ start_at: "tomorrow" }, "/start_at"],
      [{ start_at: "2031-03-04T10:00:00" }, "/start_at"],
      [{ timezone: "Mars/Olympus" }, "/timezone"],
      [{ answers: [{ question_id: "nobody asked", value: "x" }] }, "/answers/0/question_id"],
      [{ status: "confirmed" }, "/status"],
      [{ timezone: "a\u0000b" }, "/timezone"],
    ];
    for (const [fields, pointer] of bad) {
      const answer = await world.tryBook(invited.token, at("11:00"), fields);
      expect(answer.status, pointer).toBe(400);
      expect(answer.body.errors.map((error) => error.pointer)).toContain(pointer);
    }
    const lost: [string, string][] = [
      ["taken", at("10:00")],
      ["off the grid", at("10:10")],
      ["outside the hours", at("18:00")],
      ["over", "2031-03-02T10:00:00Z"],
      ["too far", "2031-06-04T10:00:00Z"],
    ];
    for (const [why, start] of lost)
      expect(await world.tryBook(invited.token, start), why).toMatchObject({
        status: 409,
        body: { code: "slot_unavailable" },
      });
    const windowed = await invite({ available_from: "2031-03-06", available_until: "2031-03-07" });
    expect((await world.tryBook(windowed.token, at("11:00"))).status).toBe(409);
    ok(await host.patch(`/v1/event-types/${eventType.id}`, { is_active: false }), 200);
    expect((await world.tryBook(invited.token, at("11:00"))).status).toBe(410);
    ok(await host.patch(`/v1/event-types/${eventType.id}`, { is_active: true }), 200);
    const booked = ok(await world.tryBook(invited.token, at("11:00")), 201).body;
    expect(Object.keys(booked).sort()).toEqual(["end_at", "id", "manage_token", "start_at", "status"]);
    expect(booked.manage_token).toMatch(/^[0-9a-f]{64}$/);
  });

  test("a required answer, and one that is not among the options, is 400 at book", async () => {
    const { host, eventType, invite } = await scene({
      questions: [{ label: "Size?", type: "select", options: ["S", "L"], required: true }],
    });
    const { body } = await host.get(`/v1/event-types/${eventType.id}`);
    const [question] = (body as unknown as { questions: { id: string }[] }).questions;
    const invited = await invite();
    const question_id = question!.id;
    for (const answers of [
      [],
      [{ question_id, value: "M" }],
      [
        { question_id, value: "S" },
        { question_id, value: "L" },
      ],
    ])
      expect((await world.tryBook(invited.token, at("10:00"), { answers })).status).toBe(400);
    await world.book(invited, at("10:00"), { answers: [{ question_id, value: "L" }] });
  });

  test("the cap on active bookings is 409, per address and event type, and counts upcoming ones", async () => {
    const { host, invite } = await scene({ max_active_bookings: 1 });
    const recipient = { name: "Ada", email: "ada.capped@example.com" };
    const spelled = { name: "Ada", email: "Ada.Capped@Example.com" };
    const first = await world.book(await invite({ recipient }), at("09:00"));
    const second = await invite({ recipient: spelled });
    expect(await world.tryBook(second.token, at("10:00"))).toMatchObject({
      status: 409,
      body: { code: "conflict" },
    });
    await world.book(await invite(), at("10:00"));
    ok(await host.post(`/v1/bookings/${first.id}/cancel`), 200);
    await world.book(second, at("11:00"));
    // At once, too: the count and the booking are one.
    const third = await scene({ max_active_bookings: 1 });
    const tokens = [await third.invite({ recipient }), await third.invite({ recipient })];
    const answers = await Promise.all(
      tokens.map(({ token }, index) => world.tryBook(token, at(`1${index}:00`))),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test("the eleventh booking of an address in an hour is 429; an hour later it is 201", async () => {
    const { host, eventType, invite } = await scene({ slot_interval_minutes: 30 });
    const recipient = { name: "Busy", email: "busy@example.com" };
    const times = ["09:00", "09:30", "10:00", "10:30", "11:00", "11:30", "12:00", "12:30", "13:00", "13:30"];
    for (const time of times) await world.book(await invite({ recipient }), at(time));
    const eleventh = await invite({ recipient });
    expect((await world.tryBook(eleventh.token, at("14:00"))).status).toBe(429);
    // Staff books for whom it will.
    ok(await host.post("/v1/bookings", choice(eventType.slug, "14:30", { email: recipient.email })), 201);
    world.clock.advance(3_600_000);
    await world.book(eleventh, at("14:00"));
    world.clock.advance(-3_600_000);
  });

  test("what staff booked for an address uses up none of its own ten an hour", async () => {
    const { host, eventType, invite } = await scene({ slot_interval_minutes: 30 });
    const recipient = { name: "Popular", email: "popular@example.com" };
    for (const hour of ["09", "10", "11", "12", "13"])
      for (const minute of ["00", "30"])
        ok(
          await host.post(
            "/v1/bookings",
            choice(eventType.slug, `${hour}:${minute}`, { email: recipient.email }),
          ),
          201,
        );
    await world.book(await invite({ recipient }), at("14:00"));
  });

  test("hosts that change while calendars are asked: one who left is not booked, one who came is asked first", async () => {
    const [first, second, third] = [await world.host(), await world.host(), await world.host()];
    const pool = { slug: "changing-pool", routing_mode: "priority" };
    const { id, slug } = await world.eventType([first, second], pool);
    const hosts = `/v1/event-types/${id}/hosts`;
    const meanwhile = (change: () => Promise<unknown>) => {
      freeBusy = async () => {
        freeBusy = async () => new Map();
        await change();
        return new Map();
      };
    };
    meanwhile(() => first.delete(`${hosts}/${first.id}`));
    const booked = await first.post("/v1/bookings", choice(slug, "10:00"));
    expect(ok(booked, 201).body.host_id).toBe(second.id);
    meanwhile(() => first.post(hosts, { user_id: third.id, role: "required", priority: -1 }));
    const refused = await first.post("/v1/bookings", choice(slug, "11:00"));
    expect(refused).toMatchObject({ status: 409, body: { code: "slot_unavailable" } });
    const again = await first.post("/v1/bookings", choice(slug, "11:00"));
    expect(ok(again, 201).body.host_id).toBe(third.id);
  });

  test("a user who is deleted leaves neither hours nor a place among hosts, also when it is made one at once", async () => {
    const { host, eventType } = await scene();
    const hosts = `/v1/event-types/${eventType.id}/hosts`;
    for (const isAtOnce of [false, true]) {
      const leaving = await world.host();
      const add = () => host.post(hosts, { user_id: leaving.id, role: "optional" });
      const remove = () => world.admin.delete(`/v1/users/${leaving.id}`);
      if (isAtOnce) await Promise.all([remove(), add()]);
      else ok(await add().then(remove), 204);
      for (const table of ["event_type_hosts", "availability_rules"] as const)
        expect(
          await world.db.selectFrom(table).select("user_id").where("user_id", "=", leaving.id).execute(),
        ).toEqual([]);
    }
  });

  test("a calendar that cannot be asked is 503 at book and at a move, and what it says is taken", async () => {
    const { host, invite } = await scene();
    const booking = await world.book(await invite(), at("10:00"));
    const invited = await invite();
    freeBusy = async () => {
      throw new Error("connect ECONNREFUSED");
    };
    expect(await world.tryBook(invited.token, at("11:00"))).toMatchObject({
      status: 503,
      body: { code: "calendar_unreachable" },
    });
    const move = { start_at: at("12:00") };
    expect((await world.customer.post(`${booking.manage}/reschedule`, move)).status).toBe(503);
    const period = (from: string, to: string) => ({ start: Date.parse(at(from)), end: Date.parse(at(to)) });
    freeBusy = async (ids) => new Map(ids.map((id) => [id, [period("09:45", "11:15")]]));
    expect((await world.tryBook(invited.token, at("11:00"))).status).toBe(409);
    await world.book(invited, at("11:30"));
    // The entry of the booking itself does not stand in its way.
    freeBusy = async (ids) => new Map(ids.map((id) => [id, [period("10:00", "10:30")]]));
    ok(await host.patch(`/v1/bookings/${booking.id}/reschedule`, { start_at: at("10:30") }), 200);
    freeBusy = async () => new Map();
  });

  test("POST /v1/bookings: 201, 400, 404, 409; 401 without a key", async () => {
    const { host, eventType } = await scene();
    expect((await world.customer.post("/v1/bookings", choice(eventType.slug, "10:00"))).status).toBe(401);
    expect((await host.post("/v1/bookings", choice("no-such-slug", "10:00"))).status).toBe(404);
    for (const more of [{ email: "nobody" }, { name: "" }, { start_at: "2031-03-02T10:00:00Z" }, { x: 1 }])
      expect((await host.post("/v1/bookings", choice(eventType.slug, "10:00", more))).status).toBe(400);
    const made = ok(await host.post("/v1/bookings", choice(eventType.slug, "10:00")), 201).body;
    expect(made).toMatchObject({ host_id: host.id, status: "confirmed", scheduling_invitation_id: null });
    expect((await host.post("/v1/bookings", choice(eventType.slug, "10:00"))).status).toBe(409);
    ok(await host.patch(`/v1/event-types/${eventType.id}`, { is_active: false }), 200);
    expect((await host.post("/v1/bookings", choice(eventType.slug, "11:00"))).status).toBe(404);
  });

  test("an id that no database can hold is nobody's, and every request is one line of the log", async () => {
    const { host, invite } = await scene();
    const booking = await world.book(await invite(), at("10:00"));
    const lines = world.log.length;
    for (const id of [
      "%00",
      "a%00b",
      `${booking.id}%00`,
      "a%0Areq_forged%20GET%20/v1/bookings%20200",
      "%1b[2J",
    ]) {
      const answers = [
        await host.get(`/v1/bookings/${id}`),
        await host.patch(`/v1/bookings/${id}/reschedule`, { start_at: at("11:00") }),
        await host.post(`/v1/bookings/${id}/cancel`),
        await host.get(`/v1/event-types/${id}`),
        await host.post(`/v1/scheduling-invitations/${id}/cancel`),
        await host.delete(`/v1/webhooks/${id}`),
        await host.put(`/v1/users/${id}/availability`, { rules: [], overrides: [] }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 404, 404]);
    }
    const logged = world.log.slice(lines);
    expect(logged).toHaveLength(5 * 7);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    for (const line of logged) expect(line).not.toMatch(/[\u0000-\u001f]/);
    const path = `/v1/bookings/${booking.id}/location`;
    for (const revision of [2, 2_147_483_648, Number.MAX_SAFE_INTEGER])
      expect(await host.put(path, { location_value: "x", revision })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: "/revision" }] },
      });
  });

  test("a booking is for its hosts, the creator of its invitation (to read) and admins; for others it is not there", async () => {
    const [primary, second] = [await world.host(), await world.host()];
    const creator = await world.user({ is_admin: true });
    const eventType = await world.eventType([primary, second], { routing_mode: "collective" });
    const booking = await world.book(await world.invite(creator, eventType.id), at("10:00"));
    // An admin who made the invitation and is none any more is its creator still.
    ok(await world.admin.patch(`/v1/users/${creator.id}`, { is_admin: false }), 200);
    const stranger = await world.user();
    const path = `/v1/bookings/${booking.id}`;
    const routes = (client: typeof world.customer) => [
      client.patch(`${path}/reschedule`, { start_at: at("10:00") }),
      client.put(`${path}/location`, { location_value: "" }),
    ];
    for (const client of [primary, second, world.admin]) {
      ok(await client.get(path), 200);
      for (const answer of await Promise.all(routes(client))) expect(answer.status).toBe(200);
      const list = ok(await client.get("/v1/bookings?limit=100"), 200).body.items;
      expect(list.map(({ id }) => id)).toContain(booking.id);
    }
    ok(await creator.get(path), 200);
    expect((await creator.get("/v1/bookings")).body.items.map(({ id }) => id)).toEqual([booking.id]);
    expect((await stranger.get(path)).status).toBe(404);
    expect((await stranger.get("/v1/bookings")).body.items).toEqual([]);
    for (const client of [creator, stranger]) {
      for (const answer of await Promise.all(routes(client))) expect(answer.status).toBe(404);
      expect((await client.post(`${path}/cancel`)).status).toBe(404);
    }
    expect((await stranger.post(`${path}/reassign`, { host_id: stranger.id })).status).toBe(404);
    expect((await creator.post(`${path}/reassign`, { host_id: second.id })).status).toBe(403);
    // A booking from an invitation keeps its hosts.
    expect((await primary.post(`${path}/reassign`, { host_id: second.id })).status).toBe(409);
    for (const method of ["get", "delete"] as const)
      expect((await world.customer[method](path)).status).toBe(401);
    ok(await second.post(`${path}/cancel`, { reason: "Cannot" }), 200);
  });

  test("GET /v1/bookings pages, newest first, and filters by status", async () => {
    const { host, eventType } = await scene();
    const ids: string[] = [];
    for (const time of ["09:00", "10:00", "11:00", "12:00", "13:00"]) {
      ids.unshift(ok(await host.post("/v1/bookings", choice(eventType.slug, time)), 201).body.id);
      world.clock.advance(10);
    }
    ok(await host.post(`/v1/bookings/${ids[2]}/cancel`), 200);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = ok(await host.get(`/v1/bookings?limit=2${query}`), 200);
      seen.push(...body.items.map(({ id }) => id));
      cursor = body.next_cursor;
    }
    expect(seen).toEqual(ids);
    const cancelled = await host.get("/v1/bookings?status=cancelled");
    expect(cancelled.body.items.map(({ id }) => id)).toEqual([ids[2]]);
    expect((await host.get("/v1/bookings?status=lost")).status).toBe(400);
    expect((await host.get("/v1/bookings?limit=101")).status).toBe(400);
  });

  test("reassign: 403 for a host who is not the primary, 400 for one of no pool, 409 for a busy one and a cancelled booking", async () => {
    const [first, second, optional] = [await world.host(), await world.host(), await world.host()];
    const outside = await world.host();
    const eventType = await world.eventType(
      [
        { user: first, role: "required" },
        { user: second, role: "required" },
        { user: optional, role: "optional" },
      ],
      { routing_mode: "fixed" },
    );
    const own = await world.eventType([second]);
    const booking = ok(await first.post("/v1/bookings", choice(eventType.slug, "10:00")), 201).body;
    const path = `/v1/bookings/${booking.id}/reassign`;
    expect((await optional.post(path, { host_id: second.id })).status).toBe(403);
    expect((await first.post(path, { host_id: outside.id })).status).toBe(400);
    expect((await first.post(path, {})).status).toBe(400);
    const busy = ok(await second.post("/v1/bookings", choice(own.slug, "10:00")), 201).body;
    expect((await first.post(path, { host_id: second.id })).status).toBe(409);
    ok(await second.post(`/v1/bookings/${busy.id}/cancel`), 200);
    expect(ok(await first.post(path, { host_id: second.id }), 200).body).toMatchObject({
      host_id: second.id,
    });
    // From one of the others to the primary.
    expect(ok(await second.post(path, { host_id: optional.id }), 200).body).toMatchObject({
      host_id: optional.id,
    });
    ok(await world.admin.post(`/v1/bookings/${booking.id}/cancel`), 200);
    expect((await world.admin.post(path, { host_id: first.id })).status).toBe(409);
  });

  test("archiving is 409 while upcoming bookings exist, also as another host; deleting is while anything refers to the user", async () => {
    const [primary, optional] = [await world.host(), await world.host()];
    const eventType = await world.eventType([
      { user: primary, role: "required" },
      { user: optional, role: "optional" },
    ]);
    const booking = await world.book(await world.invite(primary, eventType.id), at("10:00"));
    for (const { id } of [primary, optional])
      expect((await world.admin.post(`/v1/users/${id}/archive`)).status).toBe(409);
    ok(await world.customer.post(`${booking.manage}/cancel`), 200);
    expect((await world.admin.delete(`/v1/users/${primary.id}`)).status).toBe(409);
    expect((await world.admin.delete(`/v1/users/${optional.id}`)).status).toBe(409);
    for (const { id } of [primary, optional]) ok(await world.admin.post(`/v1/users/${id}/archive`), 200);
  });

  test("manage tokens: 404 for a malformed, unknown or old one; the same one comes back from a move", async () => {
    const { invite } = await scene({ max_future_days: 0 });
    const booking = await world.book(await invite(), "2031-07-01T10:00:00Z");
    const token = booking.manage.slice("/manage/".length);
    for (const wrong of [nobody, "x", token.toUpperCase(), `${token}0`])
      for (const action of ["cancel", "reschedule"])
        expect((await world.customer.post(`/manage/${wrong}/${action}`, {})).status).toBe(404);
    expect((await world.customer.post(`${booking.manage}/reschedule`, {})).status).toBe(400);
    const move = { start_at: "2031-07-02T10:00:00Z" };
    expect(ok(await world.customer.post(`${booking.manage}/reschedule`, move), 200).body).toMatchObject({
      id: booking.id,
      manage_token: token,
    });
    const slots = await world.customer.get(`${booking.manage}/slots?from=2031-07-02&to=2031-07-02&tz=UTC`);
    // Its own time is one that it may have.
    expect(ok(slots, 200).body.slots.map(({ start_at }) => start_at)).toContain("2031-07-02T10:00:00.000Z");
    world.clock.advance(60 * 86_400_000);
    expect((await world.customer.post(`${booking.manage}/cancel`)).status).toBe(404);
    world.clock.advance(-60 * 86_400_000);
  });
});
