import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialects, openWorld, type UserClient, type World } from "./support/world.ts";

const patchOp = "urn:ietf:params:scim:api:messages:2.0:PatchOp";

/** Every path that changes a user: who walks it, and the one event it must make. */
interface Path {
  readonly name: string;
  readonly walk: (world: World, user: UserClient) => Promise<{ status: number }>;
  readonly before?: (world: World, user: UserClient) => Promise<unknown>;
  readonly type: "user.updated" | "user.deactivated";
  readonly data: Record<string, unknown>;
}

const scim = (operations: unknown) => ({ schemas: [patchOp], Operations: operations });
const suspend = (world: World, user: UserClient) => world.admin.post(`/v1/users/${user.id}/suspend`);

const paths: readonly Path[] = [
  {
    name: "profile edit by the user",
    walk: (_, user) => user.patch("/v1/users/me", { name: "Grace Hopper" }),
    type: "user.updated",
    data: { name: "Grace Hopper" },
  },
  {
    name: "profile edit by the user, by id",
    walk: (_, user) => user.patch(`/v1/users/${user.id}`, { name: "Grace Hopper" }),
    type: "user.updated",
    data: { name: "Grace Hopper" },
  },
  {
    name: "profile edit by an admin",
    walk: (world, user) => world.admin.patch(`/v1/users/${user.id}`, { name: "Grace Hopper" }),
    type: "user.updated",
    data: { name: "Grace Hopper" },
  },
  {
    name: "profile edit by SCIM",
    walk: (world, user) =>
      world.admin.patch(
        `/scim/v2/Users/${user.id}`,
        scim([{ op: "Replace", path: "displayName", value: "Grace Hopper" }]),
      ),
    type: "user.updated",
    data: { name: "Grace Hopper" },
  },
  {
    name: "e-mail verification",
    walk: (world, user) => world.admin.post(`/v1/users/${user.id}/verify-email`),
    type: "user.updated",
    data: { email_verified: true },
  },
  { name: "suspend", walk: suspend, type: "user.deactivated", data: { status: "suspended" } },
  {
    name: "reactivate",
    before: suspend,
    walk: (world, user) => world.admin.post(`/v1/users/${user.id}/reactivate`),
    type: "user.updated",
    data: { status: "active" },
  },
  {
    name: "archive",
    walk: (world, user) => world.admin.post(`/v1/users/${user.id}/archive`),
    type: "user.deactivated",
    data: { status: "archived" },
  },
  {
    name: "archive of a suspended user",
    before: suspend,
    walk: (world, user) => world.admin.post(`/v1/users/${user.id}/archive`),
    type: "user.deactivated",
    data: { status: "archived" },
  },
  {
    name: "delete",
    walk: (world, user) => world.admin.delete(`/v1/users/${user.id}`),
    type: "user.deactivated",
    data: { status: "deleted" },
  },
  {
    name: "SCIM active: false with a path",
    walk: (world, user) =>
      world.admin.patch(`/scim/v2/Users/${user.id}`, scim([{ op: "replace", path: "active", value: false }])),
    type: "user.deactivated",
    data: { status: "suspended" },
  },
  {
    name: 'SCIM active: "False" without a path',
    walk: (world, user) =>
      world.admin.patch(`/scim/v2/Users/${user.id}`, scim([{ op: "REPLACE", value: { active: "False" } }])),
    type: "user.deactivated",
    data: { status: "suspended" },
  },
  {
    name: "SCIM active: true",
    before: suspend,
    walk: (world, user) =>
      world.admin.patch(`/scim/v2/Users/${user.id}`, scim([{ op: "add", path: "active", value: true }])),
    type: "user.updated",
    data: { status: "active" },
  },
];

describe.each(dialects)("on %s", (dialect) => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** The user row as a second look at the database finds it. */
  const row = (id: string) =>
    world.db.selectFrom("users").selectAll().where("id", "=", id).executeTakeFirst();

  test("field-faults B2, B3: create makes user.created with the account as it was stored", async () => {
    const created = await world.admin.post("/v1/users", { email: "ada@example.com", name: "Ada" });
    expect(created.status).toBe(201);
    const [event, ...rest] = await world.eventsOf(created.body.id);
    expect(rest).toEqual([]);
    expect(event).toMatchObject({ type: "user.created", revision: 1, projectId: "live", state: "new" });
    expect(event!.occurredAt.toISOString()).toBe(created.body.updated_at);
    expect(JSON.parse(event!.data)).toEqual({
      id: created.body.id,
      email: "ada@example.com",
      name: "Ada",
      status: "active",
      email_verified: false,
    });
  });

  test.each(paths)("field-faults B2, B3, B5: $name makes exactly one $type", async (path) => {
    const user = await world.user();
    await path.before?.(world, user);
    const earlier = await world.eventsOf(user.id);
    const answer = await path.walk(world, user);
    expect(answer.status).toBeLessThan(300);
    const events = (await world.eventsOf(user.id)).slice(earlier.length);
    expect(events.map((event) => event.type)).toEqual([path.type]);
    expect(JSON.parse(events[0]!.data)).toMatchObject({ id: user.id, email: user.email, ...path.data });
    expect(events[0]!.revision).toBe(earlier.length + 1);
    const stored = await row(user.id);
    if (path.name === "delete") expect(stored).toBeUndefined();
    else
      expect(stored).toMatchObject({
        revision: events[0]!.revision,
        updated_at: events[0]!.occurredAt.toISOString(),
      });
  });

  test.each(paths)("field-faults A1, A2: $name and its event stand or fall together", async (path) => {
    const user = await world.user();
    await path.before?.(world, user);
    const [stored, events] = [await row(user.id), await world.eventsOf(user.id)];
    const mend = await world.breakCapture();
    try {
      expect((await path.walk(world, user)).status).toBe(503);
      expect(await row(user.id)).toEqual(stored);
      expect(await world.eventsOf(user.id)).toHaveLength(events.length);
    } finally {
      await mend();
    }
    expect((await path.walk(world, user)).status).toBeLessThan(300);
    expect(await world.eventsOf(user.id)).toHaveLength(events.length + 1);
  });

  test.each(paths.filter((path) => path.name !== "delete"))(
    "field-faults B4: $name a second time changes nothing and makes no event",
    async (path) => {
      const user = await world.user();
      await path.before?.(world, user);
      // A suspended user's own key is no key; nobody repeats with it.
      await path.walk(world, user);
      const [stored, events] = [await row(user.id), await world.eventsOf(user.id)];
      expect((await path.walk(world, user)).status).toBeLessThan(300);
      expect(await row(user.id)).toEqual(stored);
      expect(await world.eventsOf(user.id)).toHaveLength(events.length);
    },
  );

  test("field-faults B4: a time zone, an admin mark and a new key are published by nobody", async () => {
    const user = await world.user();
    const events = (await world.events()).length;
    expect((await user.patch("/v1/users/me", { iana_timezone: "Asia/Kathmandu" })).status).toBe(200);
    expect((await world.admin.patch(`/v1/users/${user.id}`, { is_admin: true })).status).toBe(200);
    expect((await user.post(`/v1/users/${user.id}/api-keys`, { name: "second" })).status).toBe(201);
    expect(await world.events()).toHaveLength(events);
    expect(await row(user.id)).toMatchObject({ iana_timezone: "Asia/Kathmandu", is_admin: 1, revision: 1 });
  });

  test("field-faults B4: deleting twice is one event and then 404", async () => {
    const user = await world.user();
    expect((await world.admin.delete(`/v1/users/${user.id}`)).status).toBe(204);
    expect((await world.admin.delete(`/v1/users/${user.id}`)).status).toBe(404);
    expect((await world.eventsOf(user.id)).map((event) => event.type)).toEqual([
      "user.created",
      "user.deactivated",
    ]);
  });

  test("field-faults B5: a change of three published fields at once is one event", async () => {
    const user = await world.user();
    await user.post(`/v1/users/${user.id}/verify-email`);
    const answer = await user.patch("/v1/users/me", { name: "Both", email: "both@example.com" });
    expect(answer.body).toMatchObject({
      name: "Both",
      email: "both@example.com",
      email_verified: false,
      revision: 3,
    });
    expect((await world.eventsOf(user.id)).map((event) => event.type)).toEqual([
      "user.created",
      "user.updated",
      "user.updated",
    ]);
  });

  test("field-faults B2, B5: an import is one event for each user, in one transaction", async () => {
    const users = Array.from({ length: 40 }, (_, i) => ({
      email: `import${i}@example.com`,
      name: `Import ${i} 汉字`,
    }));
    const answer = await world.admin.post("/v1/users/import", { users });
    expect(answer.status).toBe(201);
    const ids = answer.body.users.map((user) => user.id);
    const events = (await world.events()).filter((event) =>
      ids.includes(event.subject!.slice("user:".length)),
    );
    expect(events.map((event) => event.type)).toEqual(users.map(() => "user.created"));
    expect(new Set(events.map((event) => JSON.parse(event.data).name)).size).toBe(40);
  });

  test("field-faults A1: an import with one bad row writes nobody, and names the rows", async () => {
    await world.admin.post("/v1/users", { email: "taken@example.com", name: "Taken" });
    const before = (await world.events()).length;
    const users = [
      { email: "fresh@example.com", name: "Fresh" },
      { email: "TAKEN@example.com", name: "Again" },
      { email: "fresh2@example.com", name: "Fresh" },
      { email: "FRESH@example.com", name: "Twice in one import" },
    ];
    const conflict = await world.admin.post("/v1/users/import", { users });
    expect(conflict).toMatchObject({
      status: 409,
      body: { code: "email_taken", errors: [{ pointer: "/users/1/email" }, { pointer: "/users/3/email" }] },
    });
    const invalid = await world.admin.post("/v1/users/import", {
      users: [
        users[0],
        { email: "no address", name: "" },
        { name: "\u0007", password: "x", email: "q@example.com" },
      ],
    });
    expect(invalid.status).toBe(400);
    expect(invalid.body.errors.map((error) => error.pointer).sort()).toEqual([
      "/users/1/email",
      "/users/1/name",
      "/users/2/name",
      "/users/2/password",
    ]);
    const found = await world.db.selectFrom("users").select("id").where("email", "like", "fresh%").execute();
    expect(found).toEqual([]);
    expect(await world.events()).toHaveLength(before);
  });

  test("field-faults A1: an import whose events cannot be captured writes nobody", async () => {
    const mend = await world.breakCapture();
    const users = [1, 2, 3].map((i) => ({ email: `lost${i}@example.com`, name: "Lost" }));
    try {
      const answer = await world.admin.post("/v1/users/import", { users });
      expect(answer).toMatchObject({ status: 503, body: { code: "event_not_captured" } });
      expect(answer.headers.get("retry-after")).toBe("1");
      // The words of the database are for the log, not for the caller.
      expect(JSON.stringify(answer.body)).not.toContain("disk is full");
      expect(world.log.join("\n")).toContain("disk is full");
      expect((await world.admin.post("/v1/users", users[0])).status).toBe(503);
    } finally {
      await mend();
    }
    const found = await world.db.selectFrom("users").select("id").where("email", "like", "lost%").execute();
    expect(found).toEqual([]);
    expect((await world.admin.post("/v1/users/import", { users })).status).toBe(201);
  });

  test("field-faults B5: ten edits of one user at once are ten events with ten revisions", async () => {
    const user = await world.user();
    const names = Array.from({ length: 10 }, (_, i) => `Name ${i}`);
    const answers = await Promise.all(
      names.map((name) => world.admin.patch(`/v1/users/${user.id}`, { name })),
    );
    expect(answers.map((answer) => answer.status)).toEqual(names.map(() => 200));
    const events = await world.eventsOf(user.id);
    expect(events.map((event) => event.revision).sort((a, b) => a! - b!)).toEqual(
      Array.from({ length: 11 }, (_, i) => i + 1),
    );
    // Each event says what its own edit made, and the last one is what the row holds.
    expect(new Set(events.slice(1).map((event) => JSON.parse(event.data).name))).toEqual(new Set(names));
    const last = events.find((event) => event.revision === 11)!;
    expect((await row(user.id))!.name).toBe(JSON.parse(last.data).name);
  });

  test("field-faults B10: the actor of an event is the key that made the change", async () => {
    const user = await world.user();
    const keys = await Promise.all(
      ["sync", "people"].map(
        async (name) => (await user.post(`/v1/users/${user.id}/api-keys`, { name })).body,
      ),
    );
    for (const [index, { key }] of keys.entries())
      await fetch(`${world.url}/v1/users/me`, {
        method: "PATCH",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/merge-patch+json" },
        body: JSON.stringify({ name: `By key ${index}` }),
      });
    const events = await world.eventsOf(user.id);
    expect(events.slice(1).map((event) => event.actor)).toEqual(
      keys.map(({ id }) => ({ type: "api_key", id })),
    );
    expect(events[0]!.actor?.id).not.toBe(keys[0]?.id);
  });
});
