import { describe, expect, test } from "vitest";
import { Deadlines } from "../../src/send/deadlines.ts";
import { deliveryCodes, httpCodes, otherCodes } from "../../src/send/delivery-codes.ts";
import { transportFailure } from "../../src/send/failures.ts";
import { parseNetwork } from "../../src/send/ip-address.ts";

describe("the table of error codes", () => {
  const all = [...deliveryCodes, ...httpCodes, ...otherCodes];
  test("each code is there once, with its meaning and what to do", () => {
    expect(new Set(all.map(({ code }) => code)).size).toBe(all.length);
    for (const { code, meaning, advice } of all) {
      expect(code).toMatch(/^[a-z0-9_]+$/);
      for (const text of [meaning, advice]) expect(text).toMatch(/^[A-Z].*\.$/s);
    }
  });

  test("errors of the system get a code of the table, whatever they are", () => {
    const codes = new Set<string>(deliveryCodes.map(({ code }) => code));
    for (const error of [
      Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:443"), { code: "ECONNREFUSED" }),
      Object.assign(new Error("x"), { code: "EHOSTUNREACH" }),
      Object.assign(new Error("x"), { code: "ESOMETHING" }),
      Object.assign(new Error("x"), { code: "CERT_REVOKED" }),
      new TypeError("x"),
      "thrown text",
      undefined,
    ]) {
      const failure = transportFailure(error, "hooks.test:443");
      expect(codes).toContain(failure.code);
      expect(failure.message).toContain("hooks.test:443");
      expect(failure.message).not.toContain("10.0.0.1");
    }
  });
});

describe("deadlines", () => {
  test("expire in order, and not what was removed", async () => {
    const deadlines = new Deadlines(20);
    const expired: string[] = [];
    const all = Promise.withResolvers<void>();
    const item = (name: string, last = false) => ({
      expire() {
        expired.push(name);
        if (last) all.resolve();
      },
    });
    const removed = item("removed");
    deadlines.add(item("first"));
    deadlines.add(removed);
    deadlines.remove(removed);
    await new Promise((resolve) => setTimeout(resolve, 5));
    deadlines.add(item("second", true));
    // The sender's timer does not hold the process open; the test has to.
    const alive = setInterval(() => {}, 1_000);
    await all.promise;
    clearInterval(alive);
    expect(expired).toEqual(["first", "second"]);
    deadlines.close();
  });
});

test("networks are read in every form and nothing else is", () => {
  expect(parseNetwork("10.1.2.3")).toEqual({ family: 4, value: 0x0a010203n, bits: 32 });
  expect(parseNetwork("::1")).toEqual({ family: 6, value: 1n, bits: 128 });
  expect(parseNetwork("::ffff:10.0.0.0/104")).toEqual({ family: 4, value: 0x0a000000n, bits: 8 });
  expect(parseNetwork("2001:db8::1.2.3.4/32")?.value).toBe(0x20010db8000000000000000001020304n);
  for (const text of [
    "",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "10.0.0.0/8x",
    "::/129",
    "::ffff:1.2.3.4/64",
    "a/8",
    "1.2.3/8",
  ])
    expect([text, parseNetwork(text)]).toEqual([text, undefined]);
});
