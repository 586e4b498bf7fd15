import { setTimeout } from "node:timers/promises";
import { type Receiver, startReceiver } from "hookwell/testing";
import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { dialects, openWorld, type TestDialect, type World, type WorldOptions } from "./support/world.ts";

let world: World;
const receivers: Receiver[] = [];
afterEach(async () => {
  // Receivers first: a send to one that hangs would be waited for.
  for (const receiver of receivers.splice(0)) await receiver.close();
  await world[Symbol.asyncDispose]();
});

async function open(dialect: TestDialect, options: WorldOptions = {}): Promise<World> {
  world = await openWorld(dialect, { worker: true, ...options });
  return world;
}

async function receive(options: Parameters<typeof startReceiver>[0] = {}): Promise<Receiver> {
  const receiver = await startReceiver(options);
  receivers.push(receiver);
  return receiver;
}

async function subscribe(url: string, fields: Record<string, unknown> = {}) {
  const { status, body } = await world.operator.post("/v1/subscriptions", {
    project_id: "live",
    url,
    event_types: ["user.*"],
    ...fields,
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

const parsed = (receiver: Receiver) =>
  receiver.requests.map((request) => JSON.parse(request.body.toString("utf8")));

describe.each(dialects)("on %s", (dialect) => {
  test("field-faults B9: every body has the reference envelope, and a user that satisfies the published schema", async () => {
    await open(dialect);
    const receiver = await receive();
    const { secret } = await subscribe(receiver.url);
    const user = await world.user({ tenant_id: "acme" });
    await user.patch("/v1/users/me", { name: "Zoë 🚀 汉字" });
    await world.admin.post(`/v1/users/${user.id}/verify-email`);
    await world.admin.post(`/v1/users/${user.id}/suspend`);
    await world.admin.post(`/v1/users/${user.id}/reactivate`);
    await world.admin.delete(`/v1/users/${user.id}`);
    await receiver.waitForRequests(6);

    const catalogue = (await world.operator.get("/v1/catalogue")).body.items;
    for (const request of receiver.requests) {
      const body = JSON.parse(request.body.toString("utf8"));
      const headers = request.headers as Record<string, string>;
      new Webhook(secret.slice("whsec_".length)).verify(request.body.toString("utf8"), headers);
      expect(Object.keys(body)).toEqual([
        "id",
        "type",
        "project_id",
        "tenant_id",
        "occurred_at",
        "user",
        "revision",
        "actor",
      ]);
      expect(body).toMatchObject({ project_id: "live", tenant_id: "acme", id: headers["webhook-id"] });
      expect(headers["x-hookwell-event"]).toBe(body.type);
      expect(new Date(body.occurred_at).toISOString()).toBe(body.occurred_at);
      const entry = catalogue.find(({ type }) => type === body.type)!;
      z.fromJSONSchema(entry.json_schema as Parameters<typeof z.fromJSONSchema>[0]).parse(body.user);
    }
    const inOrder = parsed(receiver).sort((a, b) => a.revision - b.revision);
    expect(
      inOrder.map(({ type, revision, user: { status, name, email_verified } }) => [
        revision,
        type,
        status,
        name,
        email_verified,
      ]),
    ).toEqual([
      [1, "user.created", "active", "User 1", false],
      [2, "user.updated", "active", "Zoë 🚀 汉字", false],
      [3, "user.updated", "active", "Zoë 🚀 汉字", true],
      [4, "user.deactivated", "suspended", "Zoë 🚀 汉字", true],
      [5, "user.updated", "active", "Zoë 🚀 汉字", true],
      [6, "user.deactivated", "deleted", "Zoë 🚀 汉字", true],
    ]);
  });

  test("field-faults B7: a body is frozen at commit, whatever the user becomes before the second attempt", async () => {
    // The first attempt waits for its answer until the user has changed.
    let changed = (): void => {};
    const afterChange = new Promise<void>((resolve) => {
      changed = resolve;
    });
    await open(dialect, { retry: [10] });
    const receiver = await receive({
      respond: async (_, index) => {
        if (index > 0) return 204;
        await afterChange;
        return 503;
      },
    });
    await subscribe(receiver.url, { event_types: ["user.created"] });
    const user = await world.user({ name: "Before" });
    await receiver.waitForRequests(1);
    await user.patch("/v1/users/me", { name: "After", email: "after@example.com" });
    await world.admin.post(`/v1/users/${user.id}/archive`);
    changed();
    await receiver.waitForRequests(2);
    const [first, second] = receiver.requests;
    expect(second!.body.equals(first!.body)).toBe(true);
    expect(second!.headers["webhook-id"]).toBe(first!.headers["webhook-id"]);
    expect(JSON.parse(second!.body.toString()).user).toMatchObject({ name: "Before", status: "active" });
  });

  test("field-faults B10: the body names the key that made the change", async () => {
    await open(dialect);
    const receiver = await receive();
    await subscribe(receiver.url, { event_types: ["user.updated"] });
    const user = await world.user();
    await user.patch("/v1/users/me", { name: "By itself" });
    await world.admin.patch(`/v1/users/${user.id}`, { name: "By an admin" });
    await receiver.waitForRequests(2);
    const bodies = parsed(receiver).sort((a, b) => a.revision - b.revision);
    expect(bodies.map(({ actor }) => actor.type)).toEqual(["api_key", "api_key"]);
    expect(bodies[0].actor.id).not.toBe(bodies[1].actor.id);
    for (const { actor } of bodies) expect(actor.id).toMatch(/^key_/);
  });

  test("field-faults G7: a column that the users table gains reaches no body", async () => {
    await open(dialect);
    const receiver = await receive();
    await subscribe(receiver.url);
    await world.sql("ALTER TABLE users ADD COLUMN password_hash text DEFAULT 'argon2-of-hunter2'");
    await world.sql("ALTER TABLE users ADD COLUMN salary integer DEFAULT 90210");
    const user = await world.user();
    await user.patch("/v1/users/me", { name: "Raise" });
    await world.admin.post(`/v1/users/${user.id}/archive`);
    await receiver.waitForRequests(3);
    const rows = await world.db.selectFrom("users").selectAll().where("id", "=", user.id).execute();
    expect(JSON.stringify(rows)).toContain("argon2-of-hunter2");
    for (const { body } of receiver.requests) {
      const text = body.toString("utf8");
      for (const word of ["password", "argon2", "salary", "90210", "is_admin", "timezone", "email_key"])
        expect(text).not.toContain(word);
      expect(Object.keys(JSON.parse(text).user).sort()).toEqual([
        "email",
        "email_verified",
        "id",
        "name",
        "status",
      ]);
    }
    expect(JSON.stringify(await world.events())).not.toContain("argon2");
  });

  test("field-faults G8: a tenant's subscription gets that tenant's users only, and project and tenant come from the record", async () => {
    await open(dialect);
    const [north, south, all] = [await receive(), await receive(), await receive()];
    await subscribe(north.url, { tenant_id: "north" });
    await subscribe(south.url, { tenant_id: "south" });
    await subscribe(all.url);
    const inNorth = await world.user({ tenant_id: "north" });
    const inSouth = await world.user({ tenant_id: "south" });
    // Nothing in a body moves an event to another tenant.
    expect((await inSouth.patch("/v1/users/me", { tenant_id: "north" })).status).toBe(400);
    expect((await inSouth.patch("/v1/users/me", { project_id: "other" })).status).toBe(400);
    await inSouth.patch("/v1/users/me", { name: "South only" });
    await inNorth.patch("/v1/users/me", { name: "North only" });
    await all.waitForRequests(4);
    await Promise.all([north.waitForRequests(2), south.waitForRequests(2)]);
    await settled();
    expect(parsed(north).map(({ tenant_id }) => tenant_id)).toEqual(["north", "north"]);
    expect(parsed(south).map(({ tenant_id }) => tenant_id)).toEqual(["south", "south"]);
  });

  test("field-faults A4: dead, hanging and unresolvable subscribers change no answer", async () => {
    await open(dialect);
    const hanging = await receive({ respond: () => "hang" });
    const resetting = await receive({ respond: () => "reset" });
    const healthy = await receive();
    await subscribe(hanging.url);
    await subscribe(resetting.url);
    await subscribe("http://127.0.0.1:9/nobody-listens");
    await subscribe(healthy.url);
    const user = await world.user();
    // The hanging subscriber holds a request open from here to the end.
    await hanging.waitForRequests(1);
    const edits = Array.from({ length: 20 }, (_, i) => ({ name: `Edit ${i}` }));
    for (const edit of edits) expect((await user.patch("/v1/users/me", edit)).status).toBe(200);
    expect((await world.admin.post(`/v1/users/${user.id}/suspend`)).status).toBe(200);
    expect((await world.admin.post(`/v1/users/${user.id}/reactivate`)).status).toBe(200);
    expect((await world.admin.delete(`/v1/users/${user.id}`)).status).toBe(204);
    for (const path of ["/v1/subscriptions", "/v1/events", "/v1/deliveries"])
      expect((await world.operator.get(path)).status).toBe(200);
    await healthy.waitForRequests(24);
    expect(new Set(healthy.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(24);
  });

  test("field-faults I1: a receiver's answer with NUL and broken Unicode harms nothing", async () => {
    await open(dialect, { retry: [10] });
    const receiver = await receive({
      respond: (_, index) =>
        index === 0 ? { status: 500, body: Buffer.from([0x61, 0x00, 0xff, 0xed, 0xa0, 0x80]) } : 200,
    });
    await subscribe(receiver.url);
    await world.user();
    await receiver.waitForRequests(2);
    await settled();
    const [delivery] = (await world.operator.get("/v1/deliveries")).body.items;
    expect(delivery, JSON.stringify(delivery)).toMatchObject({ status: "delivered", attempts: 2 });
  });
});

/** Resolves when nothing is waiting to be dispatched, sent or recorded. */
async function settled(): Promise<void> {
  for (;;) {
    const { pending, newEvents } = await world.hooks.store.countRemaining(10_000);
    const waiting = (await world.hooks.deliveries.list({ projectId: "live", status: "pending" })).items
      .length;
    if (pending + newEvents + waiting === 0) return;
    await setTimeout(5);
  }
}
