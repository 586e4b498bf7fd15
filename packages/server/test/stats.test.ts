import { answers, startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { type StoreKind, startWorld } from "./support/world.ts";

const minute = 60_000;

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("GET /v1/stats on %s", (kind) => {
  test("rates, backlog and lanes that need attention, of one project and of all", async () => {
    await using world = await startWorld(kind);
    await using receiver = await startReceiver({
      respond: ({ path }) => (path === "/bad" ? { status: 500 } : 200),
    });
    const subscribe = (url: string, project_id: string) =>
      world.ok(201, "POST", "/v1/subscriptions", { body: { project_id, url } });
    const emit = (project_id: string) =>
      world.ok(202, "POST", "/v1/events", { body: { project_id, type: "a.b", data: 1 } });
    await subscribe(receiver.url, "live");
    const bad = await subscribe(receiver.url.replace("/hook", "/bad"), "live");
    await subscribe(receiver.url, "other");
    for (let n = 0; n < 5; n++) await emit("live");
    await emit("other");
    await world.work();
    await emit("live");
    world.clock.advance(minute);
    const none = { dispatched: 0, delivered: 0, failed_attempts: 0, failed: 0 };
    const live = await world.ok(200, "GET", "/v1/stats?project_id=live");
    expect(live).toMatchObject({
      at: world.clock.read().toISOString(),
      project_id: "live",
      rates: [
        { over_minutes: 1, dispatched: 5, delivered: 5, failed_attempts: 5, failed: 0 },
        { over_minutes: 5, dispatched: 1, delivered: 1, failed_attempts: 1, failed: 0 },
        { over_minutes: 60, delivered: 5 / 60 },
      ],
      minutes: [{ delivered: 5 }],
      backlog: {
        pending_deliveries: { count: 5, capped: false },
        undispatched_events: { count: 1, capped: false },
      },
      oldest_undispatched_age_seconds: 60,
      lanes: {
        needing_attention: [{ subscription_id: bad.id, project_id: "live", reason: "failing", failures: 5 }],
        counts: { circuit_open: 0, failing: 1, rate_limited: 0, disabled: 0 },
        more: false,
      },
    });
    const all = await world.ok(200, "GET", "/v1/stats");
    expect(all.project_id).toBeNull();
    expect(all.rates[0]).toEqual({
      over_minutes: 1,
      ...none,
      dispatched: 6,
      delivered: 6,
      failed_attempts: 5,
    });
    const other = await world.ok(200, "GET", "/v1/stats?project_id=other");
    expect(other).toMatchObject({ rates: [{ delivered: 1 }, {}, {}], oldest_due_at: null });
    expect(other.lanes.needing_attention).toEqual([]);
    world.clock.advance(61 * minute);
    const later = await world.ok(200, "GET", "/v1/stats");
    expect([later.minutes, later.rates[2]]).toEqual([[], { over_minutes: 60, ...none }]);
  });

  test("a key of one project sees that project's, and no other's", async () => {
    await using world = await startWorld(kind);
    await using receiver = await startReceiver({ respond: answers(200) });
    for (const project_id of ["live", "other"]) {
      await world.ok(201, "POST", "/v1/subscriptions", { body: { project_id, url: receiver.url } });
      await world.ok(202, "POST", "/v1/events", { body: { project_id, type: "a.b", data: 1 } });
    }
    await world.work();
    world.clock.advance(minute);
    const key = await world.key(["read"], "other");
    for (const path of ["/v1/stats", "/v1/stats?project_id=other"])
      expect(await world.ok(200, "GET", path, { key })).toMatchObject({
        project_id: "other",
        rates: [{ delivered: 1 }, {}, {}],
      });
    expect((await world.call("GET", "/v1/stats?project_id=live", { key })).json).toMatchObject({
      status: 404,
      code: "not_found",
    });
    expect((await world.call("GET", "/v1/stats", { key: await world.key(["emit", "manage"]) })).status).toBe(
      403,
    );
    expect((await world.call("GET", "/v1/stats?project_id=", { key })).status).toBe(400);
  });
});
