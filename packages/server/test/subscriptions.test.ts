import { verify } from "hookwell";
import { answers, type ReceivedRequest, startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoreKind, startWorld, type World } from "./support/world.ts";

const url = "http://127.0.0.1:9/hook";

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("subscriptions over HTTP on %s", (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(kind);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const create = (more: object = {}) =>
    world.ok(201, "POST", "/v1/subscriptions", { body: { project_id: "live", url, ...more } });

  test("create answers the whole subscription, with the secret that no later answer has", async () => {
    const created = await create({
      tenant_id: "acme",
      owner_id: "u1",
      event_types: ["user.*", "user.created"],
      fields: ["email"],
      headers: { Authorization: "Bearer abc" },
      description: "Ünïcode\nand a second line",
      metadata: { team: "blue" },
      external_id: "ext-1",
      rate_limit: { limit: 5, per_seconds: 60 },
      max_in_flight: 3,
      ordering: "subject",
    });
    expect(created).toMatchObject({
      project_id: "live",
      tenant_id: "acme",
      owner_id: "u1",
      url,
      event_types: ["user.*", "user.created"],
      fields: ["email"],
      status: "active",
      status_reason: null,
      description: "Ünïcode\nand a second line",
      metadata: { team: "blue" },
      external_id: "ext-1",
      rate_limit: { limit: 5, per_seconds: 60 },
      max_in_flight: 3,
      ordering: "subject",
    });
    expect(created.secret).toMatch(/^whsec_/);
    const { secret, ...shown } = created;
    expect(await world.ok(200, "GET", `/v1/subscriptions/${created.id}`)).toEqual(shown);
    expect(secret).toBeTypeOf("string");
  });

  test("a given secret is the one that signs", async () => {
    const created = await create({ secret: "my-own-plain-secret-0123456789" });
    expect(created.secret).toBe("my-own-plain-secret-0123456789");
  });

  test.each([
    ["no url", { url: undefined }, "/url"],
    ["an empty url", { url: "" }, "/url"],
    ["a url that is none", { url: "nonsense" }, "/url"],
    ["another scheme", { url: "ftp://example.com/" }, "/url"],
    ["credentials in the url", { url: "https://u:p@example.com/" }, "/url"],
    ["a private address", { url: "https://10.1.2.3/" }, "/url"],
    ["a mapped private address", { url: "https://[::ffff:192.168.0.1]/" }, "/url"],
    ["an unknown field", { colour: "red" }, "/colour"],
    ["a bare star", { event_types: ["*"] }, "/event_types/0"],
    ["a star in the middle", { event_types: ["a.b", "a.*.b"] }, "/event_types/1"],
    ["event types that are no list", { event_types: "user.created" }, "/event_types"],
    ["a control character in the tenant", { tenant_id: "a\u0001" }, "/tenant_id"],
    ["a NUL in the description", { description: "a\u0000" }, "/description"],
    ["half of a surrogate pair", { description: "\ud83d" }, "/description"],
    ["metadata that is not text", { metadata: { a: 1 } }, "/metadata/a"],
    ["a rate of nothing", { rate_limit: { limit: 0, per_seconds: 1 } }, "/rate_limit/limit"],
    ["an ordering there is not", { ordering: "fifo" }, "/ordering"],
    ["an integer beyond 2^53 as a number of sends", { max_in_flight: 2 ** 60 }, "/max_in_flight"],
    ["no project anywhere", { project_id: undefined }, "/project_id"],
  ])("create refuses %s and points at it", async (_, more, pointer) => {
    const before = (await world.ok(200, "GET", "/v1/subscriptions?limit=100")).items.length;
    const answer = await world.call("POST", "/v1/subscriptions", {
      body: { project_id: "live", url, ...more },
    });
    expect(answer.status).toBe(400);
    expect(answer.json.errors.map((error: { pointer: string }) => error.pointer)).toContain(pointer);
    expect((await world.ok(200, "GET", "/v1/subscriptions?limit=100")).items).toHaveLength(before);
  });

  test("a refused private address names the setting that opens it", async () => {
    const answer = await world.call("POST", "/v1/subscriptions", {
      body: { project_id: "live", url: "https://10.1.2.3/" },
    });
    expect(answer.json).toMatchObject({ code: "blocked_address", status: 400 });
    expect(answer.json.detail).toContain("HOOKWELL_ALLOW_NETWORKS");
  });

  test.each([
    ["CR LF in a value", { "x-a": "1\r\nx-b: 2" }],
    ["a lone LF in a value", { "x-a": "1\n2" }],
    ["NUL in a value", { "x-a": "1\u0000" }],
    ["a value outside Latin-1", { "x-a": "日本" }],
    ["an empty name", { "": "1" }],
    ["a space in a name", { "x a": "1" }],
    ["a value of 10 kB", { "x-a": "a".repeat(10_240) }],
    ["Host", { Host: "evil.example" }],
    ["Content-Length", { "content-length": "1" }],
    ["Transfer-Encoding", { "Transfer-Encoding": "chunked" }],
    ["a signature header", { "webhook-signature": "v1,abc" }],
    ["the body signature", { "X-Hookwell-Signature": "sha256=00" }],
  ])(
    "field-faults E11: %s among custom headers is 400 with the field, at create and at patch",
    async (_, headers) => {
      const { id } = await create();
      const answers = [
        await world.call("POST", "/v1/subscriptions", { body: { project_id: "live", url, headers } }),
        await world.call("PATCH", `/v1/subscriptions/${id}`, { body: { headers } }),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(400);
        for (const { pointer } of answer.json.errors) expect(pointer).toMatch(/^\/headers/);
      }
      expect((await world.ok(200, "GET", `/v1/subscriptions/${id}`)).header_names).toEqual([]);
    },
  );

  test.each([
    ["a line feed at the end", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"],
    ["a space at the start", " plain-secret-of-some-length"],
    ["a byte order mark", "\ufeffplain-secret-of-some-length"],
    ["a no-break space at the end", "plain-secret-of-some-length\u00a0"],
    ["a tab", "\tplain-secret-of-some-length"],
  ])("field-faults F5: %s of a secret is 400 with the field, never trimmed", async (_, secret) => {
    const answer = await world.call("POST", "/v1/subscriptions", {
      body: { project_id: "live", url, secret },
    });
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].pointer).toBe("/secret");
    expect(answer.text).not.toContain("plain-secret");
    expect(answer.text).not.toContain("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  });

  test("patch merges: what it does not name stays, null removes", async () => {
    const { id } = await create({
      description: "first",
      metadata: { a: "1", b: "2" },
      external_id: "e",
      event_types: ["user.created"],
      rate_limit: { limit: 5, per_seconds: 60 },
    });
    const patched = await world.ok(200, "PATCH", `/v1/subscriptions/${id}`, {
      body: { metadata: { a: null, c: "3" }, external_id: null, rate_limit: { limit: 9 } },
    });
    expect(patched).toMatchObject({
      description: "first",
      metadata: { b: "2", c: "3" },
      external_id: null,
      event_types: ["user.created"],
      rate_limit: { limit: 9, per_seconds: 60 },
    });
    const emptied = await world.ok(200, "PATCH", `/v1/subscriptions/${id}`, {
      body: { event_types: null, rate_limit: null, metadata: null },
      headers: { "content-type": "application/merge-patch+json" },
    });
    expect(emptied).toMatchObject({
      event_types: [],
      rate_limit: null,
      metadata: null,
      description: "first",
    });
  });

  test.each([
    ["the project", { project_id: "other" }, "/project_id"],
    ["the id", { id: "sub_x" }, "/id"],
    ["the secret", { secret: "another-secret-of-some-length" }, "/secret"],
    ["the status", { status: "paused" }, "/status"],
    ["the url to nothing", { url: null }, "/url"],
    ["half of a rate", { rate_limit: { limit: 5 } }, "/rate_limit/per_seconds"],
  ])("patch does not change %s", async (_, body, pointer) => {
    const { id, secret: _secret, ...before } = await create();
    const answer = await world.call("PATCH", `/v1/subscriptions/${id}`, { body });
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].pointer).toBe(pointer);
    expect(await world.ok(200, "GET", `/v1/subscriptions/${id}`)).toEqual({ id, ...before });
  });

  test("pause, resume, disable, enable, and what a state does not allow is 409", async () => {
    const { id } = await create();
    const act = (action: string) => world.call("POST", `/v1/subscriptions/${id}/${action}`);
    expect((await act("pause")).json.status).toBe("paused");
    expect((await act("pause")).json.status).toBe("paused");
    expect((await act("resume")).json.status).toBe("active");
    expect((await act("disable")).json).toMatchObject({ status: "disabled", status_reason: "by_hand" });
    expect((await act("pause")).json).toMatchObject({ status: 409, code: "invalid_state" });
    const wrong = await act("resume");
    expect(wrong.json).toMatchObject({ status: 409, code: "invalid_state" });
    expect(wrong.json.detail).toContain("enable it instead");
    expect((await act("enable")).json).toMatchObject({ status: "active", status_reason: null });
    await act("pause");
    expect((await act("enable")).json).toMatchObject({ status: 409, code: "invalid_state" });
    expect((await act("resume")).json.status).toBe("active");
    expect((await act("enable")).status).toBe(200);
  });

  test("an entity tag names what is there: 304 for who has it, 412 for a change of what is no more", async () => {
    const { id } = await create();
    const path = `/v1/subscriptions/${id}`;
    const send = (method: string, headers: Record<string, string>, body?: object) =>
      world.call(method, path, { headers, body });
    const first = (await world.call("GET", path)).headers.get("etag")!;
    expect(first).toMatch(/^"[^"]+"$/);
    for (const known of [first, `W/${first}`, `"other", ${first}`, "*"])
      expect(await send("GET", { "if-none-match": known })).toMatchObject({ status: 304, text: "" });
    expect((await send("GET", { "if-none-match": '"other"' })).status).toBe(200);

    const changed = await send("PATCH", { "if-match": `"other" , ${first}` }, { description: "one" });
    expect(changed.status).toBe(200);
    const second = changed.headers.get("etag")!;
    expect(second).not.toBe(first);
    expect((await world.call("GET", path)).headers.get("etag")).toBe(second);
    for (const stale of [first, `W/${second}`, '"other"', ","]) {
      for (const answer of [
        await send("PATCH", { "if-match": stale }, { description: "two" }),
        await send("DELETE", { "if-match": stale }),
        await world.call("POST", `${path}/pause`, { headers: { "if-match": stale } }),
      ])
        expect(answer.json).toMatchObject({ status: 412, code: "version_conflict" });
    }
    for (const broken of ["nonsense", '"open', `${first} ${second}`, "*, *"])
      expect((await send("PATCH", { "if-match": broken }, { description: "two" })).json).toMatchObject({
        status: 400,
        errors: [{ pointer: "/if-match" }],
      });
    expect(await world.ok(200, "GET", path)).toMatchObject({ description: "one", status: "active" });
    expect((await send("PATCH", { "if-match": "*" }, { description: null })).status).toBe(200);
    expect(
      (await world.call("PATCH", "/v1/subscriptions/sub_none", { headers: { "if-match": "*" }, body: {} }))
        .status,
    ).toBe(404);
    const third = (await world.call("GET", path)).headers.get("etag")!;
    expect((await send("DELETE", { "if-match": third })).status).toBe(204);
  });

  test("patches of one field that cross each other both stay, without any condition", async () => {
    const { id } = await create({ metadata: { first: "1" }, headers: { "X-First": "1" } });
    const patch = (body: object) => world.call("PATCH", `/v1/subscriptions/${id}`, { body });
    const answers = await Promise.all([
      ...["a", "b", "c", "d"].map((name) => patch({ metadata: { [name]: "v" } })),
      ...["x-a", "x-b"].map((name) => patch({ headers: { [name]: "v" } })),
      patch({ metadata: { first: null }, headers: { "x-first": null } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const now = await world.ok(200, "GET", `/v1/subscriptions/${id}`);
    expect(now.metadata).toEqual({ a: "v", b: "v", c: "v", d: "v" });
    expect([...now.header_names].sort()).toEqual(["x-a", "x-b"]);
  });

  test("what a patch merges is held to the bounds of the whole", async () => {
    const many = (count: number, letter: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${letter}${n}`, "v"]));
    const { id } = await create({ metadata: many(40, "a"), headers: many(30, "a") });
    for (const body of [{ metadata: many(11, "b") }, { headers: many(3, "b") }]) {
      const answer = await world.call("PATCH", `/v1/subscriptions/${id}`, { body });
      expect(answer.json).toMatchObject({
        status: 400,
        errors: [{ pointer: `/${Object.keys(body)[0]}` }],
      });
    }
  });

  test("delete leaves a tombstone that lists only show when asked", async () => {
    const { id } = await create({ external_id: `gone-${kind}` });
    expect((await world.call("DELETE", `/v1/subscriptions/${id}`)).status).toBe(204);
    const list = async (query: string) =>
      (await world.ok(200, "GET", `/v1/subscriptions?external_id=gone-${kind}${query}`)).items.length;
    expect(await list("")).toBe(0);
    expect(await list("&status=deleted")).toBe(1);
    expect(
      (await world.call("PATCH", `/v1/subscriptions/${id}`, { body: { description: "x" } })).status,
    ).toBe(409);
  });

  test("lists filter by every parameter and refuse one that is not known", async () => {
    const project = `lists-${kind}`;
    const a = await create({ project_id: project, tenant_id: "t1", url: "http://127.0.0.1:9/a" });
    const b = await create({
      project_id: project,
      owner_id: "o1",
      url: "http://127.0.0.2:9/b",
      external_id: "x",
    });
    await world.ok(200, "POST", `/v1/subscriptions/${b.id}/pause`);
    const ids = async (query: string) =>
      (await world.ok(200, "GET", `/v1/subscriptions?project_id=${project}&${query}`)).items.map(
        (item: { id: string }) => item.id,
      );
    expect(new Set(await ids(""))).toEqual(new Set([a.id, b.id]));
    expect(await ids("tenant_id=t1")).toEqual([a.id]);
    expect(await ids("owner_id=o1")).toEqual([b.id]);
    expect(await ids("status=paused")).toEqual([b.id]);
    expect(await ids("status=active")).toEqual([a.id]);
    expect(await ids("url_host=127.0.0.2")).toEqual([b.id]);
    expect(await ids("external_id=x")).toEqual([b.id]);
    for (const query of [
      "statu=active",
      "status=gone",
      "limit=0",
      "limit=101",
      "limit=1&limit=2",
      "cursor=abc",
    ])
      expect((await world.call("GET", `/v1/subscriptions?${query}`)).status).toBe(400);
  });

  test("rotate-secret answers the new secret alone, with and without a body, and what is pending is signed by both", async () => {
    await using receiver = await startReceiver();
    const project = `rotate-${kind}`;
    const made = await create({ project_id: project, url: receiver.url });
    const rotate = (body?: unknown) =>
      world.call("POST", `/v1/subscriptions/${made.id}/rotate-secret`, { body });
    await world.ok(202, "POST", "/v1/events", { body: { project_id: project, type: "a.b", data: {} } });
    const first = await rotate();
    expect(first).toMatchObject({ status: 200, json: { secret: expect.stringMatching(/^whsec_/) } });
    const chosen = await rotate({ overlap_seconds: 60, secret: "chosen-by-hand-0123456789" });
    expect(chosen).toMatchObject({ status: 200, json: { secret: "chosen-by-hand-0123456789" } });
    await world.work();
    const [{ headers, body }] = (await receiver.waitForRequests(1)) as [ReceivedRequest];
    const now = world.clock.read();
    for (const secret of [made.secret, first.json.secret, chosen.json.secret])
      expect(verify(headers, body, secret, { now }).id).toBe(headers["webhook-id"]);

    await rotate();
    expect((await rotate()).status).toBe(200);
    const sixth = await rotate({});
    expect(sixth.json).toMatchObject({ status: 409, code: "too_many_secrets" });
    expect(sixth.json.detail).toContain(made.id);
    expect((await rotate({ overlap_seconds: 0 })).status).toBe(200);
  });

  test.each([
    [{ overlap_seconds: -1 }, "/overlap_seconds"],
    [{ overlap_seconds: 0.5 }, "/overlap_seconds"],
    [{ overlap_seconds: 2_592_001 }, "/overlap_seconds"],
    [{ secret: "with white space" }, "/secret"],
    [{ secret: "" }, "/secret"],
    [{ overlap: 1 }, "/overlap"],
  ])("rotate-secret refuses %j and points at it", async (body, pointer) => {
    const { id } = await create();
    const answer = await world.call("POST", `/v1/subscriptions/${id}/rotate-secret`, { body });
    expect(answer).toMatchObject({ status: 400, json: { errors: [{ pointer }] } });
  });

  test("a test send answers the attempt, good or bad, and leaves no delivery", async () => {
    await using receiver = await startReceiver({ respond: answers({ body: "ok" }, 401) });
    const { id, secret } = await create({ project_id: `test-${kind}`, url: receiver.url });
    await world.ok(200, "POST", `/v1/subscriptions/${id}/pause`);
    const tested = await world.ok(200, "POST", `/v1/subscriptions/${id}/test`);
    const [{ headers, body }] = receiver.requests as [ReceivedRequest];
    expect(headers["x-hookwell-test"]).toBe("true");
    expect(verify(headers, body, secret, { now: world.clock.read() }).id).toBe(tested.event_id);
    expect(tested).toMatchObject({
      event_type: "hookwell.test",
      attempt: { number: 1, status_code: 200, error_code: null, response_excerpt: "ok" },
    });
    const refused = await world.ok(200, "POST", `/v1/subscriptions/${id}/test`, { body: {} });
    expect(refused.attempt).toMatchObject({ status_code: 401, error_code: "http_401" });
    const unknown = await world.call("POST", `/v1/subscriptions/${id}/test`, {
      body: { event_type: "user.created" },
    });
    expect(unknown.json).toMatchObject({
      status: 400,
      code: "no_example",
      errors: [{ pointer: "/event_type" }],
    });
    expect((await world.ok(200, "GET", `/v1/deliveries?subscription_id=${id}`)).items).toEqual([]);
    expect(receiver.requests).toHaveLength(2);
    await world.call("DELETE", `/v1/subscriptions/${id}`);
    expect((await world.call("POST", `/v1/subscriptions/${id}/test`)).json).toMatchObject({
      status: 409,
      code: "invalid_state",
    });
  });

  test.each(["get", "patch", "delete", "pause", "resume", "disable", "enable", "rotate-secret", "test"])(
    "%s of an id that there is not is 404",
    async (action) => {
      const [method, suffix] = ["get", "patch", "delete"].includes(action)
        ? [action.toUpperCase(), ""]
        : ["POST", `/${action}`];
      const body = action === "patch" ? { description: "x" } : undefined;
      const answer = await world.call(method, `/v1/subscriptions/sub_none${suffix}`, { body });
      expect(answer.json).toMatchObject({ status: 404, code: "not_found" });
    },
  );

  test("field-faults H3: a url edited after a failed attempt takes the pending delivery with it, bytes unchanged", async () => {
    await using broken = await startReceiver({ respond: () => 503 });
    await using mended = await startReceiver();
    const project = `h3-${kind}`;
    const { id } = await create({ project_id: project, url: broken.url });
    await world.ok(202, "POST", "/v1/events", {
      body: { project_id: project, type: "order.paid", data: { total: 12.5, note: "é" } },
    });
    await world.work();
    const [first] = await broken.waitForRequests(1);
    await world.ok(200, "PATCH", `/v1/subscriptions/${id}`, { body: { url: mended.url } });
    world.clock.advance(60_000);
    await world.work();
    const [second] = await mended.waitForRequests(1);
    expect(second!.body.equals(first!.body)).toBe(true);
    for (const header of ["webhook-id", "x-hookwell-delivery", "x-hookwell-signature"])
      expect(second!.headers[header]).toBe(first!.headers[header]);
    expect(second!.headers["x-hookwell-attempt"]).toBe("2");
    expect(broken.requests).toHaveLength(1);
  });
});
