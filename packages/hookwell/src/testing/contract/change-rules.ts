import type { SubscriptionStatus } from "../../model/states.ts";
import type { SubscriptionPatch, SubscriptionRecord } from "../../model/subscription.ts";
import { equal, like, ok, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { own, type StoreWorld } from "./store-world.ts";

/** Several people at one subscription: no change is lost, and the verbs mean what they say. */
export function changeRules(rule: Rule): void {
  const update = (t: StoreWorld, patch: SubscriptionPatch, versions?: readonly string[]) =>
    t.store.updateSubscription(own, "sub_a", patch, {}, { versions });
  const move = (t: StoreWorld, status: SubscriptionStatus, from?: SubscriptionStatus) =>
    t.store.setSubscriptionStatus(own, "sub_a", status, undefined, {}, { from });

  rule("every change gives another version, within one millisecond too; looking gives none", async (t) => {
    const seen = [await t.subscribe("sub_a", { headers: { "x-a": "1" }, metadata: { a: "1" } })];
    const changes: readonly (() => Promise<SubscriptionRecord>)[] = [
      () => update(t, { description: "d" }),
      () => update(t, { headers: { "x-a": "2" } }),
      () => update(t, { merge: { headers: { "x-a": "3" } } }),
      () => update(t, { merge: { metadata: { a: "2" } } }),
      () => update(t, { url: "https://other.example/" }),
      () => update(t, { eventTypes: ["user.*"], ordering: "subject" }),
      () => update(t, { rateLimit: { limit: 1, perSeconds: 2 } }),
      () => move(t, "paused"),
      () => move(t, "disabled"),
    ];
    for (const change of changes) seen.push(await change());
    equal(new Set(seen.map(({ version }) => version)).size, seen.length);
    same(await t.store.getSubscription("sub_a", {}), seen.at(-1));
    same((await t.store.listSubscriptions({}, { limit: 1 })).items, [seen.at(-1)]);
  });

  rule("a change by the store itself gives another version: 410 disables", async (t) => {
    const { version } = await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.store.record([t.gone(await t.claimOne())], null);
    const record = await t.store.getSubscription("sub_a", {});
    equal(record?.status, "disabled");
    ok(record?.version !== version);
  });

  rule("a change of a version that is over is refused and writes nothing", async (t) => {
    const first = await t.subscribe("sub_a");
    const second = await update(t, { description: "one" }, [first.version]);
    const url = "https://lost.example/";
    await refused("version_conflict", () => update(t, { url }, [first.version]));
    await refused("version_conflict", () => update(t, { merge: { metadata: { a: "1" } } }, []));
    for (const status of ["paused", "active", "disabled", "deleted"] as const)
      await refused("version_conflict", () =>
        t.store.setSubscriptionStatus(own, "sub_a", status, undefined, {}, { versions: [first.version] }),
      );
    same(await t.store.getSubscription("sub_a", {}), second);
    like(await update(t, { url }, ["other", second.version]), { url, description: "one" });
  });

  rule("whose it is and whether it exists is told before its version", async (t) => {
    const guard = { versions: ["other"] };
    await refused("not_found", () => t.store.updateSubscription(own, "sub_a", {}, {}, guard));
    await t.subscribe("sub_a");
    await refused("not_found", () =>
      t.store.updateSubscription(own, "sub_a", {}, { projectId: "test" }, guard),
    );
  });

  rule("of changes based on one version, one is made, however many come at once", async (t) => {
    const { version } = await t.subscribe("sub_a");
    const results = await Promise.allSettled(
      ["0", "1", "2", "3"].map((n) => update(t, { description: n }, [version])),
    );
    const won = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    equal(won.length, 1);
    same(await t.store.getSubscription("sub_a", {}), won[0]);
  });

  rule("merges made at once all stay", async (t) => {
    await t.subscribe("sub_a", { metadata: { kept: "k", dropped: "d" }, headers: { "X-Kept": "1" } });
    const names = Array.from({ length: 6 }, (_, n) => `n${n}`);
    await Promise.all([
      ...names.map((name) => update(t, { merge: { metadata: { [name]: "v" } } })),
      ...names.map((name) => update(t, { merge: { headers: { [`x-${name}`]: "v" } } })),
      update(t, { merge: { metadata: { dropped: null } } }),
      update(t, { rateLimit: { limit: 1, perSeconds: 2 } }),
    ]);
    const record = await t.store.getSubscription("sub_a", {});
    same(record?.metadata, { kept: "k", ...Object.fromEntries(names.map((name) => [name, "v"])) });
    same([...record!.headerNames].sort(), ["X-Kept", ...names.map((name) => `x-${name}`)].sort());
    like(await update(t, { merge: { rateLimit: { limit: 9 } } }), { rateLimit: { limit: 9, perSeconds: 2 } });
  });

  rule(
    "a merge follows RFC 7396: null removes, the others stay, and nothing is made of nothing",
    async (t) => {
      await t.subscribe("sub_a");
      like(await update(t, { merge: { metadata: { a: null } } }), { metadata: {} });
      like(await update(t, { merge: { metadata: { a: "1", b: "2" } } }), { metadata: { a: "1", b: "2" } });
      like(await update(t, { merge: { metadata: { a: null, c: "3" } } }), { metadata: { b: "2", c: "3" } });
      like(await update(t, { merge: {} }), { metadata: { b: "2", c: "3" } });
      like(await update(t, { metadata: null }), { metadata: undefined });
      await refused("validation_failed", () => update(t, { merge: { rateLimit: { limit: 2 } } }));
      like(await t.store.getSubscription("sub_a", {}), { rateLimit: undefined });
    },
  );

  rule("headers merge by name in any case, and go out as merged", async (t) => {
    await t.subscribe("sub_a", { headers: { "X-Key": "1", "x-other": "2", "x-gone": "3" } });
    await t.publish("evt_1");
    like(await update(t, { merge: { headers: { "x-key": "9", "X-Gone": null, "x-new": "4" } } }), {
      headerNames: ["x-key", "x-other", "x-new"],
    });
    like(await t.claimOne(), { headers: { "x-key": "9", "x-other": "2", "x-new": "4" } });
  });

  rule("what merging gives is held to the bounds of the whole", async (t) => {
    const many = (count: number, letter: string, value = "v") =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${letter}${n}`, value]));
    await t.subscribe("sub_a", { metadata: many(40, "a"), headers: many(30, "a") });
    const before = await t.store.getSubscription("sub_a", {});
    await refused("validation_failed", () => update(t, { merge: { metadata: many(11, "b") } }));
    await refused("validation_failed", () => update(t, { merge: { headers: many(3, "b") } }));
    await refused("validation_failed", () =>
      update(t, { merge: { headers: many(2, "b", "v".repeat(4_090)) } }),
    );
    same(await t.store.getSubscription("sub_a", {}), before);
  });

  rule("resume is for a paused one, enable for a disabled one, and each names the other", async (t) => {
    await t.subscribe("sub_a");
    await move(t, "disabled");
    const resumed = await refused("invalid_state", () => move(t, "active", "paused"));
    ok(/Cannot resume subscription sub_a: it is disabled; enable it/.test(resumed.message), resumed.message);
    ok(/enable it first/.test((await refused("invalid_state", () => move(t, "paused"))).message));
    like(await move(t, "active", "disabled"), { status: "active" });
    await move(t, "paused");
    const enabled = await refused("invalid_state", () => move(t, "active", "disabled"));
    ok(/Cannot enable subscription sub_a: it is paused; resume it/.test(enabled.message), enabled.message);
    const resumedRow = await move(t, "active", "paused");
    like(resumedRow, { status: "active" });
    for (const from of ["paused", "disabled"] as const) same(await move(t, "active", from), resumedRow);
    await move(t, "deleted");
    ok(/stays deleted/.test((await refused("invalid_state", () => move(t, "active", "paused"))).message));
  });
}
