import { answers, startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

const idsOf = (page: Json): string[] => page.items.map((item: { id: string }) => item.id);

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("deliveries over HTTP on %s", (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(kind, { retry: { maxAttempts: 3, baseDelay: 1_000, maxDelay: 60_000 } });
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const subscribe = async (project_id: string, url: string, more: object = {}): Promise<string> =>
    (await world.ok(201, "POST", "/v1/subscriptions", { body: { project_id, url, ...more } })).id;
  const emit = async (project_id: string, more: object = {}): Promise<string> =>
    (
      await world.ok(202, "POST", "/v1/events", {
        body: { project_id, type: "order.paid", data: { n: 1 }, ...more },
      })
    ).id;
  const list = (query: string) => world.ok(200, "GET", `/v1/deliveries?${query}`);

  test("one delivery shows url, body as sent, and each attempt with status, duration and excerpt", async () => {
    await using receiver = await startReceiver({ respond: answers({ status: 500, body: "try later" }, 200) });
    const project = `log-${kind}`;
    const subscription = await subscribe(project, receiver.url);
    const event = await emit(project, { subject: "order:1" });
    await world.work();
    const [pending] = (await list(`project_id=${project}`)).items;
    expect(pending).toMatchObject({
      event_id: event,
      subscription_id: subscription,
      type: "order.paid",
      subject: "order:1",
      status: "pending",
      attempts: 1,
      error_code: "http_500",
      delivered_at: null,
    });
    expect(Date.parse(pending.next_attempt_at)).toBe(world.clock.read().getTime() + 1_000);
    world.clock.advance(1_000);
    await world.work();
    const shown = await world.ok(200, "GET", `/v1/deliveries/${pending.id}`);
    expect(shown).toMatchObject({
      status: "delivered",
      attempts: 2,
      url: receiver.url,
      body: receiver.requests[1]!.body.toString(),
      next_attempt_at: null,
      delivered_at: world.clock.read().toISOString(),
    });
    expect(shown.attempt_log[0]).toMatchObject({
      number: 1,
      round: 1,
      status_code: 500,
      error_code: "http_500",
      response_excerpt: "try later",
    });
    expect(shown.attempt_log[0].duration_ms).toBeGreaterThanOrEqual(0);
  });

  test("lists filter by every parameter", async () => {
    await using receiver = await startReceiver({ respond: ({ path }) => (path === "/bad" ? 404 : 200) });
    const project = `lists-${kind}`;
    const good = await subscribe(project, receiver.url, { tenant_id: "t1" });
    const bad = await subscribe(project, receiver.url.replace("/hook", "/bad"), {
      event_types: ["order.failed"],
    });
    const first = await emit(project, { type: "order.failed", tenant_id: "t2", subject: "s:1" });
    world.clock.advance(1_000);
    const middle = world.clock.read().toISOString();
    const second = await emit(project, { tenant_id: "t1" });
    await world.work();
    const pairs = async (query: string) =>
      (await list(`project_id=${project}&${query}`)).items.map((item: Json) => [
        item.event_id,
        item.subscription_id,
      ]);
    expect(await pairs("status=delivered")).toEqual([[second, good]]);
    expect(await pairs("status=pending")).toEqual([[first, bad]]);
    expect(await pairs(`subscription_id=${good}`)).toEqual([[second, good]]);
    expect(await pairs(`event_id=${first}`)).toEqual([[first, bad]]);
    expect(await pairs("type=order.failed")).toEqual([[first, bad]]);
    expect(await pairs("subject=s:1")).toEqual([[first, bad]]);
    expect(await pairs("tenant_id=t1")).toEqual([[second, good]]);
    expect(await pairs("error_code=http_404")).toEqual([[first, bad]]);
    expect(await pairs("url_host=127.0.0.1")).toHaveLength(2);
    expect(await pairs("url_host=elsewhere.example")).toEqual([]);
    expect(await pairs(`until=${middle}`)).toEqual([]);
    expect(await pairs(`since=${middle}`)).toHaveLength(2);
    for (const query of ["status=lost", "since=1", "subscription=x", "type=*"])
      expect((await world.call("GET", `/v1/deliveries?${query}`)).status).toBe(400);
  });

  test("retry re-opens a final delivery with the same ids and bytes, and cancel ends a pending one", async () => {
    await using receiver = await startReceiver({ respond: answers(200, 503, 200) });
    const project = `retry-${kind}`;
    await subscribe(project, receiver.url);
    await emit(project);
    await world.work();
    const [{ id }] = (await list(`project_id=${project}`)).items;
    expect(await world.ok(200, "POST", `/v1/deliveries/${id}/retry`)).toMatchObject({
      id,
      status: "pending",
      attempts: 0,
    });
    await world.work();
    expect(receiver.requests[1]!.body.equals(receiver.requests[0]!.body)).toBe(true);
    expect(receiver.requests[1]!.headers["webhook-id"]).toBe(receiver.requests[0]!.headers["webhook-id"]);
    const cancelled = await world.ok(200, "POST", `/v1/deliveries/${id}/cancel`);
    expect(cancelled).toMatchObject({ id, status: "cancelled" });
    expect(cancelled.reason).toBeTypeOf("string");
    world.clock.advance(60_000);
    await world.work();
    expect(receiver.requests).toHaveLength(2);
    expect((await world.call("POST", `/v1/deliveries/${id}/cancel`)).json).toMatchObject({
      status: 409,
      code: "invalid_state",
    });
  });

  test("field-faults J2: five resends during backoff make the planned try due now, once", async () => {
    await using receiver = await startReceiver({ respond: answers(500, 200) });
    const project = `j2-${kind}`;
    await subscribe(project, receiver.url);
    await emit(project);
    await world.work();
    const [{ id }] = (await list(`project_id=${project}`)).items;
    for (let n = 0; n < 5; n++) await world.ok(200, "POST", `/v1/deliveries/${id}/retry`);
    await world.work();
    world.clock.advance(60_000);
    await world.work();
    expect(receiver.requests).toHaveLength(2);
    expect(await world.ok(200, "GET", `/v1/deliveries/${id}`)).toMatchObject({
      status: "delivered",
      attempts: 2,
    });
  });

  test("retry of a delivery in flight is 409", async () => {
    let answer: () => void = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await using receiver = await startReceiver({
      respond: async () => {
        await answered;
        return 200;
      },
    });
    const project = `flight-${kind}`;
    await subscribe(project, receiver.url);
    await emit(project);
    const working = world.work();
    await receiver.waitFor(() => receiver.connections > 0);
    const [{ id }] = (await list(`project_id=${project}`)).items;
    expect((await world.call("POST", `/v1/deliveries/${id}/retry`)).json).toMatchObject({ status: 409 });
    answer();
    await working;
    expect((await world.ok(200, "GET", `/v1/deliveries/${id}`)).status).toBe("delivered");
  });

  test.each(["get", "retry", "cancel"])("%s of an id that there is not is 404", async (action) => {
    const [method, suffix] = action === "get" ? ["GET", ""] : ["POST", `/${action}`];
    expect((await world.call(method!, `/v1/deliveries/dlv_none${suffix}`)).json).toMatchObject({
      status: 404,
      code: "not_found",
    });
  });

  test("field-faults J1: paging through rows of one instant, while more are written, neither skips nor repeats", async () => {
    const project = `j1-${kind}`;
    await subscribe(project, "http://127.0.0.1:9/");
    await subscribe(project, "http://127.0.0.1:9/");
    const emitMany = async (count: number) => {
      const body = Array.from({ length: count }, () => ({
        project_id: project,
        type: "order.paid",
        data: 1,
      }));
      await world.ok(202, "POST", "/v1/events", { body });
    };
    await emitMany(60);
    await world.hooks.drain({ deadlineMs: 30_000, max: 1 });
    const before = new Set<string>();
    let cursor = "";
    do {
      const page: Json = await list(`project_id=${project}&limit=100${cursor && `&cursor=${cursor}`}`);
      for (const id of idsOf(page)) before.add(id);
      cursor = page.next_cursor ?? "";
    } while (cursor);
    expect(before.size).toBe(120);
    // In sevens, with another 3 events of a later instant after each page.
    const seen: string[] = [];
    do {
      const page: Json = await list(`project_id=${project}&limit=7${cursor && `&cursor=${cursor}`}`);
      expect(page.items.length).toBeLessThanOrEqual(7);
      seen.push(...idsOf(page));
      cursor = page.next_cursor ?? "";
      world.clock.advance(1);
      await emitMany(3);
      await world.hooks.drain({ deadlineMs: 30_000, max: 1 });
    } while (cursor);
    expect(new Set(seen).size).toBe(seen.length);
    expect(new Set(seen)).toEqual(before);
  });

  test("field-faults J3: what the receiver counted is what the lists say, for a mixed run", async () => {
    await using receiver = await startReceiver({
      respond: ({ headers }) => {
        const type = headers["x-hookwell-event"];
        if (type === "mixed.bad") return 500;
        return type === "mixed.second" && headers["x-hookwell-attempt"] === "1" ? 503 : 204;
      },
    });
    const project = `j3-${kind}`;
    await subscribe(project, receiver.url);
    const counts = { "mixed.good": 11, "mixed.second": 5, "mixed.bad": 4 };
    const body = Object.entries(counts).flatMap(([type, count]) =>
      Array.from({ length: count }, () => ({ project_id: project, type, data: 1 })),
    );
    await world.ok(202, "POST", "/v1/events", { body });
    for (let n = 0; n < 4; n++) {
      await world.work();
      world.clock.advance(60_000);
    }
    const rows: Json[] = (await list(`project_id=${project}&limit=100`)).items;
    const count = (status: string) => rows.filter((row) => row.status === status).length;
    expect([count("delivered"), count("failed"), count("pending")]).toEqual([16, 4, 0]);
    for (const status of ["delivered", "failed"])
      expect((await list(`project_id=${project}&status=${status}&limit=100`)).items).toHaveLength(
        count(status),
      );
    expect(
      (await world.ok(200, "GET", `/v1/events?project_id=${project}&outcome=failed`)).items,
    ).toHaveLength(4);
    expect(rows.reduce((sum, row) => sum + row.attempts, 0)).toBe(receiver.requests.length);
    expect(receiver.requests).toHaveLength(11 + 5 * 2 + 4 * 3);
    for (const row of rows) {
      const received = receiver.requests.filter(
        (request) => request.headers["x-hookwell-delivery"] === row.id,
      );
      expect(received).toHaveLength(row.attempts);
    }
  });
});
