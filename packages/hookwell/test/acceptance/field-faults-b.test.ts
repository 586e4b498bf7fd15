import { Ajv2020 } from "ajv/dist/2020.js";
import {
  createHookwell,
  type Delivery,
  DeliveryError,
  defineEvents,
  type HookwellCore,
  NotFoundError,
  type OutboxStore,
  type Sender,
  userEnvelope,
  type Visibility,
} from "hookwell";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { kinds, type OpenStore } from "../deliver/stores.ts";

const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const invoice = z.object({
  id: z.string(),
  total: z.number(),
  state: z.enum(["open", "paid"]),
  lines: z.array(z.object({ text: z.string() })),
});
const draft: z.infer<typeof invoice> = {
  id: "i1",
  total: 12.5,
  state: "open",
  lines: [{ text: "one" }, { text: "two" }],
};

/** Keeps what is sent and fails as often as it is told. */
class Outlet implements Sender {
  readonly sent: Delivery[] = [];
  failures = 0;
  async deliver(delivery: Delivery): Promise<void> {
    this.sent.push(delivery);
    if (this.failures-- > 0)
      throw new DeliveryError("http_500", "answered with status 500", {
        startedAt: new Date(0),
        durationMs: 1,
      });
  }
  get bodies(): string[] {
    return this.sent.map(({ payload }) => Buffer.from(payload).toString("utf8"));
  }
}

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let opened: OpenStore;
  let store: OutboxStore;
  let now: Date;
  let outlet: Outlet;
  beforeEach(async () => {
    now = new Date("2026-03-01T09:00:00Z");
    outlet = new Outlet();
    opened = await kind.open(() => now);
    store = opened.store;
  });
  afterEach(() => opened.close());

  const common = () => ({ store, project: "live", clock: () => now, sender: outlet, logger: quiet });
  const later = (ms: number): void => {
    now = new Date(now.getTime() + ms);
  };
  const url = "https://receiver.example/in";

  test("field-faults B4: a transition that is told twice is one event and one delivery", async () => {
    const hooks = createHookwell(common());
    await hooks.subscriptions.create({ url });
    const paid = (note: string) =>
      hooks.emit(
        "invoice.paid",
        { id: "i1", note },
        { tx: "own", id: "invoice-i1-paid", subject: "invoice:i1", revision: 2 },
      );
    const results = await Promise.all([paid("same"), paid("same"), paid("same"), paid("same")]);
    expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    // Another path tells the same revision as a fact of its own.
    const byHand = hooks.emit("invoice.paid", {}, { tx: "own", subject: "invoice:i1", revision: 2 });
    await expect(byHand).rejects.toMatchObject({ code: "revision_conflict" });
    await hooks.drain({ deadlineMs: 5_000 });
    await paid("same");
    await hooks.drain({ deadlineMs: 5_000 });
    expect(outlet.sent).toHaveLength(1);
    expect((await hooks.events.list()).items).toHaveLength(1);
  });

  test("field-faults B5: however many reasons a subscription has to get an event, it gets it once", async () => {
    const hooks = createHookwell(common());
    const eventTypes = ["invoice.paid", "invoice.*", "invoice.paid"];
    await hooks.subscriptions.create({ url, eventTypes, ownerId: "owner-1" });
    await hooks.subscriptions.create({ url, ownerId: "owner-2" });
    await hooks.subscriptions.create({ url, ownerId: "owner-3" });
    const audience = ["owner-2", "owner-1", "owner-2", "owner-1"];
    const { id } = await hooks.emit("invoice.paid", draft, { tx: "own", audience });
    await hooks.drain({ deadlineMs: 5_000 });
    await hooks.drain({ deadlineMs: 5_000 });
    expect((await hooks.events.list()).items.map((event) => event.id)).toEqual([id]);
    expect(outlet.sent).toHaveLength(2);
    expect(new Set(outlet.sent.map(({ subscriptionId }) => subscriptionId)).size).toBe(2);
  });

  test("field-faults B7: later attempts, and a retry by hand, send the first attempt's bytes", async () => {
    const record = { ...draft, lines: [...draft.lines] };
    let room = "https://meet.example/first";
    const events = defineEvents({
      "invoice.changed": {
        schema: invoice.extend({ room: z.string().optional() }),
        envelope: (event, data) => ({ event: event.id, at: event.occurredAt, data }),
        enrich: async (batch) => new Map(batch.map(({ id }) => [id, { room }])),
        retry: [60_000],
      },
    });
    const hooks = createHookwell({ ...common(), events });
    await hooks.subscriptions.create({ url });
    outlet.failures = 1;
    const first = await hooks.emit("invoice.changed", record, { tx: "own" });
    record.state = "paid";
    record.lines.push({ text: "added after the emit" });
    await hooks.drain({ deadlineMs: 5_000 });
    room = "https://meet.example/second";
    later(3_600_000);
    await hooks.drain({ deadlineMs: 5_000 });
    const second = await hooks.emit("invoice.changed", record, { tx: "own" });
    await hooks.drain({ deadlineMs: 5_000 });
    const [{ id } = { id: "" }] = (await hooks.deliveries.list({ eventId: first.id })).items;
    await hooks.deliveries.retry(id);
    await hooks.drain({ deadlineMs: 5_000 });
    const of = (eventId: string): string[] =>
      outlet.bodies.filter((_, index) => outlet.sent[index]!.eventId === eventId);
    expect(of(first.id)).toHaveLength(3);
    expect(new Set(of(first.id)).size).toBe(1);
    expect(JSON.parse(of(first.id)[0]!)).toEqual({
      event: first.id,
      at: "2026-03-01T09:00:00.000Z",
      data: { ...draft, room: "https://meet.example/first" },
    });
    expect(JSON.parse(of(second.id)[0]!).data).toEqual({ ...record, room: "https://meet.example/second" });
  });

  test("field-faults B9: every way in gives the same body, and each body satisfies the published schema", async () => {
    const events = defineEvents({
      "invoice.opened": {
        schema: invoice,
        fields: { always: ["id"], default: ["state", "total"], optional: { lines: {} } },
      },
      "invoice.direct": { schema: invoice, fanOut: "emit" },
    });
    const hooks = createHookwell({ ...common(), events });
    await hooks.subscriptions.create({ url });
    await hooks.subscriptions.create({ url, fields: ["lines"] });
    for (const type of ["invoice.opened", "invoice.direct"] as const) {
      await hooks.emit(type, draft, { tx: "own" });
      await hooks.emitMany([{ type, data: draft }], { tx: "own" });
      await hooks.emitUnknown(type, draft, { tx: "own" });
      await hooks.emitManyUnknown([{ type, data: draft }], { tx: "own" });
    }
    outlet.failures = 3;
    await hooks.drain({ deadlineMs: 5_000 });
    later(10_000);
    await hooks.drain({ deadlineMs: 5_000 });
    expect(outlet.sent).toHaveLength(16 + 3);
    const ajv = new Ajv2020();
    const shapes = new Map<string, Set<string>>();
    for (const body of outlet.bodies) {
      const { type, data, ...rest } = JSON.parse(body);
      expect(Object.keys(rest)).toEqual(["id", "timestamp"]);
      const { jsonSchema } = hooks.catalogue.find((entry) => entry.type === type)!;
      expect(ajv.validate({ ...jsonSchema }, data), ajv.errorsText()).toBe(true);
      shapes.set(type, (shapes.get(type) ?? new Set()).add(JSON.stringify(data)));
    }
    expect([...shapes.get("invoice.opened")!].sort()).toEqual([
      '{"id":"i1","lines":[{"text":"one"},{"text":"two"}]}',
      '{"id":"i1","total":12.5,"state":"open"}',
    ]);
    expect(shapes.get("invoice.direct")!.size).toBe(1);
  });

  test("field-faults G7: a column that nobody published is in no body", async () => {
    const open = z.looseObject({ id: z.string(), email: z.string(), phone: z.string() });
    const row = {
      id: "c1",
      email: "c@example.com",
      phone: "+49 30 1",
      iban: "DE02 1203",
      session_token: "s3cr3t",
      emailVerified: true,
    };
    const events = defineEvents({
      "customer.strict": { schema: z.object({ id: z.string(), email: z.string() }) },
      "customer.selected": {
        schema: open,
        fields: { always: ["id"], default: ["email"], optional: { phone: { personal: true } } },
      },
      "customer.user": { schema: open, envelope: userEnvelope },
    });
    const hooks = createHookwell({ ...common(), events });
    await hooks.subscriptions.create({ url });
    await hooks.subscriptions.create({ url, fields: ["phone", "iban", "session_token"] });
    await hooks.emit("customer.strict", row, { tx: "own" });
    await hooks.emit("customer.selected", row, { tx: "own" });
    await hooks.emit("customer.user", row, { tx: "own" });
    await hooks.drain({ deadlineMs: 5_000 });
    expect(outlet.sent).toHaveLength(6);
    for (const body of outlet.bodies) expect(body).not.toMatch(/DE02|s3cr3t|iban|session_token/);
    const selected = outlet.bodies
      .map((body) => JSON.parse(body))
      .filter(({ type }) => type === "customer.selected");
    expect(selected.map(({ data }) => Object.keys(data).sort())).toEqual(
      expect.arrayContaining([
        ["email", "id"],
        ["id", "phone"],
      ]),
    );
  });

  test("field-faults G8: a tenant gets, sees and touches nothing of another, nor learns that it exists", async () => {
    const hooks = createHookwell({ ...common(), tenants: "required" as const });
    const mine: Visibility = { projectId: "live", tenantId: "mine" };
    const foreign: Visibility[] = [
      { projectId: "live", tenantId: "theirs" },
      { projectId: "test", tenantId: "mine" },
      { projectId: "live", tenantId: "mine", ownerId: "somebody else" },
    ];
    const subscription = await hooks.subscriptions.create({ url, tenantId: "mine", ownerId: "me" });
    await hooks.subscriptions.create({ url, tenantId: "theirs" });
    await hooks.subscriptions.create({ url, tenantId: "mine", projectId: "test" });
    const event = await hooks.emit("invoice.paid", draft, { tx: "own", tenantId: "mine", audience: ["me"] });
    await hooks.drain({ deadlineMs: 5_000 });
    expect(outlet.sent.map(({ subscriptionId }) => subscriptionId)).toEqual([subscription.id]);
    const [delivery] = (await hooks.deliveries.list(mine)).items;

    expect(await hooks.events.get(event.id, mine)).toMatchObject({ id: event.id });
    for (const visibility of foreign) {
      for (const [what, id, call] of everyCall(hooks, visibility, {
        subscription: subscription.id,
        event: event.id,
        delivery: delivery!.id,
      })) {
        const error = await call(id).catch((thrown: unknown) => thrown);
        expect(error, what).toBeInstanceOf(NotFoundError);
        const absent = await call("never-made").catch((thrown: unknown) => thrown);
        expect((error as Error).message.replace(id, "never-made"), what).toBe((absent as Error).message);
      }
      expect((await hooks.events.list(visibility)).items.map(({ id }) => id)).not.toContain(event.id);
      expect((await hooks.deliveries.list(visibility)).items).toEqual([]);
      expect((await hooks.subscriptions.list(visibility)).items.map(({ id }) => id)).not.toContain(
        subscription.id,
      );
    }
    expect(await hooks.subscriptions.get(subscription.id, mine)).toMatchObject({ status: "active", url });
  });
});

type Call = (id: string) => Promise<unknown>;

/** Everything that can be done to a single thing by its id. */
function everyCall(
  hooks: HookwellCore,
  visibility: Visibility,
  ids: { readonly subscription: string; readonly event: string; readonly delivery: string },
): [string, string, Call][] {
  const { subscriptions, events, deliveries } = hooks;
  const options = { visibility };
  return [
    ["subscriptions.get", ids.subscription, (id) => subscriptions.get(id, visibility)],
    [
      "subscriptions.update",
      ids.subscription,
      (id) => subscriptions.update(id, { url: "https://x.example/" }, options),
    ],
    ["subscriptions.pause", ids.subscription, (id) => subscriptions.pause(id, options)],
    ["subscriptions.disable", ids.subscription, (id) => subscriptions.disable(id, options)],
    ["subscriptions.delete", ids.subscription, (id) => subscriptions.delete(id, options)],
    ["events.get", ids.event, (id) => events.get(id, visibility)],
    ["events.release", ids.event, (id) => events.release(id, options)],
    ["deliveries.get", ids.delivery, (id) => deliveries.get(id, visibility)],
    ["deliveries.retry", ids.delivery, (id) => deliveries.retry(id, options)],
    ["deliveries.cancel", ids.delivery, (id) => deliveries.cancel(id, options)],
  ];
}
