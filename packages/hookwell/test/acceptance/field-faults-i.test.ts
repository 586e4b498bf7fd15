import { createHookwell, defineEvents, type OutboxStore, PayloadTooLargeError, parseJson } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { kinds, type OpenStore } from "../deliver/stores.ts";

const network = { allow: ["127.0.0.0/8"], http: true };
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let opened: OpenStore;
  let store: OutboxStore;
  let now: Date;
  beforeEach(async () => {
    now = new Date("2026-03-01T09:00:00Z");
    opened = await kind.open(() => now);
    store = opened.store;
  });
  afterEach(() => opened.close());
  const common = () => ({ store, project: "live", network, clock: () => now, logger: quiet });

  test("field-faults I1: NUL and lone surrogates in data arrive as they were given", async () => {
    await using receiver = await startReceiver();
    const hooks = createHookwell(common());
    await hooks.subscriptions.create({ url: receiver.url });
    const data = {
      nul: "before\u0000after",
      high: "\ud83d alone",
      low: "alone \ude00",
      turned: "\ude00\ud83d",
      mixed: "\u0000\ud800\u2028\u{1f600}e\u0301",
      "key\u0000": ["\udfff"],
    };
    await hooks.emit("text.sent", data, { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    const [request] = await receiver.waitForRequests(1);
    expect(JSON.parse(request!.body.toString("utf8")).data).toEqual(data);
    expect(new TextDecoder("utf-8", { fatal: true }).decode(request!.body)).not.toContain("\ufffd");
    expect(request!.body.includes(0)).toBe(false);
  });

  test("field-faults I1: NUL and broken UTF-8 in an answer lose neither the attempt nor the retry", async () => {
    const nasty = Buffer.from([0x6f, 0x00, 0x6b, 0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80]);
    await using receiver = await startReceiver({
      respond: (_request, index) => ({ status: index === 0 ? 500 : 200, body: nasty }),
    });
    const hooks = createHookwell({ ...common(), retry: [1_000] });
    await hooks.subscriptions.create({ url: receiver.url });
    await hooks.emit("text.sent", {}, { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    now = new Date(now.getTime() + 60_000);
    await hooks.drain({ deadlineMs: 10_000 });
    const [row] = (await hooks.deliveries.list()).items;
    const { status, attemptLog } = await hooks.deliveries.get(row!.id);
    expect(status).toBe("delivered");
    expect(attemptLog.map(({ statusCode }) => statusCode)).toEqual([500, 200]);
    expect(attemptLog[0]!.excerpt).toMatch(/^o.k/);
    expect(attemptLog[0]!.excerpt).not.toContain("\0");
  });

  test("field-faults I1: identifiers with NUL or a lone surrogate are refused, naming the field", async () => {
    const hooks = createHookwell(common());
    for (const field of ["tenantId", "subject", "projectId"] as const)
      for (const value of ["a\u0000b", "a\ud800"])
        await expect(hooks.emit("a.b", {}, { tx: "own", [field]: value })).rejects.toMatchObject({
          code: "invalid_identifier",
          problems: [{ pointer: `/${field}` }],
        });
    expect((await hooks.events.list()).items).toEqual([]);
  });

  test("field-faults I2: integers beyond 2^53 keep every digit, through enrichment and field selection", async () => {
    await using receiver = await startReceiver();
    const schema = z.object({ id: z.bigint(), parts: z.array(z.bigint()), ratio: z.number() });
    const events = defineEvents({
      "number.sent": { schema, jsonSchema: { type: "object" } },
      "number.direct": { schema, jsonSchema: { type: "object" }, fanOut: "emit" },
      "number.chosen": {
        schema,
        jsonSchema: { type: "object" },
        fields: { always: ["id"], default: ["parts"], optional: { ratio: {} } },
        enrich: async (batch) => new Map(batch.map((event) => [event.id, { parts: [event.data.id + 1n] }])),
      },
    });
    const hooks = createHookwell({ ...common(), events });
    await hooks.subscriptions.create({ url: receiver.url });
    const data = { id: 18446744073709551615n, parts: [-9007199254740993n, 7n], ratio: 0.1 + 0.2 };
    for (const type of ["number.sent", "number.direct", "number.chosen"] as const)
      await hooks.emit(type, data, { tx: "own", id: type.replace(".", "-") });
    const again = await hooks.emit("number.sent", data, { tx: "own", id: "number-sent" });
    expect(again.duplicate).toBe(true);
    await hooks.drain({ deadlineMs: 10_000 });
    await receiver.waitForRequests(3);
    const bodies = new Map(
      receiver.requests.map(({ headers, body }) => [headers["webhook-id"], body.toString("utf8")]),
    );
    const whole =
      '"data":{"id":18446744073709551615,"parts":[-9007199254740993,7],"ratio":0.30000000000000004}}';
    expect(bodies.get("number-sent")).toContain(whole);
    expect(bodies.get("number-direct")).toContain(whole);
    expect(bodies.get("number-chosen")).toContain(
      '"data":{"id":18446744073709551615,"parts":[18446744073709551616]}}',
    );
  });

  test("field-faults I2: numbers that came as JSON text go out with the same digits", async () => {
    await using receiver = await startReceiver();
    const hooks = createHookwell(common());
    await hooks.subscriptions.create({ url: receiver.url });
    const text =
      '{"order":12345678901234567890123,"small":9007199254740991,"list":[-9007199254740992001,1.5e-7]}';
    await hooks.emit("number.sent", parseJson(text), { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    const [request] = await receiver.waitForRequests(1);
    expect(request!.body.toString("utf8")).toContain(`"data":${text}}`);
  });

  test("field-faults I3: 200 kB of notes are delivered whole; above 256 KiB nothing is written", async () => {
    await using receiver = await startReceiver();
    const hooks = createHookwell(common());
    await hooks.subscriptions.create({ url: receiver.url });
    const notes = "naïve – 漢字 😀 ".repeat(9_000);
    expect(Buffer.byteLength(notes)).toBeGreaterThan(200_000);
    await hooks.emit("note.written", { notes }, { tx: "own", id: "large" });
    await hooks.drain({ deadlineMs: 10_000 });
    const [request] = await receiver.waitForRequests(1);
    expect(JSON.parse(request!.body.toString("utf8")).data.notes).toBe(notes);
    // Fewer than 262,144 characters, but more bytes.
    const tooLarge = { notes: "漢".repeat(90_000) };
    await expect(hooks.emit("note.written", tooLarge, { tx: "own" })).rejects.toThrow(PayloadTooLargeError);
    const many = [
      { type: "note.written", data: { notes: "short" } },
      { type: "note.written", data: tooLarge },
    ];
    await expect(hooks.emitMany(many, { tx: "own" })).rejects.toThrow(PayloadTooLargeError);
    expect((await hooks.events.list()).items.map(({ id }) => id)).toEqual(["large"]);
  });
});
