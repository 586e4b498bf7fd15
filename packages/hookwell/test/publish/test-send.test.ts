import {
  createHookwell,
  defineEvents,
  type HookwellOptions,
  MemoryOutbox,
  type SubscriptionInput,
} from "hookwell";
import { answers, type ReceivedRequest, startReceiver } from "hookwell/testing";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { verify, verifyBodySignature } from "../../src/send/verify.ts";
import { loopback } from "../send/deliveries.ts";

const events = defineEvents({
  "invoice.drawn": { schema: z.object({ id: z.string() }) },
  "invoice.paid": {
    schema: z.object({ id: z.string(), total: z.number(), payer: z.string() }),
    subject: (invoice) => `invoice:${invoice.id}`,
    fields: { always: ["id"], default: ["total"], optional: { payer: { personal: true } } },
    example: { id: "inv_1", total: 12.5, payer: "Ädä 😀" },
  },
  "parcel.sent": {
    schema: z.object({ code: z.string() }),
    envelope: ({ type }, data) => ({ kind: type, ...(data as object) }),
    example: { code: "P-1" },
  },
});

type Options = Partial<HookwellOptions<undefined, never, "optional">>;

function made(options: Options = {}, store = new MemoryOutbox()) {
  const logger = { info() {}, warn() {}, error() {} };
  const hooks = createHookwell({
    store,
    project: "live",
    network: loopback,
    logger,
    events: events as never,
    ...options,
  });
  const subscribe = (url: string, more: Partial<SubscriptionInput> = {}) =>
    hooks.subscriptions.create({ url, ...more });
  return { store, hooks, subscribe, [Symbol.asyncDispose]: () => hooks.close() };
}

const bodyOf = ({ body }: ReceivedRequest) => JSON.parse(body.toString("utf8"));

describe("subscriptions.test", () => {
  test("sends the example as a delivery of the type would be, signed, with the header that says so", async () => {
    await using receiver = await startReceiver({ respond: () => ({ status: 201, body: "thanks" }) });
    await using world = made();
    const { id, secret } = await world.subscribe(receiver.url, {
      tenantId: "acme",
      fields: ["payer"],
      headers: { authorization: "Bearer t0ken" },
    });
    const sent = await world.hooks.subscriptions.test(id, { eventType: "invoice.paid" });
    const [request] = receiver.requests as [ReceivedRequest];
    expect(sent).toMatchObject({
      eventId: request.headers["webhook-id"],
      eventType: "invoice.paid",
      attempt: { number: 1, round: 1, statusCode: 201, excerpt: "thanks" },
    });
    expect(sent.attempt.errorCode).toBeUndefined();
    expect(request.headers).toMatchObject({
      "x-hookwell-test": "true",
      "x-hookwell-event": "invoice.paid",
      "x-hookwell-attempt": "1",
      authorization: "Bearer t0ken",
    });
    expect(bodyOf(request)).toMatchObject({
      id: sent.eventId,
      type: "invoice.paid",
      tenant_id: "acme",
      subject: "invoice:inv_1",
      data: { id: "inv_1", payer: "Ädä 😀" },
    });
    new Webhook(secret).verify(request.body, request.headers as Record<string, string>);
    const bodySignature = request.headers["x-hookwell-signature"] as string;
    expect(verifyBodySignature(request.body, bodySignature, secret)).toBe(true);
  });

  test("nothing of it is stored or counted: no delivery, no retry, no open circuit, no subscription that is gone", async () => {
    const refusals = Array.from({ length: 12 }, () => 500);
    await using receiver = await startReceiver({ respond: answers(410, ...refusals, 200) });
    await using world = made();
    const { id } = await world.subscribe(receiver.url);
    const codes = [];
    for (let n = 0; n < 13; n++) codes.push((await world.hooks.subscriptions.test(id)).attempt.errorCode);
    expect(codes).toEqual(["http_410", ...refusals.map(() => "http_500")]);
    expect(receiver.requests).toHaveLength(13);
    expect((await world.hooks.deliveries.list()).items).toEqual([]);
    expect((await world.hooks.events.list()).items).toEqual([]);
    expect((await world.hooks.subscriptions.get(id)).status).toBe("active");
    await world.hooks.emitUnknown("parcel.sent", { code: "P-2" }, { tx: "own" });
    expect(await world.hooks.drain({ deadlineMs: 10_000 })).toMatchObject({ delivered: 1 });
  });

  test("a paused and a disabled subscription are tested; a deleted, an unknown and somebody else's are not", async () => {
    await using receiver = await startReceiver();
    await using world = made();
    const { id } = await world.subscribe(receiver.url);
    const { subscriptions } = world.hooks;
    await subscriptions.pause(id);
    expect((await subscriptions.test(id)).attempt.statusCode).toBe(200);
    await subscriptions.disable(id);
    expect((await subscriptions.test(id)).attempt.statusCode).toBe(200);
    await expect(subscriptions.test("sub_none")).rejects.toMatchObject({ code: "not_found" });
    await expect(subscriptions.test(id, { visibility: { projectId: "other" } })).rejects.toMatchObject({
      code: "not_found",
    });
    await subscriptions.delete(id);
    await expect(subscriptions.test(id)).rejects.toMatchObject({
      code: "invalid_state",
      message: expect.stringContaining(id),
    });
    expect(receiver.requests).toHaveLength(2);
  });

  test.each<[readonly string[], string]>([
    [[], "invoice.paid"],
    [["parcel.*"], "parcel.sent"],
    [["invoice.drawn", "parcel.sent"], "parcel.sent"],
    [["invoice.drawn"], "hookwell.test"],
    [["hookwell.delivery.failed"], "hookwell.test"],
  ])("without a type, a subscription to %j gets %s", async (eventTypes, expected) => {
    await using receiver = await startReceiver();
    await using world = made();
    const { id, secret } = await world.subscribe(receiver.url, { eventTypes });
    expect((await world.hooks.subscriptions.test(id)).eventType).toBe(expected);
    const [request] = receiver.requests as [ReceivedRequest];
    expect(request.headers["x-hookwell-event"]).toBe(expected);
    expect(verify(request.headers, request.body, secret).id).toBeTruthy();
    if (expected === "parcel.sent") expect(bodyOf(request)).toEqual({ kind: "parcel.sent", code: "P-1" });
  });

  test("an instance without a catalogue sends hookwell.test, and knows no example to name", async () => {
    await using receiver = await startReceiver();
    await using world = made({ events: undefined });
    const { id } = await world.subscribe(receiver.url);
    expect((await world.hooks.subscriptions.test(id)).eventType).toBe("hookwell.test");
    await expect(world.hooks.subscriptions.test(id, { eventType: "user.created" })).rejects.toMatchObject({
      code: "no_example",
      problems: [{ pointer: "/eventType" }],
    });
    expect(receiver.requests).toHaveLength(1);
  });

  test.each<[unknown, string, string]>([
    ["invoice.pait", "unknown_event_type", "invoice.paid"],
    ["Invoice Paid", "invalid_identifier", "eventType"],
    ["", "invalid_identifier", "eventType"],
    ["invoice.drawn", "no_example", "invoice.paid, parcel.sent"],
  ])("the type %j is refused as %s, and nothing is sent", async (eventType, code, named) => {
    await using receiver = await startReceiver();
    await using world = made();
    const { id } = await world.subscribe(receiver.url);
    await expect(
      world.hooks.subscriptions.test(id, { eventType: eventType as string }),
    ).rejects.toMatchObject({ code, message: expect.stringContaining(named) });
    expect(receiver.requests).toEqual([]);
  });

  test("in the overlap of a rotation both secrets verify, and headers have the product's own prefix", async () => {
    await using receiver = await startReceiver();
    await using world = made({ wire: { headerPrefix: "x-acme-" } });
    const { id, secret: old } = await world.subscribe(receiver.url);
    const { secret } = await world.hooks.subscriptions.rotateSecret(id);
    await world.hooks.subscriptions.test(id);
    const [{ headers, body }] = receiver.requests as [ReceivedRequest];
    for (const key of [old, secret]) expect(verify(headers, body, key).id).toBeTruthy();
    expect(verifyBodySignature(body, headers["x-acme-signature"] as string, secret)).toBe(true);
    expect(headers).toMatchObject({ "x-acme-test": "true" });
    expect(Object.keys(headers).join()).not.toContain("hookwell");
  });

  test("field-faults G1: the address guard holds for a test send, and nothing is sent", async () => {
    await using receiver = await startReceiver();
    await using lenient = made();
    await using strict = made({ network: { http: true } }, lenient.store);
    const { id } = await lenient.subscribe(receiver.url);
    const { attempt } = await strict.hooks.subscriptions.test(id);
    expect(attempt).toMatchObject({ errorCode: "blocked_address" });
    expect(attempt.error).toContain("HOOKWELL_ALLOW_NETWORKS");
    expect(receiver.connections).toBe(0);
  });

  test("no secret is in the answer, also when a sender of the application quotes what it was given", async () => {
    const quoting = { deliver: (given: object) => Promise.reject(new Error(JSON.stringify(given))) };
    await using world = made({ sender: quoting });
    const { id, secret } = await world.subscribe("https://hooks.example/", { secret: "plain-secret" });
    const { attempt } = await world.hooks.subscriptions.test(id);
    expect(attempt.errorCode).toBe("send_failed");
    expect(JSON.stringify(attempt)).not.toContain(secret);
  });
});
