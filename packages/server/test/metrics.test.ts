import { StorageError } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { expect, test } from "vitest";
import { type Family, readPrometheus } from "../../hookwell/test/support/prometheus.ts";
import { startWorld, type World } from "./support/world.ts";

async function metrics(world: World): Promise<ReadonlyMap<string, Family>> {
  const answer = await world.call("GET", "/metrics");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return readPrometheus(answer.text);
}

const value = (page: ReadonlyMap<string, Family>, name: string, labels = {}): number | undefined =>
  page
    .get(`hookwell_${name}`)
    ?.samples.find((sample) => JSON.stringify(sample.labels) === JSON.stringify(labels))?.value;

test("/metrics is a page of the Prometheus text format, with what this process did and how the database stands", async () => {
  await using world = await startWorld("memory", { metrics: "key" });
  expect((await metrics(world)).get("hookwell_attempts_total")).toBeUndefined();
  await using receiver = await startReceiver({
    respond: ({ path }) => (path === "/bad" ? { status: 503 } : path === "/teapot" ? { status: 418 } : 200),
  });
  for (const path of ["/hook", "/bad", "/teapot"])
    await world.ok(201, "POST", "/v1/subscriptions", {
      body: { project_id: "live", url: receiver.url.replace("/hook", path) },
    });
  const event = { project_id: "live", id: "evt_1", type: "a.b", data: 1 };
  await world.ok(202, "POST", "/v1/events", { body: event });
  await world.ok(202, "POST", "/v1/events", { body: event });
  await world.work();
  await world.ok(202, "POST", "/v1/events", { body: { ...event, id: "evt_2" } });
  world.clock.advance(3_000);
  const page = await metrics(world);
  for (const [name, expected] of Object.entries({
    events_captured_total: 2,
    events_duplicate_total: 1,
    events_dispatched_total: 1,
    deliveries_queued_total: 3,
    deliveries_claimed_total: 3,
    deliveries_delivered_total: 1,
    deliveries_rescheduled_total: 2,
    deliveries_failed_total: 0,
    pending_deliveries: 2,
    undispatched_events: 1,
    oldest_undispatched_age_seconds: 3,
    oldest_due_age_seconds: 0,
    store_up: 1,
  }))
    expect([name, value(page, name)]).toEqual([name, expected]);
  for (const result of ["success", "http_4xx", "http_5xx"])
    expect(value(page, "attempts_total", { result })).toBe(1);
  expect(page.get("hookwell_attempt_duration_seconds")?.samples.at(-1)).toMatchObject({ value: 3 });
  expect(value(page, "lanes_needing_attention", { reason: "failing" })).toBe(0);
  // Without a label for each subscription, unless it is asked for.
  expect(JSON.stringify([...page])).not.toContain("sub_");
});

test("a database that is away leaves the process's own counts, and says so", async () => {
  await using world = await startWorld("memory", { metrics: "open" });
  Object.assign(world.hooks.store, {
    stats: async () => {
      throw new StorageError("connect ECONNREFUSED 10.0.0.7:5432");
    },
  });
  const answer = await world.call("GET", "/metrics", { key: null });
  const page = readPrometheus(answer.text);
  expect([value(page, "store_up"), value(page, "pending_deliveries")]).toEqual([0, undefined]);
  expect(value(page, "events_captured_total")).toBe(0);
  expect(answer.text).not.toContain("10.0.0.7");
  expect(world.logs.join()).toContain("10.0.0.7");
});

test("/metrics needs a key of all projects with the scope read, unless it is open or off", async () => {
  await using world = await startWorld("memory");
  const status = async (key: string | null): Promise<number> =>
    (await world.call("GET", "/metrics", { key })).status;
  expect(await status(null)).toBe(401);
  expect(await status("hwk_unknown_unknown_unknown")).toBe(401);
  expect(await status(await world.key(["emit", "manage", "operate"]))).toBe(403);
  expect(await status(await world.key(["read"], "live"))).toBe(403);
  expect(await status(await world.key(["read"]))).toBe(200);
  await using closed = await startWorld("memory", { metrics: "off" });
  expect((await closed.call("GET", "/metrics")).status).toBe(404);
});
