import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import fc from "fast-check";
import { createHookwell, MemoryOutbox } from "hookwell";
import { answers, startReceiver } from "hookwell/testing";
import { afterEach, describe, expect, test, vi } from "vitest";
import { AddressGuard } from "../../src/send/address-guard.ts";
import { checkUrl } from "../../src/send/endpoint-url.ts";
import { HttpSender } from "../../src/send/http-sender.ts";
import type { ResolvedAddress } from "../../src/send/resolver.ts";
import { certificate, certificateAuthority } from "../send/certificates.ts";
import { deliveryTo, failureOf, loopback, loopbackSender } from "../send/deliveries.ts";

const logger = { info() {}, warn() {}, error() {} };
const hex = (address: string, from: number): string => {
  const parts = address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"));
  return parts.slice(from, from + 2).join("");
};
/** The IPv6 forms that lead to an IPv4 address. */
const formsOf = (address: string): string[] => {
  const [high, low] = [hex(address, 0), hex(address, 2)];
  const flipped = address
    .split(".")
    .map((part) => String(255 - Number(part)))
    .join(".");
  return [
    `::ffff:${address}`,
    `::ffff:${high}:${low}`,
    `0:0:0:0:0:ffff:${high}:${low}`,
    `64:ff9b::${high}:${low}`,
    `2002:${high}:${low}::`,
    `2002:${high}:${low}:1:2:3:4:5`,
    `2001:0:${high}:${low}::`,
    `2001:0:808:808:0:0:${hex(flipped, 0)}:${hex(flipped, 2)}`,
  ];
};

describe("field-faults G1: SSRF by the form of an address", () => {
  const refused = [
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::]/",
    "https://[::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://2130706433/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://１２７。０。０。１/",
    "https://①②⑦.⓪.⓪.①/",
    "https://0/",
    "https://10.1.2.3/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::ffff:169.254.169.254]/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://192.0.0.8/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://198.19.255.255/",
    "https://198.51.100.7/",
    "https://203.0.113.9/",
    "https://224.0.0.251/",
    "https://239.255.255.250/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[fe80::1]/",
    "https://[febf::1]/",
    "https://[fec0::1]/",
    "https://[fc00::1]/",
    "https://[fd12:3456::1]/",
    "https://[ff02::1]/",
    "https://[100::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[5f00::1]/",
    "https://[64:ff9b:1::1]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2001:10::1]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://a.localhost/",
  ];
  for (const url of refused)
    test(`field-faults G1: ${url} is refused at save and, stored all the same, at the send`, async () => {
      expect(() => checkUrl(url)).toThrowError(
        expect.objectContaining({
          code: "blocked_address",
          problems: [
            { pointer: "/url", message: expect.stringContaining("HOOKWELL_ALLOW_NETWORKS") as string },
          ],
        }),
      );
      const sender = new HttpSender();
      const error = await failureOf(sender.deliver(deliveryTo(url)));
      expect(error.code).toBe("blocked_address");
      await sender.close();
    });

  test("field-faults G1: every IPv4 form of IPv6 is decided on as that IPv4 address", () => {
    const guard = new AddressGuard();
    const isPublic = (address: string): boolean => guard.refusal(address, "https:") === undefined;
    const privately = fc.constantFrom("10", "127", "0", "169.254", "172.16", "192.168", "224", "100.64");
    fc.assert(
      fc.property(privately, fc.ipV4(), (start, rest) => {
        const kept = rest.split(".").slice(start.split(".").length);
        const address = [...start.split("."), ...kept].join(".");
        for (const form of [address, ...formsOf(address)])
          expect([form, isPublic(form)]).toEqual([form, false]);
      }),
    );
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [first, ...rest] = formsOf(address).filter((form) => !form.startsWith("2001:0:"));
        expect(isPublic(first!)).toBe(isPublic(address));
        for (const form of rest) expect([form, isPublic(form)]).toEqual([form, isPublic(address)]);
      }),
    );
  });

  test("field-faults G1: public addresses of both families are accepted", () => {
    for (const host of [
      "8.8.8.8",
      "1.1.1.1",
      "100.63.255.255",
      "100.128.0.0",
      "172.15.0.1",
      "172.32.0.1",
      "223.255.255.255",
      "[2606:4700::1111]",
      "[2a00:1450::1]",
      "[2003::1]",
      "[64:ff9b::808:808]",
      "[2002:808:808::1]",
      "example.com",
      "localhost.example.com",
    ])
      expect(checkUrl(`https://${host}/`)).toBe(`https://${host}/`);
  });

  test("field-faults G1: other schemes and unusable urls are refused with the field named", () => {
    for (const url of [
      "ftp://example.com/",
      "file:///etc/passwd",
      "gopher://example.com/",
      "javascript:alert(1)",
      "//example.com/",
      "example.com",
      "https://",
      "https://exa\nmple.com/",
      " https://example.com/",
      "https://example.com:0/",
      "https://example.com:70000/",
      `https://example.com/${"a".repeat(3000)}`,
      "https://example.com/\ud800",
      "",
      7,
      null,
    ])
      expect(() => checkUrl(url, { http: true })).toThrowError(
        expect.objectContaining({
          code: "validation_failed",
          problems: [{ pointer: "/url", message: expect.any(String) as string }],
        }),
      );
  });
});

describe("field-faults G2: SSRF by DNS, redirect, proxy", () => {
  afterEach(() => vi.unstubAllEnvs());
  // 127.0.0.2 stands for a public address: it is the only one that is allowed.
  const network = { allow: ["127.0.0.2/32"], http: true };
  const outside: ResolvedAddress = { address: "127.0.0.2", family: 4 };
  const inside: ResolvedAddress = { address: "127.0.0.1", family: 4 };

  test("field-faults G2: a name that turns to loopback after its first answer gets nothing there", async () => {
    await using outer = await startReceiver({
      host: "127.0.0.2",
      respond: () => ({ headers: { connection: "close" } }),
    });
    await using inner = await startReceiver({ port: outer.port });
    let lookups = 0;
    await using sender = loopbackSender({
      network,
      resolver: async () => (lookups++ === 0 ? [outside] : [inside]),
    });
    const url = `http://rebind.test:${outer.port}/`;
    await sender.deliver(deliveryTo(url));
    const error = await failureOf(sender.deliver(deliveryTo(url)));
    expect(error.code).toBe("blocked_address");
    expect(error.message).toContain("HOOKWELL_ALLOW_NETWORKS");
    expect(error.message).not.toContain("127.0.0.1");
    expect([lookups, outer.requests.length, inner.requests.length, inner.connections]).toEqual([2, 1, 0, 0]);
    expect(outer.requests[0]!.headers.host).toBe(`rebind.test:${outer.port}`);
  });

  for (const records of [
    [outside, inside],
    [inside, outside],
    [outside, { address: "::1", family: 6 } as const],
    [outside, { address: "::ffff:127.0.0.1", family: 6 } as const],
    [outside, { address: "not an address", family: 4 } as const],
  ])
    test(`field-faults G2: one forbidden record of ${records.map((r) => r.address).join(", ")} refuses the attempt`, async () => {
      await using outer = await startReceiver({ host: "127.0.0.2" });
      await using sender = loopbackSender({ network, resolver: async () => records });
      const error = await failureOf(sender.deliver(deliveryTo(`http://mixed.test:${outer.port}/`)));
      expect(error.code).toBe("blocked_address");
      expect(outer.connections).toBe(0);
    });

  test("field-faults G2: Host and SNI keep the name while the connection goes to the checked address", async () => {
    const authority = certificateAuthority();
    const names: (string | false)[] = [];
    const server = createServer(
      certificate({ names: ["hooks.test"], issuer: authority }),
      (request, response) => {
        names.push(
          (request.socket as TLSSocket & { servername: string | false }).servername,
          request.headers.host ?? "",
        );
        response.end();
      },
    );
    await once(server.listen(0, "127.0.0.2"), "listening");
    const { port } = server.address() as AddressInfo;
    let lookups = 0;
    const sender = new HttpSender({
      network,
      ca: authority.cert,
      resolver: async () => {
        lookups++;
        return [outside];
      },
    });
    await sender.deliver(deliveryTo(`https://hooks.test:${port}/`));
    expect([lookups, ...names]).toEqual([1, "hooks.test", `hooks.test:${port}`]);
    await sender.close();
    server.close();
  });

  test("field-faults G2: a redirect to an inner address is not requested", async () => {
    await using inner = await startReceiver();
    await using outer = await startReceiver({
      host: "127.0.0.2",
      respond: answers(
        { status: 307, headers: { location: inner.url } },
        {
          status: 302,
          headers: { location: `http://127.0.0.1:${inner.port}/`, refresh: `0;url=${inner.url}` },
        },
      ),
    });
    await using sender = loopbackSender({ network });
    for (const code of ["http_307", "http_302"])
      expect((await failureOf(sender.deliver(deliveryTo(outer.url)))).code).toBe(code);
    expect(inner.connections).toBe(0);
  });

  test("field-faults G2: proxy variables of the environment are not followed", async () => {
    await using proxy = await startReceiver();
    for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    await using receiver = await startReceiver();
    await using sender = loopbackSender();
    await sender.deliver(deliveryTo(receiver.url));
    await failureOf(sender.deliver(deliveryTo(`https://127.0.0.1:${receiver.port}/`)));
    expect([receiver.requests.length, proxy.connections]).toEqual([1, 0]);
  });

  test("field-faults G2: a dispatcher of the caller's does not open literal addresses either", async () => {
    await using inner = await startReceiver();
    const dispatched: unknown[] = [];
    const { Agent } = await import("undici");
    const agent = new Agent();
    const sender = new HttpSender(
      Object.assign(
        agent.compose(
          (dispatch) => (options, handler) => dispatched.push(options) > 0 && dispatch(options, handler),
        ),
      ),
    );
    expect((await failureOf(sender.deliver(deliveryTo(inner.url)))).code).toBe("blocked_address");
    expect([dispatched.length, inner.connections]).toEqual([0, 0]);
    const open = new HttpSender({ dispatcher: agent, network: loopback });
    await open.deliver(deliveryTo(inner.url));
    expect(inner.requests).toHaveLength(1);
    await agent.close();
  });
});

describe("field-faults G3: inner names on purpose", () => {
  const url = "http://webhook:5001/";

  test("field-faults G3: without the setting it is refused, and the text names the setting", async () => {
    const hooks = createHookwell({ store: new MemoryOutbox(), project: "live", logger });
    for (const refused of [url, "http://10.0.0.7:5001/", "https://10.0.0.7/", "http://hooks.example.com/"])
      await expect(hooks.subscriptions.create({ url: refused })).rejects.toMatchObject({
        problems: [
          { pointer: "/url", message: expect.stringContaining("HOOKWELL_ALLOW_NETWORKS") as string },
        ],
      });
  });

  test("field-faults G3: with it the name is accepted and delivered to, over http", async () => {
    await using receiver = await startReceiver();
    const network = { allow: ["127.0.0.0/8"] };
    const inner: ResolvedAddress = { address: "127.0.0.1", family: 4 };
    const sender = new HttpSender({ network, resolver: async () => [inner] });
    const hooks = createHookwell({ store: new MemoryOutbox(), project: "live", network, sender, logger });
    await hooks.subscriptions.create({ url: `http://webhook:${receiver.port}/in` });
    await hooks.emit("order.paid", {}, { tx: "own" });
    await hooks.drain({ deadlineMs: 10_000 });
    expect(receiver.requests.map(({ path, headers }) => [path, headers.host])).toEqual([
      ["/in", `webhook:${receiver.port}`],
    ]);
    await hooks.close();
    await sender.close();
  });

  test("field-faults G3: plain http to a public address stays refused, and other inner networks too", async () => {
    const network = { allow: ["10.0.0.0/8", "fd00::/8"] };
    expect(() => checkUrl("http://8.8.8.8/", network)).toThrow(/HOOKWELL_ALLOW_NETWORKS/);
    expect(() => checkUrl("https://192.168.0.1/", network)).toThrow(/HOOKWELL_ALLOW_NETWORKS/);
    for (const open of [
      "http://10.9.8.7/",
      "https://[fd00::1]/",
      "http://[::ffff:10.0.0.1]/",
      "https://8.8.8.8/",
    ])
      expect(checkUrl(open, network)).toMatch(/^https?:/);
    const sender = new HttpSender({ network, resolver: async () => [{ address: "8.8.8.8", family: 4 }] });
    const error = await failureOf(sender.deliver(deliveryTo("http://public.test/")));
    expect(error).toMatchObject({
      code: "blocked_address",
      message: expect.stringContaining("https") as string,
    });
    await sender.close();
  });

  test("field-faults G3: a setting that is no network is refused at the start", () => {
    for (const entry of ["10.0.0.0/33", "10.0.0/8", "fd00::/129", "webhook", "10.0.0.0/8/8", ""])
      expect(() => createHookwell({ store: new MemoryOutbox(), network: { allow: [entry] } })).toThrow(
        /HOOKWELL_ALLOW_NETWORKS/,
      );
  });
});
