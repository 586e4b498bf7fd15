import { VerificationError } from "hookwell";
import { describe, expect, test } from "vitest";
import { bodySignature, checkSecret, generateSecret, standardSignature } from "../../src/send/signatures.ts";
import { type IncomingHeaders, verify, verifyBodySignature } from "../../src/send/verify.ts";
import { secret } from "./deliveries.ts";

const body = '{"a":1}';
const now = new Date("2026-05-06T07:08:09Z");
const seconds = now.getTime() / 1000;
const good = {
  "webhook-id": "evt_1",
  "webhook-timestamp": String(seconds),
  "webhook-signature": standardSignature([secret], "evt_1", seconds, Buffer.from(body)),
};

function codeOf(headers: IncomingHeaders, given: string | Uint8Array = body, options = {}): string {
  try {
    verify(headers, given, secret, { now, ...options });
    return "verified";
  } catch (error) {
    if (error instanceof VerificationError) return error.code;
    throw error;
  }
}

describe("verify", () => {
  test("names what is wrong by its code", () => {
    expect(codeOf(good)).toBe("verified");
    for (const name of Object.keys(good)) {
      expect(codeOf({ ...good, [name]: undefined })).toBe("missing_header");
      expect(codeOf({ ...good, [name]: " " })).toBe("missing_header");
    }
    for (const signature of [
      "abc",
      "v1",
      "v1,",
      "v1,a b",
      "v1;abc",
      "v1,ü",
      `${good["webhook-signature"]} x`,
    ])
      expect([signature, codeOf({ ...good, "webhook-signature": signature })]).toEqual([
        signature,
        "malformed_header",
      ]);
    expect(codeOf({ ...good, "Webhook-Id": "evt_2" })).toBe("malformed_header");
    expect(codeOf({ ...good, "webhook-timestamp": [good["webhook-timestamp"], "1"] })).toBe(
      "malformed_header",
    );
    for (const timestamp of ["soon", "-1", "1e9", "1.5", "0x1", "1".repeat(20)])
      expect(codeOf({ ...good, "webhook-timestamp": timestamp })).toBe("bad_timestamp");
    expect(codeOf(good, `${body} `)).toBe("no_match");
    expect(codeOf({ ...good, "webhook-id": "evt_2" })).toBe("no_match");
    expect(codeOf({ ...good, "webhook-timestamp": String(seconds + 1) })).toBe("no_match");
    expect(codeOf({ ...good, "webhook-signature": "v1a,AAAA v2,AAAA" })).toBe("no_match");
    expect(codeOf({ ...good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,") })).toBe(
      "no_match",
    );
  });

  test("holds the tolerance on both sides, to the second", () => {
    const at = (offset: number): Date => new Date(now.getTime() + offset * 1000);
    expect(codeOf(good, body, { now: at(300) })).toBe("verified");
    expect(codeOf(good, body, { now: at(301) })).toBe("too_old");
    expect(codeOf(good, body, { now: at(-300) })).toBe("verified");
    expect(codeOf(good, body, { now: at(-301) })).toBe("too_new");
    expect(codeOf(good, body, { now: at(11), toleranceSeconds: 10 })).toBe("too_old");
    expect(codeOf(good, body, { now: at(0), toleranceSeconds: 0 })).toBe("verified");
  });

  test("a wrong call is an error of its own kind", () => {
    const call =
      (...given: Parameters<typeof verify>) =>
      () =>
        verify(...given);
    const invalid = (pointer: string) =>
      expect.objectContaining({
        code: "validation_failed",
        problems: [expect.objectContaining({ pointer })],
      });
    expect(call(good, body, [], { now })).toThrowError(invalid("/secrets"));
    expect(call(good, body, "", { now })).toThrowError(invalid("/secret"));
    expect(call(good, body, "whsec_***", { now })).toThrowError(invalid("/secret"));
    expect(call(good, { a: 1 } as never, secret, { now })).toThrowError(invalid("/body"));
    expect(call(good, body, secret, { now, toleranceSeconds: Number.NaN })).toThrowError(
      invalid("/toleranceSeconds"),
    );
    const text = "not json";
    const signature = standardSignature([secret], "evt_1", seconds, Buffer.from(text));
    expect(call({ ...good, "webhook-signature": signature }, text, secret, { now })).toThrowError(
      expect.objectContaining({ code: "invalid_json" }),
    );
  });

  test("keeps every digit of large integers, and reads a view of a larger buffer", () => {
    const text = '{"n":9007199254740993}';
    const pool = Buffer.from(`xx${text}yy`);
    const view = new Uint8Array(pool.buffer, pool.byteOffset + 2, text.length);
    const headers = {
      ...good,
      "webhook-signature": standardSignature(["a", secret], "evt_1", seconds, view),
    };
    expect(verify(headers, view, ["b", secret], { now }).payload).toEqual({ n: 9007199254740993n });
  });
});

describe("secrets", () => {
  test("made ones are whsec_ and 32 random bytes", () => {
    let next = 0;
    const made = generateSecret((size) => new Uint8Array(size).fill(next++));
    expect(made).toBe(`whsec_${Buffer.alloc(32).toString("base64")}`);
    expect(() => checkSecret(made)).not.toThrow();
    expect(generateSecret((size) => new Uint8Array(size).fill(next++))).not.toBe(made);
  });

  test("a problem names the field that was asked for", () => {
    expect(() => checkSecret(7, "signing_secret")).toThrowError(
      expect.objectContaining({ problems: [{ pointer: "/signing_secret", message: "must be text" }] }),
    );
  });

  test("known answers", () => {
    // Computed with: openssl dgst -sha256 -mac HMAC -macopt key:key
    expect(bodySignature("key", Buffer.from("The quick brown fox jumps over the lazy dog"))).toBe(
      "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
    );
    expect(
      verifyBodySignature(
        "The quick brown fox jumps over the lazy dog",
        "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
        `whsec_${Buffer.from("key").toString("base64")}`,
      ),
    ).toBe(true);
  });

  test("the key cache stays right when it is full", () => {
    const payload = Buffer.from("x");
    const first = bodySignature("secret-0", payload);
    for (let index = 0; index < 10_100; index++) bodySignature(`secret-${index}`, payload);
    expect(bodySignature("secret-0", payload)).toBe(first);
    expect(bodySignature("secret-10099", payload)).not.toBe(first);
  });
});
