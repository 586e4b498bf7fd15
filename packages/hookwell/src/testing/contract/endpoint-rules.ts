import { equal, like, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, own, second } from "./store-world.ts";

/** Endpoint versions: what a queued row keeps, and what moves it. */
export function endpointRules(rule: Rule): void {
  rule("field-faults H3: a new url moves the pending rows to it, ids and bytes stay", async (t) => {
    await t.subscribe("sub_a");
    const [id] = await t.publish("evt_1");
    const before = await t.store.get(id!);
    await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/in" }, {});
    like(await t.store.get(id!), {
      url: "https://moved.example/in",
      payload: before!.payload,
      eventId: "evt_1",
      secret: "whsec_of_sub_a",
    });
    like(await t.claimOne(), { id, url: "https://moved.example/in" });
    equal((await t.store.getDelivery(id!, {}))?.url, "https://moved.example/in");
  });

  rule(
    "field-faults H3: the second move moves rows of the first version and of the one between",
    async (t) => {
      await t.subscribe("sub_a");
      const [one] = await t.publish("evt_1");
      await t.store.updateSubscription(own, "sub_a", { url: "https://two.example/" }, {});
      const [two] = await t.publish("evt_2");
      await t.store.updateSubscription(own, "sub_a", { url: "https://three.example/" }, {});
      const [three] = await t.publish("evt_3");
      for (const id of [one, two, three]) equal((await t.store.get(id!))?.url, "https://three.example/");
    },
  );

  rule(
    "field-faults H3: a row claimed before the move goes to the new url on its next attempt",
    async (t) => {
      await t.subscribe("sub_a");
      await t.publish("evt_1");
      const claimed = await t.claimOne();
      await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
      equal(claimed.url, "https://sub-a.example/hook");
      await t.store.record([t.retry(claimed, second)], null);
      t.step(second);
      equal((await t.claimOne()).url, "https://moved.example/");
    },
  );

  rule(
    "field-faults H3: deliveries bound to an older version by a dispatch that was under way move too",
    async (t) => {
      await t.subscribe("sub_a");
      const event = t.event("evt_1");
      await t.capture(event);
      const [[match] = []] = await t.store.matchSubscriptions([
        { projectId: "live", filters: ["user.created", ""] },
      ]);
      await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
      await t.store.dispatch(
        [
          {
            projectId: "live",
            id: "evt_1",
            bodies: [{ variant: "v", bytes: Buffer.from("{}") }],
            deliveries: [
              { id: "dlv_1", subscriptionId: "sub_a", endpointId: match!.endpointId, variant: "v" },
            ],
          },
        ],
        null,
      );
      equal((await t.claimOne()).url, "https://moved.example/");
    },
  );

  rule("new headers reach pending rows, the url stays, and null removes them", async (t) => {
    await t.subscribe("sub_a", { headers: { "x-one": "1" } });
    const [id] = await t.publish("evt_1");
    const changed = await t.store.updateSubscription(
      own,
      "sub_a",
      { headers: { "x-two": "2", "X-Three": "3" } },
      {},
    );
    same([...changed.headerNames].sort(), ["X-Three", "x-two"]);
    like(await t.store.get(id!), {
      headers: { "x-two": "2", "X-Three": "3" },
      url: "https://sub-a.example/hook",
    });
    const emptied = await t.store.updateSubscription(own, "sub_a", { headers: null }, {});
    same(emptied.headerNames, []);
    like(await t.store.get(id!), { headers: undefined });
  });

  rule("a new url keeps headers and secret, and a change of neither keeps both", async (t) => {
    await t.subscribe("sub_a", { headers: { "x-one": "1" } });
    const [id] = await t.publish("evt_1");
    await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
    await t.store.updateSubscription(own, "sub_a", { description: "no version" }, {});
    like(await t.store.get(id!), {
      url: "https://moved.example/",
      headers: { "x-one": "1" },
      secret: "whsec_of_sub_a",
      secrets: ["whsec_of_sub_a"],
    });
  });

  rule(
    "events 13: addSubscription keeps queued rows, updateSubscription moves them, the newer ones included",
    async (t) => {
      const add = (url: string, secret: string) =>
        t.store.addSubscription({
          id: "sub_a",
          projectId: "live",
          url,
          secret,
          eventTypes: [],
          active: true,
        });
      await add("https://one.example/", "s1");
      const [one] = await t.publish("evt_1");
      await add("https://two.example/", "s2");
      const [two] = await t.publish("evt_2");
      like(await t.store.get(one!), { url: "https://one.example/", secret: "s1", secrets: ["s1"] });
      like(await t.store.get(two!), { url: "https://two.example/", secret: "s2", secrets: ["s2"] });
      await t.store.updateSubscription(own, "sub_a", { url: "https://three.example/" }, {});
      // The secret that a row was bound to is no longer among the valid ones, so the valid one signs.
      like(await t.store.get(one!), { url: "https://three.example/", secret: "s2", secrets: ["s2"] });
      like(await t.store.get(two!), { url: "https://three.example/", secret: "s2", secrets: ["s2"] });
    },
  );

  rule(
    "updateSubscription with the url it has already moves rows that addSubscription left behind",
    async (t) => {
      const subscription = { id: "sub_a", projectId: "live", secret: "s", eventTypes: [], active: true };
      await t.store.addSubscription({ ...subscription, url: "https://one.example/" });
      const [id] = await t.publish("evt_1");
      await t.store.addSubscription({ ...subscription, url: "https://two.example/" });
      await t.store.updateSubscription(own, "sub_a", { url: "https://two.example/" }, {});
      equal((await t.store.get(id!))?.url, "https://two.example/");
    },
  );

  rule(
    "field-faults H3: an enqueued row moves with its subscription, and one enqueued later is as given",
    async (t) => {
      await t.subscribe("sub_a");
      await t.enqueue("dlv_1", { url: "https://given.example/", secret: "bound" });
      await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
      like(await t.store.get("dlv_1"), { url: "https://moved.example/", secret: "whsec_of_sub_a" });
      await t.enqueue("dlv_2", { url: "https://given.example/", secret: "bound" });
      like(await t.store.get("dlv_2"), {
        url: "https://given.example/",
        secret: "bound",
        secrets: ["bound"],
      });
    },
  );

  rule("one subscription's move leaves another's rows alone", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b");
    const [, b] = await t.publish("evt_1");
    await t.store.updateSubscription(own, "sub_a", { url: "https://moved.example/" }, {});
    equal((await t.store.get(b!))?.url, "https://sub-b.example/hook");
  });

  rule("an enqueued row keeps each secret and header that it was given", async (t) => {
    const headers = { "x-tab": "a\tb", "x-uni": "ünï" };
    await t.enqueue("dlv_1", { secret: "one", secrets: ["two", "one"], headers });
    like(await t.claimOne(), { secret: "one", secrets: ["one", "two"], headers });
    t.step(leaseMs);
    like(await t.claimOne(), { secret: "one", secrets: ["one", "two"], headers });
  });
}
