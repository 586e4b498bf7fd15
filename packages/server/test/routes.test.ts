import { defineEvents } from "hookwell";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Call, exampleOf, type Furniture, furnish, nothing, prepare } from "./support/examples.ts";
import { edgesOf, faultsOf, queryFaults } from "./support/faults.ts";
import { type Operation, operationsOf } from "./support/operations.ts";
import {
  type Answered,
  type CallOptions,
  type Json,
  type StoreKind,
  startWorld,
  type World,
} from "./support/world.ts";

const events = defineEvents({
  "order.paid": {
    schema: z.record(z.string(), z.unknown()),
    jsonSchema: { type: "object" },
    example: { id: "1" },
  },
});
/** Routes whose answer may hold a secret, once. */
const showSecrets = new Set(["createSubscription", "rotateSubscriptionSecret", "createKey"]);

/** Fields whose values a schema cannot tell from others; what they may be is tested elsewhere. */
const ruledElsewhere = new Set(["/url"]);

/*
 * Every route of the OpenAPI document is called as it describes, and in every way that it forbids. `World.call` checks
 * each answer against the document: its status, media type, schema, and the codes that the status may have.
 */
describe.each<StoreKind>(["sqlite", "postgres"])("every route as it is described, on %s", (kind) => {
  let world: World;
  let operations: Operation[];
  const secrets: string[] = [];
  beforeAll(async () => {
    world = await startWorld(kind, { events });
    operations = await operationsOf(world);
    secrets.push(world.adminKey.slice(4));
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  /** Calls, and looks at what the document cannot say. */
  async function send({ id, method }: Operation, path: string, options: CallOptions): Promise<Answered> {
    const answer = await world.call(method, path, options);
    const where = `${id}: ${method} ${path} -> ${answer.status} ${answer.text.slice(0, 300)}`;
    expect(answer.headers.get("x-request-id"), where).toMatch(/^[\w-]{36}$/);
    expect(answer.text, where).not.toMatch(/\n\s+at |node_modules|node:internal|\.ts:\d/);
    for (const secret of secrets) expect(answer.text.includes(secret), where).toBe(false);
    if (answer.status >= 400) {
      expect(answer.headers.get("content-type"), where).toBe("application/problem+json");
      expect(answer.json, where).toMatchObject({
        type: `urn:hookwell:error:${answer.json.code}`,
        status: answer.status,
        request_id: answer.headers.get("x-request-id"),
      });
      expect(answer.status, where).toBeLessThan(500);
    }
    if (showSecrets.has(id) && answer.status < 300) {
      // One that was chosen may be any text.
      const made = /^(?:whsec|hwk)_(.+)$/.exec(answer.json.secret ?? answer.json.key)?.[1];
      if (made) secrets.push(made);
    }
    return answer;
  }

  test("its example is taken, and what was described is answered", async () => {
    const read = await furnish(world, "valid");
    for (const [index, operation] of operations.entries()) {
      const own = operation.method === "GET" ? read : await furnish(world, `valid-${index}`);
      await prepare(operation, world, own);
      const call = exampleOf(operation, own);
      const answer = await send(operation, call.path, { body: call.body });
      expect(
        answer.status,
        `${operation.id} needs another example (support/examples.ts): ${answer.text}`,
      ).toBeLessThan(300);
      if (!operation.headers.includes("idempotency-key")) continue;
      const again = { body: call.body, headers: { "idempotency-key": `again-${index}` } };
      const first = await world.call(operation.method, call.path, again);
      const second = await world.call(operation.method, call.path, again);
      expect([second.status, second.text], operation.id).toEqual([first.status, first.text]);
      expect(second.headers.get("idempotency-replayed"), operation.id).toBe("true");
    }
  });

  test("whatever its schema forbids is refused with 400 at the field, and changes nothing", async () => {
    const own = await furnish(world, "invalid");
    const before = await everything(own);
    let count = 0;
    const refuse = async (operation: Operation, call: Call, fault: Partial<Json>, pointer?: string) => {
      count++;
      const { path = call.path, status = [400], ...options } = fault;
      const answer = await send(operation, path, { body: call.body, headers: call.headers, ...options });
      const where = `${operation.id} ${JSON.stringify(fault).slice(0, 300)} -> ${answer.text}`;
      expect(status, where).toContain(answer.status);
      if (pointer !== undefined && answer.status === 400)
        expect(
          answer.json.errors.some((error: Json) => error.pointer.startsWith(pointer)),
          where,
        ).toBe(true);
    };
    for (const operation of operations.filter(({ path }) => path.startsWith("/v1/"))) {
      const call = exampleOf(operation, own);
      const at = (query: string): string => `${call.path}${call.path.includes("?") ? "&" : "?"}${query}`;
      await refuse(operation, call, { path: at("surprise=1") }, "/surprise");
      for (const { name, schema } of operation.query) {
        const plain = call.path.split("?")[0];
        for (const { value } of queryFaults(schema))
          await refuse(
            operation,
            call,
            { path: `${plain}?${name}=${encodeURIComponent(value)}` },
            `/${name}`,
          );
        await refuse(operation, call, { path: `${plain}?${name}=1&${name}=1` }, `/${name}`);
        if (name !== "cursor") continue;
        for (const cursor of [
          "x",
          "bm90IGpzb24",
          btoa("[1]"),
          btoa('["a","b"]'),
          btoa('[1,"\\u0000"]'),
          btoa("[1e99,1]"),
        ])
          await refuse(operation, call, { path: `${plain}?cursor=${encodeURIComponent(cursor)}` }, "/cursor");
      }
      if (operation.path.includes("{id}"))
        for (const id of [
          "a%00b",
          "%ED%A0%80",
          "%ff",
          "a".repeat(256),
          "%0a",
          "%F0%9F%82%A1",
          "..%2f..",
          "'%20OR%201=1--",
        ])
          await refuse(operation, call, { path: operation.path.replace("{id}", id), status: [400, 404] });
      for (const [header, value] of [
        ["if-match", "no tag"],
        ["idempotency-key", "a b"],
        ["idempotency-key", "k".repeat(256)],
      ] as const)
        if (operation.headers.includes(header))
          await refuse(operation, call, { headers: { [header]: value } }, `/${header}`);
      if (operation.headers.includes("if-match"))
        await refuse(operation, call, { headers: { "if-match": '"older"' }, status: [412] });
      // A body is refused before any store is asked: one of them is enough.
      if (kind === "postgres") await refuseBodies(operation, call, refuse);
    }
    expect(await everything(own)).toEqual(before);
    expect(count).toBeGreaterThan(300);
  });

  type Refuse = (operation: Operation, call: Call, fault: Partial<Json>, pointer?: string) => Promise<void>;

  async function refuseBodies(operation: Operation, call: Call, refuse: Refuse): Promise<void> {
    if (operation.method === "GET") return;
    const json = { "content-type": "application/json" };
    const raw = (body: NonNullable<RequestInit["body"]>, more: Json = {}) =>
      refuse(operation, call, { body: undefined, raw: body, headers: json, ...more });
    const { body } = operation;
    if (!body) {
      await raw('{"reason":"because"}');
      await raw("x".repeat(2_000), { status: [413] });
      await raw(new Uint8Array([0xff, 0xfe]));
      return;
    }
    for (const { pointer, value } of faultsOf(body.schema, call.body))
      await refuse(
        operation,
        call,
        { body: value },
        pointer === "" ? undefined : `/${pointer.split("/")[1]}`,
      );
    for (const text of ["{", "nonsense", '{"a":1,}', "NaN", "[".repeat(300) + "]".repeat(300), "1e999"])
      await raw(text);
    await raw(new Uint8Array([0x7b, 0xff, 0x7d]));
    await raw(JSON.stringify(call.body), { headers: { "content-type": "text/plain" }, status: [415] });
    const tooLarge = operation.id === "emitEvents" ? 8_400_000 : 1_100_000;
    await raw(JSON.stringify({ ...call.body, large: "x".repeat(tooLarge) }), { status: [413] });
    if (body.required) await raw("");
  }

  test("what is just inside its bounds is taken", async () => {
    const refused: string[] = [];
    const read = await furnish(world, "edges");
    for (const [index, operation] of operations.entries()) {
      const own = operation.body ? await furnish(world, `edges-${index}`) : read;
      const call = exampleOf(operation, own);
      const { body } = operation;
      for (const { what, pointer, value } of body ? edgesOf(body.schema, call.body) : []) {
        const answer = await send(operation, call.path, { body: value });
        // What is there, or not, is another matter.
        if (answer.status === 400 && !ruledElsewhere.has(pointer))
          refused.push(`${operation.id} ${pointer} ${what}: ${answer.text}`);
      }
      const path = call.path.split("?")[0];
      for (const { name, schema } of operation.query)
        for (const text of schema.enum ?? (schema.maximum ? [schema.minimum, schema.maximum] : [])) {
          const answer = await send(operation, `${path}?${name}=${text}`, {});
          if (answer.status !== 200) refused.push(`${operation.id} ${name}=${text}: ${answer.text}`);
        }
    }
    expect(refused).toEqual([]);
  });

  test("what is not there is 404, and what needs no key is open", async () => {
    for (const operation of operations) {
      const call = exampleOf(operation, nothing);
      if (operation.path.includes("{id}"))
        expect((await send(operation, call.path, { body: call.body })).status, operation.id).toBe(404);
      if (operation.scopes.length === 0)
        expect((await send(operation, call.path, { key: null })).status, operation.id).toBe(200);
    }
  });

  /** What a project has, as the API shows it. */
  async function everything(own: Furniture): Promise<Json> {
    const paths = [
      `subscriptions?project_id=${own.project}`,
      `subscriptions/${own.subscription}`,
      `events?project_id=${own.project}`,
      `deliveries?project_id=${own.project}`,
      `deliveries/${own.delivery}`,
      `replays?project_id=${own.project}`,
      `keys?project_id=${own.project}`,
      "holds",
    ];
    const pages: Json[] = [];
    for (const path of paths) pages.push(await world.ok(200, "GET", `/v1/${path}`));
    return [...pages, (await world.ok(200, "GET", "/v1/subscriptions?limit=100")).items.length];
  }
});
