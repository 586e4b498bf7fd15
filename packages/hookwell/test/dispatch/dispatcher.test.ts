import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Catalogue, EventTypeDefinition } from "../../src/model/definition.ts";
import { failing } from "../deliver/rows.ts";
import { kinds } from "../deliver/stores.ts";
import { FakeSender, names, World } from "../deliver/world.ts";

function catalogue(...definitions: readonly (Partial<EventTypeDefinition> & { type: string })[]): Catalogue {
  return new Map(
    definitions.map((changes) => [
      changes.type,
      {
        validate: (value: unknown) => ({ ok: true as const, value }),
        jsonSchema: {},
        fanOut: "dispatch" as const,
        broadcast: false,
        ...changes,
      },
    ]),
  );
}

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  beforeEach(async () => {
    world = await World.open(kind);
  });
  afterEach(() => world.close());

  const bodies = async (): Promise<unknown[]> => {
    const sender = new FakeSender(world.time);
    const loops = world.start(sender, { worker: true });
    await world.advance(100);
    await loops.stop();
    return sender.sent.map(({ delivery }) => JSON.parse(Buffer.from(delivery.payload).toString()) as unknown);
  };
  const event = async (id: string) => (await world.store.getEvent(id, {}))!;

  test("an event becomes one delivery for each match, with ids that are the same wherever they are made", async () => {
    await world.subscribe("sub_a", { eventTypes: ["thing.*"] });
    await world.subscribe("sub_b", { eventTypes: ["other.made", "thing.made"] });
    await world.subscribe("sub_c", { eventTypes: ["other.made"] });
    await world.subscribe("sub_d", { tenantId: "t2" });
    await world.capture({ id: "evt_1", tenantId: "t1" });
    expect(await world.dispatcher().dispatchOnce()).toMatchObject({ taken: 1, dispatched: 1, again: false });
    const made = [...(await world.deliveries())].sort((a, b) =>
      a.subscriptionId < b.subscriptionId ? -1 : 1,
    );
    expect(made.map(({ subscriptionId }) => subscriptionId)).toEqual(["sub_a", "sub_b"]);
    // The first 16 bytes of SHA-256 of event id, 0x1f, subscription id, computed apart.
    expect(made[0]!.id).toBe("dlv_56bb456cac392856f2a817972dad984d");
    expect(await world.dispatcher().dispatchOnce()).toMatchObject({
      taken: 0,
      dispatched: 0,
      again: false,
      queued: false,
    });
    expect(world.observed.of("dispatched")).toEqual([
      { eventId: "evt_1", type: "thing.made", deliveries: 2 },
    ]);
  });

  test("an event that matches nobody is dispatched all the same", async () => {
    await world.capture({ id: "evt_1" });
    await world.dispatcher().dispatchOnce();
    expect(await event("evt_1")).toMatchObject({ state: "dispatched", outcome: "unmatched" });
  });

  test("a process takes only types of its own catalogue, and those captured without one", async () => {
    await world.subscribe("sub_a");
    await world.capture(
      { id: "evt_mine", type: "mine.made", route: "mine.made" },
      { id: "evt_theirs", type: "theirs.made", route: "theirs.made" },
      { id: "evt_open", type: "mine.made", route: "*" },
    );
    const envelope = () => ({ rendered: "by me" });
    const mine = world.dispatcher({ catalogue: catalogue({ type: "mine.made", envelope }) });
    expect(await mine.dispatchOnce()).toMatchObject({ taken: 2, dispatched: 2 });
    expect((await event("evt_theirs")).state).toBe("new");
    // What was captured open is rendered the same wherever it is taken.
    const rendered = (await bodies()).map((body) => JSON.stringify(body)).sort();
    expect(rendered).toEqual([
      '{"id":"evt_open","type":"mine.made","timestamp":"2026-03-01T09:00:00.000Z","data":{"number":"evt_open"}}',
      '{"rendered":"by me"}',
    ]);
  });

  test("one body for each distinct selection", async () => {
    const rendered: unknown[] = [];
    const definition = {
      type: "thing.made",
      fields: { always: ["id"], default: ["a"], optional: { b: {}, c: {} } },
      envelope: (_event: unknown, data: unknown) => {
        rendered.push(data);
        return data;
      },
    };
    await world.subscribe("sub_1");
    await world.subscribe("sub_2", { fields: ["b", "c"] });
    await world.subscribe("sub_3", { fields: ["c", "b", "zzz"] });
    await world.subscribe("sub_4", { fields: ["zzz"] });
    await world.capture({ id: "evt_1", route: "thing.made", data: '{"c":3,"b":2,"a":1,"id":0}' });
    await world.dispatcher({ catalogue: catalogue(definition) }).dispatchOnce();
    expect(rendered).toEqual([
      { a: 1, id: 0 },
      { c: 3, b: 2, id: 0 },
    ]);
    expect((await bodies()).map((body) => JSON.stringify(body)).sort()).toEqual([
      '{"a":1,"id":0}',
      '{"a":1,"id":0}',
      '{"c":3,"b":2,"id":0}',
      '{"c":3,"b":2,"id":0}',
    ]);
  });

  describe("enrichment", () => {
    test("is asked once for all events of a type, before the transaction, and frozen with them", async () => {
      const asked: string[][] = [];
      const definition: Partial<EventTypeDefinition> & { type: string } = {
        type: "thing.made",
        enrich: async (events) => {
          asked.push(events.map(({ id }) => id));
          return new Map([["evt_1", { link: "https://meet.example/1", number: 9007199254740993n }]]);
        },
      };
      await world.subscribe("sub_a");
      await world.capture(
        { id: "evt_1", route: "thing.made", data: '{"link":"","kept":true}' },
        { id: "evt_2", route: "thing.made", data: '{"link":""}' },
      );
      await world.dispatcher({ catalogue: catalogue(definition) }).dispatchOnce();
      expect(asked).toEqual([["evt_1", "evt_2"]]);
      expect((await event("evt_1")).patch).toBe(
        '{"link":"https://meet.example/1","number":9007199254740993}',
      );
      expect((await event("evt_2")).patch).toBeUndefined();
      const texts = (
        await world.store.claim({ now: world.time.clock(), limit: 10, leaseMs: 1_000 })
      ).deliveries
        .map(({ payload }) => Buffer.from(payload).toString())
        .sort();
      expect(texts[0]).toContain(
        '"data":{"link":"https://meet.example/1","kept":true,"number":9007199254740993}',
      );
      expect(texts[1]).toContain('"data":{"link":""}');
    });

    test("that throws, is late, or answers nonsense is reported, and the snapshot goes out", async () => {
      const late = new AbortController();
      const answers: Record<string, EventTypeDefinition["enrich"]> = {
        "a.made": () => {
          throw new Error("no calendar");
        },
        "b.made": async () => ({}) as ReadonlyMap<string, Record<string, unknown>>,
        "c.made": async () => new Map([["evt_c", "text" as unknown as Record<string, unknown>]]),
        "d.made": (_events, { signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener("abort", () => {
              late.abort();
              reject(new Error("told to stop"));
            }),
          ),
      };
      await world.subscribe("sub_x");
      for (const type of Object.keys(answers))
        await world.capture({ id: `evt_${type[0]}`, type, route: type, data: '{"as":"captured"}' });
      const definitions = Object.entries(answers).map(([type, enrich]) => ({ type, enrich: enrich! }));
      const round = world.dispatcher({ catalogue: catalogue(...definitions) }).dispatchOnce();
      await world.advance(1_999);
      expect(late.signal.aborted).toBe(false);
      await world.advance(1);
      expect(await round).toMatchObject({ dispatched: 4 });
      expect(late.signal.aborted).toBe(true);
      expect(world.time.sleeping).toBe(0);
      expect(
        world.observed
          .of("enrichFailed")
          .map(({ type, error }) => `${type} ${error}`)
          .sort(),
      ).toEqual([
        "a.made no calendar",
        "b.made enrich must answer a Map from event id to a patch",
        "c.made enrich must answer an object of fields for each event",
        "d.made enrich did not answer within 2000 ms",
      ]);
      expect(await bodies()).toEqual(Array(4).fill(expect.objectContaining({ data: { as: "captured" } })));
    });

    test("of events with one id in two projects is asked apart", async () => {
      const definition: Partial<EventTypeDefinition> & { type: string } = {
        type: "thing.made",
        enrich: async (events) => new Map(events.map(({ id, projectId }) => [id, { from: projectId }])),
      };
      await world.subscribe("sub_a");
      await world.subscribe("sub_b", { projectId: "test" });
      await world.capture({ id: "evt_1", route: "thing.made" });
      await world.capture({ id: "evt_1", route: "thing.made", projectId: "test" });
      await world.dispatcher({ catalogue: catalogue(definition) }).dispatchOnce();
      const patches = await Promise.all(
        ["live", "test"].map(
          async (projectId) => (await world.store.getEvent("evt_1", { projectId }))?.patch,
        ),
      );
      expect(patches).toEqual(['{"from":"live"}', '{"from":"test"}']);
    });

    test("is not repeated when the transaction of the batch fails", async () => {
      let asked = 0;
      const definition: Partial<EventTypeDefinition> & { type: string } = {
        type: "thing.made",
        enrich: async () => {
          asked++;
          return new Map([["evt_1", { x: 1 }]]);
        },
      };
      await world.subscribe("sub_a");
      await world.capture({ id: "evt_1", route: "thing.made" }, { id: "evt_2", route: "thing.made" });
      const store = failing(world.store, {
        dispatch: async (items, now) => {
          if (items.length > 1) throw new Error("a batch is too much");
          return world.store.dispatch(items, now);
        },
      });
      const round = await world.dispatcher({ store, catalogue: catalogue(definition) }).dispatchOnce();
      expect(round).toMatchObject({ taken: 2, dispatched: 2 });
      expect(asked).toBe(1);
      expect((await event("evt_1")).patch).toBe('{"x":1}');
    });
  });

  test("an event that cannot be rendered is tried after 1, 2, 4, 8, 16 s, then parked; others go on", async () => {
    await world.subscribe("sub_a");
    let faulty = true;
    const tries: number[] = [];
    const definition = {
      type: "thing.made",
      envelope: (seen: { id: string }, data: unknown) => {
        if (seen.id !== "evt_0007" || !faulty) return data;
        tries.push(world.time.clock().getTime());
        throw new Error("cannot render\u0000this");
      },
    };
    await world.capture(...names(0, 20).map((id) => ({ id, route: "thing.made" })));
    const loops = world.start(new FakeSender(world.time), {
      dispatcher: world.dispatcher({ catalogue: catalogue(definition) }),
    });
    await world.advance(500);
    expect((await world.deliveries({ status: "delivered" })).length).toBe(19);
    await world.advance(120_000);
    const gaps = tries.slice(1).map((at, index) => (at - tries[index]!) / 1_000);
    // A poll comes at most 1.2 s after the event is due again.
    for (const [index, gap] of gaps.entries()) {
      expect(gap).toBeGreaterThanOrEqual(2 ** index);
      expect(gap).toBeLessThan(2 ** index + 1.2);
    }
    expect(tries.length).toBe(6);
    expect(await event("evt_0007")).toMatchObject({
      state: "parked",
      outcome: "parked",
      error: "cannot render\ufffdthis",
    });
    expect(world.observed.of("parked")).toEqual([
      { eventId: "evt_0007", type: "thing.made", error: "cannot render\ufffdthis" },
    ]);
    faulty = false;
    await world.store.releaseEvent({ kind: "own" }, { projectId: "live", id: "evt_0007" });
    await world.advance(2_000);
    expect((await world.deliveries({ status: "delivered" })).length).toBe(20);
    await loops.stop();
  });

  test("events that two dispatchers took at once are dispatched once", async () => {
    await world.subscribe("sub_a");
    await world.capture(...names(0, 150).map((id) => ({ id })));
    const dispatchers = [
      world.dispatcher(),
      world.dispatcher(),
      world.dispatcher({ store: await world.again() }),
    ];
    const counts = await Promise.all(
      dispatchers.map(async (dispatcher) => {
        let count = 0;
        for (let round = { taken: 1, dispatched: 0 }; round.taken > 0; count += round.dispatched)
          round = await dispatcher.dispatchOnce();
        return count;
      }),
    );
    expect(counts.reduce((a, b) => a + b)).toBe(150);
    expect(new Set(world.observed.of("dispatched").map(({ eventId }) => eventId)).size).toBe(150);
    expect(world.observed.of("dispatched").length).toBe(150);
  });
});
