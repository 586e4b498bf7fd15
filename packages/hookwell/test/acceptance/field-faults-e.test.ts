import { gzipSync } from "node:zlib";
import { createHookwell, MemoryOutbox } from "hookwell";
import { answers, startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import { deliveryTo, failureOf, loopback, loopbackSender } from "../send/deliveries.ts";
import { ok, startBlackHole, startRawServer } from "../send/raw-server.ts";

const quiet = { info() {}, warn() {}, error() {} };

describe("field-faults E1: redirects are failures", () => {
  for (const status of [301, 302, 303, 304, 307, 308, 300, 305, 399])
    test(`field-faults E1: ${status} is a failed attempt, and its Location is not requested`, async () => {
      await using elsewhere = await startReceiver();
      await using receiver = await startReceiver({
        respond: answers({ status, headers: { location: elsewhere.url } }),
      });
      await using sender = loopbackSender();
      const error = await failureOf(sender.deliver(deliveryTo(receiver.url)));
      expect([error.code, error.details.statusCode]).toEqual([`http_${status}`, status]);
      expect(receiver.requests).toHaveLength(1);
      expect(elsewhere.requests).toHaveLength(0);
    });

  test("field-faults E1: a redirect to the same host is not followed either", async () => {
    await using receiver = await startReceiver({
      respond: answers({ status: 308, headers: { location: "/moved" } }),
    });
    await using sender = loopbackSender();
    await failureOf(sender.deliver(deliveryTo(receiver.url)));
    expect(receiver.requests.map((request) => request.path)).toEqual(["/hook"]);
  });
});

describe("field-faults E2: every 2xx is a success", () => {
  for (const status of [200, 201, 202, 204, 206, 299, 203, 205, 207, 250])
    test(`field-faults E2: ${status}`, async () => {
      await using receiver = await startReceiver({ respond: answers(status) });
      await using sender = loopbackSender();
      await expect(sender.deliver(deliveryTo(receiver.url))).resolves.toMatchObject({ statusCode: status });
    });

  test("field-faults E2: a 204 that claims a body, and a 200 after 103 Early Hints", async () => {
    await using server = await startRawServer((socket, { index }) =>
      socket.write(
        index === 0
          ? "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n"
          : `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok}`,
      ),
    );
    await using sender = loopbackSender();
    const url = `http://127.0.0.1:${server.port}/`;
    await expect(sender.deliver(deliveryTo(url))).resolves.toMatchObject({ statusCode: 204 });
    await expect(sender.deliver(deliveryTo(url))).resolves.toMatchObject({ statusCode: 200 });
  });
});

describe("field-faults E4: every way to hang ends at the limit", () => {
  test("field-faults E4: a receiver that accepts and never answers", async () => {
    await using receiver = await startReceiver({ respond: () => "hang" });
    await using sender = loopbackSender({ limits: { exchangeMs: 100 } });
    const error = await failureOf(sender.deliver(deliveryTo(receiver.url)));
    expect(error.code).toBe("timeout");
    expect(error.details.statusCode).toBeUndefined();
    await receiver.waitFor((r) => r.abandoned === 1);
  });

  test("field-faults E4: a host that drops SYN packets", async () => {
    await using hole = await startBlackHole();
    await using sender = loopbackSender({ limits: { connectMs: 100 } });
    const error = await failureOf(sender.deliver(deliveryTo(`http://127.0.0.1:${hole.port}/`)));
    expect(error.code).toBe("connect_timeout");
  });

  test("field-faults E4: a TLS handshake that stalls", async () => {
    await using server = await startRawServer(() => {});
    await using sender = loopbackSender({ limits: { connectMs: 100 } });
    const error = await failureOf(sender.deliver(deliveryTo(`https://127.0.0.1:${server.port}/`)));
    expect(error.code).toBe("connect_timeout");
    expect(server.connections).toBe(1);
  });

  test("field-faults E4: headers that never end, one byte at a time", async () => {
    await using server = await startRawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nx-slow: ");
      const timer = setInterval(() => socket.write("a"), 10);
      socket.on("close", () => clearInterval(timer));
    });
    await using sender = loopbackSender({ limits: { exchangeMs: 150 } });
    const error = await failureOf(sender.deliver(deliveryTo(`http://127.0.0.1:${server.port}/`)));
    expect(error.code).toBe("timeout");
  });

  test("field-faults E4: a resolver that never answers, and the limit of the exchange while connecting", async () => {
    await using sender = loopbackSender({
      limits: { connectMs: 50 },
      resolver: () => new Promise(() => {}),
    });
    expect((await failureOf(sender.deliver(deliveryTo("https://slow.test/")))).code).toBe("dns_failed");
    await using hasty = loopbackSender({
      limits: { connectMs: 1_000, exchangeMs: 50 },
      resolver: () => new Promise(() => {}),
    });
    expect((await failureOf(hasty.deliver(deliveryTo("https://slow.test/")))).code).toBe("timeout");
  });
});

describe("field-faults E5: after the status the body decides nothing", () => {
  test("field-faults E5: 200 and a body that drips for ever is one success, ended at the limit", async () => {
    async function* drip(): AsyncGenerator<string> {
      for (;;) {
        yield "x";
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    await using receiver = await startReceiver({ respond: () => ({ body: drip() }) });
    await using sender = loopbackSender({ limits: { exchangeMs: 700 } });
    const receipt = await sender.deliver(deliveryTo(receiver.url));
    expect(receipt).toMatchObject({ statusCode: 200, excerpt: expect.stringMatching(/^x+$/) });
    await receiver.waitFor((r) => r.abandoned === 1);
    expect(receiver.requests).toHaveLength(1);
  });

  test("field-faults E5: 202 whose body is reset, broken off or silent is a success", async () => {
    await using receiver = await startReceiver({
      respond: answers(
        { status: 202, body: "part", ending: "reset" },
        { status: 202, headers: { "content-length": "100" }, body: "part", ending: "reset" },
        { status: 202, ending: "hang" },
      ),
    });
    await using sender = loopbackSender({ limits: { exchangeMs: 700 } });
    for (let index = 0; index < 3; index++)
      await expect(sender.deliver(deliveryTo(receiver.url))).resolves.toMatchObject({ statusCode: 202 });
    expect(receiver.requests).toHaveLength(3);
  });

  test("field-faults E5: 500 whose body hangs fails as http_500, not as a time-out", async () => {
    await using receiver = await startReceiver({
      respond: () => ({ status: 500, body: "why", ending: "hang" }),
    });
    await using sender = loopbackSender({ limits: { exchangeMs: 700 } });
    const error = await failureOf(sender.deliver(deliveryTo(receiver.url)));
    expect(error).toMatchObject({ code: "http_500", details: { statusCode: 500, excerpt: "why" } });
  });
});

describe("field-faults E6: a huge answer", () => {
  /** Counts what it was asked for. */
  function endless(piece: string): { body: AsyncGenerator<string>; given: () => number } {
    let given = 0;
    async function* generate(): AsyncGenerator<string> {
      for (;;) {
        given += piece.length;
        yield piece;
      }
    }
    return { body: generate(), given: () => given };
  }

  test("field-faults E6: an endless chunked body is one success with a small, marked excerpt", async () => {
    const { body, given } = endless("lorem ".repeat(2000));
    await using receiver = await startReceiver({ respond: () => ({ body }) });
    await using sender = loopbackSender();
    const { statusCode, excerpt = "" } = await sender.deliver(deliveryTo(receiver.url));
    expect(statusCode).toBe(200);
    expect(excerpt).toMatch(/^lorem .*… \[cut\]$/);
    expect(Buffer.byteLength(excerpt)).toBeLessThan(4200);
    await receiver.waitFor((r) => r.abandoned === 1);
    // What the kernel buffers on both ends is all that goes beyond the 64 KiB that were read.
    expect(given()).toBeLessThan(20_000_000);
  });

  test("field-faults E6: 50 MB with a length, as success and as failure", async () => {
    const large = Buffer.alloc(50_000_000, "é");
    await using receiver = await startReceiver({
      respond: answers({ body: large }, { status: 400, body: large }),
    });
    await using sender = loopbackSender();
    const receipt = await sender.deliver(deliveryTo(receiver.url));
    const error = await failureOf(sender.deliver(deliveryTo(receiver.url)));
    expect(receipt.statusCode).toBe(200);
    expect(error.code).toBe("http_400");
    for (const { excerpt } of [receipt, error.details]) {
      expect(excerpt).toMatch(/^é+… \[cut\]$/);
      expect(Buffer.byteLength(excerpt!)).toBeLessThan(4200);
    }
    await receiver.waitFor((r) => r.abandoned === 2);
  });

  test("field-faults E6: a gzip bomb is neither asked for nor unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    await using receiver = await startReceiver({
      respond: () => ({ body: bomb, headers: { "content-encoding": "gzip" } }),
    });
    await using sender = loopbackSender();
    const receipt = await sender.deliver(deliveryTo(receiver.url));
    expect(receipt).toMatchObject({ statusCode: 200, excerpt: "[compressed, not decoded]" });
    expect(receiver.requests[0]!.headers["accept-encoding"]).toBeUndefined();
  });

  test("field-faults E6: endless headers are no answer", async () => {
    await using server = await startRawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const more = (): void => {
        while (!socket.destroyed && socket.write(`x-more: ${"a".repeat(1000)}\r\n`));
        if (!socket.destroyed) socket.once("drain", more);
      };
      more();
    });
    await using sender = loopbackSender();
    const error = await failureOf(sender.deliver(deliveryTo(`http://127.0.0.1:${server.port}/`)));
    expect(error.code).toBe("invalid_response");
  });

  test("field-faults E6: the excerpt can be stored whatever the bytes are", async () => {
    await using receiver = await startReceiver({
      respond: () => ({ status: 422, body: Buffer.from("a\u0000b\u001b[31m\tc\n\xff\xc3", "latin1") }),
    });
    await using sender = loopbackSender();
    const { details } = await failureOf(sender.deliver(deliveryTo(receiver.url)));
    expect(details.excerpt).toBe("a\ufffdb\ufffd[31m\tc\n\ufffd\ufffd");
  });
});

describe("field-faults E10: length in bytes", () => {
  for (const name of ["😀👩‍👩‍👧", "漢字𠮷", "e\u0301\u0323", "مرحبا", "Ω".repeat(10_000)])
    test(`field-faults E10: ${name.slice(0, 8)}`, async () => {
      const payload = Buffer.from(JSON.stringify({ name }));
      await using receiver = await startReceiver();
      await using sender = loopbackSender();
      await sender.deliver(deliveryTo(receiver.url, { payload }));
      const { headers, body } = receiver.requests[0]!;
      expect(Number(headers["content-length"])).toBe(payload.byteLength);
      expect(payload.byteLength).toBeGreaterThan(JSON.stringify({ name }).length);
      expect(body.equals(payload)).toBe(true);
      expect(JSON.parse(body.toString("utf8"))).toEqual({ name });
    });
});

describe("field-faults E11: custom headers", () => {
  const hooks = createHookwell({ store: new MemoryOutbox(), project: "live" });
  const create = (headers: Record<string, unknown>) =>
    hooks.subscriptions.create({ url: "https://example.com/", headers: headers as Record<string, string> });
  const bad: readonly (readonly [name: string, value: unknown])[] = [
    ["x-a", "a\r\nx-injected: 1"],
    ["x-a", "a\nb"],
    ["x-a", "a\u0000b"],
    ["x-a", "日本"],
    ["x-a", "na\u00efve"],
    ["x-a", " padded"],
    ["x-a", "padded\t"],
    ["x-a", "a\u007f"],
    ["x-a", "v".repeat(10_000)],
    ["x-a", 7],
    ["", "v"],
    ["x a", "v"],
    ["x:a", "v"],
    ["x-é", "v"],
    ["n".repeat(200), "v"],
    ["Host", "v"],
    ["Content-Length", "5"],
    ["content-type", "text/plain"],
    ["Content-Encoding", "gzip"],
    ["Transfer-Encoding", "chunked"],
    ["Connection", "close"],
    ["Expect", "100-continue"],
    ["User-Agent", "me"],
    ["Webhook-Signature", "v1,x"],
    ["webhook-id", "evt_2"],
    ["X-Hookwell-Signature", "sha256=0"],
    ["x-hookwell-anything", "v"],
  ];
  for (const [name, value] of bad)
    test(`field-faults E11: ${JSON.stringify(name.slice(0, 20))}: ${JSON.stringify(value).slice(0, 20)} is refused by name`, async () => {
      const pointer = `/headers/${name.slice(0, 128).replaceAll("~", "~0").replaceAll("/", "~1")}`;
      await expect(create({ "x-good": "v", [name]: value })).rejects.toMatchObject({
        code: "validation_failed",
        problems: [{ pointer }],
      });
    });

  test("field-faults E11: too many, too large together, and the same name twice", async () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`x-${index}`, "v"]));
    await expect(create(many)).rejects.toMatchObject({ problems: [{ pointer: "/headers" }] });
    const large = Object.fromEntries(
      Array.from({ length: 3 }, (_, index) => [`x-${index}`, "v".repeat(4000)]),
    );
    await expect(create(large)).rejects.toMatchObject({ problems: [{ pointer: "/headers" }] });
    await expect(create({ "X-A": "1", "x-a": "2" })).rejects.toMatchObject({
      problems: [{ pointer: "/headers/x-a" }],
    });
    expect((await hooks.subscriptions.list()).items).toHaveLength(0);
  });

  test("field-faults E11: a renamed prefix is reserved as well, and good headers arrive as they are", async () => {
    await using receiver = await startReceiver();
    const wired = createHookwell({
      store: new MemoryOutbox(),
      project: "live",
      network: loopback,
      logger: quiet,
      wire: { headerPrefix: "X-Acme-" },
    });
    const url = receiver.url;
    await expect(wired.subscriptions.create({ url, headers: { "x-acme-event": "v" } })).rejects.toMatchObject(
      {
        problems: [{ pointer: "/headers/x-acme-event" }],
      },
    );
    const headers = { Authorization: "Bearer t~0ken", "X-Empty": "", "x-tab": "a\tb" };
    await wired.subscriptions.create({ url, headers });
    await wired.emit("order.paid", {}, { tx: "own" });
    await wired.drain({ deadlineMs: 10_000 });
    const { rawHeaders } = receiver.requests[0]!;
    for (const [name, value] of Object.entries(headers)) {
      const at = rawHeaders.indexOf(name);
      expect(rawHeaders.slice(at, at + 2)).toEqual([name, value]);
    }
    expect(rawHeaders).toContain("x-acme-signature");
    expect(rawHeaders.join()).not.toContain("x-hookwell");
    await wired.close();
  });
});
