import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BookingWorld, ok, openBookingWorld } from "./bookings/support/booking-world.ts";
import { dialects, type UserClient } from "./support/world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  let owner: UserClient;
  let made = 0;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
    owner = await world.host();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const create = (fields: Record<string, unknown> = {}) =>
    owner.post("/v1/event-types", { slug: `talk-${++made}`, name: "Talk", ...fields });

  test("an event type is made with its defaults, its hosts and its questions, and read again", async () => {
    const mate = await world.host();
    const created = ok(
      await create({
        slug: "first-talk",
        hosts: [
          { user_id: mate.id, role: "rotation" },
          { user_id: owner.id, role: "required", priority: -1 },
        ],
        questions: [
          { label: "What is it about?", type: "text", required: true },
          { label: "Where?", type: "select", options: ["Here", "There"] },
        ],
      }),
      201,
    );
    expect(created.headers.get("location")).toBe(`/v1/event-types/${created.body.id}`);
    expect(created.body).toEqual({
      id: created.body.id,
      project_id: "live",
      tenant_id: null,
      user_id: owner.id,
      slug: "first-talk",
      name: "Talk",
      duration_minutes: 30,
      duration_min_minutes: null,
      duration_max_minutes: null,
      duration_increment_minutes: null,
      slot_interval_minutes: 30,
      location_type: "meeting",
      location_value: "",
      routing_mode: "fixed",
      buffer_before_minutes: 0,
      buffer_after_minutes: 0,
      min_notice_minutes: 0,
      max_future_days: 60,
      max_active_bookings: 1,
      is_active: true,
      archived_at: null,
      created_at: "2031-03-03T08:00:00.000Z",
      updated_at: "2031-03-03T08:00:00.000Z",
      hosts: [
        { user_id: owner.id, role: "required", priority: -1 },
        { user_id: mate.id, role: "rotation", priority: 0 },
      ],
      questions: [
        {
          id: expect.any(String),
          label: "What is it about?",
          type: "text",
          options: [],
          required: true,
          position: 0,
        },
        {
          id: expect.any(String),
          label: "Where?",
          type: "select",
          options: ["Here", "There"],
          required: false,
          position: 1,
        },
      ],
    });
    expect((await owner.get(`/v1/event-types/${created.body.id}`)).body).toEqual(created.body);
    const listed = (await owner.get("/v1/event-types?slug=first-talk")).body;
    expect(listed).toEqual({ items: [created.body], next_cursor: null });
  });

  test.each([
    ["two of the three duration fields", { duration_min_minutes: 15, duration_max_minutes: 60 }],
    ["an increment alone", { duration_increment_minutes: 15 }],
    [
      "a duration off its own policy",
      {
        duration_minutes: 40,
        duration_min_minutes: 15,
        duration_max_minutes: 60,
        duration_increment_minutes: 15,
      },
    ],
    ["a duration of nothing", { duration_minutes: 0 }],
    ["an unknown routing mode", { routing_mode: "random" }],
    ["an unknown place", { location_type: "moon" }],
    ["a slug with capitals", { slug: "Talk" }],
    ["a field that is none", { colour: "red" }],
    ["a host who does not exist", { hosts: [{ user_id: "nobody", role: "required" }] }],
    ["a select without options", { questions: [{ label: "?", type: "select" }] }],
    ["a text with options", { questions: [{ label: "?", type: "text", options: ["a"] }] }],
    ["an option twice", { questions: [{ label: "?", type: "select", options: ["a", "a"] }] }],
    ["NUL in a label", { questions: [{ label: "a\u0000", type: "text" }] }],
    ["an owner who is somebody else", { user_id: "nobody" }],
  ])("%s is 400, and nothing is written", async (_, fields) => {
    const before = (await owner.get("/v1/event-types?limit=100")).body.items.length;
    expect(await create(fields)).toMatchObject({ status: 400, body: { code: "validation_failed" } });
    expect((await owner.get("/v1/event-types?limit=100")).body.items).toHaveLength(before);
  });

  test("a slug is unique in its project and tenant, for new ones and changed ones", async () => {
    ok(await create({ slug: "taken" }), 201);
    const twice = await create({ slug: "taken" });
    expect(twice).toMatchObject({ status: 409, body: { errors: [{ pointer: "/slug" }] } });
    const other = ok(await create(), 201).body.id;
    expect((await owner.patch(`/v1/event-types/${other}`, { slug: "taken" })).status).toBe(409);
    const far = await world.user({ tenant_id: "far" });
    ok(await far.post("/v1/event-types", { slug: "taken", name: "Far" }), 201);
  });

  test("a change is checked as a whole, and null ends a range of durations", async () => {
    const { id } = ok(
      await create({
        duration_min_minutes: 15,
        duration_max_minutes: 60,
        duration_increment_minutes: 15,
      }),
      201,
    ).body;
    const at = `/v1/event-types/${id}`;
    expect((await owner.patch(at, { duration_minutes: 50 })).status).toBe(400);
    expect((await owner.patch(at, { duration_min_minutes: null })).status).toBe(400);
    const none = { duration_min_minutes: null, duration_max_minutes: null, duration_increment_minutes: null };
    const changed = ok(await owner.patch(at, { ...none, duration_minutes: 50, name: "Longer" }), 200).body;
    expect(changed).toMatchObject({ ...none, duration_minutes: 50, name: "Longer" });
  });

  test("archiving keeps its time; what is not the caller's own does not exist", async () => {
    const { id } = ok(await create(), 201).body;
    const at = `/v1/event-types/${id}`;
    const archived = ok(await owner.patch(at, { archived: true }), 200).body;
    expect(archived).toMatchObject({ archived_at: "2031-03-03T08:00:00.000Z" });
    expect(ok(await owner.patch(at, { archived_at: null }), 200).body).toMatchObject({ archived_at: null });

    const stranger = await world.user();
    const far = await world.user({ tenant_id: "far", is_admin: true });
    for (const other of [stranger, far]) {
      const tries = [
        other.get(at),
        other.patch(at, { name: "Mine" }),
        other.patch(at, { nonsense: true }),
        other.delete(at),
        other.get(`${at}/hosts`),
        other.post(`${at}/hosts`, { user_id: other.id, role: "required" }),
        other.delete(`${at}/hosts/${owner.id}`),
        other.post(`${at}/questions`, { label: "?", type: "text" }),
      ];
      expect((await Promise.all(tries)).map((answer) => answer.status)).toEqual(tries.map(() => 404));
      expect((await other.get("/v1/event-types?limit=100")).body.items).toEqual(
        other === stranger ? [] : expect.not.arrayContaining([expect.objectContaining({ id })]),
      );
    }
    ok(await world.admin.patch(at, { name: "By an admin" }), 200);
  });

  test("hosts are put, changed and removed; those of another tenant and the archived cannot host", async () => {
    const { id } = ok(await create(), 201).body;
    const at = `/v1/event-types/${id}/hosts`;
    const mate = await world.user();
    expect((await owner.post(at, { user_id: mate.id, role: "optional" })).status).toBe(201);
    expect((await owner.post(at, { user_id: owner.id, role: "required" })).status).toBe(201);
    const again = ok(await owner.post(at, { user_id: mate.id, role: "rotation", priority: 5 }), 200).body;
    expect(again).toEqual({ user_id: mate.id, role: "rotation", priority: 5 });
    ok(await owner.patch(`${at}/${mate.id}`, { priority: 0 }), 200);
    // Of the same priority, who came first is first.
    expect((await owner.get(at)).body.items).toEqual([
      { user_id: mate.id, role: "rotation", priority: 0 },
      { user_id: owner.id, role: "required", priority: 0 },
    ]);
    expect((await owner.delete(`${at}/${mate.id}`)).status).toBe(204);
    expect((await owner.delete(`${at}/${mate.id}`)).status).toBe(404);
    const far = await world.user({ tenant_id: "far" });
    const gone = await world.user();
    ok(await world.admin.post(`/v1/users/${gone.id}/archive`), 200);
    for (const user of [far, gone])
      expect(await owner.post(at, { user_id: user.id, role: "required" })).toMatchObject({
        status: 400,
        body: { errors: [{ pointer: "/user_id" }] },
      });
  });

  test("questions are added, changed and deleted with their answers; a booking's event keeps them", async () => {
    const type = await world.eventType([owner]);
    const at = `/v1/event-types/${type.id}/questions`;
    const { id } = ok(await owner.post(at, { label: "Colour?", type: "select", options: ["Red"] }), 201).body;
    const second = ok(await owner.post(at, { label: "Notes", type: "text" }), 201).body;
    expect(second).toMatchObject({ position: 1, required: false });
    ok(await owner.patch(`${at}/${id}`, { options: ["Red", "Blue"], position: 7 }), 200);
    expect((await owner.get(at)).body.items.map((item) => item.id)).toEqual([second.id, id]);
    expect((await owner.patch(`${at}/${id}`, { options: [] })).status).toBe(400);

    const invited = await world.invite(owner, type.id);
    const booking = await world.book(invited, "2031-03-04T09:00:00Z", {
      answers: [{ question_id: id, value: "Blue" }],
    });
    const answers = () => world.db.selectFrom("booking_answers").selectAll().execute();
    expect(await answers()).toEqual([{ booking_id: booking.id, question_id: id, value: "Blue" }]);
    expect((await owner.delete(`${at}/${id}`)).status).toBe(204);
    expect(await answers()).toEqual([]);
    const [event] = await world.bookingEvents(booking.id);
    expect(JSON.parse(event!.data)).toMatchObject({ answers: [{ question: "Colour?", answer: "Blue" }] });
    expect((await owner.delete(`${at}/${id}`)).status).toBe(404);
  });

  test("what an invitation or a booking refers to cannot be deleted; what nothing refers to can", async () => {
    const mate = await world.host();
    const type = await world.eventType([owner, { user: mate, role: "rotation" }]);
    const at = `/v1/event-types/${type.id}`;
    const invited = await world.invite(owner, type.id, { hosts: [{ user_id: owner.id }] });
    expect((await owner.delete(at)).status).toBe(409);
    expect((await owner.delete(`${at}/hosts/${owner.id}`)).status).toBe(409);
    expect((await owner.delete(`${at}/hosts/${mate.id}`)).status).toBe(204);
    const booking = await world.book(invited, "2031-03-05T09:00:00Z");
    expect((await owner.delete(`${at}/hosts/${owner.id}`)).status).toBe(409);
    ok(await owner.post(`/v1/bookings/${booking.id}/cancel`), 200);
    expect((await owner.delete(`${at}/hosts/${owner.id}`)).status).toBe(204);
    expect((await owner.delete(at)).status).toBe(409);

    const unused = ok(await create({ questions: [{ label: "?", type: "text" }] }), 201).body.id;
    expect((await owner.delete(`/v1/event-types/${unused}`)).status).toBe(204);
    expect((await owner.get(`/v1/event-types/${unused}`)).status).toBe(404);
    expect((await owner.delete(`/v1/event-types/${unused}`)).status).toBe(404);
  });

  test("the list is read in pages, newest first, without a gap or a repeat", async () => {
    const pager = await world.user();
    for (let index = 0; index < 5; index++)
      ok(await pager.post("/v1/event-types", { slug: `page-${index}`, name: "Page" }), 201);
    const ids: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await pager.get(`/v1/event-types?limit=2${cursor && `&cursor=${cursor}`}`);
      ids.push(...body.items.map((item) => item.id));
      cursor = body.next_cursor;
    }
    expect(new Set(ids).size).toBe(5);
    expect(ids).toHaveLength(5);
  });

  describe("hours", () => {
    const rule = (start_time: string, end_time: string) => ({ day_of_week: 1, start_time, end_time });

    test("are replaced as a whole by the user or an admin, and read again", async () => {
      const user = await world.user();
      const at = `/v1/users/${user.id}/availability`;
      const full = {
        rules: [rule("09:00", "12:00"), rule("13:00", "24:00")],
        overrides: [
          { date: "2031-03-10", is_available: false },
          { date: "2031-03-11", is_available: true, start_time: "10:00", end_time: "11:00" },
        ],
      };
      const stored = ok(await user.put(at, full), 200).body;
      expect(stored).toEqual({
        rules: full.rules.map((each) => ({ ...each, event_type_id: null })),
        overrides: [{ ...full.overrides[0], start_time: null, end_time: null }, full.overrides[1]],
      });
      expect((await user.get("/v1/users/me/availability")).body).toEqual(stored);
      ok(await world.admin.put(at, { rules: [rule("08:00", "09:00")] }), 200);
      expect((await user.get(at)).body).toMatchObject({ rules: [rule("08:00", "09:00")], overrides: [] });
      expect((await owner.put(at, { rules: [] })).status).toBe(404);
      expect((await owner.get(at)).status).toBe(404);
      expect((await owner.put("/v1/users/nobody/availability", { rules: [] })).status).toBe(404);
    });

    test.each([
      ["an end before its start", { rules: [rule("12:00", "09:00")] }, "/rules/0/end_time"],
      ["an end that is its start", { rules: [rule("12:00", "12:00")] }, "/rules/0/end_time"],
      ["24:00 as a start", { rules: [rule("24:00", "24:00")] }, "/rules/0/start_time"],
      ["an hour that is none", { rules: [rule("09:00", "25:00")] }, "/rules/0/end_time"],
      ["an eighth day", { rules: [{ ...rule("09:00", "10:00"), day_of_week: 7 }] }, "/rules/0/day_of_week"],
      [
        "a date that is none",
        { overrides: [{ date: "2031-02-29", is_available: false }] },
        "/overrides/0/date",
      ],
      [
        "half a time",
        { overrides: [{ date: "2031-03-10", is_available: true, start_time: "09:00" }] },
        "/overrides/0",
      ],
      [
        "a day off with times",
        { overrides: [{ date: "2031-03-10", is_available: false, start_time: "09:00", end_time: "10:00" }] },
        "/overrides/0",
      ],
      [
        "a day that is off and on",
        {
          overrides: [
            { date: "2031-03-10", is_available: false },
            { date: "2031-03-10", is_available: true },
          ],
        },
        "/overrides/1",
      ],
      [
        "an event type that is none",
        { rules: [{ ...rule("09:00", "10:00"), event_type_id: "none" }] },
        "/rules/0/event_type_id",
      ],
    ])("%s are 400, named, and what was there stays", async (_, body, pointer) => {
      const at = `/v1/users/${owner.id}/availability`;
      const before = (await owner.get(at)).body;
      expect(await owner.put(at, body)).toMatchObject({ status: 400, body: { errors: [{ pointer }] } });
      expect((await owner.get(at)).body).toEqual(before);
    });

    test("two who replace at once leave one of the two, not a mixture", async () => {
      const user = await world.user();
      const at = `/v1/users/${user.id}/availability`;
      const puts = ["08:00", "10:00", "12:00"].map((start) =>
        user.put(at, { rules: [rule(start, "20:00")] }),
      );
      expect((await Promise.all(puts)).map((answer) => answer.status)).toEqual([200, 200, 200]);
      const rows = await world.db
        .selectFrom("availability_rules")
        .select("start_time")
        .where("user_id", "=", user.id)
        .execute();
      expect(rows).toHaveLength(1);
    });
  });
});
