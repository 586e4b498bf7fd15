import { StorageError } from "hookwell";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

const url = "http://127.0.0.1:9/hook";
const day = 86_400_000;

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("Idempotency-Key on %s", (kind) => {
  let world: World;
  let keys = 0;
  beforeAll(async () => {
    world = await startWorld(kind);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const newKey = () => `key-${++keys}`;
  const post = (path: string, key: string, body?: Json, more: Json = {}) =>
    world.call("POST", path, { body, ...more, headers: { "idempotency-key": key, ...more.headers } });
  const subscription = { project_id: "live", url, description: "d" };
  const count = async (what: string) => (await world.ok(200, "GET", `/v1/${what}?limit=100`)).items.length;

  test("the same request gets the first answer with its status, body, headers and secret, and is made once", async () => {
    const before = await count("subscriptions");
    const key = newKey();
    const first = await post("/v1/subscriptions", key, subscription);
    expect(first.status).toBe(201);
    expect(first.headers.has("idempotency-replayed")).toBe(false);
    const { description, ...rest } = subscription;
    for (const body of [subscription, { description, ...rest }]) {
      const again = await post("/v1/subscriptions", key, body);
      expect(again).toMatchObject({ status: 201, text: first.text });
      expect(again.headers.get("idempotency-replayed")).toBe("true");
      expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
      expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    }
    expect(await post("/v1/subscriptions", `"${key}"`, subscription)).toMatchObject({ text: first.text });
    expect(await count("subscriptions")).toBe(before + 1);
  });

  test("another request with the key is 422, whatever of it is other", async () => {
    const key = newKey();
    const { id } = (await post("/v1/subscriptions", key, subscription)).json;
    for (const [path, body] of [
      ["/v1/subscriptions", { ...subscription, description: "other" }],
      ["/v1/events", { project_id: "live", type: "a.b", data: 1 }],
      [`/v1/subscriptions/${id}/pause`, undefined],
    ] as const) {
      const answer = await post(path, key, body);
      expect(answer.json).toMatchObject({ status: 422, code: "idempotency_key_reused" });
    }
    expect((await world.ok(200, "GET", `/v1/subscriptions/${id}`)).status).toBe("active");
  });

  test("a key is its caller's own", async () => {
    const key = newKey();
    const first = await post("/v1/subscriptions", key, subscription);
    const other = await world.key(["manage"], "live");
    const second = await post("/v1/subscriptions", key, subscription, { key: other });
    expect(second.status).toBe(201);
    expect(second.json.id).not.toBe(first.json.id);
    expect(second.json.secret).not.toBe(first.json.secret);
  });

  test("of requests at one time one is carried out; the others get its answer or 409 with Retry-After", async () => {
    const before = await count("subscriptions");
    const key = newKey();
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => post("/v1/subscriptions", key, subscription)),
    );
    expect(await count("subscriptions")).toBe(before + 1);
    const made = answers.filter(({ status }) => status === 201);
    expect(new Set(made.map(({ json }) => json.id)).size).toBe(1);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expect(answer.json).toMatchObject({ status: 409, code: "idempotency_in_progress" });
      expect(answer.headers.get("retry-after")).toBe("1");
    }
    expect((await post("/v1/subscriptions", key, subscription)).json.id).toBe(made[0]!.json.id);
  });

  test("what the route refused stays refused; what never reached it is not kept, and 5xx is not either", async () => {
    const { id } = await world.ok(201, "POST", "/v1/subscriptions", { body: subscription });
    await world.ok(200, "POST", `/v1/subscriptions/${id}/disable`);
    const refused = newKey();
    const first = await post(`/v1/subscriptions/${id}/pause`, refused);
    expect(first.status).toBe(409);
    await world.ok(200, "POST", `/v1/subscriptions/${id}/enable`);
    expect(await post(`/v1/subscriptions/${id}/pause`, refused)).toMatchObject({
      status: 409,
      text: first.text,
    });
    expect((await post(`/v1/subscriptions/${id}/pause`, newKey())).status).toBe(200);

    const malformed = newKey();
    expect((await post("/v1/subscriptions", malformed, { ...subscription, url: 1 })).status).toBe(400);
    expect((await post("/v1/subscriptions", malformed, subscription)).status).toBe(201);

    const failing = newKey();
    const { store } = world.hooks;
    const create = store.createSubscription;
    store.createSubscription = () => Promise.reject(new StorageError("away"));
    expect((await post("/v1/subscriptions", failing, subscription)).status).toBe(503);
    store.createSubscription = create;
    const made = await post("/v1/subscriptions", failing, subscription);
    expect(made.status).toBe(201);
    expect(made.headers.has("idempotency-replayed")).toBe(false);
  });

  test("an answer that could not be kept is given all the same, and later its outcome is unknown", async () => {
    const { store } = world.hooks;
    const finish = store.finishRequest;
    const key = newKey();
    store.finishRequest = () => Promise.reject(new StorageError("away"));
    expect((await post("/v1/subscriptions", key, subscription)).status).toBe(201);
    store.finishRequest = finish;
    expect(world.logs.at(-1)).toMatch(/request .* could not be kept.*away/);
    expect((await post("/v1/subscriptions", key, subscription)).json.code).toBe("idempotency_in_progress");
    world.clock.advance(60_000);
    const before = await count("subscriptions");
    const answer = await post("/v1/subscriptions", key, subscription);
    expect(answer.json).toMatchObject({ status: 409, code: "idempotency_outcome_unknown" });
    expect(await count("subscriptions")).toBe(before);
  });

  test("events of a server that died before it answered are carried out again, and are there once", async () => {
    const { store } = world.hooks;
    const finish = store.finishRequest;
    const key = newKey();
    const project_id = `again-${kind}`;
    const body = [1, 2, 3].map((data) => ({ project_id, type: "a.b", data }));
    store.finishRequest = () => Promise.reject(new StorageError("away"));
    const first = (await post("/v1/events", key, body)).json;
    store.finishRequest = finish;
    world.clock.advance(60_000);
    const second = await post("/v1/events", key, body);
    expect(second.status).toBe(202);
    expect(second.json).toEqual(first.map(({ id }: Json) => ({ id, duplicate: true })));
    expect((await world.ok(200, "GET", `/v1/events?project_id=${project_id}`)).items).toHaveLength(3);
    for (const { id } of first) expect(id).toMatch(/^evt_[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  test("after 24 hours the key is free", async () => {
    const key = newKey();
    const first = await post("/v1/events", key, { project_id: "live", type: "a.b", data: 1 });
    world.clock.advance(day - 1);
    expect((await post("/v1/events", key, { project_id: "live", type: "a.b", data: 1 })).text).toBe(
      first.text,
    );
    world.clock.advance(1);
    const later = await post("/v1/events", key, { project_id: "live", type: "a.b", data: 2 });
    expect(later.status).toBe(202);
    expect(later.json.id).not.toBe(first.json.id);
  });

  test.each([
    ["an empty one", ""],
    ["a long one", "a".repeat(256)],
    ["a space", "a b"],
    ["two of them", "a, b"],
    ["something that is not ASCII", "\u00fcber"],
  ])("%s is 400", async (_, key) => {
    const answer = await post("/v1/subscriptions", key, subscription);
    expect(answer.json).toMatchObject({ status: 400, errors: [{ pointer: "/idempotency-key" }] });
  });
});
