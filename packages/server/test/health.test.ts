import { StorageError } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { type StoreKind, startWorld, type World } from "./support/world.ts";

const minute = 60_000;
const emit = (world: World) =>
  world.ok(202, "POST", "/v1/events", { body: { project_id: "live", type: "a.b", data: 1 } });
const delivery = (world: World) => world.call("GET", "/healthz/delivery", { key: null });

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("health on %s", (kind) => {
  test("the three routes need no key and answer 200 when all is well", async () => {
    await using world = await startWorld(kind);
    expect(await world.ok(200, "GET", "/healthz", { key: null })).toEqual({ status: "ok" });
    expect(await world.ok(200, "GET", "/readyz", { key: null })).toEqual({ status: "ok" });
    expect((await delivery(world)).json).toEqual({
      status: "ok",
      oldest_due_at: null,
      oldest_new_event_at: null,
      max_lag_seconds: 300,
      holds: 0,
    });
    expect((await world.call("HEAD", "/healthz", { key: null })).status).toBe(200);
  });

  test("field-faults D2: an event that nobody dispatches turns the alert route red, and dispatching it green", async () => {
    await using world = await startWorld(kind, { maxLagMs: 2 * minute });
    await emit(world);
    world.clock.advance(2 * minute);
    expect((await delivery(world)).status).toBe(200);
    world.clock.advance(1);
    const late = await delivery(world);
    expect(late.json).toMatchObject({ status: 503, code: "delivery_late" });
    expect(late.json.detail).toContain("undispatched");
    // It matches nobody, which is a normal case.
    await world.work();
    expect((await delivery(world)).status).toBe(200);
  });

  test("field-faults D2: a due delivery that nobody sends turns it red; a dead subscriber whose lane waits does not", async () => {
    await using world = await startWorld(kind, { maxLagMs: 5 * minute });
    await using receiver = await startReceiver({
      respond: ({ path }) => (path === "/dead" ? { status: 503, headers: { "retry-after": "7200" } } : 200),
    });
    const subscribe = (url: string) =>
      world.ok(201, "POST", "/v1/subscriptions", { body: { project_id: "live", url } });
    await subscribe(receiver.url.replace("/hook", "/dead"));
    await emit(world);
    await world.work();
    world.clock.advance(30 * minute);
    expect((await delivery(world)).status).toBe(200);

    const paused = await subscribe(receiver.url);
    await world.ok(200, "POST", `/v1/subscriptions/${paused.id}/pause`);
    await emit(world);
    await world.work();
    world.clock.advance(10 * minute);
    expect((await delivery(world)).status).toBe(200);

    await world.ok(200, "POST", `/v1/subscriptions/${paused.id}/resume`);
    const late = await delivery(world);
    expect(late.json).toMatchObject({ status: 503, code: "delivery_late" });
    expect(late.json.detail).toContain("due delivery");
    await world.work();
    expect((await delivery(world)).status).toBe(200);
  });

  test("a database that is away is 503 on the two routes that ask it, without its words", async () => {
    await using world = await startWorld(kind);
    const store = world.hooks.store as { lag: unknown; open: unknown };
    const gone = async () => {
      throw new StorageError("connect ECONNREFUSED 10.0.0.7:5432");
    };
    const { lag, open } = store;
    Object.assign(store, { lag: gone, open: gone });
    try {
      expect((await world.call("GET", "/healthz", { key: null })).status).toBe(200);
      for (const path of ["/readyz", "/healthz/delivery"]) {
        const answer = await world.call("GET", path, { key: null });
        expect(answer.status).toBe(503);
        expect(answer.text).not.toContain("10.0.0.7");
      }
      expect(world.logs.join()).toContain("10.0.0.7");
    } finally {
      Object.assign(store, { lag, open });
    }
    expect((await world.call("GET", "/readyz", { key: null })).status).toBe(200);
  });
});
