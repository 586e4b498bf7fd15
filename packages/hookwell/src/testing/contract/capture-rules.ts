import { equal, like, ok, refused, same } from "./checks.ts";
import type { Rule } from "./rule.ts";
import { leaseMs, minute, newSubscription, own } from "./store-world.ts";

/** Capture: what is written, what is a repeat, what is refused. DESIGN sections 3 and 4. */
export function captureRules(rule: Rule): void {
  rule("an event is stored as it was given, new, and captured now", async (t) => {
    const event = t.event("evt_1", {
      tenantId: "acme",
      subject: "user:7",
      revision: 9007199254740991,
      actor: { type: "api_key", id: 'k"1' },
      audience: ["u1", "u2"],
      occurredAt: t.in(-minute),
      data: '{"big":9007199254740993,"f":1e21,"u":"\\u0000\\ud800 é 🂡"}',
    });
    same(await t.capture(event), [{ id: "evt_1", duplicate: false }]);
    const { contentHash: _hash, ...fields } = event;
    same(await t.store.getEvent("evt_1", {}), {
      ...fields,
      capturedAt: t.now(),
      state: "new",
      fannedOut: false,
      tries: 0,
      outcome: "pending",
    });
  });

  rule("what is absent stays absent, and an empty audience stays empty", async (t) => {
    await t.capture(t.event("evt_1"), t.event("evt_2", { audience: [], revision: 0 }));
    like(await t.store.getEvent("evt_1", {}), {
      tenantId: undefined,
      subject: undefined,
      revision: undefined,
      actor: undefined,
      audience: undefined,
    });
    like(await t.store.getEvent("evt_2", {}), { audience: [], revision: 0 });
  });

  rule("events 9: the same id and content again is a duplicate, and the first one stays", async (t) => {
    await t.capture(t.event("evt_1"));
    t.step(minute);
    same(await t.capture(t.event("evt_1", { data: '{"other":"time stamp"}' })), [
      { id: "evt_1", duplicate: true },
    ]);
    like(await t.store.getEvent("evt_1", {}), { data: '{"id":"evt_1"}', capturedAt: t.in(-minute) });
    equal((await t.store.listEvents({}, { limit: 10 })).items.length, 1);
  });

  rule(
    "the same id with other content is EventMismatchError, and nothing of the batch is written",
    async (t) => {
      await t.capture(t.event("evt_1"));
      await refused("event_mismatch", () =>
        t.capture(t.event("evt_2"), t.event("evt_1", { contentHash: "other" })),
      );
      equal(await t.store.getEvent("evt_2", {}), undefined);
    },
  );

  rule("the same id in another project is another event", async (t) => {
    await t.capture(t.event("evt_1"));
    const other = t.event("evt_1", { projectId: "test", contentHash: "other", data: '{"of":"test"}' });
    same(await t.capture(other), [{ id: "evt_1", duplicate: false }]);
    like(await t.store.getEvent("evt_1", { projectId: "test" }), { data: '{"of":"test"}' });
    like(await t.store.getEvent("evt_1", { projectId: "live" }), { data: '{"id":"evt_1"}' });
  });

  rule(
    "a revision that its subject has is RevisionConflictError, and nothing of the batch is written",
    async (t) => {
      await t.capture(t.event("evt_1", { subject: "user:1", revision: 4 }));
      await refused("revision_conflict", () =>
        t.capture(t.event("evt_2"), t.event("evt_3", { subject: "user:1", revision: 4 }), t.event("evt_4")),
      );
      same(
        (await t.store.listEvents({}, { limit: 10 })).items.map((event) => event.id),
        ["evt_1"],
      );
    },
  );

  rule("a revision counts per project, tenant and subject, and only where there is one", async (t) => {
    const revision = { subject: "user:1", revision: 1 };
    const results = await t.capture(
      t.event("evt_1", revision),
      t.event("evt_2", { ...revision, projectId: "test" }),
      t.event("evt_3", { ...revision, tenantId: "acme" }),
      t.event("evt_4", { ...revision, tenantId: "umbrella" }),
      t.event("evt_5", { ...revision, subject: "user:2" }),
      t.event("evt_6", { ...revision, revision: 2 }),
      t.event("evt_7", { subject: "user:1" }),
      t.event("evt_8", { subject: "user:1" }),
      t.event("evt_9", { revision: 1 }),
      t.event("evt_10", { revision: 1 }),
    );
    ok(results.every((result) => !result.duplicate));
    await refused("revision_conflict", () => t.capture(t.event("evt_11", { ...revision, tenantId: "acme" })));
  });

  rule("a repeat of an event with a revision is a duplicate, not a conflict", async (t) => {
    const event = t.event("evt_1", { subject: "user:1", revision: 1 });
    await t.capture(event);
    same(await t.capture(event), [{ id: "evt_1", duplicate: true }]);
  });

  rule(
    "inside one batch: a repeat is a duplicate, other content and a used revision are refused",
    async (t) => {
      same(await t.capture(t.event("evt_1"), t.event("evt_1")), [
        { id: "evt_1", duplicate: false },
        { id: "evt_1", duplicate: true },
      ]);
      await refused("event_mismatch", () =>
        t.capture(t.event("evt_2"), t.event("evt_2", { contentHash: "other" })),
      );
      const revision = { subject: "user:1", revision: 1 };
      await refused("revision_conflict", () =>
        t.capture(t.event("evt_3", revision), t.event("evt_4", revision)),
      );
      same(
        (await t.store.listEvents({}, { limit: 10 })).items.map((event) => event.id),
        ["evt_1"],
      );
    },
  );

  rule("inside one batch: an id whose first event is refused is not saved by its second", async (t) => {
    const revision = { subject: "user:1", revision: 1 };
    await t.capture(t.event("evt_1", revision));
    const [bad, good] = [t.event("evt_2", revision), t.event("evt_2", { contentHash: "other" })];
    await refused("revision_conflict", () => t.capture(bad, good));
    await refused("event_mismatch", () => t.capture(good, bad));
    await refused("revision_conflict", () => t.capture(t.event("evt_3"), bad, good, bad));
    same(
      (await t.store.listEvents({}, { limit: 10 })).items.map((event) => event.id),
      ["evt_1"],
    );
  });

  rule(
    "an id with other content is a mismatch also when its revision is used in the same batch",
    async (t) => {
      const revision = { subject: "user:1", revision: 1 };
      await t.capture(t.event("evt_1"));
      const taken = t.event("evt_1", { ...revision, contentHash: "other" });
      await refused("event_mismatch", () => t.capture(t.event("evt_2", revision), taken));
      equal(await t.store.getEvent("evt_2", {}), undefined);
    },
  );

  rule("the error is that of the first refused event of the batch", async (t) => {
    const revision = { subject: "user:1", revision: 1 };
    await t.capture(t.event("evt_1"), t.event("evt_2", revision));
    const mismatch = t.event("evt_1", { contentHash: "other" });
    const conflict = t.event("evt_3", revision);
    const first = await refused("revision_conflict", () => t.capture(conflict, mismatch));
    ok(first.message.includes("user:1"));
    const second = await refused("event_mismatch", () => t.capture(mismatch, conflict));
    ok(second.message.includes("evt_1"));
  });

  rule("an empty batch is nothing", async (t) => {
    same(await t.capture(), []);
  });

  rule("a hundred events in one batch keep their order", async (t) => {
    await t.capture(...Array.from({ length: 100 }, (_, n) => t.event(`evt_${n}`)));
    same(
      (await t.store.takeNew(["user.created"], 200, null)).map((event) => event.id),
      [...Array.from({ length: 100 }, (_, n) => `evt_${n}`)],
    );
  });

  rule("fan-out emit: one pending row for each match, one body, dispatched by any process", async (t) => {
    await t.subscribe("sub_a");
    await t.subscribe("sub_b", { eventTypes: ["user.*"] });
    await t.subscribe("sub_c", { eventTypes: ["user.updated"] });
    const event = t.emitted("evt_1");
    await t.capture({ ...event, fanOut: { ...event.fanOut!, body: '{"name":"Zoë 🂡 \\u0000"}' } });
    const { items } = await t.store.listDeliveries({}, { limit: 10 });
    same(items.map((item) => item.subscriptionId).sort(), ["sub_a", "sub_b"]);
    like(items[0], {
      eventId: "evt_1",
      projectId: "live",
      type: "user.created",
      status: "pending",
      attempts: 0,
      round: 1,
      nextAttemptAt: t.now(),
      createdAt: t.now(),
      updatedAt: t.now(),
    });
    for (const { id } of items)
      like(await t.store.get(id), { payload: Buffer.from('{"name":"Zoë 🂡 \\u0000"}'), status: "pending" });
    like(await t.store.getEvent("evt_1", {}), {
      state: "new",
      fannedOut: true,
      route: "*",
      outcome: "pending",
    });
  });

  rule(
    "events 10: fan-out emit: a repeat adds a row for a new match only, with the first rows' bytes",
    async (t) => {
      await t.subscribe("sub_a");
      await t.capture(t.emitted("evt_1"));
      await t.subscribe("sub_b");
      const again = t.emitted("evt_1");
      t.step(minute);
      const repeat = { ...again, fanOut: { ...again.fanOut!, body: '{"rendered":"later"}' } };
      same(await t.capture(repeat), [{ id: "evt_1", duplicate: true }]);
      same(await t.capture(repeat), [{ id: "evt_1", duplicate: true }]);
      const { items } = await t.store.listDeliveries({}, { limit: 10 });
      same(
        items.map((item) => [item.subscriptionId, item.createdAt]),
        [
          ["sub_b", t.now()],
          ["sub_a", t.in(-minute)],
        ],
      );
      for (const { id } of items) like(await t.store.get(id), { payload: Buffer.from('{"event":"evt_1"}') });
    },
  );

  rule("events 10: fan-out emit: a first emit without any match still fixes the bytes", async (t) => {
    await t.capture(t.emitted("evt_1"));
    await t.store.dispatch([{ projectId: "live", id: "evt_1", bodies: [], deliveries: [] }], null);
    equal((await t.store.getEvent("evt_1", {}))?.outcome, "unmatched");
    await t.subscribe("sub_a");
    const again = t.emitted("evt_1");
    await t.capture({ ...again, fanOut: { ...again.fanOut!, body: '{"rendered":"later"}' } });
    like(await t.claimOne(), { payload: Buffer.from('{"event":"evt_1"}') });
  });

  rule("events 9: fan-out emit: a repeat after the delivery adds nothing", async (t) => {
    await t.subscribe("sub_a");
    const event = t.emitted("evt_1");
    await t.capture(event);
    await t.store.record([t.delivered(await t.claimOne())], null);
    await t.capture(event);
    t.step(leaseMs);
    same(await t.claimIds(), []);
  });

  rule("a repeat with fan-out emit of an event that was left to the dispatcher adds nothing", async (t) => {
    await t.subscribe("sub_a");
    await t.publish("evt_1");
    await t.subscribe("sub_b");
    same(await t.capture(t.emitted("evt_1")), [{ id: "evt_1", duplicate: true }]);
    equal((await t.store.listDeliveries({}, { limit: 10 })).items.length, 1);
  });

  rule("fan-out emit takes paused subscriptions, not disabled or deleted ones", async (t) => {
    for (const id of ["sub_a", "sub_b", "sub_c", "sub_d"]) await t.subscribe(id);
    await t.store.setSubscriptionStatus(own, "sub_b", "paused", undefined, {});
    await t.store.setSubscriptionStatus(own, "sub_c", "disabled", undefined, {});
    await t.store.setSubscriptionStatus(own, "sub_d", "deleted", undefined, {});
    await t.capture(t.emitted("evt_1"));
    const { items } = await t.store.listDeliveries({}, { limit: 10 });
    same(items.map((item) => item.subscriptionId).sort(), ["sub_a", "sub_b"]);
  });

  rule("fan-out emit respects tenant, owner and audience", async (t) => {
    await t.subscribe("sub_any");
    await t.subscribe("sub_acme", { tenantId: "acme" });
    await t.subscribe("sub_other", { tenantId: "other" });
    await t.subscribe("sub_u1", { tenantId: "acme", ownerId: "u1" });
    await t.subscribe("sub_u2", { ownerId: "u2" });
    await t.capture(
      t.emitted("evt_1", { tenantId: "acme" }),
      t.emitted("evt_2", { tenantId: "acme", audience: ["u1", "u3"] }),
    );
    const lanes = async (eventId: string) =>
      (await t.store.listDeliveries({ eventId }, { limit: 10 })).items
        .map((row) => row.subscriptionId)
        .sort();
    same(await lanes("evt_1"), ["sub_acme", "sub_any"]);
    same(await lanes("evt_2"), ["sub_u1"]);
  });

  rule(
    "fan-out emit makes 1,000 rows; beyond 1,000 matches the event is left to the dispatcher",
    async (t) => {
      await t.subject.transaction(async (scope) => {
        for (let n = 0; n < 1_000; n++) await t.store.createSubscription(scope, newSubscription(`sub_${n}`));
      });
      await t.capture(t.emitted("evt_1"));
      equal((await t.claim(2_000)).length, 1_000);
      like(await t.store.getEvent("evt_1", {}), { fannedOut: true });
      await t.subscribe("sub_one_more");
      await t.capture(t.emitted("evt_2"));
      equal((await t.claim(2_000)).length, 0);
      like(await t.store.getEvent("evt_2", {}), {
        fannedOut: false,
        route: "user.created",
        outcome: "pending",
      });
      same(
        (await t.store.takeNew(["user.created"], 10, null)).map((event) => event.id),
        ["evt_2"],
      );
      same(await t.capture(t.emitted("evt_2")), [{ id: "evt_2", duplicate: true }]);
      equal((await t.claim(2_000)).length, 0);
    },
  );

  rule("parallel captures of one id give one event, and the others are duplicates", async (t) => {
    await t.subscribe("sub_a");
    const results = await Promise.all(Array.from({ length: 8 }, () => t.capture(t.emitted("evt_1"))));
    same(
      results
        .flat()
        .map((result) => result.duplicate)
        .sort(),
      [false, ...Array<boolean>(7).fill(true)],
    );
    equal((await t.store.listDeliveries({}, { limit: 10 })).items.length, 1);
  });
}
