import { rotateKeys, sealedWithOthers } from "../../store/key-rotation.ts";
import { equal, like, ok, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { day, minute, own, type StoreWorld, second } from "./store-world.ts";

const noWaits = { sleep: () => Promise.reject(new Error("nothing is waited for here")) };

/** Signing secrets: what signs before, during and after a rotation. */
export function secretRules(rule: Rule): void {
  const rotate = (t: StoreWorld, secret: string, overlapMs = day) =>
    t.store.rotateSecret(own, "sub_a", { secret, overlapMs }, {});

  /** A subscription `sub_a` with one pending delivery, bound to its first secret `s1`. */
  const begin = async (t: StoreWorld): Promise<string> => {
    await t.subscribe("sub_a", { secret: "s1", headers: { "x-one": "1" } });
    const [id] = await t.publish("evt_1");
    return id!;
  };

  const signs = async (t: StoreWorld, id: string, secret: string, secrets: readonly string[]) =>
    like(await t.store.get(id), { secret, secrets });

  rule(
    "field-faults F8: in the overlap both secrets sign, the bound one the body; then the new one",
    async (t) => {
      const id = await begin(t);
      await rotate(t, "s2");
      await signs(t, id, "s1", ["s2", "s1"]);
      t.step(day - 1);
      await signs(t, id, "s1", ["s2", "s1"]);
      const claimed = await t.claimOne();
      like(claimed, { secret: "s1", secrets: ["s2", "s1"] });
      await t.store.record([t.retry(claimed, 1)], null);
      t.step(1);
      await signs(t, id, "s2", ["s2"]);
      like(await t.claimOne(), { secret: "s2", secrets: ["s2"] });
    },
  );

  rule("field-faults F8: an overlap of 0 ends every older secret at once", async (t) => {
    const id = await begin(t);
    await rotate(t, "s2");
    await rotate(t, "s3", 0);
    await signs(t, id, "s3", ["s3"]);
  });

  rule(
    "deliveries made after a rotation are bound to the new secret, and keep it in the next one",
    async (t) => {
      const one = await begin(t);
      await rotate(t, "s2");
      const [two] = await t.publish("evt_2");
      await signs(t, two!, "s2", ["s2", "s1"]);
      equal((await t.store.listActiveSubscriptions("live"))[0]?.secret, "s2");
      await rotate(t, "s3");
      await signs(t, one, "s1", ["s3", "s2", "s1"]);
      await signs(t, two!, "s2", ["s3", "s2", "s1"]);
    },
  );

  rule(
    "a rotation changes the version of a subscription, and url, headers and everything else stay",
    async (t) => {
      const id = await begin(t);
      const before = await t.store.getSubscription("sub_a", {});
      const at = t.step(second);
      const after = await rotate(t, "s2");
      equal(after.version === before?.version, false);
      same(after, { ...before, updatedAt: at, version: after.version });
      same(await t.store.getSubscription("sub_a", {}), after);
      like(await t.store.get(id), { url: before!.url, headers: { "x-one": "1" } });
    },
  );

  rule(
    "field-faults H3, F8: a rotation survives a new url and new headers, with the end that it had",
    async (t) => {
      const id = await begin(t);
      await rotate(t, "s2", minute);
      t.step(minute - second);
      await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/", headers: null }, {});
      like(await t.store.get(id), { url: "https://moved.example/", secret: "s1", secrets: ["s2", "s1"] });
      t.step(second);
      like(await t.store.get(id), { url: "https://moved.example/", secret: "s2", secrets: ["s2"] });
      await rotate(t, "s3");
      like(await t.store.get(id), { url: "https://moved.example/", secrets: ["s3", "s2"] });
    },
  );

  rule("an older secret ends by its own end or by the new overlap, whichever is sooner", async (t) => {
    const id = await begin(t);
    await rotate(t, "s2", minute);
    await rotate(t, "s3", day);
    t.step(minute);
    await signs(t, id, "s3", ["s3", "s2"]);
    await rotate(t, "s4", second);
    t.step(second);
    await signs(t, id, "s4", ["s4"]);
  });

  rule("the sixth valid secret is refused until one ends, and then the fifth place is free", async (t) => {
    const id = await begin(t);
    for (const secret of ["s2", "s3", "s4", "s5"]) {
      t.step(minute);
      await rotate(t, secret, day);
    }
    await signs(t, id, "s1", ["s5", "s4", "s3", "s2", "s1"]);
    const before = await t.store.getSubscription("sub_a", {});
    const error = await refused("too_many_secrets", () => rotate(t, "s6"));
    ok(error.message.includes("sub_a") && !error.message.includes("s5"));
    ok(error.message.includes(t.in(day - 3 * minute).toISOString()), error.message);
    same(await t.store.getSubscription("sub_a", {}), before);
    await signs(t, id, "s1", ["s5", "s4", "s3", "s2", "s1"]);
    t.step(day - 3 * minute);
    await rotate(t, "s6");
    await signs(t, id, "s6", ["s6", "s5", "s4", "s3", "s2"]);
    await rotate(t, "s7", 0);
    await signs(t, id, "s7", ["s7"]);
  });

  rule("a rotation to a secret that is valid makes it the first again, and can be repeated", async (t) => {
    const id = await begin(t);
    await rotate(t, "s2", minute);
    await rotate(t, "s2", day);
    await signs(t, id, "s1", ["s2", "s1"]);
    await rotate(t, "s1", minute);
    await signs(t, id, "s1", ["s1", "s2"]);
    t.step(day);
    await signs(t, id, "s1", ["s1"]);
    await rotate(t, "s1", 0);
    await signs(t, id, "s1", ["s1"]);
  });

  rule("a secret that has ended is not remembered: given again it is a new one", async (t) => {
    const id = await begin(t);
    await rotate(t, "s2", 0);
    await rotate(t, "s1", day);
    await signs(t, id, "s1", ["s1", "s2"]);
  });

  rule("paused and disabled subscriptions rotate; deleted, unknown and somebody else's do not", async (t) => {
    const id = await begin(t);
    await t.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    equal((await rotate(t, "s2")).status, "paused");
    await t.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
    like(await rotate(t, "s3"), { status: "disabled", statusReason: "by_hand" });
    await refused("not_found", () =>
      t.store.rotateSecret(own, "sub_a", { secret: "x", overlapMs: 0 }, { projectId: "other" }),
    );
    await refused("not_found", () => t.store.rotateSecret(own, "sub_b", { secret: "x", overlapMs: 0 }, {}));
    await signs(t, id, "s1", ["s3", "s2", "s1"]);
    await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
    await refused("invalid_state", () => rotate(t, "s4"));
  });

  rule("a rotation is atomic with the caller's transaction", async (t) => {
    const id = await begin(t);
    await t.subject
      .transaction(async (scope) => {
        await t.store.rotateSecret(scope, "sub_a", { secret: "s2", overlapMs: 0 }, {});
        await signs(t, id, "s1", ["s1"]);
        throw new Error("changed my mind");
      })
      .catch(() => {});
    await signs(t, id, "s1", ["s1"]);
    await t.subject.transaction(async (scope) => {
      await t.store.rotateSecret(scope, "sub_a", { secret: "s2", overlapMs: minute }, {});
      await t.store.rotateSecret(scope, "sub_a", { secret: "s3", overlapMs: minute }, {});
    });
    await signs(t, id, "s1", ["s3", "s2", "s1"]);
  });

  rule("rotations, moves and changes at once lose no secret and no change", async (t) => {
    const id = await begin(t);
    const given = ["s2", "s3", "s4", "s5"];
    await Promise.all([
      ...given.map((secret) => rotate(t, secret)),
      t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {}),
      t.store.updateSubscription(own, "sub_a", { headers: { "x-two": "2" } }, {}),
      t.store.updateSubscription(own, "sub_a", { description: "changed" }, {}),
    ]);
    const { secrets = [], ...delivery } = (await t.store.get(id))!;
    same([...secrets].sort(), ["s1", ...given]);
    like(delivery, { url: "https://moved.example/", headers: { "x-two": "2" }, secret: "s1" });
    equal((await t.store.getSubscription("sub_a", {}))?.description, "changed");
  });

  rule(
    "an endpoint is opened with its valid secrets, newest first, in every status, for who may see it",
    async (t) => {
      await begin(t);
      const subscription = await rotate(t, "s2", minute);
      const headers = { "x-one": "1" };
      const open = (visibility = {}) => t.store.openEndpoint("sub_a", visibility, null);
      same(await open({ projectId: "live" }), { subscription, headers, secrets: ["s2", "s1"] });
      equal(await open({ projectId: "other" }), undefined);
      equal(await t.store.openEndpoint("sub_none", {}, null), undefined);
      same((await t.store.openEndpoint("sub_a", {}, t.in(minute)))?.secrets, ["s2"]);
      t.step(minute);
      await t.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
      like(await open(), { secrets: ["s2"], headers });
      equal((await open())?.subscription.status, "deleted");
    },
  );

  rule("where one key sealed everything there is nothing to seal anew, and no key to end", async (t) => {
    await begin(t);
    const before = await t.store.countSealed();
    equal(sealedWithOthers(before), 0);
    same(await rotateKeys(t.store, { timers: noWaits }), {
      newest: before.newest?.id,
      resealed: 0,
      damaged: [],
      retired: [],
    });
    same(await t.store.countSealed(), before);
  });

  rule("one subscription's rotation leaves another's deliveries alone", async (t) => {
    await t.subscribe("sub_a", { secret: "s1" });
    await t.subscribe("sub_b", { secret: "s1" });
    const [, other] = await t.publish("evt_1");
    await rotate(t, "s2", 0);
    await signs(t, other!, "s1", ["s1"]);
  });
}
