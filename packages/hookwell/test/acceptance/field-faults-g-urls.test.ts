import { createHookwell, MemoryOutbox } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { verify } from "../../src/send/verify.ts";
import { deliveryTo, failureOf, loopback, loopbackSender, secret } from "../send/deliveries.ts";

const logger = { info() {}, warn() {}, error() {} };

describe("field-faults G4: credentials in the url", () => {
  const hooks = createHookwell({ store: new MemoryOutbox(), project: "live", network: loopback, logger });
  for (const url of [
    "https://u:p4ssw0rd@host/",
    "https://t0ken@hooks.example.com/",
    "https://:p4ssw0rd@hooks.example.com/",
    "http://u:p4ssw0rd@127.0.0.1:8080/",
  ])
    test(`field-faults G4: ${url.replace(/\/\/.*@/, "//…@")} is refused with advice and not repeated`, async () => {
      const error = await hooks.subscriptions.create({ url }).then(
        () => expect.fail("was accepted"),
        (reason: unknown) => reason as Error,
      );
      expect(error).toMatchObject({ code: "validation_failed", problems: [{ pointer: "/url" }] });
      expect(error.message).toContain("authorization");
      expect(error.message).not.toMatch(/p4ssw0rd|t0ken/);
      await using sender = loopbackSender();
      const failure = await failureOf(sender.deliver(deliveryTo(url)));
      expect(failure.code).toBe("invalid_request");
      expect(failure.message).not.toMatch(/p4ssw0rd|t0ken/);
    });

  test("field-faults G4: the advice works", async () => {
    await using receiver = await startReceiver();
    const authorization = `Basic ${Buffer.from("u:p").toString("base64")}`;
    await hooks.subscriptions.create({ url: receiver.url, headers: { authorization } });
    await hooks.emit("order.paid", {}, { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    expect(receiver.requests[0]!.headers.authorization).toBe(authorization);
  });
});

describe("field-faults G5: international host and path", () => {
  test("field-faults G5: both forms are stored as the same ASCII", async () => {
    const hooks = createHookwell({ store: new MemoryOutbox(), project: "live", logger });
    for (const [given, stored] of [
      ["https://bücher.example/", "https://xn--bcher-kva.example/"],
      ["https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"],
      ["https://BÜCHER。example:8443", "https://xn--bcher-kva.example:8443/"],
      ["https://faß.example/straße?ort=Köln#anker", "https://xn--fa-hia.example/stra%C3%9Fe?ort=K%C3%B6ln"],
      ["https://例え.jp/パス", "https://xn--r8jz45g.jp/%E3%83%91%E3%82%B9"],
    ] as const)
      await expect(hooks.subscriptions.create({ url: given })).resolves.toMatchObject({ url: stored });
  });

  test("field-faults G5: the request goes to the right host and path, and its signature verifies", async () => {
    await using receiver = await startReceiver();
    await using sender = loopbackSender({ resolver: async () => [{ address: "127.0.0.1", family: 4 }] });
    for (const host of ["bücher.example", "xn--bcher-kva.example"])
      await sender.deliver(deliveryTo(`http://${host}:${receiver.port}/café/日本?q=ü`));
    for (const { headers, path, body } of receiver.requests) {
      expect(headers.host).toBe(`xn--bcher-kva.example:${receiver.port}`);
      expect(path).toBe("/caf%C3%A9/%E6%97%A5%E6%9C%AC?q=%C3%BC");
      expect(verify(headers, body, secret).id).toBe("evt_1");
    }
    expect(receiver.requests).toHaveLength(2);
  });
});
