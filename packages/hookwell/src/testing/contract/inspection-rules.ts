import { same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { second } from "./store-world.ts";

/** What an operator sees of a store. */
export function inspectionRules(rule: Rule): void {
  rule("the clock is the store's, and an empty store has nothing undispatched", async (t) => {
    t.step(second);
    const { clock, undispatched } = await t.store.inspect(null);
    same({ clock, undispatched }, { clock: t.now(), undispatched: [] });
  });

  rule(
    "undispatched events are told by route with the oldest of each, in the order of the routes",
    async (t) => {
      const first = t.now();
      await t.capture(t.event("evt_1", { type: "b.made", route: "b.made" }));
      t.step(second);
      const later = t.now();
      await t.capture(t.event("evt_2", { type: "a.made", route: "*" }));
      await t.capture(t.event("evt_3", { type: "b.made", route: "b.made" }));
      same((await t.store.inspect(null)).undispatched, [
        { route: "*", oldestAt: later },
        { route: "b.made", oldestAt: first },
      ]);
    },
  );

  rule("an event that waits for another try counts; one that is dispatched or parked does not", async (t) => {
    const key = (id: string) => ({ projectId: t.event(id).projectId, id });
    for (const id of ["evt_1", "evt_2", "evt_3"])
      await t.capture(t.event(id, { type: "a.made", route: `a.${id}` }));
    const at = t.now();
    t.step(second);
    await t.store.failDispatch(key("evt_1"), "no", 1_000, null);
    await t.store.failDispatch(key("evt_2"), "no", null, null);
    await t.store.dispatch([{ ...key("evt_3"), bodies: [], deliveries: [] }], null);
    same((await t.store.inspect(null)).undispatched, [
      // What tells of the parked one is an event itself.
      { route: "*", oldestAt: t.now() },
      { route: "a.evt_1", oldestAt: at },
    ]);
  });
}
