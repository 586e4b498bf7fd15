import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { scopes } from "../src/index.ts";
import { exampleOf, foreignAnswer, furnish, nothing } from "./support/examples.ts";
import { type Operation, operationsOf } from "./support/operations.ts";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("access on %s", (kind) => {
  let world: World;
  /** Every route that needs a key. */
  let operations: Operation[];
  beforeAll(async () => {
    world = await startWorld(kind);
    operations = (await operationsOf(world)).filter(({ scopes: needed }) => needed.length > 0);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test.each<[string, () => Promise<{ key?: string | null; authorization?: string }>]>([
    ["no key", async () => ({ key: null })],
    ["an unknown key", async () => ({ key: "hwk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" })],
    ["an empty key", async () => ({ key: null, authorization: "Bearer " })],
    ["another scheme", async () => ({ key: null, authorization: "Basic YTpi" })],
    ["a key with a space in it", async () => ({ key: null, authorization: "Bearer a b" })],
    ["an endless key", async () => ({ key: `hwk_${"a".repeat(5_000)}` })],
    [
      "an expired key",
      async () => {
        const expires_at = new Date(world.clock.read().getTime() + 1_000).toISOString();
        const key = await world.key(["admin"], undefined, { expires_at });
        await world.ok(200, "GET", "/v1/keys", { key });
        world.clock.advance(1_000);
        return { key };
      },
    ],
    [
      "a deleted key",
      async () => {
        const body = { name: "deleted", scopes: ["admin"] };
        const { id, key } = await world.ok(201, "POST", "/v1/keys", { body });
        await world.ok(200, "GET", "/v1/keys", { key });
        await world.ok(204, "DELETE", `/v1/keys/${id}`);
        return { key };
      },
    ],
  ])("%s is 401 on every route, with WWW-Authenticate", async (_, given) => {
    const { key, authorization } = await given();
    for (const operation of operations) {
      const { path, body } = exampleOf(operation, nothing);
      const headers: Record<string, string> = authorization ? { authorization } : {};
      const answer = await world.call(operation.method, path, { body, key, headers });
      expect(answer.json, operation.id).toMatchObject({ status: 401, code: "unauthorized" });
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
  });

  test("the scheme is known in any case", async () => {
    const headers = { authorization: `bearer ${world.adminKey}` };
    expect((await world.call("GET", "/v1/events", { key: null, headers })).status).toBe(200);
  });

  test("each scope opens its routes and no other; admin opens all", async () => {
    for (const scope of scopes) {
      const key = await world.key([scope]);
      for (const operation of operations) {
        const { path, body } = exampleOf(operation, nothing);
        const answer = await world.call(operation.method, path, { body, key });
        if (scope === "admin" || operation.scopes.includes(scope))
          expect([200, 201, 202, 404], operation.id).toContain(answer.status);
        else expect(answer.json, operation.id).toMatchObject({ status: 403, code: "missing_scope" });
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
    const red = await furnish(world, `red-${kind}`);
    const blue = await furnish(world, `blue-${kind}`);
    const key = await world.key(["admin"], blue.project);
    const all = () =>
      Promise.all(
        [
          `/v1/subscriptions/${red.subscription}`,
          `/v1/events/${red.event}`,
          `/v1/deliveries/${red.delivery}`,
          `/v1/replays/${red.replay}`,
          `/v1/keys?project_id=${red.project}`,
        ].map((path) => world.ok(200, "GET", path)),
      );
    const before = await all();
    for (const operation of operations) {
      const call = exampleOf(operation, red);
      const { status, pointer } = foreignAnswer(operation, call);
      const answer = await world.call(operation.method, call.path, { body: call.body, key });
      expect(answer.status, `${operation.id}: ${answer.text}`).toBe(status);
      if (status === 404) expect(answer.json.code).toBe("not_found");
      if (pointer) expect(answer.json.errors).toMatchObject([{ pointer }]);
      // A problem repeats the id that was asked for; nothing else of the other project may be in any answer.
      for (const mark of [red.subscription, red.delivery, red.key, red.replay])
        if (status < 400) expect(answer.text, operation.id).not.toContain(mark);
      for (const mark of ["private", "external", "-key"])
        expect(answer.text, operation.id).not.toContain(`${red.project}-${mark}`);
      const plain = await world.call(operation.method, call.path.split("?")[0]!, { body: call.body, key });
      expect(plain.text, operation.id).not.toContain(`${red.project}-private`);
    }
    for (const filter of [`event_id=${red.event}`, `subscription_id=${red.subscription}`])
      expect((await world.ok(200, "GET", `/v1/deliveries?${filter}`, { key })).items).toEqual([]);
    const external = `/v1/subscriptions?external_id=${red.project}-external`;
    expect((await world.ok(200, "GET", external, { key })).items).toEqual([]);
    expect(await all()).toEqual(before);
    expect((await world.call("GET", `/v1/events/${blue.event}`, { key })).status).toBe(200);
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
