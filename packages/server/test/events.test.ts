import { defineEvents } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

const idsOf = (page: Json): string[] => page.items.map((item: { id: string }) => item.id);

describe.each<StoreKind>(["memory", "sqlite", "postgres"])("events over HTTP on %s", (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(kind);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const emit = <More extends object = object>(more: More = {} as More) => ({
    project_id: "live",
    type: "order.paid",
    data: { total: 1 },
    ...more,
  });
  const post = (body: unknown) => world.call("POST", "/v1/events", { body });

  test("one event: 202 with its id, and the event as it was given", async () => {
    const given = emit({
      id: `one-${kind}`,
      tenant_id: "acme",
      occurred_at: "2026-02-28T23:30:00.250+02:00",
      subject: "order:1",
      revision: 3,
      actor: { type: "user", id: "u9" },
      audience: ["o2", "o1"],
      data: { total: 12.5, lines: [{ sku: "ä" }], none: null },
    });
    expect(await world.ok(202, "POST", "/v1/events", { body: given })).toEqual({
      id: `one-${kind}`,
      duplicate: false,
    });
    expect(await world.ok(200, "GET", `/v1/events/one-${kind}`)).toMatchObject({
      ...given,
      occurred_at: "2026-02-28T21:30:00.250Z",
      audience: ["o1", "o2"],
      captured_at: world.clock.read().toISOString(),
      state: "new",
      deliveries: [],
    });
  });

  test("explain says for each subscription of the project that it matched, or the first rule that kept it off", async () => {
    const project_id = `explain-${kind}`;
    const url = "http://127.0.0.1:9/hook";
    const names = new Map<string, string>();
    const subscribe = async (external_id: string, more: object = {}) => {
      const body = { project_id, url, external_id, ...more };
      const { id } = await world.ok(201, "POST", "/v1/subscriptions", { body });
      names.set(id, external_id);
      return id as string;
    };
    await subscribe("every type");
    await subscribe("paused", { event_types: ["order.*"] });
    await subscribe("other type", { event_types: ["user.*", "order.paid.late"] });
    await subscribe("other tenant and type", { tenant_id: "other", event_types: ["user.*"] });
    await subscribe("other tenant", { tenant_id: "other" });
    await subscribe("owner", { owner_id: "o1" });
    await subscribe("disabled");
    await subscribe("deleted");
    await subscribe("changed", { event_types: ["user.*"] });
    const idOf = (name: string) => [...names].find(([, known]) => known === name)![0];
    await world.ok(200, "POST", `/v1/subscriptions/${idOf("paused")}/pause`);
    await world.ok(200, "POST", `/v1/subscriptions/${idOf("disabled")}/disable`);
    await world.ok(204, "DELETE", `/v1/subscriptions/${idOf("deleted")}`);
    const id = `explained-${kind}`;
    const path = `/v1/events/${id}/explain?project_id=${project_id}`;
    await world.ok(202, "POST", "/v1/events", { body: emit({ id, project_id, tenant_id: "acme" }) });
    const rulesOf = (page: Json) =>
      Object.fromEntries(
        page.items.map((item: Json) => [
          names.get(item.subscription_id),
          item.matched ? [item.delivery_id === null ? "waits" : "queued"] : item.rule,
        ]),
      );
    const kept = {
      "other type": "type",
      "other tenant and type": "type",
      "other tenant": "tenant",
      owner: "owner",
      disabled: "status",
    };
    expect(rulesOf(await world.ok(200, "GET", path))).toEqual({
      ...kept,
      "every type": ["waits"],
      paused: ["waits"],
      changed: "type",
    });

    await world.hooks.drain({ deadlineMs: 30_000, max: 1 });
    world.clock.advance(1_000);
    await subscribe("younger");
    await world.ok(200, "PATCH", `/v1/subscriptions/${idOf("changed")}`, { body: { event_types: null } });
    const all = await world.ok(200, "GET", path);
    expect(rulesOf(all)).toEqual({
      ...kept,
      "every type": ["queued"],
      paused: ["queued"],
      changed: "changed_after",
      younger: "created_after",
    });
    const queued = all.items.find((item: Json) => item.subscription_id === idOf("paused"));
    const delivery = await world.ok(200, "GET", `/v1/deliveries/${queued.delivery_id}`);
    expect(delivery).toMatchObject({ event_id: id, subscription_id: idOf("paused") });
    expect(queued.delivery_status).toBe("pending");

    const pages: Json[] = [];
    let cursor = "";
    do {
      const page: Json = await world.ok(200, "GET", `${path}&limit=4${cursor}`);
      pages.push(...page.items);
      cursor = page.next_cursor ? `&cursor=${page.next_cursor}` : "";
    } while (cursor);
    expect(pages).toEqual(all.items);
    const one = async (name: string) =>
      (await world.ok(200, "GET", `${path}&subscription_id=${idOf(name)}`)).items;
    expect(await one("deleted")).toMatchObject([{ matched: false, rule: "status" }]);
    expect((await one("younger"))[0].detail).toMatch(/created at .* after the event was dispatched/);
    expect((await world.call("GET", `${path}&subscription_id=sub_none`)).status).toBe(404);
  });

  test("field-faults G8: explain shows a caller its own subscriptions, and no event of another", async () => {
    const project_id = `explain-g8-${kind}`;
    const url = "http://127.0.0.1:9/hook";
    const ours = await world.ok(201, "POST", "/v1/subscriptions", { body: { project_id, url } });
    const theirs = await world.ok(201, "POST", "/v1/subscriptions", {
      body: { project_id: `${project_id}-other`, url },
    });
    const id = `explain-g8-event-${kind}`;
    await world.ok(202, "POST", "/v1/events", { body: emit({ id, project_id }) });
    const key = await world.key(["read"], project_id);
    const other = await world.key(["read"], `${project_id}-other`);
    const page = await world.ok(200, "GET", `/v1/events/${id}/explain`, { key });
    expect(page.items.map((item: Json) => item.subscription_id)).toEqual([ours.id]);
    for (const [path, with_] of [
      [`/v1/events/${id}/explain`, other],
      [`/v1/events/${id}/explain?project_id=${project_id}`, other],
      [`/v1/events/${id}/explain?subscription_id=${theirs.id}`, key],
    ] as const)
      expect((await world.call("GET", path, { key: with_ })).json).toMatchObject({ status: 404 });
  });

  test("an absent id is made, an absent time is now", async () => {
    const { id } = await world.ok(202, "POST", "/v1/events", { body: emit() });
    expect(id).toMatch(/^evt_[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(await world.ok(200, "GET", `/v1/events/${id}`)).toMatchObject({
      tenant_id: null,
      subject: null,
      revision: null,
      actor: null,
      audience: null,
      occurred_at: world.clock.read().toISOString(),
    });
  });

  test("the same id and content again is a duplicate; other content is 409", async () => {
    const event = emit({ id: `twice-${kind}` });
    await world.ok(202, "POST", "/v1/events", { body: event });
    expect(await world.ok(202, "POST", "/v1/events", { body: event })).toEqual({
      id: event.id,
      duplicate: true,
    });
    const other = await post({ ...event, data: { total: 2 } });
    expect(other.json).toMatchObject({ status: 409, code: "event_mismatch" });
  });

  test("a revision that the subject has is 409", async () => {
    await world.ok(202, "POST", "/v1/events", { body: emit({ subject: "order:7", revision: 1 }) });
    const again = await post(emit({ subject: "order:7", revision: 1, data: { total: 9 } }));
    expect(again.json).toMatchObject({ status: 409, code: "revision_conflict" });
  });

  test("a list answers a list, in its order", async () => {
    const body = [1, 2, 3].map((n) => emit({ id: `batch-${kind}-${n}` }));
    const answer = await world.ok(202, "POST", "/v1/events", { body });
    expect(answer).toEqual(body.map(({ id }: Json) => ({ id, duplicate: false })));
    expect((await world.ok(202, "POST", "/v1/events", { body }))[1]).toEqual({
      id: `batch-${kind}-2`,
      duplicate: true,
    });
  });

  test.each([
    ["by its form", { type: "Not A Type" }, 400, "/1/type"],
    ["by its project", { project_id: "\u0007" }, 400, "/1/project_id"],
    ["by its size", { data: "x".repeat(270_000) }, 413, "/1/data"],
    ["by a revision beyond 2^53", { subject: "s", revision: 2 ** 53 }, 400, "/1/revision"],
  ])("one event of a list refused %s refuses all, and says which", async (what, more, status, pointer) => {
    const first = emit({ id: `all-${kind}-${what.replaceAll(/\W/g, "_")}` });
    const answer = await post([first, emit(more)]);
    expect(answer.status).toBe(status);
    expect(answer.json.errors[0].pointer).toBe(pointer);
    expect((await world.call("GET", `/v1/events/${first.id}`)).status).toBe(404);
  });

  test("of a list that conflicts with what is stored nothing is written", async () => {
    await world.ok(202, "POST", "/v1/events", { body: emit({ id: `taken-${kind}` }) });
    const answer = await post([
      emit({ id: `new-${kind}` }),
      emit({ id: `taken-${kind}`, data: { total: 5 } }),
    ]);
    expect(answer.json).toMatchObject({ status: 409, code: "event_mismatch" });
    expect((await world.call("GET", `/v1/events/new-${kind}`)).status).toBe(404);
  });

  test.each([
    ["an empty list", []],
    ["101 events", Array.from({ length: 101 }, () => ({ project_id: "live", type: "a.b", data: 1 }))],
    ["text", "order.paid"],
    ["null", null],
    ["no data", { project_id: "live", type: "a.b" }],
    ["no type", { project_id: "live", data: 1 }],
    ["no project", { type: "a.b", data: 1 }],
    ["a dot in the id", emit({ id: "a.b" })],
    ["an id of 129 characters", emit({ id: "a".repeat(129) })],
    ["a type of 129 characters", emit({ type: "a".repeat(129) })],
    ["a time that is none", emit({ occurred_at: "yesterday" })],
    ["a day there is not", emit({ occurred_at: "2026-02-30T00:00:00Z" })],
    ["half an actor", emit({ actor: { type: "user" } })],
    ["an unknown field", emit({ payload: {} })],
    ["a type of Hookwell's own", emit({ type: "hookwell.subscription.disabled" })],
    ["a lone surrogate in the subject", emit({ subject: "\udc00" })],
    ["NUL in the tenant", emit({ tenant_id: "a\u0000" })],
  ])("%s is 400 with its pointers", async (_, body) => {
    const answer = await post(body);
    expect(answer.json).toMatchObject({ status: 400, errors: [expect.anything()] });
  });

  test("field-faults I2: integers beyond 2^53 keep their digits from the request to the receiver and back", async () => {
    await using receiver = await startReceiver();
    const project = `i2-${kind}`;
    await world.ok(201, "POST", "/v1/subscriptions", { body: { project_id: project, url: receiver.url } });
    const digits = ["9007199254740993", "-123456789012345678901234567890", "18446744073709551615"];
    const data = `{"id":${digits[0]},"deep":[{"n":${digits[1]}}],"u64":${digits[2]},"text":"${digits[0]}","e":1e21}`;
    const raw = `{"project_id":"${project}","type":"order.paid","data":${data}}`;
    const answer = await world.call("POST", "/v1/events", {
      raw,
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(202);
    await world.work();
    const [request] = await receiver.waitForRequests(1);
    const written = data.replace("1e21", "1e+21");
    expect(request!.body.toString()).toContain(`"data":${written}`);
    expect((await world.call("GET", `/v1/events/${answer.json.id}`)).text).toContain(`"data":${written}`);
    const [delivery] = (await world.ok(200, "GET", `/v1/deliveries?event_id=${answer.json.id}`)).items;
    const shown = await world.ok(200, "GET", `/v1/deliveries/${delivery.id}`);
    expect(shown.body).toBe(request!.body.toString());
  });

  test("field-faults I3: a 300 kB body is 413 and nothing is written; 20 kB and 250 kB are fine", async () => {
    const id = `large-${kind}`;
    const refused = await post(emit({ id, data: { notes: "n".repeat(300_000) } }));
    expect(refused.json).toMatchObject({ status: 413, code: "payload_too_large" });
    expect((await world.call("GET", `/v1/events/${id}`)).status).toBe(404);
    for (const size of [20_000, 250_000])
      await world.ok(202, "POST", "/v1/events", { body: emit({ data: { notes: "n".repeat(size) } }) });
    // Counted in bytes, not in characters.
    const refusedToo = await post(emit({ id, data: { notes: "語".repeat(100_000) } }));
    expect(refusedToo.json).toMatchObject({ status: 413, code: "payload_too_large" });
  });

  test("field-faults I1: NUL and lone surrogates in data are kept as escapes, from the request to the answer", async () => {
    const raw = `{"project_id":"live","type":"order.paid","data":{"name":"a\\u0000b","half":"\\ud800"}}`;
    const answer = await world.call("POST", "/v1/events", {
      raw,
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(202);
    expect((await world.call("GET", `/v1/events/${answer.json.id}`)).text).toContain(
      `"data":{"name":"a\\u0000b","half":"\\ud800"}`,
    );
  });

  test("lists filter by every parameter", async () => {
    const project = `lists-${kind}`;
    const emitted: string[] = [];
    for (const more of [
      { type: "a.one", tenant_id: "t1", subject: "s:1" },
      { type: "a.two", tenant_id: "t2", subject: "s:2" },
      { type: "a.two", tenant_id: "t1", subject: "s:1" },
    ]) {
      emitted.push(
        (await world.ok(202, "POST", "/v1/events", { body: emit({ project_id: project, ...more }) })).id,
      );
      world.clock.advance(1_000);
    }
    const [first, second, third] = emitted;
    const list = async (query: string) =>
      idsOf(await world.ok(200, "GET", `/v1/events?project_id=${project}&${query}`));
    expect(await list("")).toEqual([third, second, first]);
    expect(await list("type=a.two")).toEqual([third, second]);
    expect(await list("tenant_id=t1")).toEqual([third, first]);
    expect(await list("subject=s:2")).toEqual([second]);
    expect(await list(`id=${first}`)).toEqual([first]);
    const at = async (id: string | undefined) =>
      encodeURIComponent((await world.ok(200, "GET", `/v1/events/${id}`)).captured_at);
    expect(await list(`since=${await at(second)}`)).toEqual([third, second]);
    expect(await list(`until=${await at(second)}`)).toEqual([first]);
    expect(await list(`since=${await at(first)}&until=${await at(third)}`)).toEqual([second, first]);
    for (const query of ["since=today", "outcome=lost", "type=A", "until=2026-01-01"])
      expect((await world.call("GET", `/v1/events?${query}`)).status).toBe(400);
  });

  test("outcomes are those of the deliveries", async () => {
    await using receiver = await startReceiver({
      respond: ({ headers }) => (headers["x-hookwell-event"] === "o.bad" ? 500 : 200),
    });
    const project = `outcomes-${kind}`;
    const { id } = await world.ok(201, "POST", "/v1/subscriptions", {
      body: { project_id: project, url: receiver.url, event_types: ["o.good", "o.bad"] },
    });
    const ids: Record<string, string> = {};
    for (const type of ["o.good", "o.bad", "o.nobody"])
      ids[type] = (
        await world.ok(202, "POST", "/v1/events", { body: emit({ project_id: project, type }) })
      ).id;
    await world.work();
    const list = async (outcome: string) =>
      idsOf(await world.ok(200, "GET", `/v1/events?project_id=${project}&outcome=${outcome}`));
    expect(await list("delivered")).toEqual([ids["o.good"]]);
    expect(await list("pending")).toEqual([ids["o.bad"]]);
    expect(await list("unmatched")).toEqual([ids["o.nobody"]]);
    await world.ok(200, "POST", `/v1/subscriptions/${id}/pause`);
    expect(await list("held")).toEqual([ids["o.bad"]]);
    const event = await world.ok(200, "GET", `/v1/events/${ids["o.bad"]}`);
    expect(event.deliveries).toMatchObject([
      { subscription_id: id, status: "pending", hold: "paused", error_code: "http_500" },
    ]);
  });

  test("field-faults H2: what comes while paused is delivered after resume; while disabled it is unmatched and visible", async () => {
    await using receiver = await startReceiver();
    const project = `h2-${kind}`;
    const { id } = await world.ok(201, "POST", "/v1/subscriptions", {
      body: { project_id: project, url: receiver.url },
    });
    const emitSix = async (type: string) => {
      const body = Array.from({ length: 6 }, () => emit({ project_id: project, type }));
      await world.ok(202, "POST", "/v1/events", { body });
      await world.work();
    };
    await world.ok(200, "POST", `/v1/subscriptions/${id}/pause`);
    await emitSix("while.paused");
    expect(receiver.requests).toHaveLength(0);
    await world.ok(200, "POST", `/v1/subscriptions/${id}/resume`);
    await world.work();
    expect(receiver.requests).toHaveLength(6);
    await world.ok(200, "POST", `/v1/subscriptions/${id}/disable`);
    await emitSix("while.disabled");
    await world.ok(200, "POST", `/v1/subscriptions/${id}/enable`);
    await world.work();
    expect(receiver.requests).toHaveLength(6);
    const skipped = await world.ok(200, "GET", `/v1/events?project_id=${project}&outcome=unmatched`);
    // The disabling was told of, too, and nobody asked to be.
    expect(skipped.items.map((item: Json) => item.type).sort()).toEqual([
      "hookwell.subscription.disabled",
      ...Array(6).fill("while.disabled"),
    ]);
  });

  test("an event with more than 100 deliveries shows the newest, and a cursor for the rest", async () => {
    const project = `wide-${kind}`;
    for (let n = 0; n < 103; n++)
      await world.hooks.subscriptions.create({ projectId: project, url: "http://127.0.0.1:9/" });
    const { id } = await world.ok(202, "POST", "/v1/events", { body: emit({ project_id: project }) });
    await world.hooks.drain({ deadlineMs: 30_000, max: 1 });
    const event = await world.ok(200, "GET", `/v1/events/${id}`);
    expect(event.deliveries).toHaveLength(100);
    const rest = await world.ok(
      200,
      "GET",
      `/v1/deliveries?event_id=${id}&cursor=${event.deliveries_cursor}`,
    );
    expect(rest.items).toHaveLength(3);
    expect(new Set([...event.deliveries, ...rest.items].map((item: Json) => item.id)).size).toBe(103);
  });
});

describe.each<StoreKind>(["memory", "sqlite"])("events of a catalogue on %s", (kind) => {
  let world: World;
  let broken = true;
  beforeAll(async () => {
    const events = defineEvents({
      "user.created": {
        description: "An account was stored.",
        schema: z.object({
          id: z.string(),
          email: z.string().optional(),
          nested: z.object({ n: z.number() }).optional(),
        }),
        example: { id: "u1" },
        fields: { always: ["id"], default: [], optional: { email: { personal: true } } },
      },
      "user.fragile": {
        schema: z.object({ id: z.string() }),
        envelope: (event, data) => {
          if (broken) throw new Error("the envelope is broken");
          return { id: event.id, data };
        },
      },
    });
    world = await startWorld(kind, { events, project: "live" });
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test("the catalogue has description, JSON schema, fields and example", async () => {
    const { items } = await world.ok(200, "GET", "/v1/catalogue");
    expect(items[0]).toMatchObject({
      type: "user.created",
      description: "An account was stored.",
      json_schema: { type: "object", required: ["id"] },
      fields: { always: ["id"], default: [], optional: { email: { personal: true } } },
      example: { id: "u1" },
      fan_out: "dispatch",
      broadcast: false,
    });
    expect(items[1]).toMatchObject({ type: "user.fragile", description: null, fields: null, example: null });
  });

  test("an unknown type and data that fail the schema are 400 with their pointers", async () => {
    const unknown = await world.call("POST", "/v1/events", {
      body: { type: "user.creatd", data: { id: "1" } },
    });
    expect(unknown.json).toMatchObject({
      status: 400,
      code: "unknown_event_type",
      errors: [{ pointer: "/type" }],
    });
    const failing = await world.call("POST", "/v1/events", {
      body: [
        { type: "user.created", data: { id: "1" } },
        { type: "user.created", data: { id: "1", nested: { n: "x" } } },
      ],
    });
    expect(failing.json).toMatchObject({
      status: 400,
      code: "event_schema_failed",
      errors: [{ pointer: "/1/data/nested/n" }],
    });
    expect((await world.ok(200, "GET", "/v1/events")).items).toEqual([]);
  });

  test("field-faults D4: an event that cannot be dispatched is parked with its error, visible, and released over HTTP", async () => {
    await using receiver = await startReceiver();
    await world.ok(201, "POST", "/v1/subscriptions", { body: { url: receiver.url } });
    const { id } = await world.ok(202, "POST", "/v1/events", {
      body: { type: "user.fragile", data: { id: "1" } },
    });
    const early = await world.call("POST", `/v1/events/${id}/release`);
    expect(early.json).toMatchObject({ status: 409, code: "invalid_state" });
    for (const seconds of [0, 1, 2, 4, 8, 16]) {
      world.clock.advance(seconds * 1_000);
      await world.work();
    }
    expect((await world.ok(200, "GET", "/v1/events?outcome=parked")).items).toMatchObject([
      { id, state: "parked", outcome: "parked", error: expect.stringContaining("the envelope is broken") },
    ]);
    expect(receiver.requests).toHaveLength(0);
    broken = false;
    expect(await world.ok(200, "POST", `/v1/events/${id}/release`)).toMatchObject({
      id,
      state: "new",
      deliveries: [],
    });
    await world.work();
    expect((await receiver.waitForRequests(1))[0]!.headers["webhook-id"]).toBe(id);
    expect(await world.ok(200, "GET", `/v1/events/${id}`)).toMatchObject({ outcome: "delivered" });
    expect((await world.call("POST", "/v1/events/evt_none/release")).status).toBe(404);
  });
});
