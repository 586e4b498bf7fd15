import {
  AsyncSchemaError,
  createHookwell,
  defineEvents,
  EventMismatchError,
  EventSchemaError,
  InvalidIdentifierError,
  MemoryOutbox,
  memoryTx,
  NotInTransactionError,
  PayloadTooLargeError,
  RevisionConflictError,
  UnknownEventTypeError,
  ValidationError,
} from "hookwell";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";

const user = z.object({ id: z.string(), name: z.string().optional(), n: z.unknown().optional() });
const events = defineEvents({
  "user.created": { schema: user, subject: (data) => `user:${data.id}` },
  "user.seen": { schema: z.object({ id: z.string(), at: z.string().default(() => crypto.randomUUID()) }) },
  "user.slow": { schema: z.object({ id: z.string().refine(async (id) => id !== "bad") }), jsonSchema: {} },
  "user.now": { schema: user, fanOut: "emit", envelope: (event, data) => ({ event: event.id, data }) },
  "notice.sent": { schema: z.object({}), broadcast: true },
});

function made(now = new Date("2026-03-01T10:00:00Z")) {
  const store = new MemoryOutbox({ now: () => now });
  const hooks = createHookwell({ store, tx: memoryTx(), project: "live", events, clock: () => now });
  return { store, hooks };
}
type Hooks = ReturnType<typeof made>["hooks"];

async function stored(hooks: Hooks) {
  return (await hooks.events.list()).items;
}
/** As plain JavaScript would call it. */
const loosely = (hooks: Hooks) => hooks.emit as (...args: unknown[]) => Promise<{ id: string }>;

describe("what emit stores", () => {
  test("fills in id, project, time and subject, and answers the id", async () => {
    const { hooks } = made();
    const { id, duplicate } = await hooks.emit("user.created", { id: "7" }, { tx: "own" });
    expect(id).toMatch(/^evt_[0-9a-f-]{36}$/);
    expect(duplicate).toBe(false);
    expect(await stored(hooks)).toEqual([
      expect.objectContaining({
        id,
        type: "user.created",
        projectId: "live",
        subject: "user:7",
        occurredAt: new Date("2026-03-01T10:00:00Z"),
        data: '{"id":"7"}',
        state: "new",
      }),
    ]);
  });

  test("keeps what the caller gives", async () => {
    const { hooks } = made();
    await hooks.emit(
      "user.created",
      { id: "7" },
      {
        tx: "own",
        id: "mine:1",
        projectId: "other",
        tenantId: "t",
        occurredAt: "2026-02-01T12:30:00.250+02:00",
        subject: "account:1",
        revision: 0,
        actor: { type: "api_key", id: "k", secret: "no" } as never,
        audience: ["b", "a", "b"],
      },
    );
    const [event] = await stored(hooks);
    expect(event).toMatchObject({
      id: "mine:1",
      projectId: "other",
      tenantId: "t",
      occurredAt: new Date("2026-02-01T10:30:00.250Z"),
      subject: "account:1",
      revision: 0,
      audience: ["a", "b"],
    });
    expect(event?.actor).toEqual({ type: "api_key", id: "k" });
  });

  test("stores the schema's output, and fields that it does not know are not stored", async () => {
    const { hooks } = made();
    await hooks.emit("user.created", { id: "7", password_hash: "x" } as { id: string }, { tx: "own" });
    expect((await stored(hooks))[0]?.data).toBe('{"id":"7"}');
  });

  test("waits for a schema that validates asynchronously", async () => {
    const { hooks } = made();
    await hooks.emit("user.slow", { id: "7" }, { tx: "own" });
    await expect(hooks.emit("user.slow", { id: "bad" }, { tx: "own" })).rejects.toThrow(EventSchemaError);
    expect(await stored(hooks)).toHaveLength(1);
  });

  test("fan-out emit stores the finished body with capture", async () => {
    const { hooks } = made();
    const { id: subscription } = await hooks.subscriptions.create({ url: "https://a.example/" });
    const { id } = await hooks.emit("user.now", { id: "7" }, { tx: "own" });
    const { items } = await hooks.deliveries.list({ eventId: id });
    expect(items).toMatchObject([{ subscriptionId: subscription, status: "pending" }]);
    const { body } = await hooks.deliveries.get(items[0]!.id);
    expect(Buffer.from(body).toString()).toBe(`{"event":"${id}","data":{"id":"7"}}`);
  });

  test("an instance without events takes any well-formed type", async () => {
    const hooks = createHookwell({ store: new MemoryOutbox(), project: "live" });
    await hooks.emit("what.ever", [1, "two"], { tx: "own" });
    expect((await hooks.events.list()).items[0]).toMatchObject({ data: '[1,"two"]', route: "*" });
    await expect(hooks.emit("Not a type", {}, { tx: "own" })).rejects.toThrow(InvalidIdentifierError);
    await expect(hooks.emit("hookwell.event.parked", {}, { tx: "own" })).rejects.toThrow(/Hookwell's own/);
    await expect(hooks.emit("what.ever", undefined, { tx: "own" })).rejects.toThrow(ValidationError);
    expect((await hooks.events.list()).items).toHaveLength(1);
  });
});

describe("what emit refuses, with nothing written", () => {
  const control = "a\u0007b";
  test.each([
    ["an unknown type", ["user.gone", {}, { tx: "own" }], UnknownEventTypeError],
    ["an inherited name", ["constructor", {}, { tx: "own" }], UnknownEventTypeError],
    ["data that fails its schema", ["user.created", { id: 1 }, { tx: "own" }], EventSchemaError],
    ["NaN", ["user.created", { id: "1", n: Number.NaN }, { tx: "own" }], ValidationError],
    ["a circle", ["user.created", { id: "1", n: circle() }, { tx: "own" }], ValidationError],
    ["an empty id", ["user.created", { id: "1" }, { tx: "own", id: "" }], InvalidIdentifierError],
    ["an id with a dot", ["user.created", { id: "1" }, { tx: "own", id: "a.b" }], InvalidIdentifierError],
    ["a long id", ["user.created", { id: "1" }, { tx: "own", id: "a".repeat(129) }], InvalidIdentifierError],
    ["an empty tenant", ["user.created", { id: "1" }, { tx: "own", tenantId: "" }], InvalidIdentifierError],
    ["an empty project", ["user.created", { id: "1" }, { tx: "own", projectId: "" }], InvalidIdentifierError],
    [
      "a control character",
      ["user.created", { id: "1" }, { tx: "own", subject: control }],
      InvalidIdentifierError,
    ],
    [
      "a lone surrogate",
      ["user.created", { id: "1" }, { tx: "own", tenantId: "\ud800" }],
      InvalidIdentifierError,
    ],
    ["a bad revision", ["user.created", { id: "1" }, { tx: "own", revision: 1.5 }], InvalidIdentifierError],
    [
      "a negative revision",
      ["user.created", { id: "1" }, { tx: "own", revision: -1 }],
      InvalidIdentifierError,
    ],
    [
      "no actor id",
      ["user.created", { id: "1" }, { tx: "own", actor: { type: "x" } }],
      InvalidIdentifierError,
    ],
    [
      "a bad owner",
      ["user.created", { id: "1" }, { tx: "own", audience: ["ok", ""] }],
      InvalidIdentifierError,
    ],
    ["a day that is not", ["user.created", { id: "1" }, at("2026-02-30T10:00:00Z")], InvalidIdentifierError],
    [
      "a time without offset",
      ["user.created", { id: "1" }, at("2026-02-20T10:00:00")],
      InvalidIdentifierError,
    ],
    ["an invalid Date", ["user.created", { id: "1" }, at(new Date(Number.NaN))], InvalidIdentifierError],
    ["no options", ["user.created", { id: "1" }], NotInTransactionError],
    ["no transaction", ["user.created", { id: "1" }, {}], NotInTransactionError],
    [
      "the store as transaction",
      ["user.created", { id: "1" }, { tx: new MemoryOutbox() }],
      NotInTransactionError,
    ],
  ] as const)("%s", async (_what, args, error) => {
    const { hooks } = made();
    await expect(loosely(hooks)(...args)).rejects.toThrow(error);
    expect(await stored(hooks)).toEqual([]);
  });

  test("names the field that failed its schema by JSON pointer", async () => {
    const { hooks } = made();
    const error = await loosely(hooks)("user.created", { id: 1 }, { tx: "own" }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "event_schema_failed", problems: [{ pointer: "/id" }] });
  });

  test("a body over 256 KiB, counted in bytes with the envelope; one just below is taken", async () => {
    const { hooks } = made();
    const overhead = await bodyBytes(hooks, { id: "1", name: "" });
    const fits = "é".repeat(Math.floor((262_144 - overhead) / 2));
    await hooks.emit("user.created", { id: "1", name: fits }, { tx: "own", id: "fits" });
    const over = hooks.emit("user.created", { id: "1", name: `${fits}é` }, { tx: "own", id: "over" });
    await expect(over).rejects.toThrow(PayloadTooLargeError);
    await expect(over).rejects.toThrow(/over .* bytes and the limit is 262144/);
    expect((await stored(hooks)).map((event) => event.id)).not.toContain("over");
  });

  test("fan-out emit measures the body that its own envelope makes", async () => {
    const envelope = (_event: unknown, data: unknown) => ({ data, again: data });
    const large = defineEvents({ "a.b": { schema: z.object({ t: z.string() }), fanOut: "emit", envelope } });
    const hooks = createHookwell({ store: new MemoryOutbox(), project: "p", events: large });
    const emit = hooks.emit("a.b", { t: "x".repeat(150_000) }, { tx: "own" });
    await expect(emit).rejects.toThrow(PayloadTooLargeError);
  });

  test("a tenant missing where tenants are required, but for broadcast types", async () => {
    const hooks = createHookwell({ store: new MemoryOutbox(), project: "p", tenants: "required", events });
    const untyped = hooks.emit as (...args: unknown[]) => Promise<unknown>;
    await expect(untyped("user.created", { id: "1" }, { tx: "own" })).rejects.toThrow(
      /tenantId: is required/,
    );
    await hooks.emit("user.created", { id: "1" }, { tx: "own", tenantId: "t" });
    await hooks.emit("notice.sent", {}, { tx: "own" });
    expect((await hooks.events.list()).items).toHaveLength(2);
  });
});

describe("repeats", () => {
  test("the same id and content is a duplicate and no second event", async () => {
    const { hooks } = made();
    const first = await hooks.emit("user.created", { id: "1", name: "A" }, { tx: "own", id: "e" });
    const second = await hooks.emit("user.created", { name: "A", id: "1" }, { tx: "own", id: "e" });
    expect([first, second]).toEqual([
      { id: "e", duplicate: false },
      { id: "e", duplicate: true },
    ]);
    expect(await stored(hooks)).toHaveLength(1);
  });

  test("content is what the caller gave, before a schema stamps it", async () => {
    const { hooks } = made();
    await hooks.emit("user.seen", { id: "1" }, { tx: "own", id: "e" });
    const before = (await stored(hooks))[0]?.data;
    expect(await hooks.emit("user.seen", { id: "1" }, { tx: "own", id: "e" })).toMatchObject({
      duplicate: true,
    });
    expect((await stored(hooks))[0]?.data).toBe(before);
  });

  test.each([
    ["data", { id: "2" }, {}],
    ["tenant", { id: "1" }, { tenantId: "t" }],
    ["subject", { id: "1" }, { subject: "user:1" }],
    ["revision", { id: "1" }, { revision: 2 }],
    ["actor", { id: "1" }, { actor: { type: "u", id: "1" } }],
    ["audience", { id: "1" }, { audience: ["o"] }],
    ["time", { id: "1" }, { occurredAt: new Date(0) }],
  ])("the same id with other %s is a mismatch", async (_what, data, facts) => {
    const { hooks } = made();
    await hooks.emit("user.created", { id: "1" }, { tx: "own", id: "e" });
    const again = hooks.emit("user.created", data, { tx: "own", id: "e", ...facts });
    await expect(again).rejects.toThrow(EventMismatchError);
    expect(await stored(hooks)).toHaveLength(1);
  });

  test("ids are unique inside a project, not across", async () => {
    const { hooks } = made();
    await hooks.emit("user.created", { id: "1" }, { tx: "own", id: "e" });
    const other = await hooks.emit("user.created", { id: "2" }, { tx: "own", id: "e", projectId: "other" });
    expect(other.duplicate).toBe(false);
  });

  test("a revision that the subject has already is refused", async () => {
    const { hooks } = made();
    await hooks.emit("user.created", { id: "1" }, { tx: "own", revision: 4 });
    const again = hooks.emit("user.created", { id: "1", name: "B" }, { tx: "own", revision: 4 });
    await expect(again).rejects.toThrow(RevisionConflictError);
    await hooks.emit("user.created", { id: "2" }, { tx: "own", revision: 4 });
    expect(await stored(hooks)).toHaveLength(2);
  });

  test("with fan-out emit, a repeat adds the row of a new subscription with the first rows' bytes", async () => {
    let now = new Date("2026-03-01T10:00:00Z");
    const once = defineEvents({ "user.now": { schema: user, fanOut: "emit" } });
    const hooks = createHookwell({
      store: new MemoryOutbox({ now: () => now }),
      project: "p",
      events: once,
      clock: () => now,
    });
    await hooks.subscriptions.create({ url: "https://a.example/" });
    await hooks.emit("user.now", { id: "1" }, { tx: "own", id: "e" });
    await hooks.subscriptions.create({ url: "https://b.example/" });
    now = new Date("2026-03-01T11:00:00Z");
    expect(await hooks.emit("user.now", { id: "1" }, { tx: "own", id: "e" })).toEqual({
      id: "e",
      duplicate: true,
    });
    const { items } = await hooks.deliveries.list({ eventId: "e" });
    const bodies = await Promise.all(
      items.map(async ({ id }) => Buffer.from((await hooks.deliveries.get(id)).body).toString()),
    );
    expect(bodies).toHaveLength(2);
    expect(bodies[0]).toContain("2026-03-01T10:00:00.000Z");
    expect(bodies[1]).toBe(bodies[0]);
  });
});

describe("emitMany", () => {
  test("writes all of them, in order, and answers for each", async () => {
    const { hooks } = made();
    const results = await hooks.emitMany(
      [
        { type: "user.created", data: { id: "1" }, id: "a" },
        { type: "user.slow", data: { id: "2" }, id: "b" },
        { type: "user.created", data: { id: "1" }, id: "a" },
      ],
      { tx: "own" },
    );
    expect(results).toEqual([
      { id: "a", duplicate: false },
      { id: "b", duplicate: false },
      { id: "a", duplicate: true },
    ]);
    expect(await hooks.emitMany([], { tx: "own" })).toEqual([]);
  });

  test("writes none when one is refused, by its schema or by the store", async () => {
    const { hooks } = made();
    await hooks.emit("user.created", { id: "1" }, { tx: "own", id: "taken" });
    for (const bad of [
      { type: "user.created", data: { id: 5 as never } },
      { type: "user.created", data: { id: "other" }, id: "taken" },
    ] as const)
      await expect(
        hooks.emitMany([{ type: "user.created", data: { id: "2" } }, bad], { tx: "own" }),
      ).rejects.toThrow();
    expect(await stored(hooks)).toHaveLength(1);
  });
});

describe("who is told", () => {
  test("captured is observed, the store is told to wake others, and a throwing observer stops nothing", async () => {
    const store = new MemoryOutbox();
    const notify = vi.spyOn(store, "notify");
    const seen: unknown[] = [];
    const error = vi.fn<(message: string) => void>();
    const hooks = createHookwell({
      store,
      project: "p",
      logger: { info: () => {}, warn: () => {}, error },
      observe: (name, event) => {
        seen.push([name, event]);
        throw new Error("observer broke");
      },
    });
    await hooks.emit("a.b", {}, { tx: "own", id: "e" });
    expect(seen).toEqual([["captured", { eventId: "e", type: "a.b", duplicate: false }]]);
    expect(notify).toHaveBeenCalledOnce();
    expect(error).toHaveBeenCalledWith(expect.stringContaining("observer broke"));
  });

  test("emitSync without a synchronous client, and an asynchronous schema in it, are refused", () => {
    const { hooks } = made();
    const sync = hooks as unknown as {
      emitSync: (...args: unknown[]) => unknown;
      transaction: (...args: unknown[]) => unknown;
    };
    expect(() => sync.emitSync("user.created", { id: "1" }, { tx: "own" })).toThrow(/transaction/);
    expect(() => sync.transaction({}, () => 1)).toThrow(/nodeSqlite/);
    expect(new AsyncSchemaError("a.b").message).toContain("a.b");
  });
});

function circle(): unknown {
  const value: Record<string, unknown> = {};
  value.self = value;
  return value;
}
function at(occurredAt: unknown) {
  return { tx: "own", occurredAt };
}
async function bodyBytes(hooks: Hooks, data: { id: string; name: string }): Promise<number> {
  await hooks.subscriptions.create({ url: "https://a.example/" });
  await hooks.emit("user.created", data, { tx: "own", id: "size" });
  let bytes = 0;
  await hooks.drain({ deadlineMs: 1_000, max: 0 });
  const { items } = await hooks.deliveries.list({ eventId: "size" });
  for (const { id } of items) bytes = (await hooks.deliveries.get(id)).body.length;
  return bytes;
}
