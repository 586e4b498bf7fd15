import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sealedWithOthers } from "../../src/store/key-rotation.ts";
import { generateKey } from "../../src/store/sealing.ts";
import { due, type KeyWorld, keyWorlds, own, publish, rotate, subscription } from "./key-world.ts";

const [k1, k2] = [`k1:${generateKey()}`, `k2:${generateKey()}`];
const names = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `sub_${from + n}`);
class Killed extends Error {}

describe.each(keyWorlds)("rotation of encryption keys on $name", (worlds) => {
  worlds.use();
  let world: KeyWorld;
  beforeEach(async () => {
    world = await worlds.make();
  });
  afterEach(() => world.close());

  /** Ten subscriptions sealed with k1, one of them with a second version and two valid secrets, and an event each. */
  async function begin() {
    const old = await world.process(k1);
    for (const id of names(0, 10)) await old.createSubscription(own, subscription(id));
    await old.rotateSecret(own, "sub_3", { secret: "newer", overlapMs: 3_600_000 }, {});
    await publish(old, "evt_1");
    return { old, before: await due(old) };
  }
  const sealed = () => world.sql("SELECT sealed FROM @.endpoint ORDER BY id");
  const prefixes = async () => new Set((await sealed()).map((row) => String(row.sealed).slice(0, 3)));

  test("everything opens as before with the new key alone, and a process with the old one is refused", async () => {
    const { old, before } = await begin();
    const store = await world.process(`${k2},${k1}`);
    expect(sealedWithOthers(await store.countSealed())).toBe(11);
    expect(await rotate(store)).toEqual({ newest: "k2", resealed: 11, damaged: [], retired: ["k1"] });
    expect(await prefixes()).toEqual(new Set(["k2:"]));
    expect(Object.keys(before)).toHaveLength(10);
    const alone = await world.process(k2);
    expect(await due(alone)).toEqual(before);
    await alone.updateSubscription(own, "sub_1", { url: "https://moved.example/" }, {});
    expect((await due(alone)).sub_1).toEqual({ ...before.sub_1!, url: "https://moved.example/" });
    const late = await world.process(k1, false);
    await expect(late.open({ withKeys: true })).rejects.toThrow(/k1 was retired .* give k2/);
    await expect(old.createSubscription(own, subscription("sub_x"))).rejects.toMatchObject({
      code: "encryption_key",
    });
    expect(await alone.getSubscription("sub_x", {})).toBeUndefined();
    // Its id names one key for good.
    const again = await world.process(`k1:${generateKey()},${k2}`, false);
    await expect(again.open({ withKeys: true })).rejects.toThrow(/needs an id of its own/);
    expect(await rotate(alone)).toMatchObject({ resealed: 0, retired: [] });
  });

  test("broken off between two batches it goes on with what is left, and both keys are needed meanwhile", async () => {
    const { before } = await begin();
    const store = await world.process(`${k2},${k1}`);
    const seen: [number, number][] = [];
    const killed = rotate(store, {
      onProgress: (done, total) => {
        seen.push([done, total]);
        if (done >= 4) throw new Killed();
      },
    });
    await expect(killed).rejects.toThrow(Killed);
    expect(seen).toEqual([
      [0, 11],
      [4, 11],
    ]);
    expect(await prefixes()).toEqual(new Set(["k1:", "k2:"]));
    const alone = await world.process(k2, false);
    await expect(alone.open({ withKeys: true })).rejects.toThrow(/add "k1"/);
    const next = await world.process(`${k2},${k1}`);
    expect((await next.countSealed()).byKey).toEqual(
      new Map([
        ["k1", 7],
        ["k2", 4],
      ]),
    );
    expect(await due(next)).toEqual(before);
    expect(await rotate(next)).toMatchObject({ resealed: 7, retired: ["k1"] });
    expect(await due(await world.process(k2))).toEqual(before);
  });

  test("beside edits, rotations of secrets and a process that still seals with the old key nothing is lost", async () => {
    await begin();
    const behind = await world.process(`${k1},${k2}`);
    const store = await world.process(`${k2},${k1}`);
    let round = 0;
    const edits: Promise<unknown>[] = [];
    const result = await rotate(store, {
      onProgress: () => {
        const id = `sub_${round++}`;
        if (round > 6) return;
        edits.push(
          behind.createSubscription(own, subscription(`sub_late${round}`)),
          behind.updateSubscription(own, id, { url: `https://edit-${round}.example/` }, {}),
          store.rotateSecret(own, id, { secret: `second of ${id}`, overlapMs: 3_600_000 }, {}),
        );
      },
    });
    // Those that came after the last look at the table were refused, and say so; no other error is allowed.
    for (const edit of await Promise.allSettled(edits))
      if (edit.status === "rejected") expect(edit.reason).toMatchObject({ code: "encryption_key" });
    expect(result.retired).toEqual(["k1"]);
    expect(result.resealed).toBeGreaterThanOrEqual(11);
    expect(await prefixes()).toEqual(new Set(["k2:"]));
    const alone = await world.process(k2);
    await publish(alone, "evt_2");
    for (const { id } of (await alone.listSubscriptions({}, { limit: 100 })).items) {
      const endpoint = (await alone.openEndpoint(id, {}, null))!;
      expect(endpoint.headers).toEqual({ "x-of": id });
      expect(endpoint.secrets).toContain(`secret of ${id}`);
    }
    expect((await alone.openEndpoint("sub_0", {}, null))?.secrets[0]).toBe("second of sub_0");
  });

  test("a transaction that sealed with the old key and commits late is waited for", async () => {
    await begin();
    const behind = await world.process(`${k1},${k2}`);
    const store = await world.process(`${k2},${k1}`);
    const open = await world.begin();
    await behind.createSubscription(open.scope, subscription("sub_open"));
    let ended = false;
    const rotating = rotate(store).finally(() => {
      ended = true;
    });
    await open.waitedFor();
    const refused = behind.createSubscription(own, subscription("sub_no")).catch((error: unknown) => error);
    expect(ended).toBe(false);
    await open.commit();
    expect(await rotating).toMatchObject({ newest: "k2", retired: ["k1"] });
    expect(await prefixes()).toEqual(new Set(["k2:"]));
    const alone = await world.process(k2);
    expect((await alone.openEndpoint("sub_open", {}, null))?.secrets).toEqual(["secret of sub_open"]);
    // It came after the rotation had begun to end the key, or just before: refused, or sealed anew.
    const outcome = await refused;
    const made = await alone.openEndpoint("sub_no", {}, null);
    if (outcome instanceof Error)
      expect({ outcome, made }).toMatchObject({ outcome: { code: "encryption_key" } });
    else expect(made?.secrets).toEqual(["secret of sub_no"]);
  });

  test("a damaged text is named and holds nothing up: its deliveries fail, the others are sent", async () => {
    const { before } = await begin();
    await world.sql(
      "UPDATE @.endpoint SET sealed = substr(sealed, 1, 20) || 'AAAA' || substr(sealed, 25) WHERE subscription_id = 'sub_5'",
    );
    const store = await world.process(`${k2},${k1}`);
    const { damaged, resealed, retired } = await rotate(store);
    expect({ damaged: damaged.length, resealed, retired }).toEqual({
      damaged: 1,
      resealed: 11,
      retired: ["k1"],
    });
    const [row] = await world.sql("SELECT id FROM @.endpoint WHERE subscription_id = 'sub_5'");
    expect(damaged).toEqual([`endpoint ${row!.id}`]);
    const alone = await world.process(k2);
    const { deliveries, failed } = await alone.claim({ now: null, limit: 100, leaseMs: 1 });
    expect(failed.map(({ subscriptionId }) => subscriptionId)).toEqual(["sub_5"]);
    expect(deliveries).toHaveLength(Object.keys(before).length - 1);
  });

  test("a text of a key that is not given stops it before anything is retired", async () => {
    await begin();
    await world.sql(
      "UPDATE @.endpoint SET sealed = 'k9' || substr(sealed, 3) WHERE subscription_id = 'sub_0'",
    );
    const store = await world.process(`${k2},${k1}`);
    await expect(rotate(store)).rejects.toThrow(/key "k9"/);
    await expect((await world.process(k2, false)).open({ withKeys: true })).rejects.toThrow(/add "k1"/);
  });

  test("a list from before the new key undoes nothing, and counting changes nothing", async () => {
    await begin();
    const newer = await world.process(`${k2},${k1}`, false);
    expect(await newer.countSealed()).toEqual({
      newest: { id: "k2", standing: { kind: "unknown" }, others: ["k1"] },
      byKey: new Map([["k1", 11]]),
    });
    await (await world.process(k1, false)).open({ withKeys: true });
    await newer.open({ withKeys: true });
    await newer.createSubscription(own, subscription("sub_new"));
    const before = await sealed();
    const older = await world.process(`${k1},${k2}`);
    await expect(rotate(older)).rejects.toThrow(/begin with k1, and k2 came to this database after it/);
    expect(await sealed()).toEqual(before);
    expect((await older.countSealed()).newest?.standing).toEqual({ kind: "superseded", latest: "k2" });
  });

  test("kept answers of requests with an Idempotency-Key are sealed anew, and answered as before", async () => {
    const old = await world.process(k1);
    const names = Array.from({ length: 6 }, (_, n) => ({ owner: `key_${n % 2}`, key: `Ünï ${n}` }));
    const request = { fingerprint: "f", leaseMs: 60_000, repeatable: false };
    for (const name of names) {
      const begun = await old.beginRequest({ ...name, ...request }, null);
      if (begun.state !== "begun") throw new Error(begun.state);
      if (name.key !== "Ünï 5") await old.finishRequest(name, begun.token, `answer ${name.key}`);
    }
    await old.createSubscription(own, subscription("sub_a"));
    const store = await world.process(`${k2},${k1}`);
    expect(await rotate(store)).toEqual({ newest: "k2", resealed: 6, damaged: [], retired: ["k1"] });
    const alone = await world.process(k2);
    for (const name of names)
      expect(await alone.beginRequest({ ...name, ...request }, null)).toEqual(
        name.key === "Ünï 5" ? { state: "running" } : { state: "answered", answer: `answer ${name.key}` },
      );
  });

  test("deliveries enqueued in the reference way are sealed anew too, and not with a retired key", async () => {
    const old = await world.process(k1, false);
    await old.open({ withKeys: false });
    const at = new Date();
    const row = (id: string) => ({
      id,
      eventId: `evt_${id}`,
      subscriptionId: "sub_ref",
      url: "https://given.example/",
      secret: `secret of ${id}`,
      payload: Buffer.from("{}"),
      status: "pending" as const,
      attempts: 0,
      nextAttemptAt: at,
      createdAt: at,
      updatedAt: at,
    });
    // It was never opened with keys: the first seal makes the key known.
    await old.enqueueDelivery(row("dlv_1"));
    const store = await world.process(`${k2},${k1}`);
    expect(await rotate(store)).toMatchObject({ resealed: 1, retired: ["k1"] });
    await expect(old.enqueueDelivery(row("dlv_2"))).rejects.toMatchObject({ code: "encryption_key" });
    const alone = await world.process(k2);
    expect((await alone.get("dlv_1"))?.secret).toBe("secret of dlv_1");
    expect(await alone.get("dlv_2")).toBeUndefined();
  });
});
