import pg from "pg";
import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpSender } from "../../src/send/http-sender.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { generateKey } from "../../src/store/sealing.ts";
import { startReceiver } from "../../src/testing/receiver.ts";
import { failing } from "../deliver/rows.ts";
import { kinds } from "../deliver/stores.ts";
import { VirtualTime } from "../deliver/virtual-time.ts";
import { FakeSender, names, World } from "../deliver/world.ts";
import { freshPostgres } from "../support/databases.ts";

const network = { allow: ["127.0.0.0/8"], http: true };
const own = { kind: "own" } as const;

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  const byId = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      (await world.deliveries()).map(({ eventId, status, reason }) => [eventId, reason ?? status]),
    );

  test("field-faults H1: two failures, then deleted: no third request, and what waits shows as cancelled", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    const sender = new FakeSender(world.time, () => "timeout");
    const loops = world.start(sender);
    await world.advance(12_000);
    expect(sender.sent.length).toBe(2);
    await world.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
    loops.maintainSoon();
    await world.advance(1);
    expect(await byId()).toEqual({ evt_1: "deleted" });
    expect((await world.deliveries())[0]!.status).toBe("cancelled");
    await world.later(300_000);
    expect(sender.sent.length).toBe(2);
    expect(world.observed.of("cancelled")).toEqual([{ deliveries: 1 }]);
  });

  test("field-faults H1: disabled by hand holds what is pending; enabled again it goes on", async () => {
    await world.subscribe("sub_a");
    await world.capture({ id: "evt_1" });
    let status = 500;
    const sender = new FakeSender(world.time, () => status);
    world.start(sender);
    await world.advance(1_000);
    await world.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
    await world.later(120_000);
    expect(sender.sent.length).toBe(1);
    expect((await world.deliveries())[0]).toMatchObject({ status: "pending", hold: "disabled" });
    status = 200;
    await world.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    await world.advance(2_000);
    expect(await byId()).toEqual({ evt_1: "delivered" });
  });

  test("field-faults H1: deleted between the claim and the send: the last look refuses it", async () => {
    await world.subscribe("sub_a");
    await world.subscribe("sub_b");
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    const sender = new FakeSender(world.time);
    let claims = 0;
    const store = failing(world.store, {
      claim: async (request) => {
        // As near to the claim as a test gets: at the moment it is asked.
        if (claims++ === 0) await world.store.setSubscriptionStatus(own, "sub_a", "deleted", undefined, {});
        return world.store.claim(request);
      },
    });
    world.start(sender, { store });
    await world.advance(10_000);
    expect(sender.sent.map(({ delivery }) => delivery.subscriptionId)).toEqual(["sub_b"]);
  });

  test("field-faults H1: 410: this one final, the others cancelled soon after, nothing sent any more", async () => {
    await world.subscribe("sub_gone");
    await world.subscribe("sub_fine");
    await world.capture(...names(0, 12).map((id) => ({ id })));
    const sender = new FakeSender(world.time, ({ subscriptionId }) =>
      subscriptionId === "sub_gone" ? 410 : 200,
    );
    const abandoned: string[] = [];
    world.start(sender, { failureHook: ({ eventId }) => abandoned.push(eventId) });
    await world.advance(6_000);
    expect(sender.to("sub_gone").length).toBe(1);
    expect(sender.to("sub_fine").length).toBe(12);
    const states = (await world.deliveries({ subscriptionId: "sub_gone" })).map(
      ({ status, reason }) => `${status} ${reason}`,
    );
    expect(states.filter((state) => state === "failed gone").length).toBe(1);
    expect(states.filter((state) => state === "cancelled gone").length).toBe(11);
    expect(abandoned.length).toBe(1);
    expect(await world.store.getSubscription("sub_gone", {})).toMatchObject({
      status: "disabled",
      statusReason: "gone",
    });
    await world.capture({ id: "evt_after" });
    await world.later(100_000);
    expect(sender.to("sub_gone").length).toBe(1);
  });

  test("field-faults H2: paused queues and holds, and all arrive on resume; disabled skips, visibly", async () => {
    await world.subscribe("sub_a");
    const sender = new FakeSender(world.time);
    world.start(sender);
    await world.store.setSubscriptionStatus(own, "sub_a", "paused", undefined, {});
    await world.capture(...names(0, 7).map((id) => ({ id })));
    await world.advance(5_000);
    expect(sender.sent).toEqual([]);
    expect((await world.deliveries()).map(({ hold }) => hold)).toEqual(Array(7).fill("paused"));
    expect((await world.store.listEvents({ outcome: "held" }, { limit: 100 })).items.length).toBe(7);
    await world.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    await world.advance(2_000);
    expect(sender.sent.map(({ delivery }) => delivery.eventId).sort()).toEqual(names(0, 7));

    await world.store.setSubscriptionStatus(own, "sub_a", "disabled", "by_hand", {});
    await world.capture(...names(7, 10).map((id) => ({ id })));
    await world.advance(5_000);
    await world.store.setSubscriptionStatus(own, "sub_a", "active", undefined, {});
    await world.advance(5_000);
    expect(sender.sent.length).toBe(7);
    const unmatched = await world.store.listEvents({ outcome: "unmatched" }, { limit: 100 });
    // Nobody asked to be told of the disabling.
    const skipped = unmatched.items.filter(({ type }) => type !== "hookwell.subscription.disabled");
    expect(skipped.map(({ id }) => id).sort()).toEqual(names(7, 10));
  });

  test("field-faults H3: the url, headers and filter edited during backoff: the retry goes to the new place, same body", async () => {
    await using old = await startReceiver({ respond: () => 500 });
    await using fresh = await startReceiver();
    const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
    await world.subscribe("sub_a", { url: old.url, secret });
    await world.capture({ id: "evt_1", data: '{"name":"Łukasz","n":0.1}' });
    const http = world.track(new HttpSender({ network, clock: world.time.clock }));
    world.start(http);
    await world.advance(1_000);
    expect(old.requests.length).toBe(1);
    await world.store.updateSubscription(
      own,
      "sub_a",
      // The filter no longer matches: what was queued stays queued.
      { url: `${fresh.url}?v=2`, headers: { "x-team": "two" }, eventTypes: ["other.made"] },
      {},
    );
    await world.advance(12_000);
    expect(old.requests.length).toBe(1);
    expect(fresh.requests.length).toBe(1);
    const [before, after] = [old.requests[0]!, fresh.requests[0]!];
    expect(after.path).toBe("/hook?v=2");
    expect(after.headers["x-team"]).toBe("two");
    expect(after.body.equals(before.body)).toBe(true);
    for (const name of ["webhook-id", "x-hookwell-delivery", "x-hookwell-signature"])
      expect(after.headers[name]).toBe(before.headers[name]);
    const signature = (after.headers["webhook-signature"] as string).split(" ");
    // The library checks the timestamp against the wall clock, so it is asked to sign what was signed.
    const expected = new Webhook(secret).sign(
      "evt_1",
      new Date(Number(after.headers["webhook-timestamp"]) * 1_000),
      after.body.toString("utf8"),
    );
    expect(signature).toEqual([expected]);
    await http.close();
  });

  test("field-faults H5: any listed type matches, wildcards at any depth too, whatever the order", async () => {
    const lists = [
      ["a.made", "b.made", "c.*"],
      ["c.*", "a.made", "b.made"],
      ["b.made", "c.*", "a.made"],
      ["a.made", "c.*", "b.made"],
      ["c.*", "b.made", "a.made", "a.made"],
      ["b.made", "a.made", "c.*"],
    ];
    for (const [index, eventTypes] of lists.entries()) await world.subscribe(`sub_${index}`, { eventTypes });
    const types = [
      "a.made",
      "b.made",
      "c.made",
      "c.deep.down.made",
      "c",
      "cc.made",
      "a.made.twice",
      "d.made",
    ];
    await world.capture(...types.map((type) => ({ id: type.replaceAll(".", "-"), type })));
    const sender = new FakeSender(world.time);
    world.start(sender);
    await world.advance(2_000);
    for (const index of lists.keys())
      expect(
        sender
          .to(`sub_${index}`)
          .map(({ delivery }) => delivery.type)
          .sort(),
      ).toEqual(["a.made", "b.made", "c.deep.down.made", "c.made"]);
  });

  test("field-faults H6: one bad body of a lane fails and waits; the other 119 of it are done at once", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 120).map((id) => ({ id })));
    const sender = new FakeSender(world.time, ({ eventId }) => (eventId === "evt_0050" ? 422 : 200));
    world.start(sender);
    await world.advance(1_000);
    expect((await world.store.listDeliveries({ status: "pending" }, { limit: 100 })).items).toMatchObject([
      { eventId: "evt_0050", attempts: 1, errorCode: "http_422" },
    ]);
    expect(sender.sent.length).toBe(120);
  });

  test("field-faults H6: an endpoint that hangs holds its own few slots, and no other lane waits for it", async () => {
    await world.subscribe("sub_fine");
    await world.subscribe("sub_stops");
    const sender = new FakeSender(world.time, async ({ subscriptionId, eventId }) => {
      if (subscriptionId === "sub_fine" || eventId === "evt_first") return 200;
      await world.time.sleep(15_000);
      return "timeout";
    });
    // Fewer slots than a dead lane has rows.
    const loops = world.start(sender, { maxInFlight: 16 });
    await world.capture({ id: "evt_first" });
    await world.advance(1_500);
    await world.subscribe("sub_never");
    await world.capture(...names(0, 80).map((id) => ({ id })));
    loops.wake();
    await world.advance(1_000);
    expect(sender.to("sub_fine").length).toBe(81);
    // One has answered once, of the other nothing is known.
    expect(sender.to("sub_stops").length).toBe(1 + 4);
    expect(sender.to("sub_never").length).toBe(1);
    expect(sender.inFlight).toBe(5);
    await world.advance(15_000);
    // The time-outs halved the bound to 1.
    expect(sender.inFlight).toBe(2);
    await world.capture({ id: "evt_later" });
    await world.advance(1_300);
    expect(sender.to("sub_fine").length).toBe(82);
  });

  test("field-faults H7: no call of the store is under way while requests are", async () => {
    for (const id of names(0, 12, "sub_")) await world.subscribe(id);
    await world.capture({ id: "evt_warm" });
    let calls = 0;
    const counted = new Proxy(world.store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return (...given: unknown[]) => {
          const answer: unknown = Reflect.apply(member, target, given);
          if (!(answer instanceof Promise)) return answer;
          calls++;
          return answer.finally(() => calls--);
        };
      },
    });
    const sender = slow(world);
    const loops = world.start(sender, { store: counted, dispatcher: world.dispatcher({ store: counted }) });
    await world.advance(1_500);
    await world.capture(...names(0, 4).map((id) => ({ id })));
    loops.wake();
    await world.advance(50);
    for (let second = 0; second < 13; second++) {
      expect(sender.inFlight).toBe(48);
      expect(calls).toBe(0);
      await world.advance(1_000);
    }
  });
});

/** Once each endpoint has shown that it is there, all take 14 s to answer. */
function slow(world: World): FakeSender {
  return new FakeSender(world.time, async ({ eventId }) => {
    if (eventId !== "evt_warm") await world.time.sleep(14_000);
    return 200;
  });
}

test("field-faults H7: on a pool of two, 48 slow sends hold no connection, and writes go on beside them", async () => {
  const database = await freshPostgres();
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  const observer = new pg.Client({ connectionString: database.url });
  await observer.connect();
  const time = new VirtualTime();
  const store = postgresStore({
    pool,
    encryptionKeys: `k1:${generateKey()}`,
    migrate: true,
    now: time.clock,
  });
  await store.open({ withKeys: true });
  const world = World.over(time, store);
  try {
    for (const id of names(0, 12, "sub_")) await world.subscribe(id);
    await world.capture({ id: "evt_warm" });
    const sender = slow(world);
    const loops = world.start(sender);
    await world.advance(1_500);
    await world.capture(...names(0, 4).map((id) => ({ id })));
    loops.wake();
    await world.advance(50);
    expect(sender.inFlight).toBe(48);
    for (let second = 0; second < 5; second++) {
      expect({ idle: pool.idleCount, waiting: pool.waitingCount }).toEqual({ idle: 2, waiting: 0 });
      const { rows } = await observer.query(
        "SELECT count(*)::int AS open FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
      );
      expect(rows).toEqual([{ open: 0 }]);
      await world.capture({ id: `evt_beside_${second}` });
      await world.store.updateSubscription(own, "sub_0000", { description: `edit ${second}` }, {});
      await world.advance(1_000);
    }
    await world.advance(40_000);
    expect(sender.sent.length).toBe(10 * 12);
  } finally {
    await world.close();
    await observer.end();
    await pool.end();
    await database.drop();
  }
});
