import { createHookwell, MemoryOutbox, OutboxPublisher, userEventTypes } from "hookwell";
import { answers, type ReceivedRequest, startReceiver } from "hookwell/testing";
import { validateWebhook } from "replicate";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { systemRandom } from "../../src/model/ids.ts";
import { bodySignature, generateSecret, standardSignature } from "../../src/send/signatures.ts";
import { type IncomingHeaders, verify, verifyBodySignature } from "../../src/send/verify.ts";
import { deliveryTo, loopback, loopbackSender, secret } from "../send/deliveries.ts";

/** Two independent libraries and ours accept the request as it came over the wire. */
async function expectVerified({ headers, body }: ReceivedRequest, key: string): Promise<void> {
  const texts = headers as Record<string, string>;
  const plain = !key.startsWith("whsec_");
  new Webhook(key, plain ? { format: "raw" } : undefined).verify(body, texts);
  // The second one knows no plain secrets, so it gets the same key in the other form.
  const other = plain ? `whsec_${Buffer.from(key, "utf8").toString("base64")}` : key;
  expect(
    await validateWebhook({
      id: texts["webhook-id"]!,
      timestamp: texts["webhook-timestamp"]!,
      signature: texts["webhook-signature"]!,
      body: body.toString("utf8"),
      secret: other,
    }),
  ).toBe(true);
  expect(verify(headers, body, key).id).toBe(texts["webhook-id"]);
  expect(verifyBodySignature(body, texts["x-hookwell-signature"], key)).toBe(true);
}

function instance() {
  const store = new MemoryOutbox();
  const logger = { info() {}, warn() {}, error() {} };
  const hooks = createHookwell({ store, project: "live", network: loopback, logger, retry: [1, 1, 1] });
  return { store, hooks };
}

/** The body of one event as the receiver got it. */
async function bodyOf(data: unknown): Promise<{ request: ReceivedRequest; text: string; key: string }> {
  await using receiver = await startReceiver();
  const { hooks } = instance();
  const { secret: key } = await hooks.subscriptions.create({ url: receiver.url });
  await hooks.emit("thing.changed", data, { tx: "own" });
  await hooks.drain({ deadlineMs: 10_000 });
  await hooks.close();
  const request = receiver.requests[0]!;
  return { request, text: request.body.toString("utf8"), key };
}

describe("field-faults F1: the signed bytes are the sent bytes", () => {
  test("field-faults F1: any type, first attempt and retries, verify by independent libraries", async () => {
    const types = ["order.paid", "booking.rescheduled", "a_b.c.d"];
    await using receiver = await startReceiver({ respond: (_, index) => (index < 6 ? 503 : 200) });
    const { hooks } = instance();
    const { secret: key } = await hooks.subscriptions.create({ url: receiver.url });
    for (const type of types) await hooks.emit(type, { note: 'a "b" \\ c', n: 1.5 }, { tx: "own" });
    const run = hooks.start();
    await receiver.waitForRequests(9);
    await run.stop();
    await hooks.close();
    const bodies = new Map<string, Buffer>();
    for (const request of receiver.requests) {
      await expectVerified(request, key);
      const id = request.headers["webhook-id"] as string;
      const first = bodies.get(id) ?? request.body;
      expect(request.body.equals(first)).toBe(true);
      bodies.set(id, first);
    }
    expect(bodies.size).toBe(types.length);
    expect(new Set(receiver.requests.map((request) => request.headers["x-hookwell-event"]))).toEqual(
      new Set(types),
    );
  });

  test("field-faults F1: the three user types of the reference publisher", async () => {
    await using receiver = await startReceiver();
    const { store, hooks } = instance();
    const subscription = { id: "sub_1", projectId: "live", url: receiver.url, eventTypes: [], active: true };
    await store.addSubscription({ ...subscription, secret: "reference secret" });
    const publisher = new OutboxPublisher(store);
    for (const [index, type] of userEventTypes.entries())
      await publisher.emit({
        id: `evt_${index}`,
        type,
        projectId: "live",
        user: { id: "u", email: "ä@b.c", emailVerified: true },
      });
    await hooks.drain({ deadlineMs: 10_000 });
    await hooks.close();
    expect(receiver.requests).toHaveLength(3);
    for (const request of receiver.requests) await expectVerified(request, "reference secret");
  });
});

describe("field-faults F2: unicode in the signed body", () => {
  for (const name of [
    "😀 party",
    "line\u2028and\u2029paragraph",
    "\u0301lone mark",
    "שלום مرحبا \u202e",
    "𠮷野家",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}",
    "\ufefffeff",
  ])
    test(`field-faults F2: ${JSON.stringify(name)} travels as plain UTF-8`, async () => {
      const { request, text, key } = await bodyOf({ name });
      await expectVerified(request, key);
      expect(text).toContain(JSON.stringify(name));
      expect(text).not.toMatch(/\\u|\\\\u/);
      expect(JSON.parse(text).data).toEqual({ name });
    });
});

describe("field-faults F3: number formatting", () => {
  test("field-faults F3: numbers of a double are as JSON.stringify writes them", async () => {
    const numbers = [1.0, 1e21, -0, 0.1 + 0.2, 5e-324, 1e-7, 123456789012345680000, 2 ** 53, -1.5e300];
    const { request, text, key } = await bodyOf({ numbers, nested: { one: 100.0 } });
    await expectVerified(request, key);
    expect(JSON.stringify(JSON.parse(text))).toBe(text);
    expect(text).toContain("[1,1e+21,0,0.30000000000000004,5e-324,1e-7,");
  });
});

describe("field-faults F4: one rule for secrets, proven with independent libraries", () => {
  const bytes = (size: number): string =>
    `whsec_${Buffer.from(Array.from({ length: size }, (_, index) => (index * 37) % 256)).toString("base64")}`;
  for (const key of [generateSecret(systemRandom), bytes(24), bytes(25), bytes(64), "plain", "pl+ain/=="])
    test(`field-faults F4: ${key.slice(0, 12)}… of ${key.length} characters`, async () => {
      await using receiver = await startReceiver();
      await using sender = loopbackSender();
      await sender.deliver(deliveryTo(receiver.url, { secret: key }));
      await expectVerified(receiver.requests[0]!, key);
    });

  test("field-faults F4: what the reference library signs, we verify", () => {
    const body = '{"a":"ü"}';
    const at = new Date();
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign("msg_1", at, body),
    };
    expect(verify(headers, body, secret)).toMatchObject({ id: "msg_1", payload: { a: "ü" } });
  });
});

describe("field-faults F5: white space in a secret is refused at save", () => {
  const good = generateSecret(systemRandom);
  for (const bad of [
    `${good}\n`,
    ` ${good}`,
    `${good}\r`,
    `\ufeff${good}`,
    "plain text",
    "plain\ttext",
    "no-break\u00a0space",
    "zero\u200bwidth",
    "nul\u0000",
    "",
    "whsec_",
    "whsec_c2hvcnQ=",
    good.slice(0, -1),
    good.replace(/.$/, "_"),
    `whsec_${Buffer.alloc(65).toString("base64")}`,
    "s".repeat(300),
    "lone\ud800",
  ])
    test(`field-faults F5: ${JSON.stringify(bad).slice(0, 24)} (${bad.length})`, async () => {
      const { hooks } = instance();
      const creating = hooks.subscriptions.create({ url: "http://127.0.0.1:9/", secret: bad });
      const error = await creating.then(
        () => expect.fail("was accepted"),
        (reason: unknown) => reason as Error,
      );
      expect(error).toMatchObject({ code: "validation_failed", problems: [{ pointer: "/secret" }] });
      if (bad.trim().length > 10) expect(error.message).not.toContain(bad.trim().slice(7));
      expect((await hooks.subscriptions.list()).items).toHaveLength(0);
    });

  test("field-faults F5: a good secret is kept exactly as it was given", async () => {
    await using receiver = await startReceiver();
    const { hooks } = instance();
    const created = await hooks.subscriptions.create({ url: receiver.url, secret: "Pläin-secret_1" });
    expect(created.secret).toBe("Pläin-secret_1");
    await hooks.emit("thing.changed", {}, { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    await hooks.close();
    const { headers, body } = receiver.requests[0]!;
    expect(verify(headers, body, "Pläin-secret_1").payload).toMatchObject({ type: "thing.changed" });
  });
});

describe("field-faults F6: verifying is blind to the case and container of headers", () => {
  const body = '{"a":1}';
  const id = "evt_1";
  const seconds = Math.floor(Date.now() / 1000);
  const signature = standardSignature(["another", secret], id, seconds, Buffer.from(body));
  const lower = { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": signature };
  const renamed = (name: (lower: string) => string): Record<string, string> =>
    Object.fromEntries(Object.entries(lower).map(([key, value]) => [name(key), value]));
  const title = renamed((key) => key.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()));
  const forms: Record<string, IncomingHeaders> = {
    "lower case": lower,
    "title case": title,
    "upper case": renamed((key) => key.toUpperCase()),
    "mixed with others": { host: "x", cookie: undefined, "set-cookie": ["a", "b"], ...title },
    "array values": Object.fromEntries(Object.entries(title).map(([key, value]) => [key, [value]])),
    "signatures in several values": { ...lower, "webhook-signature": signature.split(" ") },
    "signatures joined by a proxy": { ...lower, "webhook-signature": signature.replace(" ", ", ") },
    Headers: new Headers(title),
    Map: new Map(Object.entries(title)),
    "Map of arrays": new Map(Object.entries(title).map(([key, value]) => [key, [value]])),
    pairs: Object.entries(title),
  };
  for (const [form, headers] of Object.entries(forms))
    test(`field-faults F6: ${form}`, () => {
      expect(verify(headers, body, secret)).toEqual({
        id,
        timestamp: new Date(seconds * 1000),
        payload: { a: 1 },
      });
      expect(verify(headers, Buffer.from(body), ["wrong", secret]).id).toBe(id);
    });
});

describe("field-faults F7: each attempt has its own timestamp", () => {
  test("field-faults F7: after two hours of backoff it verifies, with the same id and body signature", async () => {
    await using receiver = await startReceiver({ respond: answers(500, 200) });
    let now = new Date("2026-03-29T00:30:00Z");
    await using sender = loopbackSender({ clock: () => now });
    await sender.deliver(deliveryTo(receiver.url)).catch(() => {});
    const firstAt = now;
    now = new Date(now.getTime() + 2 * 3_600_000);
    await sender.deliver(deliveryTo(receiver.url, { attempts: 2 }));
    const [first, second] = receiver.requests.map(({ headers }) => headers);
    expect(second!["webhook-id"]).toBe(first!["webhook-id"]);
    expect(second!["x-hookwell-signature"]).toBe(first!["x-hookwell-signature"]);
    expect([first!["x-hookwell-attempt"], second!["x-hookwell-attempt"]]).toEqual(["1", "2"]);
    expect(Number(second!["webhook-timestamp"]) - Number(first!["webhook-timestamp"])).toBe(7200);
    expect(second!["webhook-signature"]).not.toBe(first!["webhook-signature"]);
    const { body } = receiver.requests[1]!;
    expect(verify(second!, body, secret, { now }).timestamp).toEqual(now);
    expect(() => verify(first!, body, secret, { now })).toThrowError(
      expect.objectContaining({ code: "too_old" }),
    );
    expect(verify(first!, body, secret, { now: () => firstAt }).timestamp).toEqual(firstAt);
    expect(bodySignature(secret, body)).toBe(first!["x-hookwell-signature"]);
  });
});
