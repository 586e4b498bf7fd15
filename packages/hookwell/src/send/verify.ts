import { createHmac, timingSafeEqual } from "node:crypto";
import { type Clock, systemClock } from "../model/clock.ts";
import { ValidationError, VerificationError } from "../model/errors.ts";
import { type JsonValue, parseJson } from "../model/json.ts";
import { bodySignature, signingKey } from "./signatures.ts";

/** Headers as any server gives them: Headers, a Map, pairs, or an object; names in any case. */
export type IncomingHeaders =
  | Iterable<readonly [string, string | readonly string[]]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How far the timestamp may be from now, either way. Default 300. */
  readonly toleranceSeconds?: number;
  /** Default: the wall clock. */
  readonly now?: Date | Clock;
}

/** A webhook whose signature is right. */
export interface VerifiedWebhook {
  /** The event id: the same on every attempt and replay, so drop what you have seen. */
  readonly id: string;
  /** When this attempt was signed. */
  readonly timestamp: Date;
  /** The parsed body; integers beyond 2^53 are bigint. */
  readonly payload: JsonValue;
}

/**
 * Verifies a webhook by its Standard Webhooks signature and timestamp. Give it the body exactly as received: a
 * body that was parsed and written again has other bytes. One right signature by one of the secrets is enough,
 * so give both during a rotation.
 * @throws VerificationError with code missing_header, malformed_header, bad_timestamp, too_old, too_new or
 *   no_match: answer 400 or 401.
 * @throws ValidationError when the call itself is wrong (no usable secret, a body that is not raw), or when a
 *   correctly signed body is not JSON.
 */
export function verify(
  headers: IncomingHeaders,
  rawBody: string | Uint8Array,
  secrets: string | readonly string[],
  options: VerifyOptions = {},
): VerifiedWebhook {
  const body = bytesOf(rawBody);
  const list = typeof secrets === "string" ? [secrets] : secrets;
  if (list.length === 0)
    throw new ValidationError([{ pointer: "/secrets", message: "must have at least one secret" }]);
  const keys = list.map(signingKey);

  const given = readHeaders(headers);
  const id = single(given, "webhook-id");
  const seconds = single(given, "webhook-timestamp");
  const signatures = signaturesOf(given);
  const timestamp = checkTimestamp(seconds, options);

  const head = `${id}.${seconds}.`;
  const expected = keys.map((key) => createHmac("sha256", key).update(head).update(body).digest());
  let matched = false;
  // Every pair is compared, so the time taken does not tell which secret it was.
  for (const signature of signatures)
    for (const digest of expected)
      if (signature.length === digest.length && timingSafeEqual(signature, digest)) matched = true;
  if (!matched)
    throw new VerificationError(
      "no_match",
      `No signature of webhook ${JSON.stringify(id)} was made with a given secret over this body; check that the secret is the endpoint's and the body is unchanged.`,
    );
  return { id, timestamp, payload: parseBody(body, id) };
}

/**
 * True when `header` (`sha256=<hex>`, from `x-hookwell-signature`) was made with the secret over exactly this
 * body. Compares in constant time and never throws for what a sender could have sent.
 *
 * It has no replay protection: nothing in it ages, so a recorded request stays valid for as long as the secret
 * does. Use {@link verify} where you can; here, remember the event ids you have handled.
 */
export function verifyBodySignature(
  body: string | Uint8Array,
  header: string | null | undefined,
  secret: string,
): boolean {
  if (typeof header !== "string" || secret === "") return false;
  const given = Buffer.from(header, "utf8");
  const expected = Buffer.from(bodySignature(secret, bytesOf(body)), "utf8");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function bytesOf(body: unknown): Uint8Array {
  if (typeof body === "string") return Buffer.from(body, "utf8");
  if (body instanceof Uint8Array) return body;
  throw new ValidationError([
    { pointer: "/body", message: "must be the raw body, as text or bytes, from before any JSON parser" },
  ]);
}

type WebhookHeader = "webhook-id" | "webhook-timestamp" | "webhook-signature";
type WebhookHeaders = Readonly<Record<WebhookHeader, readonly string[]>>;

/** What was given of the three headers, empty values left out. */
function readHeaders(headers: IncomingHeaders): WebhookHeaders {
  const given = { "webhook-id": [], "webhook-timestamp": [], "webhook-signature": [] } as Record<
    WebhookHeader,
    string[]
  >;
  const pairs =
    Symbol.iterator in headers
      ? (headers as Iterable<readonly [string, string | readonly string[]]>)
      : Object.entries(headers);
  for (const [key, value] of pairs) {
    const name = key.toLowerCase();
    if (value === undefined || !Object.hasOwn(given, name)) continue;
    for (const item of typeof value === "string" ? [value] : value) {
      const text = item.trim();
      if (text !== "") given[name as WebhookHeader].push(text);
    }
  }
  return given;
}

/** @throws VerificationError when there is none */
function valuesOf(given: WebhookHeaders, name: WebhookHeader): readonly string[] {
  const values = given[name];
  if (values.length > 0) return values;
  throw new VerificationError("missing_header", `The header ${name} is missing or empty.`);
}

function single(given: WebhookHeaders, name: WebhookHeader): string {
  const [first, ...others] = valuesOf(given, name);
  if (others.some((other) => other !== first))
    throw new VerificationError("malformed_header", `The header ${name} has more than one value.`);
  return first!;
}

/** The decoded v1 signatures; other versions are skipped, as the specification asks. */
function signaturesOf(given: WebhookHeaders): Buffer[] {
  const found: Buffer[] = [];
  // Repeated headers reach us joined by commas, which no signature ends with.
  const tokens = valuesOf(given, "webhook-signature").flatMap((value) => value.split(/,?\s+/));
  for (const token of tokens) {
    const [, version, encoded] = /^(v\d+[a-z]*),([A-Za-z0-9+/=_-]+),?$/.exec(token) ?? [];
    if (version === undefined || encoded === undefined)
      throw new VerificationError(
        "malformed_header",
        "The header webhook-signature is not a list of <version>,<base64>, separated by spaces.",
      );
    if (version === "v1") found.push(Buffer.from(encoded, "base64"));
  }
  return found;
}

function checkTimestamp(text: string, options: VerifyOptions): Date {
  const { toleranceSeconds = 300, now = systemClock } = options;
  if (!(toleranceSeconds >= 0))
    throw new ValidationError([{ pointer: "/toleranceSeconds", message: "must be 0 or more seconds" }]);
  if (!/^\d{1,12}$/.test(text))
    throw new VerificationError("bad_timestamp", "The header webhook-timestamp is not unix seconds.");
  const seconds = Number(text);
  const current = Math.floor((typeof now === "function" ? now() : now).getTime() / 1000);
  const mend = `more than the ${toleranceSeconds} seconds allowed; check this machine's clock, or it may be a replay.`;
  if (current - seconds > toleranceSeconds)
    throw new VerificationError(
      "too_old",
      `The webhook was signed ${current - seconds} seconds ago, ${mend}`,
    );
  if (seconds - current > toleranceSeconds)
    throw new VerificationError(
      "too_new",
      `The webhook was signed ${seconds - current} seconds in the future, ${mend}`,
    );
  return new Date(seconds * 1000);
}

function parseBody(body: Uint8Array, id: string): JsonValue {
  try {
    return parseJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8"));
  } catch (error) {
    throw new ValidationError(
      [
        {
          pointer: "",
          message: `webhook ${JSON.stringify(id)} is rightly signed, but its body is not JSON: ${error instanceof Error ? error.message : error}`,
        },
      ],
      "invalid_json",
    );
  }
}
