import { answers, startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { bodySignature, generateSecret } from "../../src/send/signatures.ts";
import { verifyBodySignature } from "../../src/send/verify.ts";
import { deliveryTo, failureOf, loopbackSender, secret } from "../send/deliveries.ts";

describe("events 35: the sender succeeds on 2xx alone", () => {
  for (const status of [200, 201, 204, 226])
    test(`events 35: ${status} is a success`, async () => {
      await using receiver = await startReceiver({ respond: answers(status) });
      await using sender = loopbackSender();
      await expect(sender.deliver(deliveryTo(receiver.url))).resolves.toMatchObject({ statusCode: status });
    });

  for (const status of [300, 307, 400, 401, 404, 418, 429, 500, 503, 599])
    test(`events 35: ${status} is an error that names the status and not the secret`, async () => {
      await using elsewhere = await startReceiver();
      await using receiver = await startReceiver({
        respond: answers({ status, headers: { location: elsewhere.url }, body: `no, ${secret}` }),
      });
      await using sender = loopbackSender();
      const error = await failureOf(sender.deliver(deliveryTo(receiver.url)));
      expect(error.code).toBe(`http_${status}`);
      expect(error.details.statusCode).toBe(status);
      expect(error.message).toContain(String(status));
      expect(JSON.stringify([error.message, error.details])).not.toContain(secret);
      expect(receiver.requests).toHaveLength(1);
      expect(elsewhere.requests).toHaveLength(0);
    });

  test("events 35: a network error and a time-out are errors without the secret", async () => {
    const stopped = await startReceiver();
    await stopped.close();
    await using silent = await startReceiver({ respond: () => "hang" });
    await using sender = loopbackSender({ limits: { exchangeMs: 100 } });
    const refused = await failureOf(sender.deliver(deliveryTo(stopped.url)));
    const late = await failureOf(sender.deliver(deliveryTo(`${silent.url}?token=t0ken`)));
    expect([refused.code, late.code]).toEqual(["connect_refused", "timeout"]);
    for (const error of [refused, late]) expect(error.message).not.toMatch(/whsec|t0ken/);
  });
});

describe("events 36: verifyBodySignature", () => {
  const body = Buffer.from('{"name":"Zoë"}');
  for (const key of [secret, "plain-secret", generateSecret((size) => new Uint8Array(size).fill(7))]) {
    const header = bodySignature(key, body);
    test(`events 36: the right secret and body are true (${key.slice(0, 8)})`, () => {
      expect(verifyBodySignature(body, header, key)).toBe(true);
      expect(verifyBodySignature(body.toString("utf8"), header, key)).toBe(true);
    });
    test(`events 36: anything else is false (${key.slice(0, 8)})`, () => {
      const changed = Buffer.from(body);
      changed[9]! ^= 1;
      expect(verifyBodySignature(changed, header, key)).toBe(false);
      expect(verifyBodySignature(Buffer.concat([body, Buffer.from("\n")]), header, key)).toBe(false);
      expect(verifyBodySignature(body, header, `${key}x`.slice(1))).toBe(false);
      expect(verifyBodySignature(body, header, "")).toBe(false);
      for (let length = 0; length < header.length; length++)
        expect(verifyBodySignature(body, header.slice(0, length), key)).toBe(false);
      for (const odd of ["", "sha256=", header.slice(7), `${header}0`, header.toUpperCase(), null, undefined])
        expect(verifyBodySignature(body, odd, key)).toBe(false);
    });
  }

  test("events 36: what is sent is what verifies", async () => {
    await using receiver = await startReceiver();
    await using sender = loopbackSender();
    await sender.deliver(deliveryTo(receiver.url, { payload: body, secrets: ["another", secret] }));
    const [request] = await receiver.waitForRequests(1);
    const header = request!.headers["x-hookwell-signature"] as string;
    expect(verifyBodySignature(request!.body, header, secret)).toBe(true);
    expect(verifyBodySignature(request!.body, header, "another")).toBe(false);
  });
});
