import { answers, startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

describe.each<StoreKind>(["memory", "sqlite"])("holds over HTTP on %s", (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(kind);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const hold = (status: number, body: object, key?: string): Promise<Json> =>
    world.ok(status, "POST", "/v1/holds", { body, ...(key && { key }) });
  const held = async (key?: string): Promise<Json[]> =>
    (await world.ok(200, "GET", "/v1/holds", key ? { key } : {})).items;
  const release = (id: string, key?: string) => world.call("DELETE", `/v1/holds/${id}`, key ? { key } : {});

  test("captured, visible, not sent and not late, until every hold that covers it is released", async () => {
    await using receiver = await startReceiver({ respond: answers(200) });
    const project_id = "shop";
    await world.ok(201, "POST", "/v1/subscriptions", { body: { project_id, url: receiver.url } });
    const project = await hold(201, { project_id, reason: "moving" });
    expect(project).toMatchObject({ kind: "project", project_id, type: null, reason: "moving" });
    const type = await hold(201, { type: "order.*" });
    expect(await hold(200, { type: "order.*", reason: "other" })).toEqual(type);
    const { id } = await world.ok(202, "POST", "/v1/events", {
      body: { project_id, type: "order.paid", data: {} },
    });
    const drained = await world.work();
    expect(drained).toMatchObject({ dispatched: 1, delivered: 0, remaining: { pending: 0 }, holds: 2 });
    expect(await world.ok(200, "GET", `/v1/events/${id}`)).toMatchObject({
      outcome: "held",
      deliveries: [{ status: "pending", hold: "held", attempts: 0 }],
    });
    world.clock.advance(3_600_000);
    expect(await world.ok(200, "GET", "/healthz/delivery")).toMatchObject({ status: "ok", holds: 2 });
    expect((await held()).map(({ id }) => id)).toEqual([type.id, project.id]);
    expect((await release(project.id)).json).toEqual({ ...project, left: 0 });
    expect(await world.work()).toMatchObject({ delivered: 0, holds: 1 });
    expect((await release(type.id)).status).toBe(200);
    expect((await release(type.id)).status).toBe(404);
    expect(await world.work()).toMatchObject({ delivered: 1, holds: 0 });
    expect(receiver.requests).toHaveLength(1);
  });

  test("a key bound to a project holds, sees and releases that project alone", async () => {
    const key = await world.key(["operate"], "mine");
    const [own, other, all] = [
      await hold(201, { project_id: "mine" }, key),
      await hold(201, { project_id: "theirs" }),
      await hold(201, { all: true }),
    ];
    expect(own.held_by).toBe("operate");
    expect((await held(key)).map(({ id }) => id)).toEqual([own.id]);
    for (const body of [{ all: true }, { type: "order.*" }])
      expect((await world.call("POST", "/v1/holds", { key, body })).status).toBe(403);
    const theirs = await world.call("POST", "/v1/holds", { key, body: { project_id: "theirs" } });
    expect(theirs.json).toMatchObject({ status: 400, errors: [{ pointer: "/project_id" }] });
    for (const { id } of [other, all]) expect((await release(id, key)).status).toBe(404);
    expect((await release(own.id, key)).status).toBe(200);
    for (const { id } of [other, all]) expect((await release(id)).status).toBe(200);
    const reader = await world.key(["read", "emit", "manage"]);
    expect(await held(reader)).toEqual([]);
    expect((await world.call("POST", "/v1/holds", { key: reader, body: { all: true } })).status).toBe(403);
  });

  test("a body that says nothing to hold is told what it may say", async () => {
    const { json } = await world.call("POST", "/v1/holds", { body: {} });
    expect(json).toMatchObject({ status: 400, detail: expect.stringContaining("exactly one of all (true)") });
  });

  test.each([
    [{}],
    [{ all: false }],
    [{ all: true, project_id: "a" }],
    [{ type: "*" }],
    [{ type: "Order" }],
    [{ project_id: "" }],
    [{ all: true, reason: 7 }],
  ])("%j is refused", async (body) => {
    expect((await world.call("POST", "/v1/holds", { body })).status).toBe(400);
    expect(await held()).toEqual([]);
  });
});
