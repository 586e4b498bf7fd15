import {
  BlockedAddressError,
  createHookwell,
  defineEvents,
  InvalidStateError,
  MemoryOutbox,
  memoryTx,
  NotFoundError,
  type SubscriptionInput,
  ValidationError,
  VersionConflictError,
} from "hookwell";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const events = defineEvents({
  "user.created": { schema: z.object({ id: z.string() }) },
  "notice.sent": { schema: z.object({}), broadcast: true },
});

function made(tenants: "required" | "optional" = "optional") {
  const store = new MemoryOutbox();
  const hooks = createHookwell({ store, tx: memoryTx(), project: "live", tenants, events });
  return { store, hooks };
}

const url = "https://hooks.example/in";

describe("subscriptions.create", () => {
  test("shows the secret once and nowhere else", async () => {
    const { hooks } = made();
    const { secret, ...record } = await hooks.subscriptions.create({
      url,
      headers: { authorization: "Bearer x" },
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(record).toMatchObject({ projectId: "live", status: "active", headerNames: ["authorization"] });
    const shown = JSON.stringify([
      await hooks.subscriptions.get(record.id),
      await hooks.subscriptions.list(),
      await hooks.subscriptions.update(record.id, { description: "d" }),
      await hooks.subscriptions.pause(record.id),
    ]);
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain("Bearer x");
  });

  test("takes a secret that somebody chose, and stores an international url in ASCII", async () => {
    const { hooks } = made();
    const made1 = await hooks.subscriptions.create({
      url: "https://bücher.example/ä",
      secret: "legacy-secret",
    });
    expect(made1).toMatchObject({ url: "https://xn--bcher-kva.example/%C3%A4", secret: "legacy-secret" });
  });

  test.each<[string, unknown, string]>([
    ["no url", {}, "/url"],
    ["a url that is none", { url: "not a url" }, "/url"],
    ["credentials in the url", { url: "https://u:p@a.example/" }, "/url"],
    ["white space around the secret", { url, secret: " s3cret" }, "/secret"],
    ["a header with a line break", { url, headers: { "x-a": "1\r\nx-b: 2" } }, "/headers/x-a"],
    ["a header of ours", { url, headers: { "Webhook-Id": "1" } }, "/headers/Webhook-Id"],
    ["a bare star", { url, eventTypes: ["*"] }, "/eventTypes/0"],
    ["no list of types", { url, eventTypes: "user.created" }, "/eventTypes"],
    ["101 types", { url, eventTypes: Array.from({ length: 101 }, (_, i) => `a.t${i}`) }, "/eventTypes"],
    ["an empty field name", { url, fields: ["id", ""] }, "/fields/1"],
    ["an empty owner", { url, ownerId: "" }, "/ownerId"],
    ["a project with a control character", { url, projectId: "a\nb" }, "/projectId"],
    ["NUL in the description", { url, description: "a\0b" }, "/description"],
    ["a long description", { url, description: "x".repeat(1_001) }, "/description"],
    ["metadata that is no text", { url, metadata: { "a/b": 1 } }, "/metadata/a~1b"],
    ["metadata that is a list", { url, metadata: ["a"] }, "/metadata"],
    ["a rate of 0", { url, rateLimit: { limit: 0, perSeconds: 1 } }, "/rateLimit/limit"],
    ["a fraction in flight", { url, maxInFlight: 1.5 }, "/maxInFlight"],
    ["an unknown ordering", { url, ordering: "global" }, "/ordering"],
  ])("refuses %s, naming the field", async (_what, input, pointer) => {
    const { hooks } = made();
    const error = await hooks.subscriptions.create(input as SubscriptionInput).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ValidationError);
    expect((error as ValidationError).problems.map((problem) => problem.pointer)).toEqual([pointer]);
    expect((await hooks.subscriptions.list()).items).toEqual([]);
  });

  test("names every problem at once, and a blocked address by its own error", async () => {
    const { hooks } = made();
    const many = { url: "ftp://a.example/", secret: "a b", maxInFlight: 0 };
    const error = await hooks.subscriptions.create(many).catch((e: unknown) => e);
    expect((error as ValidationError).problems.map(({ pointer }) => pointer).sort()).toEqual([
      "/maxInFlight",
      "/secret",
      "/url",
    ]);
    await expect(hooks.subscriptions.create({ url: "https://10.1.2.3/" })).rejects.toThrow(
      BlockedAddressError,
    );
  });

  test("where tenants are required it needs one, unless it takes only what is about no tenant", async () => {
    const { hooks } = made("required");
    const create = (input: Partial<SubscriptionInput>) => hooks.subscriptions.create({ url, ...input });
    for (const eventTypes of [[], ["user.created"], ["notice.sent", "user.*"], ["other.*"]])
      await expect(create({ eventTypes })).rejects.toThrow(/tenantId: is required/);
    for (const eventTypes of [["notice.sent"], ["notice.*"], ["hookwell.*"]]) await create({ eventTypes });
    await create({ tenantId: "t" });
  });

  test("joins the caller's transaction", async () => {
    const { store, hooks } = made();
    const failing = store.transaction(async (tx) => {
      await hooks.subscriptions.create({ url }, { tx });
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect((await hooks.subscriptions.list()).items).toEqual([]);
    await store.transaction(async (tx) => hooks.subscriptions.create({ url }, { tx }));
    expect((await hooks.subscriptions.list()).items).toHaveLength(1);
  });
});

describe("subscriptions later", () => {
  test("update changes what is given, removes what is null and leaves the rest", async () => {
    const { hooks } = made();
    const { id } = await hooks.subscriptions.create({
      url,
      description: "d",
      externalId: "x",
      fields: ["id"],
      metadata: { a: "1" },
    });
    const changed = await hooks.subscriptions.update(id, {
      url: "https://new.example/",
      description: null,
      fields: null,
      eventTypes: ["user.*", "user.*"],
    });
    expect(changed).toMatchObject({
      url: "https://new.example/",
      eventTypes: ["user.*"],
      externalId: "x",
      metadata: { a: "1" },
    });
    expect(changed.description).toBeUndefined();
    expect(changed.fields).toBeUndefined();
    await expect(hooks.subscriptions.update(id, { url: "http://[::1]/" })).rejects.toThrow(
      BlockedAddressError,
    );
    await expect(hooks.subscriptions.update(id, { eventTypes: null as never })).rejects.toThrow(
      ValidationError,
    );
    expect(await hooks.subscriptions.get(id)).toEqual(changed);
  });

  test("merge changes inside a field, and ifVersion refuses what is based on an older record", async () => {
    const { hooks } = made();
    const first = await hooks.subscriptions.create({
      url,
      metadata: { a: "1", b: "2" },
      headers: { "X-A": "1" },
    });
    const second = await hooks.subscriptions.update(
      first.id,
      { merge: { metadata: { a: null, c: "3" }, headers: { "x-b": "2" } } },
      { ifVersion: first.version },
    );
    expect(second).toMatchObject({ metadata: { b: "2", c: "3" }, headerNames: ["X-A", "x-b"] });
    const stale = { ifVersion: first.version };
    for (const write of [
      hooks.subscriptions.update(first.id, { description: "d" }, stale),
      hooks.subscriptions.pause(first.id, stale),
      hooks.subscriptions.delete(first.id, stale),
    ])
      await expect(write).rejects.toThrow(VersionConflictError);
    for (const merge of [{ metadata: { a: 1 } }, { headers: { "x a": "1" } }, { rateLimit: { limit: 0 } }])
      await expect(hooks.subscriptions.update(first.id, { merge: merge as never })).rejects.toThrow(
        ValidationError,
      );
    await hooks.subscriptions.delete(first.id, { ifVersion: ["other", second.version] });
  });

  test("pause, resume, disable, enable, delete move it, and a deleted one stays deleted", async () => {
    const { hooks } = made();
    const { id } = await hooks.subscriptions.create({ url });
    expect((await hooks.subscriptions.pause(id)).status).toBe("paused");
    expect((await hooks.subscriptions.resume(id)).status).toBe("active");
    expect(await hooks.subscriptions.disable(id)).toMatchObject({
      status: "disabled",
      statusReason: "by_hand",
    });
    await expect(hooks.subscriptions.pause(id)).rejects.toThrow(InvalidStateError);
    await expect(hooks.subscriptions.resume(id)).rejects.toThrow(/it is disabled; enable it instead/);
    expect((await hooks.subscriptions.enable(id)).status).toBe("active");
    await hooks.subscriptions.delete(id);
    await expect(hooks.subscriptions.enable(id)).rejects.toThrow(InvalidStateError);
    await expect(hooks.subscriptions.update(id, { url })).rejects.toThrow(InvalidStateError);
    expect((await hooks.subscriptions.list()).items).toEqual([]);
  });

  test("lists are pages of 50 unless said, newest first, and go on from their position", async () => {
    const { hooks } = made();
    const ids: string[] = [];
    for (let i = 0; i < 53; i++) ids.unshift((await hooks.subscriptions.create({ url })).id);
    const first = await hooks.subscriptions.list();
    expect(first.items).toHaveLength(50);
    const rest = await hooks.subscriptions.list({}, { after: first.next! });
    expect(rest.next).toBeUndefined();
    expect([...first.items, ...rest.items].map(({ id }) => id)).toEqual(ids);
    for (const limit of [0, 101, 1.5])
      await expect(hooks.subscriptions.list({}, { limit })).rejects.toThrow(/limit/);
  });
});

describe("keys", () => {
  test("a key is shown once, found by its hash, and gone after its expiry or deletion", async () => {
    let now = new Date("2026-03-01T10:00:00Z");
    const hooks = createHookwell({ store: new MemoryOutbox(), clock: () => now });
    const { key, ...record } = await hooks.keys.create({
      name: "ci",
      scopes: ["emit", "read", "emit"],
      projectId: "p",
      expiresAt: new Date("2026-03-02T10:00:00Z"),
    });
    expect(key).toMatch(/^hwk_[A-Za-z0-9_-]{43}$/);
    expect(record).toMatchObject({ name: "ci", scopes: ["emit", "read"], projectId: "p", createdAt: now });
    expect(await hooks.keys.authenticate(key)).toMatchObject({ id: record.id });
    expect(await hooks.keys.authenticate(`${key}x`)).toBeUndefined();
    expect((await hooks.keys.list()).items).toMatchObject([{ id: record.id, lastUsedAt: now }]);
    now = new Date("2026-03-02T10:00:00Z");
    expect(await hooks.keys.authenticate(key)).toBeUndefined();
    await hooks.keys.delete(record.id);
    await expect(hooks.keys.delete(record.id)).rejects.toThrow(NotFoundError);
  });

  test("takes a key of the operator, and a store that cannot note its use does not lock it out", async () => {
    const store = new MemoryOutbox();
    const warnings: string[] = [];
    const logger = {
      info: () => {},
      error: () => {},
      warn: (message: string) => void warnings.push(message),
    };
    const hooks = createHookwell({ store, logger });
    await hooks.keys.create({ name: "root", scopes: ["admin"], key: "operator-chosen-key-0001" });
    store.touchApiKey = () => Promise.reject(new Error("disk full"));
    expect(await hooks.keys.authenticate("operator-chosen-key-0001")).toMatchObject({ name: "root" });
    expect(warnings).toEqual([expect.stringContaining("disk full")]);
  });

  test.each([
    ["no scope", { name: "a", scopes: [] }, "/scopes"],
    ["an unknown scope", { name: "a", scopes: ["root"] }, "/scopes"],
    ["an empty name", { name: "", scopes: ["read"] }, "/name"],
    ["a short key", { name: "a", scopes: ["read"], key: "short" }, "/key"],
    ["an invalid expiry", { name: "a", scopes: ["read"], expiresAt: new Date(Number.NaN) }, "/expiresAt"],
  ])("refuses %s", async (_what, input, pointer) => {
    const hooks = createHookwell({ store: new MemoryOutbox() });
    await expect(hooks.keys.create(input)).rejects.toMatchObject({ problems: [{ pointer }] });
  });
});

describe("events and deliveries", () => {
  test("unknown ids are not found; a delivery can be cancelled and retried", async () => {
    const { hooks } = made();
    await expect(hooks.events.get("nope")).rejects.toThrow(NotFoundError);
    await expect(hooks.events.release("nope")).rejects.toThrow(NotFoundError);
    await expect(hooks.deliveries.get("nope")).rejects.toThrow(NotFoundError);
    await expect(hooks.deliveries.retry("nope")).rejects.toThrow(NotFoundError);
    await hooks.subscriptions.create({ url });
    const { id } = await hooks.emit("user.created", { id: "1" }, { tx: "own" });
    await hooks.drain({ deadlineMs: 1_000, max: 0 });
    const [delivery] = (await hooks.deliveries.list({ eventId: id })).items;
    expect((await hooks.deliveries.cancel(delivery!.id)).status).toBe("cancelled");
    await expect(hooks.deliveries.cancel(delivery!.id)).rejects.toThrow(InvalidStateError);
    expect((await hooks.events.get(id)).outcome).toBe("cancelled");
    expect(await hooks.deliveries.retry(delivery!.id)).toMatchObject({
      status: "pending",
      round: 2,
      attempts: 0,
    });
  });

  test("explain knows a parked event, one that was pruned, an operational one and an audience", async () => {
    let now = Date.parse("2026-03-01T10:00:00Z");
    const clock = () => new Date(now);
    const envelope = (event: { id: string }, data: unknown) => {
      if (event.id === "broken") throw new Error("cannot render");
      return data;
    };
    const hooks = createHookwell({
      store: new MemoryOutbox({ now: clock }),
      project: "p",
      clock,
      logger: { info: () => {}, warn: () => {}, error: () => {} },
      events: defineEvents({ "a.b": { schema: z.object({}), envelope } }),
    });
    const every = await hooks.subscriptions.create({ url });
    const ops = await hooks.subscriptions.create({ url, eventTypes: ["hookwell.*"], tenantId: "t" });
    const owned = await hooks.subscriptions.create({ url, ownerId: "o1" });
    const ask = async (id: string, subscriptionId: string) =>
      (await hooks.events.explain(id, { subscriptionId })).items[0];
    await hooks.emit("a.b", {}, { tx: "own", id: "broken" });
    await hooks.drain({ deadlineMs: 1_000, max: 0 });
    expect(await ask("broken", every.id)).toMatchObject({
      matched: true,
      detail: expect.stringMatching(/another try.*cannot render/),
    });
    for (let i = 0; i < 6; i++, now += 60_000) await hooks.drain({ deadlineMs: 1_000, max: 0 });
    expect(await ask("broken", every.id)).toMatchObject({
      matched: true,
      detail: expect.stringMatching(/parked/),
    });
    const { items } = await hooks.events.list({ type: "hookwell.event.parked" });
    expect(await ask(items[0]!.id, every.id)).toMatchObject({
      rule: "type",
      detail: expect.stringMatching(/begins with hookwell/),
    });
    expect(await ask(items[0]!.id, ops.id)).toMatchObject({ rule: "operational" });
    await hooks.emit("a.b", {}, { tx: "own", id: "seen", audience: ["o2"] });
    expect(await ask("seen", every.id)).toMatchObject({
      rule: "owner",
      detail: expect.stringMatching(/has no owner/),
    });
    expect(await ask("seen", owned.id)).toMatchObject({
      rule: "owner",
      detail: expect.stringMatching(/o1 is not in the audience/),
    });
    await expect(hooks.events.explain("seen", { visibility: { ownerId: "o1" } })).rejects.toThrow(
      NotFoundError,
    );
    await expect(hooks.events.explain("seen", { limit: 101 })).rejects.toThrow(ValidationError);
  });

  test("explain says so when the delivery to one of several is no longer kept", async () => {
    let now = Date.parse("2026-03-01T10:00:00Z");
    const clock = () => new Date(now);
    const store = new MemoryOutbox({ now: clock });
    const retention = { deliveredMs: 1_000, failedMs: 86_400_000, eventsMs: 1_000, heldMs: 86_400_000 };
    const hooks = createHookwell({ store, project: "p", clock });
    const short = await hooks.subscriptions.create({ url });
    await hooks.subscriptions.create({ url });
    const { id } = await hooks.emitUnknown("a.b", {}, { tx: "own" });
    await hooks.drain({ deadlineMs: 1_000, max: 0 });
    const [delivery] = (await hooks.deliveries.list({ subscriptionId: short.id })).items;
    await hooks.deliveries.cancel(delivery!.id);
    now += 2_000;
    await store.maintain(retention, 10, null);
    const { items } = await hooks.events.explain(id);
    expect(items).toMatchObject([
      { matched: true, delivery: { status: "pending" } },
      { subscriptionId: short.id, matched: false, rule: "pruned" },
    ]);
  });

  test("a parked event is released by its own project only", async () => {
    let broken = true;
    const envelope = (_event: unknown, data: unknown) => {
      if (broken) throw new Error("cannot render");
      return data;
    };
    let now = Date.parse("2026-03-01T10:00:00Z");
    const clock = () => new Date(now);
    const hooks = createHookwell({
      store: new MemoryOutbox({ now: clock }),
      project: "p",
      clock,
      logger: { info: () => {}, warn: () => {}, error: () => {} },
      events: defineEvents({ "a.b": { schema: z.object({}), envelope } }),
    });
    await hooks.subscriptions.create({ url });
    const { id } = await hooks.emit("a.b", {}, { tx: "own" });
    for (let i = 0; i < 6; i++, now += 60_000) await hooks.drain({ deadlineMs: 1_000, max: 0 });
    expect(await hooks.events.get(id)).toMatchObject({ state: "parked", error: "cannot render" });
    await expect(hooks.events.release(id, { visibility: { projectId: "q" } })).rejects.toThrow(NotFoundError);
    broken = false;
    await hooks.events.release(id);
    await hooks.drain({ deadlineMs: 1_000, max: 0 });
    expect((await hooks.events.get(id)).state).toBe("dispatched");
    await expect(hooks.events.release(id)).rejects.toThrow(InvalidStateError);
  });
});
