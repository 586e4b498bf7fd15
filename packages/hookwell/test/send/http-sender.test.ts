import diagnostics from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { version } from "../../src/model/version.ts";
import { HttpSender } from "../../src/send/http-sender.ts";
import { SendAbortedError } from "../../src/send/sender.ts";
import { verify } from "../../src/send/verify.ts";
import { deliveryTo, failureOf, loopback, loopbackSender, secret } from "./deliveries.ts";
import { ok, startRawServer } from "./raw-server.ts";

describe("the request on the wire", () => {
  test("names, values and order are those of the protocol", async () => {
    await using server = await startRawServer((socket) => socket.write(ok));
    const clock = () => new Date("2026-02-03T04:05:06.789Z");
    await using sender = loopbackSender({ clock });
    const payload = Buffer.from('{"id":"evt_1","name":"Zoë"}');
    await sender.deliver(
      deliveryTo(`http://127.0.0.1:${server.port}/a/b?c=d`, {
        payload,
        attempts: 3,
        secrets: [secret, "old-secret"],
        headers: { "X-Tenant": "acme" },
      }),
    );
    const [line, ...headers] = server.requests[0]!.text.split("\r\n\r\n")[0]!.split("\r\n");
    expect(line).toBe("POST /a/b?c=d HTTP/1.1");
    expect(headers).toEqual([
      `host: 127.0.0.1:${server.port}`,
      "connection: keep-alive",
      "content-type: application/json",
      `user-agent: Hookwell/${version}`,
      "webhook-id: evt_1",
      "webhook-timestamp: 1770091506",
      expect.stringMatching(/^webhook-signature: v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/),
      "x-hookwell-event: user.created",
      "x-hookwell-delivery: dlv_1",
      "x-hookwell-attempt: 3",
      expect.stringMatching(/^x-hookwell-signature: sha256=[0-9a-f]{64}$/),
      "X-Tenant: acme",
      `content-length: ${payload.byteLength}`,
    ]);
  });

  test("the version is the package's", () => {
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    expect(version).toBe(manifest.version);
  });

  test("every valid secret verifies, and wire options rename and drop", async () => {
    await using receiver = await startReceiver();
    await using plain = loopbackSender();
    await plain.deliver(deliveryTo(receiver.url, { secrets: ["new-secret", secret] }));
    for (const key of ["new-secret", secret])
      expect(verify(receiver.requests[0]!.headers, receiver.requests[0]!.body, key).id).toBe("evt_1");

    await using renamed = loopbackSender({
      wire: { headerPrefix: "x-acme-", userAgent: "Acme-Hooks/2", standard: false },
    });
    await renamed.deliver(deliveryTo(receiver.url));
    const names = receiver.requests[1]!.rawHeaders.filter((_, index) => index % 2 === 0);
    expect(names.filter((name) => /^(webhook-|x-)/.test(name))).toEqual([
      "x-acme-event",
      "x-acme-delivery",
      "x-acme-attempt",
      "x-acme-signature",
    ]);
    expect(receiver.requests[1]!.headers["user-agent"]).toBe("Acme-Hooks/2");

    await using bare = loopbackSender({ wire: { body: false }, version: "9.9.9" });
    await bare.deliver(deliveryTo(receiver.url, { type: undefined } as object));
    const { headers } = receiver.requests[2]!;
    expect(headers["x-hookwell-signature"]).toBeUndefined();
    expect(headers["x-hookwell-event"]).toBeUndefined();
    expect(headers["user-agent"]).toBe("Hookwell/9.9.9");
  });

  test("wire options that cannot work are refused", () => {
    for (const wire of [
      { standard: false, body: false },
      { headerPrefix: "x-acme" },
      { headerPrefix: "webhook-" },
      { headerPrefix: "x acme-" },
      { userAgent: "" },
      { userAgent: "a\r\nb" },
    ])
      expect(() => new HttpSender({ wire })).toThrowError(expect.objectContaining({ code: "configuration" }));
  });
});

describe("an answer that asks to wait", () => {
  const now = new Date("2026-10-21T07:28:00Z");
  const cases: readonly (readonly [header: string, ms: number | undefined])[] = [
    ["120", 120_000],
    ["0", 0],
    ["1000000000000", 1_000_000_000_000_000],
    ["Wed, 21 Oct 2026 07:30:00 GMT", 120_000],
    ["Wednesday, 21-Oct-26 07:30:00 GMT", 120_000],
    ["Wed Oct 21 07:30:00 2026", 120_000],
    ["Wed, 21 Oct 2026 07:00:00 GMT", undefined],
    ["-5", undefined],
    ["abc", undefined],
    ["1.5", undefined],
    ["12 34", undefined],
    ["2026-10-21T07:30:00Z", undefined],
    ["9".repeat(400), undefined],
    ["", undefined],
  ];
  for (const status of [429, 503])
    test(`${status} gives its Retry-After as milliseconds, and nonsense as nothing`, async () => {
      await using receiver = await startReceiver({
        respond: (_, index) => ({ status, headers: { "retry-after": cases[index]![0] } }),
      });
      await using sender = loopbackSender({ clock: () => now });
      for (const [header, ms] of cases) {
        const { details } = await failureOf(sender.deliver(deliveryTo(receiver.url)));
        expect([header, details.retryAfterMs]).toEqual([header, ms]);
      }
    });

  test("other statuses and repeated headers say nothing", async () => {
    await using receiver = await startReceiver({
      respond: (_, index) =>
        index === 0
          ? { status: 500, headers: { "retry-after": "120" } }
          : { status: 503, headers: { "retry-after": ["120", "60"] } },
    });
    await using sender = loopbackSender();
    for (let index = 0; index < 2; index++)
      expect(
        (await failureOf(sender.deliver(deliveryTo(receiver.url)))).details.retryAfterMs,
      ).toBeUndefined();
  });
});

describe("stopping", () => {
  test("an abort before the answer is neither success nor failure, and ends the connection", async () => {
    await using receiver = await startReceiver({ respond: () => "hang" });
    await using sender = loopbackSender();
    const abort = new AbortController();
    const sends = Array.from({ length: 50 }, (_, index) =>
      sender.deliver(deliveryTo(receiver.url, { id: `dlv_${index}` }), { signal: abort.signal }),
    );
    await receiver.waitForRequests(50);
    abort.abort();
    for (const result of await Promise.allSettled(sends))
      expect(result).toMatchObject({ status: "rejected", reason: expect.any(SendAbortedError) as Error });
    await receiver.waitFor((r) => r.abandoned === 50);
    await expect(sender.deliver(deliveryTo(receiver.url), { signal: abort.signal })).rejects.toThrow(
      SendAbortedError,
    );
    expect(receiver.requests).toHaveLength(50);
  });

  test("an abort while connecting sends nothing", async () => {
    await using receiver = await startReceiver();
    const resolved = Promise.withResolvers<readonly { address: string; family: 4 }[]>();
    await using sender = loopbackSender({ resolver: () => resolved.promise });
    const abort = new AbortController();
    const sending = sender.deliver(deliveryTo(`http://slow.test:${receiver.port}/`), {
      signal: abort.signal,
    });
    abort.abort();
    await expect(sending).rejects.toThrow(SendAbortedError);
    resolved.resolve([{ address: "127.0.0.1", family: 4 }]);
    await sender.close();
    expect(receiver.requests).toHaveLength(0);
  });

  test("an answer that came before the abort counts", async () => {
    await using receiver = await startReceiver({
      respond: (_, index) => ({ status: index === 0 ? 202 : 400, body: "x", ending: "hang" }),
    });
    await using sender = loopbackSender();
    const abort = new AbortController();
    const { promise: bothAnswered, resolve } = Promise.withResolvers<void>();
    let answered = 0;
    const onHeaders = (): void => {
      if (++answered === 2) setImmediate(resolve);
    };
    diagnostics.subscribe("undici:request:headers", onHeaders);
    const first = sender.deliver(deliveryTo(receiver.url), { signal: abort.signal });
    const second = sender.deliver(deliveryTo(receiver.url), { signal: abort.signal });
    await bothAnswered;
    diagnostics.unsubscribe("undici:request:headers", onHeaders);
    abort.abort();
    const [one, two] = await Promise.allSettled([first, second]);
    const outcomes = [one, two].map((result) =>
      result!.status === "fulfilled" ? result!.value.statusCode : (result!.reason as { code: string }).code,
    );
    expect(outcomes.sort()).toEqual([202, "http_400"]);
  });

  test("close lets running exchanges end, may be called twice, and refuses what comes after", async () => {
    const gate = Promise.withResolvers<number>();
    await using receiver = await startReceiver({ respond: () => gate.promise });
    const sender = new HttpSender({ network: loopback });
    const sending = sender.deliver(deliveryTo(receiver.url));
    await receiver.waitForRequests(1);
    const closing = [sender.close(), sender.close()];
    gate.resolve(200);
    await expect(sending).resolves.toMatchObject({ statusCode: 200 });
    await Promise.all(closing);
    await expect(sender.deliver(deliveryTo(receiver.url))).rejects.toThrow(SendAbortedError);
  });
});

describe("what is kept of an answer", () => {
  test("field-faults G6: an echo of secrets and header values is redacted, across the cut as well", async () => {
    const token = "Bearer very-private-token";
    await using receiver = await startReceiver({
      respond: ({ headers }, index) => ({
        status: 400,
        body: `${"x".repeat(index === 0 ? 0 : 4090)}${headers.authorization} ${secret}`,
      }),
    });
    await using sender = loopbackSender();
    for (let index = 0; index < 2; index++) {
      const { details } = await failureOf(
        sender.deliver(deliveryTo(receiver.url, { headers: { authorization: token } })),
      );
      expect(details.excerpt).not.toMatch(/very|private|whsec/);
      expect(details.excerpt).toContain("[red");
    }
  });

  test("an empty answer has no excerpt, and a character is not cut in two", async () => {
    await using receiver = await startReceiver({
      respond: (_, index) => (index === 0 ? 200 : { body: `a${"😀".repeat(2000)}` }),
    });
    await using sender = loopbackSender();
    expect(await sender.deliver(deliveryTo(receiver.url))).not.toHaveProperty("excerpt");
    const { excerpt } = await sender.deliver(deliveryTo(receiver.url));
    expect(excerpt).toMatch(/^a(😀)+… \[cut\]$/u);
  });
});

describe("requests that cannot be made", () => {
  test("a malformed secret, header or url of a stored row fails as invalid_request", async () => {
    await using receiver = await startReceiver();
    await using sender = loopbackSender();
    const { url } = receiver;
    for (const delivery of [
      deliveryTo(url, { secret: "whsec_*not-base64*" }),
      deliveryTo(url, { secret: "" }),
      deliveryTo(url, { headers: { "x-a": "b\r\nc" } }),
      deliveryTo(url, { headers: { "x a": "b" } }),
      deliveryTo("ftp://127.0.0.1/"),
      deliveryTo("not a url"),
    ]) {
      const error = await failureOf(sender.deliver(delivery));
      expect(error.code).toBe("invalid_request");
      expect(error.message).not.toContain("not-base64");
    }
    expect(receiver.requests).toHaveLength(0);
  });

  test("something that is not HTTP, and 101, are invalid_response", async () => {
    const answers = [
      "220 mail.example ESMTP\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
      "HTTP/1.1 2000 Odd\r\n\r\n",
    ];
    await using server = await startRawServer((socket, { index }) => socket.write(answers[index]!));
    await using sender = loopbackSender();
    for (const _ of answers)
      expect((await failureOf(sender.deliver(deliveryTo(`http://127.0.0.1:${server.port}/`)))).code).toBe(
        "invalid_response",
      );
  });

  test("a name that does not resolve is dns_failed, and the next attempt asks again", async () => {
    await using receiver = await startReceiver();
    let known = false;
    await using sender = loopbackSender({
      resolver: async () => {
        if (known) return [{ address: "127.0.0.1", family: 4 }];
        throw Object.assign(new Error("queryA ENOTFOUND"), { code: "ENOTFOUND" });
      },
    });
    const delivery = deliveryTo(`http://later.test:${receiver.port}/`);
    expect((await failureOf(sender.deliver(delivery))).code).toBe("dns_failed");
    known = true;
    await expect(sender.deliver(delivery)).resolves.toMatchObject({ statusCode: 200 });
    await using system = loopbackSender();
    expect((await failureOf(system.deliver(deliveryTo("https://no-such-name.invalid/")))).code).toBe(
      "dns_failed",
    );
    await using empty = loopbackSender({ resolver: async () => [] });
    expect((await failureOf(empty.deliver(delivery))).code).toBe("dns_failed");
  });
});
