import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clientOf } from "./support/client.ts";
import { dialects, openWorld, type World } from "./support/world.ts";

describe.each(dialects)("on %s", (dialect) => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(dialect);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test.each([
    ["no key", undefined],
    ["an unknown key", "apk_unknown"],
    ["an empty key", ""],
  ])("%s is 401, with a problem document", async (_, key) => {
    const answer = await clientOf(world.url, key).get("/v1/users");
    expect(answer.status).toBe(401);
    expect(answer.headers.get("content-type")).toContain("application/problem+json");
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(answer.body).toMatchObject({
      status: 401,
      code: "unauthenticated",
      request_id: expect.any(String),
    });
  });

  test("the health route needs no key, and an unknown route is a 404 problem", async () => {
    expect((await clientOf(world.url, undefined).get("/healthz")).body).toEqual({ status: "ok" });
    expect((await world.admin.get("/nowhere")).body).toMatchObject({ status: 404, code: "not_found" });
  });

  test("a user is made with the project of the key, and only what the contract names may be said", async () => {
    const id = "0190f6a4-5b77-7cc2-9a53-2f8d6e0b7c11";
    const created = await world.admin.post("/v1/users", {
      id,
      email: "Full@Example.com",
      name: "Full",
      iana_timezone: "America/St_Johns",
      is_admin: true,
      tenant_id: "acme",
    });
    expect(created.status).toBe(201);
    expect(created.headers.get("location")).toBe(`/v1/users/${id}`);
    expect(created.body).toEqual({
      id,
      project_id: "live",
      tenant_id: "acme",
      email: "Full@Example.com",
      name: "Full",
      status: "active",
      email_verified: false,
      iana_timezone: "America/St_Johns",
      is_admin: true,
      revision: 1,
      created_at: created.body.updated_at,
      updated_at: created.body.updated_at,
    });
    for (const [field, value] of Object.entries({
      project_id: "other",
      status: "archived",
      revision: 7,
      password: "x",
    })) {
      const answer = await world.admin.post("/v1/users", {
        email: "x@example.com",
        name: "X",
        [field]: value,
      });
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ pointer: `/${field}` }] } });
    }
  });

  test("an id or an address that is taken is 409 and names the field", async () => {
    const user = await world.user({ email: "taken@example.com" });
    const sameId = await world.admin.post("/v1/users", {
      id: user.id,
      email: "other@example.com",
      name: "X",
    });
    expect(sameId).toMatchObject({ status: 409, body: { errors: [{ pointer: "/id" }] } });
    const sameEmail = await world.admin.post("/v1/users", { email: "Taken@EXAMPLE.com", name: "X" });
    expect(sameEmail).toMatchObject({
      status: 409,
      body: { code: "email_taken", errors: [{ pointer: "/email" }] },
    });
    const other = await world.user();
    const edited = await other.patch("/v1/users/me", { email: "TAKEN@example.com" });
    expect(edited).toMatchObject({ status: 409, body: { code: "email_taken" } });
    // In another tenant the address is free.
    expect(
      (await world.admin.post("/v1/users", { email: "taken@example.com", name: "X", tenant_id: "t2" }))
        .status,
    ).toBe(201);
  });

  test("the id of a deleted user cannot come back: its revisions are told already", async () => {
    const user = await world.user();
    await world.admin.delete(`/v1/users/${user.id}`);
    const again = await world.admin.post("/v1/users", { id: user.id, email: user.email, name: "Again" });
    expect(again).toMatchObject({ status: 409, body: { errors: [{ pointer: "/id" }] } });
    expect((await world.admin.post("/v1/users", { email: user.email, name: "Again" })).status).toBe(201);
  });

  test("two creates of one address at once: one is made, the other is 409", async () => {
    const body = { email: "race@example.com", name: "Race" };
    const answers = await Promise.all([1, 2, 3, 4].map(() => world.admin.post("/v1/users", body)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409, 409, 409]);
    const events = (await world.events()).filter((event) => event.data.includes("race@example.com"));
    expect(events).toHaveLength(1);
  });

  test.each([
    ["a suspended user", "suspend"],
    ["an archived user", "archive"],
  ])("the key of %s does not count", async (_, action) => {
    const user = await world.user();
    expect((await user.get("/v1/users/me")).body.id).toBe(user.id);
    await world.admin.post(`/v1/users/${user.id}/${action}`);
    expect((await user.get("/v1/users/me")).status).toBe(401);
    await world.admin.post(`/v1/users/${user.id}/reactivate`);
    expect((await user.get("/v1/users/me")).status).toBe(200);
  });

  test("an archived user cannot be suspended", async () => {
    const user = await world.user();
    await world.admin.post(`/v1/users/${user.id}/archive`);
    const answer = await world.admin.post(`/v1/users/${user.id}/suspend`);
    expect(answer).toMatchObject({ status: 409, body: { code: "conflict" } });
  });

  test("what only admins may do, and other users, do not exist for a user", async () => {
    const [user, other] = [await world.user(), await world.user()];
    const before = (await world.events()).length;
    const tries = [
      user.post("/v1/users", { email: "n@example.com", name: "N" }),
      user.post("/v1/users/import", { users: [{ email: "n@example.com", name: "N" }] }),
      user.get(`/v1/users/${other.id}`),
      user.patch(`/v1/users/${other.id}`, { name: "Taken over" }),
      user.patch(`/v1/users/${other.id}`, { nonsense: true }),
      user.delete(`/v1/users/${other.id}`),
      user.delete(`/v1/users/${user.id}`),
      user.post(`/v1/users/${user.id}/suspend`),
      user.post(`/v1/users/${other.id}/reactivate`),
      user.post(`/v1/users/${other.id}/archive`),
      user.post(`/v1/users/${other.id}/verify-email`),
      user.post(`/v1/users/${other.id}/api-keys`, { name: "mine now" }),
      user.patch(`/scim/v2/Users/${user.id}`, { schemas: [], Operations: [] }),
    ];
    expect((await Promise.all(tries)).map((answer) => answer.status)).toEqual(tries.map(() => 404));
    expect((await user.patch("/v1/users/me", { is_admin: true })).status).toBe(400);
    expect((await user.get("/v1/users")).body.items.map((item) => item.id)).toEqual([user.id]);
    expect(await world.events()).toHaveLength(before);
  });

  test("field-faults G8: an admin of a tenant sees and changes that tenant's users only", async () => {
    const boss = await world.user({ tenant_id: "north", is_admin: true });
    const mine = await world.user({ tenant_id: "north" });
    const theirs = await world.user({ tenant_id: "south" });
    const nobodys = await world.user();
    for (const hidden of [theirs, nobodys]) {
      expect((await boss.get(`/v1/users/${hidden.id}`)).status).toBe(404);
      expect((await boss.patch(`/v1/users/${hidden.id}`, { name: "X" })).status).toBe(404);
      expect((await boss.post(`/v1/users/${hidden.id}/suspend`)).status).toBe(404);
      expect((await boss.delete(`/v1/users/${hidden.id}`)).status).toBe(404);
      expect((await boss.post(`/v1/users/${hidden.id}/api-keys`, { name: "X" })).status).toBe(404);
    }
    expect((await boss.post(`/v1/users/${mine.id}/suspend`)).status).toBe(200);
    const listed = (await boss.get("/v1/users")).body.items.map((item) => item.tenant_id);
    expect(new Set(listed)).toEqual(new Set(["north"]));
    expect((await boss.get("/v1/users?tenant_id=south")).body.items).toEqual([]);
    const made = await boss.post("/v1/users", { email: "n1@example.com", name: "N" });
    expect(made.body).toMatchObject({ tenant_id: "north" });
    const refused = await boss.post("/v1/users", { email: "s1@example.com", name: "S", tenant_id: "south" });
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ pointer: "/tenant_id" }] } });
    const events = await world.eventsOf(made.body.id);
    expect(events.map((event) => event.tenantId)).toEqual(["north"]);
  });

  test("an admin cannot shut itself out", async () => {
    const me = (await world.admin.get("/v1/users/me")).body.id;
    const tries = [
      world.admin.post(`/v1/users/${me}/suspend`),
      world.admin.post(`/v1/users/${me}/archive`),
      world.admin.delete(`/v1/users/${me}`),
      world.admin.patch("/v1/users/me", { is_admin: false }),
    ];
    expect((await Promise.all(tries)).map((answer) => answer.status)).toEqual([409, 409, 409, 409]);
  });

  test.each([
    ["NUL in a name", { name: "a\u0000b" }, "/name"],
    ["a line end in a name", { name: "Ada\nLovelace" }, "/name"],
    ["a C1 control in a name", { name: "Ada\u0085" }, "/name"],
    ["a lone surrogate in a name", { name: "Ada \ud83d" }, "/name"],
    ["an empty name", { name: "  " }, "/name"],
    ["NUL in an address", { email: "a\u0000@example.com" }, "/email"],
    ["an address without a host", { email: "ada" }, "/email"],
    ["a time zone that is none", { iana_timezone: "Mars/Olympus" }, "/iana_timezone"],
    ["an offset as a time zone", { iana_timezone: "+02:00" }, "/iana_timezone"],
    ["NUL in a tenant", { tenant_id: "a\u0000" }, "/tenant_id"],
    ["an id that is no UUID", { id: "1" }, "/id"],
  ])("field-faults I1: %s is 400, names the field, and writes nothing", async (_, fields, pointer) => {
    const before = (await world.events()).length;
    const answer = await world.admin.post("/v1/users", { email: "ok@example.com", name: "Ok", ...fields });
    expect(answer).toMatchObject({ status: 400, body: { code: "validation_failed", errors: [{ pointer }] } });
    expect(await world.events()).toHaveLength(before);
    if (!("name" in fields)) return;
    const user = await world.user();
    expect((await user.patch("/v1/users/me", fields)).body.errors[0]?.pointer).toBe("/name");
    const viaScim = await world.admin.patch(`/scim/v2/Users/${user.id}`, {
      schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
      Operations: [{ op: "replace", value: { displayName: fields.name } }],
    });
    expect(viaScim).toMatchObject({ status: 400, body: { scimType: "invalidValue" } });
  });

  test.each([
    "🧑🏽‍🚀 Zoë\u0301",
    "李小龍",
    "שָׁלוֹם",
    "A\u2028B",
    "\u{20000}",
    "'; DROP TABLE users; --",
    "%_\\",
  ])("field-faults I1: the name %j comes back and is published as it was given", async (name) => {
    const user = await world.user({ name });
    expect((await user.get("/v1/users/me")).body.name).toBe(name);
    const [event] = await world.eventsOf(user.id);
    expect(JSON.parse(event!.data).name).toBe(name);
  });

  test("bodies that are not JSON, not said to be JSON, or too long are refused", async () => {
    const send = (body: string | Uint8Array<ArrayBuffer>, type?: string) =>
      fetch(`${world.url}/v1/users/me`, {
        method: "PATCH",
        headers: {
          authorization: `Bearer ${world.key}`,
          ...(type === undefined ? {} : { "content-type": type }),
        },
        body,
      });
    expect((await send("{", "application/json")).status).toBe(400);
    expect((await send(new Uint8Array([0x22, 0xff, 0x22]), "application/json")).status).toBe(400);
    expect((await send('{"name":"x"}', "application/x-www-form-urlencoded")).status).toBe(415);
    expect((await send(`{"name":"${"x".repeat(1_100_000)}"}`, "application/json")).status).toBe(413);
    expect((await send("[]", "application/json")).status).toBe(400);
  });

  test("a body without a declared length counts too, and none at all is no body", async () => {
    const user = await world.user();
    const chunked = (path: string, method: string, body: string) =>
      fetch(`${world.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${world.key}`, "content-type": "application/json" },
        body: new Blob([body]).stream(),
        duplex: "half",
      });
    const renamed = await chunked(`/v1/users/${user.id}`, "PATCH", '{"name":"Chunked \u00e9"}');
    expect(await renamed.json()).toMatchObject({ name: "Chunked \u00e9" });
    const long = await chunked(`/v1/users/${user.id}`, "PATCH", `{"name":"${"x".repeat(1_100_000)}"}`);
    expect(long.status).toBe(413);
    // As `curl -X POST` sends it: neither Content-Length nor Transfer-Encoding.
    const answer = await exchange(
      world.url,
      `POST /v1/users/${user.id}/suspend HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.key}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain('"status":"suspended"');
  });

  test("field-faults J1: a list pages without a gap or a repeat while users are made", async () => {
    const users = Array.from({ length: 25 }, (_, i) => ({
      email: `page${i}@example.com`,
      name: "P",
      tenant_id: "paged",
    }));
    const imported = await world.admin.post("/v1/users/import", { users });
    const wanted = imported.body.users.map((user) => user.id);
    const seen: string[] = [];
    let cursor = "";
    do {
      const page = await world.admin.get(`/v1/users?tenant_id=paged&limit=7${cursor && `&cursor=${cursor}`}`);
      expect(page.status).toBe(200);
      seen.push(...page.body.items.map((user) => user.id));
      await world.user({ tenant_id: "paged" });
      cursor = page.body.next_cursor ?? "";
    } while (cursor);
    expect([...seen].sort()).toEqual([...wanted].sort());
    for (const query of ["limit=0", "limit=101", "limit=x", "cursor=!!", "status=gone"])
      expect((await world.admin.get(`/v1/users?${query}`)).status).toBe(400);
  });

  test("field-faults G6: keys are stored as hashes, shown once, and never logged", async () => {
    const user = await world.user();
    expect(user.key).toMatch(/^apk_[A-Za-z0-9_-]{43}$/);
    const rows = await world.db.selectFrom("api_keys").selectAll().where("user_id", "=", user.id).execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(user.key);
    const events = JSON.stringify(await world.events());
    expect(events).not.toContain(user.key);
    expect(events).not.toContain(rows[0]!.hash);
    expect(world.log.join("\n")).not.toContain(user.key);
  });

  test("archiving disables the user's own subscriptions in the same transaction, deleting removes them", async () => {
    const [user, other] = [await world.user(), await world.user()];
    const subscribe = (ownerId: string) =>
      world.hooks.subscriptions.create({ projectId: "live", ownerId, url: "http://127.0.0.1:9/x" });
    const [mine, second, theirs] = [
      await subscribe(user.id),
      await subscribe(user.id),
      await subscribe(other.id),
    ];
    const status = async (id: string) => (await world.hooks.subscriptions.get(id)).status;
    const mend = await world.breakCapture();
    expect((await world.admin.post(`/v1/users/${user.id}/archive`)).status).toBe(503);
    expect([await status(mine.id), await status(second.id)]).toEqual(["active", "active"]);
    await mend();
    expect((await world.admin.post(`/v1/users/${user.id}/archive`)).status).toBe(200);
    expect([await status(mine.id), await status(second.id), await status(theirs.id)]).toEqual([
      "disabled",
      "disabled",
      "active",
    ]);
    expect((await world.admin.delete(`/v1/users/${other.id}`)).status).toBe(204);
    const left = await world.hooks.subscriptions.list({ projectId: "live", ownerId: other.id });
    expect(left.items).toEqual([]);
  });
});

/** One request in its own words, and the answer whole. */
async function exchange(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setEncoding("utf8").write(request);
  let answer = "";
  for await (const text of socket) answer += text;
  return answer;
}
