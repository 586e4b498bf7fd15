import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BookingWorld, dataOf, ok, openBookingWorld } from "./bookings/support/booking-world.ts";
import { dialects, type UserClient } from "./support/world.ts";

const external = { system: "crm", reference: "CASE-7", url: "https://crm.example.com/cases/7" };

describe.each(dialects)("on %s", (dialect) => {
  let world: BookingWorld;
  let owner: UserClient;
  let mate: UserClient;
  let typeId: string;
  beforeAll(async () => {
    world = await openBookingWorld(dialect);
    [owner, mate] = [await world.host(), await world.host()];
    const type = await world.eventType(
      [
        { user: owner, role: "required" },
        { user: mate, role: "rotation" },
      ],
      {
        slug: "intake",
        buffer_before_minutes: 5,
        buffer_after_minutes: 10,
        min_notice_minutes: 60,
        routing_mode: "round_robin",
        location_type: "phone",
        location_value: "+43 1 234",
      },
    );
    typeId = type.id;
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const body = (fields: Record<string, unknown> = {}) => ({
    event_type_id: typeId,
    recipient: { name: "Grace Hopper", email: "grace@example.com" },
    expires_at: "2031-04-01T12:00:00+02:00",
    ...fields,
  });
  const issue = (fields: Record<string, unknown> = {}) =>
    owner.post("/v1/scheduling-invitations", body(fields));
  const rows = async () =>
    (await world.db.selectFrom("scheduling_invitations").select("id").execute()).length;

  test("one is issued with all it retains; token and address are in this answer only", async () => {
    const issued = ok(
      await issue({
        external,
        hosts: [
          { user_id: mate.id, role: "required" },
          { user_id: owner.id, role: "optional" },
        ],
        available_from: "2031-03-10",
        available_until: "2031-03-14T18:00:00Z",
        availability_timezone: "Europe/Vienna",
      }),
      201,
    );
    const { token, scheduling_url: link, ...rest } = issued.body;
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect(link).toBe(`${world.url}/s/${token}`);
    expect(issued.headers.get("cache-control")).toBe("no-store");
    expect(rest).toEqual({
      id: rest.id,
      event_type_id: typeId,
      creator_id: owner.id,
      recipient: { name: "Grace Hopper", email: "grace@example.com" },
      duration_minutes: 30,
      slot_interval_minutes: 30,
      buffer_before_minutes: 5,
      buffer_after_minutes: 10,
      min_notice_minutes: 60,
      max_future_days: 60,
      routing_mode: "round_robin",
      available_from: "2031-03-10",
      available_until: "2031-03-14T18:00:00Z",
      availability_timezone: "Europe/Vienna",
      external,
      location_type: "phone",
      location_value: "+43 1 234",
      hosts: [
        { user_id: mate.id, role: "required", priority: 0 },
        { user_id: owner.id, role: "optional", priority: 0 },
      ],
      status: "active",
      booking_id: null,
      expires_at: "2031-04-01T10:00:00.000Z",
      created_at: "2031-03-03T08:00:00.000Z",
      updated_at: "2031-03-03T08:00:00.000Z",
    });
    const read = await owner.get(`/v1/scheduling-invitations/${rest.id}`);
    expect(read.body).toEqual(rest);
    const listed = await owner.get("/v1/scheduling-invitations?limit=100");
    expect(JSON.stringify([read.body, listed.body])).not.toMatch(new RegExp(`${token}|scheduling_url|/s/`));
  });

  test("of a token only the SHA-256 is stored, and it is in no event and no log line", async () => {
    const { id, token } = ok(await issue(), 201).body;
    const hash = createHash("sha256").update(token).digest("hex");
    const stored = await world.db
      .selectFrom("scheduling_invitation_tokens")
      .selectAll()
      .where("invitation_id", "=", id)
      .execute();
    expect(stored).toEqual([{ hash, invitation_id: id, consumed_at: null }]);
    ok(await world.customer.get(`/v1/schedule/${token}/slots`), 200);
    const events = await world.invitationEvents(id);
    const told = JSON.stringify([events, world.log]);
    expect(told).not.toContain(token);
    expect(told).not.toContain(hash);
  });

  test("the flat form of the recipient, the slug and no hosts are taken as well", async () => {
    const issued = ok(
      await issue({
        event_type_id: undefined,
        event_type_slug: "intake",
        recipient: undefined,
        recipient_name: "Ada",
        recipient_email: "ada@example.com",
      }),
      201,
    ).body;
    expect(issued).toMatchObject({
      event_type_id: typeId,
      recipient: { name: "Ada", email: "ada@example.com" },
      external: null,
      available_from: null,
      availability_timezone: null,
      hosts: [
        { user_id: owner.id, role: "required", priority: 0 },
        { user_id: mate.id, role: "rotation", priority: 1 },
      ],
    });
  });

  test.each([
    ["no recipient", { recipient: undefined }, "/recipient"],
    ["a recipient without a name", { recipient: { name: " ", email: "a@example.com" } }, "/recipient/name"],
    ["a recipient whose address is none", { recipient: { name: "A", email: "a" } }, "/recipient/email"],
    ["half a flat recipient", { recipient: undefined, recipient_name: "A" }, "/recipient_email"],
    ["both forms of a recipient", { recipient_name: "A" }, "/recipient"],
    ["an expiry that is over", { expires_at: "2031-03-03T07:59:59Z" }, "/expires_at"],
    ["an expiry that is now", { expires_at: "2031-03-03T08:00:00Z" }, "/expires_at"],
    ["an expiry without an offset", { expires_at: "2031-04-01T12:00:00" }, "/expires_at"],
    ["an expiry that is a date", { expires_at: "2031-04-01" }, "/expires_at"],
    ["no expiry", { expires_at: undefined }, "/expires_at"],
    [
      "a reversed window",
      { available_from: "2031-03-14", available_until: "2031-03-13" },
      "/available_until",
    ],
    [
      "an equal window",
      { available_from: "2031-03-14T09:00:00Z", available_until: "2031-03-14T10:00:00+01:00" },
      "/available_until",
    ],
    [
      "a window that its zone turns round",
      {
        available_from: "2031-03-14T12:00:00Z",
        available_until: "2031-03-14",
        availability_timezone: "Pacific/Kiritimati",
      },
      "/available_until",
    ],
    ["a bound that is no date", { available_from: "2031-02-30" }, "/available_from"],
    ["a zone that is none", { availability_timezone: "Mars/Olympus" }, "/availability_timezone"],
    ["a duration off policy", { duration_minutes: 45 }, "/duration_minutes"],
    ["a host outside of the pool", { hosts: [{ user_id: "nobody" }] }, "/hosts/0/user_id"],
    ["a host_id outside of the pool", { host_id: "nobody" }, "/host_id"],
    ["no event type", { event_type_id: undefined }, "/event_type_id"],
    ["both ways to name the event type", { event_type_slug: "intake" }, "/event_type_id"],
    [
      "an external address that is none",
      { external: { ...external, url: "javascript:alert(1)" } },
      "/external/url",
    ],
    ["an unknown field", { colour: "red" }, "/colour"],
  ])("%s is 400 and names the field; nothing is written and no event made", async (_, fields, pointer) => {
    const before = [await rows(), (await world.events()).length];
    const answer = await issue(fields);
    expect(answer).toMatchObject({ status: 400, body: { code: "validation_failed", errors: [{ pointer }] } });
    expect([await rows(), (await world.events()).length]).toEqual(before);
  });

  test("hosts: only optional ones, one twice, an archived one, and hosts with a host_id are 400", async () => {
    const gone = await world.host();
    ok(await owner.post(`/v1/event-types/${typeId}/hosts`, { user_id: gone.id, role: "rotation" }), 201);
    ok(await world.admin.post(`/v1/users/${gone.id}/archive`), 200);
    for (const fields of [
      { hosts: [{ user_id: owner.id, role: "optional" }] },
      { hosts: [{ user_id: owner.id }, { user_id: owner.id }] },
      { hosts: [] },
      { hosts: [{ user_id: gone.id }] },
      { host_id: gone.id },
      { hosts: [{ user_id: owner.id }], host_id: owner.id },
    ])
      expect((await issue(fields)).status).toBe(400);
    const issued = ok(await issue(), 201).body as unknown as { hosts: { user_id: string }[] };
    expect(issued.hosts.map((host) => host.user_id)).not.toContain(gone.id);
    const nobody = await world.eventType([owner], { hosts: [{ user_id: mate.id, role: "optional" }] });
    expect(await issue({ event_type_id: nobody.id })).toMatchObject({
      status: 400,
      body: { errors: [{ pointer: "/hosts" }] },
    });
    const none = await world.eventType([owner], { hosts: [] });
    expect((await issue({ event_type_id: none.id })).status).toBe(400);
  });

  test("an event type that is missing, archived, inactive or another owner's is 404", async () => {
    const types = [
      await world.eventType([owner]),
      await world.eventType([owner]),
      await world.eventType([mate]),
    ];
    ok(await owner.patch(`/v1/event-types/${types[0]?.id}`, { archived: true }), 200);
    ok(await owner.patch(`/v1/event-types/${types[1]?.id}`, { is_active: false }), 200);
    for (const id of ["none", ...types.map((type) => type.id)])
      expect((await issue({ event_type_id: id })).status).toBe(404);
    for (const slug of ["none", ...types.map((type) => type.slug)])
      expect((await issue({ event_type_id: undefined, event_type_slug: slug })).status).toBe(404);
    // An admin may invite to what others own, and is the creator then.
    const byAdmin = ok(await world.admin.post("/v1/scheduling-invitations", body()), 201).body;
    const admin = (await world.admin.get("/v1/users/me")).body.id;
    expect(byAdmin).toMatchObject({ creator_id: admin });
    const [event] = await world.invitationEvents(byAdmin.id);
    expect(event?.audience).toEqual([admin]);
  });

  test("a longer duration is taken where the policy of the event type allows it", async () => {
    const type = await world.eventType([owner], {
      duration_min_minutes: 30,
      duration_max_minutes: 90,
      duration_increment_minutes: 20,
    });
    const tried = [30, 50, 60, 70, 90].map(async (minutes) => {
      const { status } = await issue({ event_type_id: type.id, duration_minutes: minutes });
      return [minutes, status];
    });
    expect(await Promise.all(tried)).toEqual([
      [30, 201],
      [50, 201],
      [60, 400],
      [70, 201],
      [90, 201],
    ]);
  });

  test("its event is captured with it, for its creator only; without the event there is no invitation", async () => {
    const { id } = ok(await issue({ external }), 201).body;
    const events = await world.invitationEvents(id);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      type: "scheduling_invitation.created",
      audience: [owner.id],
      revision: 1,
      actor: { type: "api_key" },
      state: "new",
    });
    expect(dataOf(events[0]!)).toEqual({
      scheduling_invitation_id: id,
      event_type_id: typeId,
      status: "active",
      duration_minutes: 30,
      expires_at: "2031-04-01T10:00:00.000Z",
      external,
    });
    for (const fault of [world.breakCapture, world.breakCommit]) {
      const before = await rows();
      const mend = await fault();
      try {
        expect(await issue()).toMatchObject({ status: 503, body: { code: "event_not_captured" } });
      } finally {
        await mend();
      }
      expect(await rows()).toBe(before);
    }
    ok(await issue(), 201);
  });

  test("the list has limit and offset, newest first, and looks for a status as it is now", async () => {
    const lister = await world.host();
    const type = await world.eventType([lister]);
    const ids: string[] = [];
    for (let index = 0; index < 5; index++) {
      ids.unshift((await world.invite(lister, type.id, { expires_at: "2031-03-03T09:00:00Z" })).id);
      world.clock.advance(1000);
    }
    const list = async (query: string) => {
      const { body } = ok(await lister.get(`/v1/scheduling-invitations?${query}`), 200);
      const { next_offset: next } = body as unknown as { next_offset: number | null };
      return [body.items.map((item) => ids.indexOf(item.id)), next];
    };
    expect(await list("limit=2")).toEqual([[0, 1], 2]);
    expect(await list("limit=2&offset=2")).toEqual([[2, 3], 4]);
    expect(await list("limit=2&offset=4")).toEqual([[4], null]);
    expect(await list("offset=5")).toEqual([[], null]);
    ok(await lister.post(`/v1/scheduling-invitations/${ids[3]}/cancel`), 200);
    expect(await list("status=active")).toEqual([[0, 1, 2, 4], null]);
    expect(await list("status=cancelled")).toEqual([[3], null]);
    expect(await list("status=expired")).toEqual([[], null]);
    world.clock.advance(3_600_000);
    expect(await list("status=active")).toEqual([[], null]);
    expect(await list("status=expired")).toEqual([[0, 1, 2, 4], null]);
    for (const query of ["limit=0", "limit=101", "limit=x", "offset=-1", "status=lost"])
      expect((await lister.get(`/v1/scheduling-invitations?${query}`)).status).toBe(400);
  });

  test("another creator's invitation does not exist; an admin sees it", async () => {
    const { id } = ok(await issue(), 201).body;
    const at = `/v1/scheduling-invitations/${id}`;
    const far = await world.user({ tenant_id: "far", is_admin: true });
    for (const other of [mate, far]) {
      const tries = [other.get(at), other.get(`${at}/slots`), other.post(`${at}/cancel`)];
      expect((await Promise.all(tries)).map((answer) => answer.status)).toEqual([404, 404, 404]);
      const listed = (await other.get("/v1/scheduling-invitations?limit=100")).body.items;
      expect(listed.map((item) => item.id)).not.toContain(id);
    }
    ok(await world.admin.get(at), 200);
    expect((await world.customer.get(at)).status).toBe(401);
  });
});
