import { request } from "node:http";
import { StorageError } from "hookwell";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWorld, type World } from "./support/world.ts";

describe("problem documents", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld("memory", { project: "live", requestId: () => "made-here" });
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const emit = (raw: NonNullable<RequestInit["body"]>, type = "application/json") =>
    world.call("POST", "/v1/events", { raw, headers: { "content-type": type } });

  test("each has type, title, status, detail, code and request id, as application/problem+json", async () => {
    const answer = await world.call("GET", "/v1/events/evt_none");
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.json).toEqual({
      type: "urn:hookwell:error:not_found",
      title: "Not found",
      status: 404,
      detail: expect.stringContaining("evt_none"),
      code: "not_found",
      request_id: "made-here",
    });
  });

  test("the caller's request id comes back, in the header and in the problem; a senseless one does not", async () => {
    const given = await world.call("GET", "/v1/nothing", { headers: { "x-request-id": "trace-42" } });
    expect(given.headers.get("x-request-id")).toBe("trace-42");
    expect(given.json.request_id).toBe("trace-42");
    const fine = await world.call("GET", "/v1/events", { headers: { "x-request-id": "trace-43" } });
    expect(fine.headers.get("x-request-id")).toBe("trace-43");
    const odd = await world.call("GET", "/v1/nothing", { headers: { "x-request-id": "a b<c>" } });
    expect(odd.json.request_id).toBe("made-here");
  });

  test.each(["/", "/v1", "/v1/", "/v2/events", "/v1/events/a/b", "/v1/subscriptions/x/explode"])(
    "%s is no route: 404",
    async (path) => {
      expect((await world.call("GET", path)).json).toMatchObject({ status: 404, code: "no_such_route" });
    },
  );

  test.each([
    ["PUT", "/v1/events", "POST, GET, HEAD"],
    ["DELETE", "/v1/events/evt_1", "GET, HEAD"],
    ["GET", "/v1/deliveries/dlv_1/retry", "POST"],
    ["OPTIONS", "/v1/keys", "POST, GET, HEAD"],
    ["POST", "/healthz", "GET, HEAD"],
  ])("%s %s is 405 and says what is allowed", async (method, path, allow) => {
    const answer = await world.call(method, path);
    expect(answer.json).toMatchObject({ status: 405, code: "method_not_allowed" });
    expect(answer.headers.get("allow")).toBe(allow);
  });

  test("a list that is too long or empty is told so, not that it should be something else", async () => {
    const item = { type: "a.b", data: 1 };
    for (const [list, bound] of [
      [Array.from({ length: 101 }, () => item), "100"],
      [[], "1"],
    ] as const) {
      const answer = await emit(JSON.stringify(list));
      expect(answer.json).toMatchObject({ status: 400, errors: [{ pointer: "" }] });
      expect(answer.json.detail).toMatch(new RegExp(`array.*=${bound} items`));
    }
  });

  test.each([
    ["text", "text/plain"],
    ["a form", "application/x-www-form-urlencoded"],
    ["merge-patch where it is not taken", "application/merge-patch+json"],
  ])("a body sent as %s is 415", async (_, type) => {
    const answer = await emit('{"type":"a.b","data":1}', type);
    expect(answer.json).toMatchObject({ status: 415, code: "unsupported_media_type" });
  });

  test("a body without a content type is 415", async () => {
    const answer = await world.call("POST", "/v1/events", {
      raw: new TextEncoder().encode('{"type":"a.b","data":1}'),
    });
    expect(answer.status).toBe(415);
  });

  test("a charset parameter is no other type", async () => {
    expect((await emit('{"type":"a.b","data":1}', "application/json; charset=utf-8")).status).toBe(202);
  });

  test.each([
    ["nothing", ""],
    ["half of an object", '{"type":"a.b","data":'],
    ["two values", '{"type":"a.b","data":1} 2'],
    ["a comment", '{"type":"a.b",/* */"data":1}'],
    ["NaN", '{"type":"a.b","data":NaN}'],
    ["a byte order mark", '\ufeff{"type":"a.b","data":1}'],
    ["200 levels and more", `{"type":"a.b","data":${"[".repeat(300)}${"]".repeat(300)}}`],
    ["a million brackets", "[".repeat(1_000_000)],
  ])("%s is 400 malformed_json", async (_, body) => {
    expect((await emit(body)).json).toMatchObject({ status: 400, code: "malformed_json" });
  });

  test("bytes that are not UTF-8 are refused, not replaced", async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"type":"a.b","data":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}'),
    ]);
    expect((await emit(new Uint8Array(bytes))).json).toMatchObject({ status: 400, code: "malformed_json" });
  });

  test("brackets inside texts do not nest", async () => {
    expect((await emit(JSON.stringify({ type: "a.b", data: `${"[".repeat(500)}\\"` }))).status).toBe(202);
  });

  test("a number too large for JSON readers is refused and names itself", async () => {
    const answer = await emit('{"type":"a.b","data":{"n":1e400}}');
    expect(answer.json).toMatchObject({ status: 400, code: "validation_failed" });
    expect(answer.json.detail).toContain("1e400");
  });

  test("a body beyond the limit is 413, with and without a declared length", async () => {
    const large = `{"project_id":"live","url":"${"a".repeat(1_100_000)}"}`;
    const declared = await world.call("POST", "/v1/subscriptions", {
      raw: large,
      headers: { "content-type": "application/json" },
    });
    expect(declared.json).toMatchObject({ status: 413, code: "request_too_large" });
    expect(await chunked(`${world.url}/v1/subscriptions`, world.adminKey, large)).toBe(413);
    expect((await world.call("GET", "/v1/subscriptions")).json.items).toEqual([]);
  });

  test("a route without a body refuses one that would be ignored", async () => {
    const body = { reason: "because" };
    expect((await world.call("POST", "/v1/deliveries/dlv_1/retry", { body })).json.code).toBe(
      "unexpected_body",
    );
    expect((await world.call("POST", "/v1/deliveries/dlv_1/retry", { body: {} })).json.code).toBe(
      "not_found",
    );
  });

  test("ids that no database could hold are nothing that exists", async () => {
    for (const id of ["%00", "a%00b", "%ED%A0%80", `${"x".repeat(300)}`]) {
      const answer = await world.call("GET", `/v1/events/${id}`);
      expect([400, 404]).toContain(answer.status);
    }
  });

  test("unknown and doubled query parameters are refused", async () => {
    expect((await world.call("GET", "/v1/events?page=2")).json.errors).toEqual([
      { pointer: "/page", message: "is not known" },
    ]);
    expect((await world.call("GET", "/v1/events?type=a.b&type=c.d")).status).toBe(400);
    expect((await world.call("GET", "/v1/events?__proto__=1")).status).toBe(400);
  });

  test("a fault of the server says nothing of its inside; the log has it under the request id", async () => {
    const { events } = world.hooks as { events: { list: unknown } };
    const { list } = events;
    events.list = async () => {
      throw new TypeError("inner detail of the store");
    };
    try {
      const answer = await world.call("GET", "/v1/events", { headers: { "x-request-id": "find-me" } });
      expect(answer.json).toMatchObject({ status: 500, code: "internal", request_id: "find-me" });
      expect(answer.text).not.toContain("inner detail");
      const line = world.logs.find((text) => text.includes("find-me"));
      expect(line).toContain("inner detail of the store");
    } finally {
      events.list = list;
    }
  });

  test("a database that is away is 503, without its address, to callers with a key and without", async () => {
    const { store } = world.hooks;
    const { findApiKey } = store;
    store.findApiKey = async () => {
      throw new StorageError("PostgreSQL: connect ECONNREFUSED 10.1.2.3:5432.");
    };
    try {
      for (const key of [world.adminKey, "hwk_of_nobody"]) {
        const answer = await world.call("GET", "/v1/events", { key });
        expect(answer.json).toMatchObject({ status: 503, code: "storage" });
        expect(answer.text).not.toContain("10.1.2.3");
        const line = world.logs.find((text) => text.includes(answer.json.request_id));
        expect(line).toMatch(/ECONNREFUSED 10\.1\.2\.3:5432\.$/);
      }
    } finally {
      store.findApiKey = findApiKey;
    }
  });
});

/** Sends a body in chunks, so that no length is declared; answers the status. */
function chunked(url: string, key: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    // The server may close before it has read everything.
    sent.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "ECONNRESET") reject(error);
    });
    sent.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    for (let at = 0; at < body.length; at += 65_536) sent.write(body.slice(at, at + 65_536));
    sent.end();
  });
}
