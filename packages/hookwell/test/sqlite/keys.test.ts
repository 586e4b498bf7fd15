import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EncryptionKeyError } from "../../src/model/errors.ts";
import { KeyRing } from "../../src/store/sealing.ts";
import { generateKey, type SqliteOutbox, sqliteStore } from "../../src/store/sqlite/index.ts";
import { freshSqlite } from "../support/databases.ts";
import { deliverDue, dispatchNew, event, listeningLogger, own, subscription } from "./support.ts";

let file: ReturnType<typeof freshSqlite>;
const stores: SqliteOutbox[] = [];

beforeEach(() => {
  file = freshSqlite();
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  file.drop();
});

function make(options: Partial<Parameters<typeof sqliteStore>[0]> = {}): SqliteOutbox {
  const store = sqliteStore({ path: file.path, migrate: true, ...options });
  stores.push(store);
  return store;
}

test("without a key one is made beside the database, mode 0600, said once, and used again", async () => {
  const logger = listeningLogger();
  const store = make({ logger });
  await store.open({ withKeys: true });
  await store.createSubscription(own, subscription("sub_a"));
  expect(statSync(`${file.path}.key`).mode & 0o777).toBe(0o600);
  expect(logger.lines).toHaveLength(1);
  expect(logger.lines[0]).toContain(`${file.path}.key`);
  const stored = readFileSync(`${file.path}.key`, "utf8").trim();
  expect(logger.lines[0]).not.toContain(stored.slice(3));
  const again = make({ logger });
  await again.open({ withKeys: true });
  expect((await again.listActiveSubscriptions("live"))[0]?.secret).toBe(subscription("sub_a").secret);
  expect(logger.lines).toHaveLength(1);
});

test("field-faults G6: no secret and no header value is readable in the file", async () => {
  const store = make();
  await store.createSubscription(own, subscription("sub_a"));
  await store.close();
  const bytes = readFileSync(file.path).toString("latin1");
  expect(bytes).toContain("receiver.example");
  expect(bytes).not.toContain("c2VjcmV0IG9mIHRoZSBzdWJzY3JpcHRpb24gaGVyZQ");
  expect(bytes).not.toContain("header-credential");
});

test("a database with sealed secrets whose key file is lost is refused, and no new key is made", async () => {
  const store = make();
  await store.createSubscription(own, subscription("sub_a"));
  rmSync(`${file.path}.key`);
  const late = make();
  await expect(late.open({ withKeys: true })).rejects.toThrow(/restore the file or give the keys/);
  expect(() => statSync(`${file.path}.key`)).toThrow("ENOENT");
});

test("bad input: a wrong encryption key is refused at open, and by a claim before an attempt is spent", async () => {
  const right = `k1:${generateKey()}`;
  const store = make({ encryptionKeys: right });
  await store.createSubscription(own, subscription("sub_a"));
  await store.capture(own, [event("evt_1")]);
  await dispatchNew(store);
  for (const wrong of [`k1:${generateKey()}`, `k2:${generateKey()}`]) {
    const other = make({ encryptionKeys: wrong });
    await other.open({ withKeys: false });
    const refusal = await other.open({ withKeys: true }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(EncryptionKeyError);
    expect((refusal as Error).message).not.toContain(wrong.slice(3));
    await expect(other.claim({ now: null, limit: 1, leaseMs: 1 })).rejects.toThrow(EncryptionKeyError);
    await expect(other.createSubscription(own, subscription("sub_b"))).rejects.toThrow(EncryptionKeyError);
  }
  const { items } = await store.listDeliveries({}, { limit: 10 });
  expect(items.map((item) => item.attempts)).toEqual([0]);
  expect(await store.getSubscription("sub_b", {})).toBeUndefined();
});

test("a running process that lacks a newer key gives rows back unspent, says so, and another one sends them", async () => {
  const [k1, k2] = [generateKey(), generateKey()];
  const old = make({ encryptionKeys: `k1:${k1}` });
  await old.open({ withKeys: true });
  const rotated = make({ encryptionKeys: `k2:${k2},k1:${k1}` });
  await rotated.createSubscription(own, subscription("sub_a"));
  await rotated.capture(own, [event("evt_1")]);
  await dispatchNew(rotated);
  await expect(old.claim({ now: null, limit: 5, leaseMs: 30_000 })).rejects.toThrow(/key "k2"/);
  await expect(old.open({ withKeys: true })).rejects.toThrow(EncryptionKeyError);
  expect(await deliverDue(rotated)).toEqual(["evt_1"]);
  const { items } = await rotated.listDeliveries({}, { limit: 5 });
  expect(items.map((item) => [item.status, item.attempts])).toEqual([["delivered", 1]]);
});

test("capture and management that touches no secret need no key", async () => {
  const right = `k1:${generateKey()}`;
  await make({ encryptionKeys: right }).createSubscription(own, subscription("sub_a"));
  const keyless = make({ encryptionKeys: `k9:${generateKey()}` });
  expect(await keyless.capture(own, [event("evt_1")])).toEqual([{ id: "evt_1", duplicate: false }]);
  expect(await dispatchNew(keyless)).toBe(1);
  const paused = await keyless.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
  expect(paused.status).toBe("paused");
  await expect(keyless.updateSubscription(own, "sub_a", { headers: null }, {})).rejects.toThrow(
    EncryptionKeyError,
  );
});

test("the answer of an idempotent request is sealed, and unknown once its key is no longer given", async () => {
  const [k1, k2] = [generateKey(), generateKey()];
  const old = make({ encryptionKeys: `k1:${k1}` });
  const name = { owner: "key_1", key: "k" };
  const request = { ...name, fingerprint: "f", leaseMs: 1_000, repeatable: true };
  const begun = await old.beginRequest(request, null);
  await old.finishRequest(name, begun.state === "begun" ? begun.token : "", "the whsec_answer");
  expect(await old.beginRequest(request, null)).toEqual({ state: "answered", answer: "the whsec_answer" });
  await old.close();
  expect(readFileSync(file.path).includes("whsec_answer")).toBe(false);
  const database = new DatabaseSync(file.path);
  database.exec("DELETE FROM hookwell_meta");
  database.close();
  const other = make({ encryptionKeys: `k2:${k2}` });
  expect(await other.beginRequest(request, null)).toMatchObject({ state: "lost" });
});

test("a newer key seals, the older one still opens, and both are known from then on", async () => {
  const [k1, k2] = [generateKey(), generateKey()];
  await make({ encryptionKeys: `k1:${k1}` }).createSubscription(own, subscription("sub_a"));
  const both = make({ encryptionKeys: `k2:${k2},k1:${k1}` });
  await both.createSubscription(own, subscription("sub_b"));
  expect(await both.listActiveSubscriptions("live")).toHaveLength(2);
  const database = new DatabaseSync(file.path);
  const sealed = database.prepare("SELECT sealed FROM hookwell_endpoint ORDER BY subscription_id").all();
  database.close();
  expect(sealed.map((row) => String(row.sealed).slice(0, 3))).toEqual(["k1:", "k2:"]);
  await expect(make({ encryptionKeys: `k2:${k2}` }).open({ withKeys: true })).rejects.toThrow(/add "k1"/);
});

test("a key text that is malformed says which entry is wrong and never shows it", async () => {
  const good = generateKey();
  const cases: [string, RegExp][] = [
    ["justtext-that-is-secret", /Entry 1 .* has no key id/],
    [`k1:${good},k2:short-secret`, /Entry 2 .*k2, is not the base64 of 32 bytes/],
    [`k1:${good},k1:${generateKey()}`, /Entry 2 .* repeats the key id k1/],
    [" ", /Entry 1 .* has no key id/],
  ];
  for (const [text, message] of cases) {
    expect(() => KeyRing.parse(text)).toThrow(message);
    expect(() => KeyRing.parse(text)).not.toThrow(/secret/);
  }
  writeFileSync(`${file.path}.key`, "broken\n");
  await expect(make().open({ withKeys: true })).rejects.toThrow(EncryptionKeyError);
});

test("a sealed text opens only for the row it was sealed for, and not when it was changed", () => {
  const ring = KeyRing.parse(`k1:${generateKey()}`);
  const sealed = ring.seal("text \u{1f511}", "endpoint 1");
  expect(ring.open(sealed, "endpoint 1")).toBe("text \u{1f511}");
  expect(ring.seal("text \u{1f511}", "endpoint 1")).not.toBe(sealed);
  expect(() => ring.open(sealed, "endpoint 2")).toThrow(EncryptionKeyError);
  const place = sealed.length - 6;
  const changed = sealed.slice(0, place) + (sealed[place] === "A" ? "B" : "A") + sealed.slice(place + 1);
  expect(() => ring.open(changed, "endpoint 1")).toThrow(EncryptionKeyError);
  expect(() => ring.open("k1:", "endpoint 1")).toThrow(EncryptionKeyError);
});
