import { createHookwell, type HookwellCore, MemoryOutbox } from "hookwell";
import { describe, expect, test } from "vitest";
import { type Caller, hookwellHandler } from "../src/index.ts";
import { type Json, startWorld } from "./support/world.ts";

const logger = { info: () => {}, warn: () => {}, error: () => {} };

function made(): HookwellCore {
  const network = { allow: ["127.0.0.0/8"], http: true };
  return createHookwell({
    store: new MemoryOutbox(),
    project: "live",
    network,
    logger,
  }) as unknown as HookwellCore;
}

describe("hookwellHandler in an application", () => {
  test("without keys and without authorize every request is 401", async () => {
    const handler = hookwellHandler(made());
    for (const path of ["/v1/events", "/v1/subscriptions", "/v1/keys"]) {
      const answer = await handler(
        new Request(`http://app.example${path}`, { headers: { authorization: "Bearer x" } }),
      );
      expect(answer.status).toBe(401);
    }
    expect((await handler(new Request("http://app.example/healthz"))).status).toBe(200);
  });

  test("under a base path its routes, its description and its 404 are there, and nothing beside it", async () => {
    await using world = await startWorld("memory", { basePath: "/hookwell", project: "live" });
    expect((await world.call("GET", "/hookwell/v1/events")).status).toBe(200);
    expect((await world.call("GET", "/v1/events")).json).toMatchObject({ code: "no_such_route" });
    expect((await world.call("GET", "/hookwellx/v1/events")).json).toMatchObject({ code: "no_such_route" });
    expect((await world.call("PUT", "/hookwell/v1/events")).status).toBe(405);
    expect((await world.ok(200, "GET", "/hookwell/openapi.json")).servers).toEqual([{ url: "/hookwell" }]);
    expect((await world.call("GET", "/hookwell/docs")).text).toContain("/hookwell");
  });

  test.each(["hookwell", "/a b", "/a//b", "/é"])("%s is no base path", (basePath) => {
    expect(() => hookwellHandler(made(), { basePath })).toThrow(/basePath/);
  });

  test("authorize decides alone: keys of the store are then nothing", async () => {
    await using world = await startWorld("memory", { authorize: () => undefined, project: "live" });
    expect((await world.call("GET", "/v1/events")).status).toBe(401);
  });

  test("an authorize that throws is 500, not an open door", async () => {
    await using world = await startWorld("memory", {
      authorize: () => {
        throw new Error("the session store is away");
      },
    });
    const answer = await world.call("GET", "/v1/events");
    expect(answer.json).toMatchObject({ status: 500, code: "internal" });
    expect(answer.text).not.toContain("session store");
  });

  test("field-faults G8: a caller bound to a tenant or an owner sees and makes only what is theirs", async () => {
    const callers: Record<string, Caller> = {
      all: { scopes: ["admin"] },
      acme: { scopes: ["read", "manage", "operate", "emit"], projectId: "live", tenantId: "acme" },
      globex: { scopes: ["read", "manage", "operate", "emit"], projectId: "live", tenantId: "globex" },
      ada: { scopes: ["admin"], projectId: "live", tenantId: "acme", ownerId: "ada" },
    };
    await using world = await startWorld("memory", {
      project: "live",
      authorize: (request) => callers[request.headers.get("x-caller") ?? ""],
    });
    const as = (caller: string, method: string, path: string, body?: unknown) =>
      world.call(method, path, { body, key: null, headers: { "x-caller": caller } });
    const url = "http://127.0.0.1:9/";
    const acme = (await as("acme", "POST", "/v1/subscriptions", { url })).json;
    expect(acme).toMatchObject({ project_id: "live", tenant_id: "acme", owner_id: null });
    const ada = (await as("ada", "POST", "/v1/subscriptions", { url })).json;
    expect(ada).toMatchObject({ tenant_id: "acme", owner_id: "ada" });
    for (const [field, value] of [
      ["tenant_id", "globex"],
      ["owner_id", "bob"],
      ["project_id", "other"],
    ] as const) {
      const refused = await as("ada", "POST", "/v1/subscriptions", { url, [field]: value });
      expect(refused.json).toMatchObject({ status: 400, errors: [{ pointer: `/${field}` }] });
    }
    const ids = async (caller: string) =>
      new Set((await as(caller, "GET", "/v1/subscriptions")).json.items.map((item: Json) => item.id));
    expect(await ids("all")).toEqual(new Set([acme.id, ada.id]));
    expect(await ids("acme")).toEqual(new Set([acme.id, ada.id]));
    expect(await ids("ada")).toEqual(new Set([ada.id]));
    expect(await ids("globex")).toEqual(new Set());
    for (const [caller, id] of [
      ["globex", acme.id],
      ["ada", acme.id],
    ] as const)
      for (const [method, suffix] of [
        ["GET", ""],
        ["DELETE", ""],
        ["POST", "/pause"],
      ] as const)
        expect((await as(caller, method, `/v1/subscriptions/${id}${suffix}`)).status).toBe(404);

    const event = (await as("acme", "POST", "/v1/events", { type: "a.b", data: 1 })).json;
    expect((await as("acme", "GET", `/v1/events/${event.id}`)).json.tenant_id).toBe("acme");
    expect((await as("globex", "GET", `/v1/events/${event.id}`)).status).toBe(404);
    expect((await as("ada", "POST", "/v1/events", { type: "a.b", data: 1 })).status).toBe(403);
    for (const [method, path, body] of [
      ["POST", "/v1/keys", { name: "k", scopes: ["admin"] }],
      ["GET", "/v1/keys", undefined],
      ["DELETE", "/v1/keys/key_1", undefined],
    ] as const)
      expect((await as("ada", method, path, body)).status).toBe(403);
  });
});
