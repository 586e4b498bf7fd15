import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { createHookwell, MemoryOutbox } from "hookwell";
import { startReceiver } from "hookwell/testing";
import { describe, expect, test } from "vitest";
import type { ResolvedAddress } from "../../src/send/resolver.ts";
import { certificate, certificateAuthority } from "../send/certificates.ts";
import { deliveryTo, failureOf, loopbackSender } from "../send/deliveries.ts";
import { ok, startBlackHole, startRawServer } from "../send/raw-server.ts";

const v4: ResolvedAddress = { address: "127.0.0.1", family: 4 };
const v6: ResolvedAddress = { address: "::1", family: 6 };

describe("field-faults E7: keep-alive", () => {
  /** The pool takes a connection back a turn after its answer ended. */
  const idle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };

  for (const [how, leave] of [
    ["a reset", (socket: { resetAndDestroy(): void }) => socket.resetAndDestroy()],
    ["a close", (socket: { destroy(): void }) => socket.destroy()],
  ] as const)
    test(`field-faults E7: ${how} on a reused connection before any answer is sent again on a new one`, async () => {
      await using server = await startRawServer((socket, { index }) => {
        if (index === 1) leave(socket);
        else socket.write(ok);
      });
      await using sender = loopbackSender();
      const url = `http://127.0.0.1:${server.port}/`;
      await sender.deliver(deliveryTo(url, { id: "dlv_a" }));
      await idle();
      const receipt = await sender.deliver(deliveryTo(url, { id: "dlv_b" }));
      expect(receipt.statusCode).toBe(200);
      expect(server.requests.map((request) => request.connection)).toEqual([0, 0, 1]);
      const [, first, second] = server.requests.map(({ text }) => text.replace(/^connection: .*\r\n/im, ""));
      expect(second).toBe(first);
    });

  test("field-faults E7: it is tried again once, and a reset on a new connection is a failure", async () => {
    await using server = await startRawServer((socket, { index }) => {
      if (index === 0) socket.write(ok);
      else socket.resetAndDestroy();
    });
    await using sender = loopbackSender();
    const url = `http://127.0.0.1:${server.port}/`;
    await sender.deliver(deliveryTo(url));
    await idle();
    expect((await failureOf(sender.deliver(deliveryTo(url)))).code).toBe("reset");
    expect(server.requests).toHaveLength(3);
    expect((await failureOf(sender.deliver(deliveryTo(url)))).code).toBe("reset");
    expect(server.requests).toHaveLength(4);
  });

  test("field-faults E7: a reset after the answer began is not sent again", async () => {
    await using server = await startRawServer((socket, { index }) => {
      if (index === 0) socket.write(ok);
      else socket.write("HTTP/1.1 50", () => socket.resetAndDestroy());
    });
    await using sender = loopbackSender();
    const url = `http://127.0.0.1:${server.port}/`;
    await sender.deliver(deliveryTo(url));
    await idle();
    expect((await failureOf(sender.deliver(deliveryTo(url)))).code).toBe("reset");
    expect(server.requests).toHaveLength(2);
  });

  test("field-faults E7: over TLS a new connection that breaks is a failure, a reused one is not", async () => {
    const authority = certificateAuthority();
    const seen: number[] = [];
    let connections = 0;
    const server = createServer(
      certificate({ names: ["localhost"], issuer: authority }),
      (request, response) => {
        seen.push((request.socket as { number?: number }).number ?? -1);
        if (seen.length % 2 === 1) request.socket.destroy();
        else response.end();
      },
    );
    server.on("secureConnection", (socket: { number?: number }) => {
      socket.number = connections++;
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    await using sender = loopbackSender({ ca: authority.cert, resolver: async () => [v4] });
    const url = `https://localhost:${(server.address() as AddressInfo).port}/`;
    expect((await failureOf(sender.deliver(deliveryTo(url)))).code).toBe("reset");
    await sender.deliver(deliveryTo(url));
    await idle();
    await expect(sender.deliver(deliveryTo(url))).resolves.toMatchObject({ statusCode: 200 });
    expect(seen).toEqual([0, 1, 1, 2]);
    await sender.close();
    server.closeAllConnections();
    server.close();
  });

  test("field-faults E7: a receiver that closes idle connections between sends loses nothing", async () => {
    await using receiver = await startReceiver();
    await using sender = loopbackSender();
    for (let index = 0; index < 10; index++) {
      await sender.deliver(deliveryTo(receiver.url, { id: `dlv_${index}` }));
      receiver.closeIdleConnections();
    }
    expect(receiver.requests.map((request) => request.headers["x-hookwell-delivery"])).toEqual(
      Array.from({ length: 10 }, (_, index) => `dlv_${index}`),
    );
  });
});

describe("field-faults E8: dual stack", () => {
  test("field-faults E8: an AAAA black hole and a good A", async () => {
    await using receiver = await startReceiver();
    await using hole = await startBlackHole({ host: "::1", port: receiver.port });
    expect(hole.port).toBe(receiver.port);
    await using sender = loopbackSender({ resolver: async () => [v6, v4], limits: { nextAddressMs: 20 } });
    await sender.deliver(deliveryTo(`http://dual.test:${receiver.port}/hook`));
    expect(receiver.requests[0]!.headers.host).toBe(`dual.test:${receiver.port}`);
  });

  test("field-faults E8: the other way round, over https, and with a closed port first", async () => {
    const authority = certificateAuthority();
    const tls = certificate({ names: ["dual.test"], issuer: authority });
    await using receiver = await startReceiver({ host: "::1", tls });
    await using sender = loopbackSender({
      ca: authority.cert,
      // Nothing listens on the same port of IPv4: refused at once, without the wait.
      limits: { nextAddressMs: 60_000 },
      resolver: async () => [v4, v6],
    });
    await sender.deliver(deliveryTo(`https://dual.test:${receiver.port}/hook`));
    expect(receiver.requests).toHaveLength(1);
  });

  test("field-faults E8: a slow address is not given up while the others are tried", async () => {
    await using slow = await startBlackHole();
    const dead: ResolvedAddress = { address: "127.0.0.9", family: 4 };
    await using _hole = await startBlackHole({ host: dead.address, port: slow.port });
    await using sender = loopbackSender({
      limits: { nextAddressMs: 10 },
      resolver: async () => [v4, dead],
    });
    let attempts = 0;
    const bothBegan = Promise.withResolvers<void>();
    const onSocket = (): void => {
      if (++attempts === 2) bothBegan.resolve();
    };
    diagnostics.subscribe("net.client.socket", onSocket);
    const sending = sender.deliver(deliveryTo(`http://slow.test:${slow.port}/`));
    await bothBegan.promise;
    diagnostics.unsubscribe("net.client.socket", onSocket);
    // The first address answers the SYN that its machine sends again, long after the second was tried.
    slow.open();
    await expect(sending).resolves.toMatchObject({ statusCode: 200 });
  });

  test("field-faults E8: when no address answers, the first reason is told", async () => {
    const gone = await startReceiver();
    await gone.close();
    await using sender = loopbackSender({ resolver: async () => [v6, v4] });
    const error = await failureOf(sender.deliver(deliveryTo(`http://dual.test:${gone.port}/`)));
    expect(error.code).toBe("connect_refused");
  });
});

describe("field-faults E9: TLS", () => {
  const authority = certificateAuthority();
  const cases = [
    ["expired", { names: ["hooks.test"], issuer: authority, days: [-10, -1] }, "tls_expired"],
    ["not valid yet", { names: ["hooks.test"], issuer: authority, days: [1, 10] }, "tls_expired"],
    ["self-signed", { names: ["hooks.test"] }, "tls_untrusted"],
    [
      "of an unknown authority",
      { names: ["hooks.test"], issuer: certificate({ names: ["Stranger"], authority: true }) },
      "tls_untrusted",
    ],
    ["for another host", { names: ["other.test"], issuer: authority }, "tls_wrong_host"],
    ["for the address alone", { names: ["127.0.0.1"], issuer: authority }, "tls_wrong_host"],
  ] as const;
  for (const [what, options, code] of cases)
    test(`field-faults E9: a certificate ${what} fails as ${code}, and nothing is sent`, async () => {
      await using receiver = await startReceiver({ tls: certificate(options) });
      await using sender = loopbackSender({ ca: authority.cert, resolver: async () => [v4] });
      const error = await failureOf(
        sender.deliver(deliveryTo(`https://hooks.test:${receiver.port}/?key=k3y`)),
      );
      expect(error.code).toBe(code);
      expect(error.message).toContain("hooks.test");
      expect(error.message).not.toContain("k3y");
      expect(receiver.requests).toHaveLength(0);
    });

  test("field-faults E9: a test send shows each reason", async () => {
    const shown: string[] = [];
    for (const [, options] of [cases[0], cases[2], cases[4]]) {
      await using receiver = await startReceiver({ tls: certificate(options) });
      await using sender = loopbackSender({ ca: authority.cert, resolver: async () => [v4] });
      const hooks = createHookwell({ store: new MemoryOutbox(), project: "live", sender });
      const { id } = await hooks.subscriptions.create({ url: `https://hooks.test:${receiver.port}/` });
      const { attempt } = await hooks.subscriptions.test(id);
      expect(attempt).toMatchObject({ number: 1, error: expect.stringContaining("hooks.test") });
      expect(attempt.statusCode).toBeUndefined();
      expect(receiver.requests).toHaveLength(0);
      shown.push(attempt.errorCode!);
    }
    expect(shown).toEqual(["tls_expired", "tls_untrusted", "tls_wrong_host"]);
  });

  test("field-faults E9: plain HTTP on the port, and a close in the handshake, fail as tls_failed", async () => {
    await using plain = await startReceiver();
    await using sender = loopbackSender();
    const spoken = await failureOf(sender.deliver(deliveryTo(`https://127.0.0.1:${plain.port}/`)));
    const closing = createTcpServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
    await once(closing, "listening");
    const { port } = closing.address() as AddressInfo;
    const closed = await failureOf(sender.deliver(deliveryTo(`https://127.0.0.1:${port}/`)));
    closing.close();
    expect([spoken.code, closed.code]).toEqual(["tls_failed", "tls_failed"]);
  });

  test("field-faults E9: a right certificate is accepted for a name and for an address", async () => {
    await using receiver = await startReceiver({
      tls: certificate({ names: ["hooks.test", "127.0.0.1"], issuer: authority }),
    });
    await using sender = loopbackSender({ ca: authority.cert, resolver: async () => [v4] });
    for (const host of ["hooks.test", "hooks.test.", "127.0.0.1"])
      await expect(sender.deliver(deliveryTo(`https://${host}:${receiver.port}/`))).resolves.toMatchObject({
        statusCode: 200,
      });
  });
});
