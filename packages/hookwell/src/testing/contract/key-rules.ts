import { equal, like, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { day, type StoreWorld } from "./store-world.ts";

/** API keys of the server: only hashes are kept. */
export function keyRules(rule: Rule): void {
  const key = (t: StoreWorld, id: string, overrides: object = {}) => ({
    id,
    name: `key ${id}`,
    scopes: ["emit", "read"],
    createdAt: t.now(),
    hash: `hash of ${id}`,
    ...overrides,
  });

  rule("a key is found by its hash, with everything but the hash", async (t) => {
    const expiresAt = t.in(day);
    await t.store.createApiKey(key(t, "key_1", { projectId: "live", expiresAt }));
    same(await t.store.findApiKey("hash of key_1"), {
      id: "key_1",
      name: "key key_1",
      scopes: ["emit", "read"],
      projectId: "live",
      createdAt: t.now(),
      expiresAt,
    });
    equal(await t.store.findApiKey("hash of key_2"), undefined);
  });

  rule("a key that has expired is still found: whoever asks decides", async (t) => {
    await t.store.createApiKey(key(t, "key_1", { expiresAt: t.in(1) }));
    t.step(day);
    equal((await t.store.findApiKey("hash of key_1"))?.id, "key_1");
  });

  rule("a use is noted", async (t) => {
    await t.store.createApiKey(key(t, "key_1"));
    t.step(day);
    await t.store.touchApiKey("key_1", t.now());
    like(await t.store.findApiKey("hash of key_1"), { lastUsedAt: t.now() });
    await t.store.touchApiKey("key_none", t.now());
  });

  rule("an id or a hash that exists is DuplicateIdError", async (t) => {
    await t.store.createApiKey(key(t, "key_1"));
    await refused("duplicate_id", () => t.store.createApiKey(key(t, "key_1", { hash: "other" })));
    await refused("duplicate_id", () => t.store.createApiKey(key(t, "key_2", { hash: "hash of key_1" })));
    equal((await t.store.listApiKeys({ limit: 10 })).items.length, 1);
  });

  rule("keys are listed newest first by (time, id), in pages", async (t) => {
    for (let n = 0; n < 5; n++) {
      if (n === 2) t.step(1);
      await t.store.createApiKey(key(t, `key_${n}`));
    }
    const first = await t.store.listApiKeys({ limit: 3 });
    same(
      first.items.map((item) => item.id),
      ["key_4", "key_3", "key_2"],
    );
    const rest = await t.store.listApiKeys({ limit: 3, after: first.next! });
    same(
      rest.items.map((item) => item.id),
      ["key_1", "key_0"],
    );
    equal(rest.next, undefined);
    equal(JSON.stringify([first, rest]).includes("hash of"), false);
  });

  rule("field-faults G8: keys of one project are listed and deleted apart from the others", async (t) => {
    for (const [n, projectId] of ["red", "blue", undefined, "red", "blue", "red"].entries())
      await t.store.createApiKey(key(t, `key_${n}`, projectId ? { projectId } : {}));
    const first = await t.store.listApiKeys({ limit: 2 }, "red");
    same(
      first.items.map((item) => item.id),
      ["key_5", "key_3"],
    );
    const rest = await t.store.listApiKeys({ limit: 2, after: first.next! }, "red");
    same(
      rest.items.map((item) => item.id),
      ["key_0"],
    );
    equal(rest.next, undefined);
    same((await t.store.listApiKeys({ limit: 10 }, "green")).items, []);
    for (const id of ["key_1", "key_2"]) equal(await t.store.deleteApiKey(id, "red"), false);
    equal(await t.store.deleteApiKey("key_0", "red"), true);
    equal(await t.store.deleteApiKey("key_2"), true);
    equal((await t.store.listApiKeys({ limit: 10 })).items.length, 4);
  });

  rule("a deleted key is gone", async (t) => {
    await t.store.createApiKey(key(t, "key_1"));
    equal(await t.store.deleteApiKey("key_1"), true);
    equal(await t.store.deleteApiKey("key_1"), false);
    equal(await t.store.findApiKey("hash of key_1"), undefined);
  });

  rule("field-faults I1: a name with NUL, lone surrogates and 4-byte characters", async (t) => {
    await t.store.createApiKey(key(t, "key_1", { name: "a\u0000 \ud800 🂡" }));
    like(await t.store.findApiKey("hash of key_1"), { name: "a\ufffd \ufffd 🂡" });
  });
}
