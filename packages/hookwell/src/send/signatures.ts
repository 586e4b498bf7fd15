import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { ValidationError } from "../model/errors.ts";
import type { RandomBytes } from "../model/ids.ts";

const prefix = "whsec_";
/** Fewest and most key bytes behind `whsec_` (Standard Webhooks 1.0). */
const keyBytes = { least: 24, most: 64 };
/** Longest plain secret, in bytes. */
const plainBytes = 256;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
// White space, the byte order mark, and everything else that is not seen when a secret is copied.
const unseen = /[\s\p{Cc}\p{Cf}]/u;

/** A fresh secret: `whsec_` and the base64 of 32 random bytes. */
export function generateSecret(random: RandomBytes): string {
  return prefix + Buffer.from(random(32)).toString("base64");
}

/**
 * Checks a secret that somebody chose: `whsec_` and the padded base64 of 24 to 64 bytes, or plain text of 1 to
 * 256 bytes. White space and invisible characters are refused, never trimmed: the other side would have to
 * trim the same.
 * @throws ValidationError whose pointer names the field; the message never repeats the secret.
 */
export function checkSecret(secret: unknown, field = "secret"): asserts secret is string {
  const message = problemOf(secret);
  if (message) throw new ValidationError([{ pointer: `/${field}`, message }]);
}

function problemOf(secret: unknown): string | undefined {
  if (typeof secret !== "string") return "must be text";
  if (secret.length === 0) return "must not be empty; leave it out to get a random one";
  if (unseen.test(secret))
    return "must not contain white space, a byte order mark or other invisible characters; remove them on both sides";
  if (!secret.isWellFormed()) return "must be well-formed Unicode (it has a lone surrogate)";
  if (!secret.startsWith(prefix))
    return Buffer.byteLength(secret) > plainBytes ? `must be at most ${plainBytes} bytes` : undefined;
  const encoded = secret.slice(prefix.length);
  if (!base64.test(encoded)) return `must be standard base64 with padding after ${prefix}`;
  const size = Buffer.from(encoded, "base64").length;
  return size < keyBytes.least || size > keyBytes.most
    ? `must be the base64 of ${keyBytes.least} to ${keyBytes.most} bytes after ${prefix}, and is ${size}`
    : undefined;
}

const cacheSize = 10_000;
const cache = new Map<string, KeyObject>();

/**
 * The HMAC key of a secret: the decoded part after `whsec_`, or the UTF-8 bytes of a plain one. Length is not
 * looked at, because verifying and sending must also work with secrets that other systems made.
 * @throws ValidationError for an empty secret and for one that begins with `whsec_` and is not base64.
 */
export function signingKey(secret: string): KeyObject {
  const known = cache.get(secret);
  if (known) return known;
  const key = createSecretKey(decode(secret));
  // The oldest goes: making a key anew costs a few microseconds.
  if (cache.size >= cacheSize) cache.delete(cache.keys().next().value as string);
  cache.set(secret, key);
  return key;
}

function decode(secret: string): Buffer {
  if (!secret.startsWith(prefix)) {
    if (secret.length > 0) return Buffer.from(secret, "utf8");
    throw new ValidationError([{ pointer: "/secret", message: "must not be empty" }]);
  }
  const encoded = secret.slice(prefix.length);
  const key = /^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.alloc(0);
  if (key.length > 0) return key;
  throw new ValidationError([{ pointer: "/secret", message: `must be base64 after ${prefix}` }]);
}

/**
 * The value of `webhook-signature` (Standard Webhooks 1.0): `v1,<base64>` of every secret, in their order,
 * separated by spaces. Signed is `<id>.<unix seconds>.<body>`.
 */
export function standardSignature(
  secrets: readonly string[],
  id: string,
  timestampSeconds: number,
  body: Uint8Array,
): string {
  const head = `${id}.${timestampSeconds}.`;
  let header = "";
  for (const secret of secrets) {
    if (header) header += " ";
    header += `v1,${createHmac("sha256", signingKey(secret)).update(head).update(body).digest("base64")}`;
  }
  return header;
}

/** The value of `x-hookwell-signature`: `sha256=<hex>` of the HMAC-SHA256 over the exact body. */
export function bodySignature(secret: string, body: Uint8Array): string {
  return `sha256=${createHmac("sha256", signingKey(secret)).update(body).digest("hex")}`;
}
