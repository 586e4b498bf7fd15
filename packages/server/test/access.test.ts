import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { scopes } from "../src/index.ts";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

interface Route {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** Scopes that are let in, besides admin. */
  readonly scopes: readonly string[];
}

/** Every route that needs a key, with ids that are filled in for each test. */
function routes(ids: { subscription: string; event: string; delivery: string; key: string }): Route[] {
  const url = "http://127.0.0.1:9/";
  return [
    { method: "POST", path: "/v1/subscriptions", body: { project_id: "red", url }, scopes: ["manage"] },
    { method: "GET", path: "/v1/subscriptions", scopes: ["read"] },
    { method: "GET", path: `/v1/subscriptions/${ids.subscription}`, scopes: ["read"] },
    {
      method: "PATCH",
      path: `/v1/subscriptions/${ids.subscription}`,
      body: { description: "d" },
      scopes: ["manage"],
    },
    ...["pause", "resume", "disable", "enable", "test"].map((action) => ({
      method: "POST",
      path: `/v1/subscriptions/${ids.subscription}/${action}`,
      scopes: ["operate", "manage"],
    })),
    { method: "POST", path: `/v1/subscriptions/${ids.subscription}/rotate-secret`, scopes: ["manage"] },
    {
      method: "POST",
      path: "/v1/events",
      body: { project_id: "red", type: "a.b", data: 1 },
      scopes: ["emit"],
    },
    { method: "GET", path: "/v1/events", scopes: ["read"] },
    { method: "GET", path: `/v1/events/${ids.event}`, scopes: ["read"] },
    { method: "GET", path: `/v1/events/${ids.event}/explain`, scopes: ["read"] },
    { method: "POST", path: `/v1/events/${ids.event}/release`, scopes: ["operate"] },
    { method: "GET", path: "/v1/deliveries", scopes: ["read"] },
    { method: "GET", path: `/v1/deliveries/${ids.delivery}`, scopes: ["read"] },
    { method: "POST", path: `/v1/deliveries/${ids.delivery}/retry`, scopes: ["operate"] },
    { method: "POST", path: `/v1/deliveries/${ids.delivery}/cancel`, scopes: ["operate"] },
    { method: "GET", path: "/v1/stats", scopes: ["read"] },
    { method: "POST", path: "/v1/holds", body: { project_id: "red" }, scopes: ["operate"] },
    { method: "GET", path: "/v1/holds", scopes: ["read", "operate"] },
    { method: "DELETE", path: "/v1/holds/hld_1", scopes: ["operate"] },
    { method: "GET", path: "/metrics", scopes: ["read"] },
    { method: "POST", path: "/v1/deliveries/cancel", body: { project_id: "red" }, scopes: ["operate"] },
    {
      method: "POST",
      path: "/v1/replays",
      body: { filter: { project_id: "red" }, since: "2026-02-28T12:00:00Z", status: ["failed"] },
      scopes: ["operate"],
    },
    { method: "GET", path: "/v1/replays", scopes: ["read"] },
    { method: "GET", path: "/v1/replays/rpl_1", scopes: ["read"] },
    { method: "DELETE", path: "/v1/replays/rpl_1", scopes: ["operate"] },
    { method: "GET", path: "/v1/catalogue", scopes: ["read", "emit", "manage"] },
    { method: "POST", path: "/v1/keys", body: { name: "k", scopes: ["read"] }, scopes: [] },
    { method: "GET", path: "/v1/keys", scopes: [] },
    { method: "DELETE", path: `/v1/keys/${ids.key}`, scopes: [] },
    { method: "DELETE", path: `/v1/subscriptions/${ids.subscription}`, scopes: ["manage"] },
  ];
}

/** Routes that name one thing by its id. */
const byId = (route: Route): boolean => /\/(sub|dlv|rpl|hld|key)_|\/red-/.test(route.path);

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("access on %s", (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(kind);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  /** A project with one of everything. */
  async function furnish(project: string, more: object = {}) {
    const subscription = await world.ok(201, "POST", "/v1/subscriptions", {
      body: {
        project_id: project,
        url: "http://127.0.0.1:9/secret-path",
        external_id: `${project}-ext`,
        ...more,
      },
    });
    const event = `${project}-event-${kind}`;
    await world.ok(202, "POST", "/v1/events", {
      body: { id: event, project_id: project, type: "user.created", data: { name: `${project}-private` } },
    });
    await world.hooks.drain({ deadlineMs: 30_000, max: 1 });
    const delivery = (await world.ok(200, "GET", `/v1/deliveries?event_id=${event}&project_id=${project}`))
      .items[0];
    const key = await world.ok(201, "POST", "/v1/keys", {
      body: { name: `${project} key`, scopes: ["read"], project_id: project },
    });
    return { subscription: subscription.id, event, delivery: delivery.id, key: key.id };
  }

  test("the routes here are all that are described as needing a key", async () => {
    const document = await world.ok(200, "GET", "/openapi.json");
    const described = Object.entries(document.paths as Json).flatMap(([path, item]) =>
      Object.entries(item as Json)
        .filter(([, operation]) => (operation as Json).security.length > 0)
        .map(
          ([method, operation]) => `${method.toUpperCase()} ${path} ${(operation as Json).security[0].key}`,
        ),
    );
    const ids = { subscription: "sub_1", event: "red-event", delivery: "dlv_1", key: "key_1" };
    const tried = routes(ids).map(
      ({ method, path, scopes: allowed }) =>
        `${method} ${path.replace(/\/(sub_1|red-event|dlv_1|rpl_1|hld_1|key_1)/, "/{id}")} ${allowed.length > 0 ? allowed : "admin"}`,
    );
    expect(new Set(tried)).toEqual(new Set(described));
  });

  test.each([
    ["no key", null, undefined],
    ["an unknown key", "hwk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", undefined],
    ["an empty key", null, "Bearer "],
    ["another scheme", null, "Basic YTpi"],
    ["a key with a space in it", null, "Bearer a b"],
    ["an endless key", `hwk_${"a".repeat(5_000)}`, undefined],
  ])("%s is 401 on every route, with WWW-Authenticate", async (_, key, authorization) => {
    for (const { method, path, body } of routes({
      subscription: "sub_1",
      event: "red-1",
      delivery: "dlv_1",
      key: "key_1",
    })) {
      const answer = await world.call(method, path, {
        body,
        key,
        headers: authorization ? { authorization } : {},
      });
      expect(answer.json).toMatchObject({ status: 401, code: "unauthorized" });
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
  });

  test("the scheme is known in any case", async () => {
    const headers = { authorization: `bearer ${world.adminKey}` };
    expect((await world.call("GET", "/v1/events", { key: null, headers })).status).toBe(200);
  });

  test("each scope opens its routes and no other; admin opens all", async () => {
    const ids = { subscription: "sub_1", event: "red-1", delivery: "dlv_1", key: "key_1" };
    for (const scope of scopes) {
      const key = await world.key([scope]);
      for (const { method, path, body, scopes: allowed } of routes(ids)) {
        const answer = await world.call(method, path, { body, key });
        const open = scope === "admin" || allowed.includes(scope);
        if (open) expect([200, 201, 202, 204, 404]).toContain(answer.status);
        else expect(answer.json).toMatchObject({ status: 403, code: "missing_scope" });
      }
    }
  });

  test("a key works until it expires or is deleted, and says when it was used", async () => {
    const expires_at = new Date(world.clock.read().getTime() + 60_000).toISOString();
    const made = await world.ok(201, "POST", "/v1/keys", {
      body: { name: "short", scopes: ["read"], expires_at },
    });
    expect(made).toMatchObject({
      name: "short",
      scopes: ["read"],
      project_id: null,
      expires_at,
      last_used_at: null,
    });
    expect(made.key).toMatch(/^hwk_[A-Za-z0-9_-]{43}$/);
    const use = async () => (await world.call("GET", "/v1/events", { key: made.key })).status;
    expect(await use()).toBe(200);
    const listed = (await world.ok(200, "GET", "/v1/keys?limit=100")).items.find(
      (item: Json) => item.id === made.id,
    );
    expect(listed).toEqual({ ...made, key: undefined, last_used_at: world.clock.read().toISOString() });
    world.clock.advance(59_999);
    expect(await use()).toBe(200);
    world.clock.advance(1);
    expect(await use()).toBe(401);
    const lasting = await world.ok(201, "POST", "/v1/keys", { body: { name: "lasting", scopes: ["read"] } });
    await world.ok(204, "DELETE", `/v1/keys/${lasting.id}`);
    expect((await world.call("GET", "/v1/events", { key: lasting.key })).status).toBe(401);
    expect((await world.call("DELETE", `/v1/keys/${lasting.id}`)).status).toBe(404);
  });

  test.each([
    ["no scope", { name: "k", scopes: [] }, "/scopes"],
    ["a scope there is not", { name: "k", scopes: ["root"] }, "/scopes/0"],
    ["no name", { scopes: ["read"] }, "/name"],
    ["an empty name", { name: "", scopes: ["read"] }, "/name"],
    [
      "an end in the past",
      { name: "k", scopes: ["read"], expires_at: "2020-01-01T00:00:00Z" },
      "/expires_at",
    ],
    ["a key of its own choice", { name: "k", scopes: ["read"], key: "hwk_chosen_by_the_caller" }, "/key"],
  ])("a key with %s is refused", async (_, body, pointer) => {
    const answer = await world.call("POST", "/v1/keys", { body });
    expect(answer.json).toMatchObject({ status: 400, errors: [{ pointer }] });
  });

  test("keys are paged, newest first", async () => {
    for (let n = 0; n < 5; n++) await world.key(["read"]);
    const seen: string[] = [];
    let cursor = "";
    do {
      const page: Json = await world.ok(200, "GET", `/v1/keys?limit=2${cursor && `&cursor=${cursor}`}`);
      seen.push(...page.items.map((item: Json) => item.id));
      cursor = page.next_cursor ?? "";
    } while (cursor);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBeGreaterThan(5);
  });

  test("field-faults G8: a key of one project finds nothing of another on any route, and changes nothing there", async () => {
    const red = await furnish("red");
    const blue = await furnish("blue");
    const blueKey = await world.key(["admin"], "blue");
    const before = await Promise.all([
      world.ok(200, "GET", `/v1/subscriptions/${red.subscription}`),
      world.ok(200, "GET", `/v1/events/${red.event}`),
      world.ok(200, "GET", `/v1/deliveries/${red.delivery}`),
    ]);
    for (const route of routes(red)) {
      const answer = await world.call(route.method, route.path, { body: route.body, key: blueKey });
      for (const id of [red.subscription, red.delivery, red.key, "red-private", "red-ext", "red key"])
        if (!byId(route) || id === "red-private") expect(answer.text).not.toContain(id);
      if (byId(route)) expect(answer.json).toMatchObject({ status: 404, code: "not_found" });
      else if (route.body && route.path !== "/v1/keys")
        expect(answer.json).toMatchObject({
          status: 400,
          errors: [{ pointer: route.path === "/v1/replays" ? "/filter/project_id" : "/project_id" }],
        });
    }
    for (const path of ["subscriptions", "events", "deliveries"]) {
      expect((await world.ok(200, "GET", `/v1/${path}?project_id=red`, { key: blueKey })).items).toEqual([]);
      const own = (await world.ok(200, "GET", `/v1/${path}`, { key: blueKey })).items;
      expect(own).toHaveLength(1);
    }
    for (const filter of [`event_id=${red.event}`, `subscription_id=${red.subscription}`])
      expect((await world.ok(200, "GET", `/v1/deliveries?${filter}`, { key: blueKey })).items).toEqual([]);
    expect(
      (await world.ok(200, "GET", "/v1/subscriptions?external_id=red-ext", { key: blueKey })).items,
    ).toEqual([]);
    expect((await world.call("GET", `/v1/events/${red.event}?project_id=red`, { key: blueKey })).status).toBe(
      404,
    );
    expect((await world.call("GET", `/v1/events/${blue.event}`, { key: blueKey })).status).toBe(200);
    const after = await Promise.all([
      world.ok(200, "GET", `/v1/subscriptions/${red.subscription}`),
      world.ok(200, "GET", `/v1/events/${red.event}`),
      world.ok(200, "GET", `/v1/deliveries/${red.delivery}`),
    ]);
    expect(after).toEqual(before);
  });

  test("field-faults G8: two projects may use one event id, and each key gets its own", async () => {
    const id = `same-${kind}`;
    for (const project_id of ["p1", "p2"])
      await world.ok(202, "POST", "/v1/events", { body: { id, project_id, type: "a.b", data: project_id } });
    for (const project of ["p1", "p2"]) {
      const key = await world.key(["read"], project);
      expect((await world.ok(200, "GET", `/v1/events/${id}`, { key })).data).toBe(project);
      expect((await world.ok(200, "GET", `/v1/events/${id}?project_id=${project}`)).data).toBe(project);
    }
  });

  test("field-faults G8: a project's admin makes, sees and deletes keys of its project only", async () => {
    const admin = await world.key(["admin"], "green");
    const foreign = await world.ok(201, "POST", "/v1/keys", { body: { name: "foreign", scopes: ["read"] } });
    const made = await world.ok(201, "POST", "/v1/keys", {
      body: { name: "own", scopes: ["admin"] },
      key: admin,
    });
    expect(made.project_id).toBe("green");
    const wider = await world.call("POST", "/v1/keys", {
      body: { name: "w", scopes: ["read"], project_id: "red" },
      key: admin,
    });
    expect(wider.status).toBe(400);
    const listed = (await world.ok(200, "GET", "/v1/keys", { key: admin })).items;
    expect(new Set(listed.map((item: Json) => item.project_id))).toEqual(new Set(["green"]));
    expect((await world.call("DELETE", `/v1/keys/${foreign.id}`, { key: admin })).status).toBe(404);
    await world.ok(204, "DELETE", `/v1/keys/${made.id}`, { key: admin });
    expect((await world.call("GET", "/v1/events", { key: foreign.key })).status).toBe(200);
  });
});
