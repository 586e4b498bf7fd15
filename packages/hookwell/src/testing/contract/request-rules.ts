import type { RequestBegin } from "../../store/request-contract.ts";
import { equal, ok, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { day, retention, type StoreWorld, second } from "./store-world.ts";

/** Requests with an idempotency key: carried out once, answered many times. */
export function requestRules(rule: Rule): void {
  const name = { owner: "key_1", key: "k-1" };
  const begin = (t: StoreWorld, more: Partial<RequestBegin> = {}) =>
    t.store.beginRequest({ ...name, fingerprint: "f", leaseMs: second, repeatable: false, ...more }, null);
  const begun = async (t: StoreWorld, more: Partial<RequestBegin> = {}) => {
    const answer = await begin(t, more);
    if (answer.state !== "begun") throw new Error(`expected begun, not ${answer.state}`);
    return answer;
  };

  rule("the first is begun, the next wait for its answer and then get it", async (t) => {
    const { token, beganAt } = await begun(t);
    same(beganAt, t.now());
    same(await begin(t), { state: "running" });
    equal(await t.store.finishRequest(name, token, "the answer 🂡\u0000"), true);
    same(await begin(t), { state: "answered", answer: "the answer 🂡\u0000" });
    same(await begin(t, { repeatable: true }), { state: "answered", answer: "the answer 🂡\u0000" });
    equal(await t.store.finishRequest(name, token, "another"), false);
    await t.store.abandonRequest(name, token);
    same(await begin(t), { state: "answered", answer: "the answer 🂡\u0000" });
  });

  rule(
    "another content under the same key is different; another owner or key is another request",
    async (t) => {
      const { token } = await begun(t);
      same(await begin(t, { fingerprint: "g" }), { state: "different" });
      await t.store.finishRequest(name, token, "a");
      same(await begin(t, { fingerprint: "g", repeatable: true }), { state: "different" });
      await begun(t, { owner: "key_2" });
      await begun(t, { key: "K-1" });
    },
  );

  rule("of many at once exactly one is begun", async (t) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => begin(t)));
    same(answers.map(({ state }) => state).sort(), ["begun", ...Array.from({ length: 7 }, () => "running")]);
  });

  rule("an abandoned one is begun anew, and its token is worth nothing", async (t) => {
    const { token } = await begun(t);
    await t.store.abandonRequest(name, "other");
    same(await begin(t), { state: "running" });
    await t.store.abandonRequest(name, token);
    const again = await begun(t, { fingerprint: "g" });
    ok(again.token !== token);
    equal(await t.store.finishRequest(name, token, "late"), false);
    equal(await t.store.finishRequest(name, again.token, "a"), true);
  });

  rule("one whose process died is lost, or carried out again where that does no harm", async (t) => {
    const first = await begun(t);
    t.step(second);
    same(await begin(t), { state: "lost", beganAt: first.beganAt });
    same(await begin(t, { repeatable: true, fingerprint: "g" }), { state: "different" });
    const second_ = await begun(t, { repeatable: true });
    same(second_.beganAt, first.beganAt);
    same(await begin(t, { repeatable: true }), { state: "running" });
    equal(await t.store.finishRequest(name, first.token, "late"), false);
    equal(await t.store.finishRequest(name, second_.token, "a"), true);
  });

  rule("a late answer of one that was thought lost still counts", async (t) => {
    const { token } = await begun(t);
    t.step(day - 1);
    equal(await t.store.finishRequest(name, token, "late"), true);
    same(await begin(t), { state: "answered", answer: "late" });
  });

  rule("after 24 hours the key is free, and upkeep drops it, with retention off too", async (t) => {
    const { token } = await begun(t);
    await t.store.finishRequest(name, token, "a");
    t.step(day - 1);
    same(await begin(t), { state: "answered", answer: "a" });
    t.step(1);
    const again = await begun(t, { fingerprint: "g" });
    same(again.beganAt, t.now());
    await begun(t, { key: "k-2" });
    t.step(day - 1);
    equal((await t.store.maintain(retention, 10, null)).more, false);
    same(await begin(t, { fingerprint: "g" }), { state: "lost", beganAt: again.beganAt });
    t.step(1);
    equal((await t.store.maintain(null, 1, null)).more, true);
    equal((await t.store.maintain(null, 10, null)).more, false);
    equal(await t.store.finishRequest(name, again.token, "late"), false);
  });

  rule("an answer is kept for every process", async (t) => {
    if (!t.subject.reopen) return;
    const { token } = await begun(t);
    const other = await t.subject.reopen();
    const ask = () =>
      other.beginRequest({ ...name, fingerprint: "f", leaseMs: second, repeatable: false }, null);
    same(await ask(), { state: "running" });
    await t.store.finishRequest(name, token, "a");
    same(await ask(), { state: "answered", answer: "a" });
  });
}
