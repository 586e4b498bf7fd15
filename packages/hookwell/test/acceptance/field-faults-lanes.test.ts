import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RetryPolicyInput } from "../../src/model/retry.ts";
import { createHookwell } from "../../src/publish/create-hookwell.ts";
import { kinds } from "../deliver/stores.ts";
import { type FakeAnswer, FakeSender, names, World } from "../deliver/world.ts";

const day = 86_400_000;

describe.each(kinds)("on $name", (kind) => {
  kind.use();
  let world: World;
  const lines: string[] = [];
  beforeEach(async () => {
    world = await World.open(kind);
    lines.length = 0;
  });
  afterEach(() => world.close());

  /** The whole engine, on the world's time, with no failure hook. */
  const begin = (sender: FakeSender, options: { retry?: RetryPolicyInput; lanes?: object } = {}) => {
    const log = (line: string): void => {
      lines.push(line);
    };
    const hooks = createHookwell({
      store: world.store,
      project: "live",
      clock: world.time.clock,
      timers: world.time,
      randomNumber: () => 0.5,
      sender,
      retention: false,
      logger: { info: log, warn: log, error: log },
      ...options,
    });
    const run = hooks.start();
    return { hooks, run };
  };

  test("field-faults H4: an endpoint that only answers 404 is disabled as failing, without a failure hook: event, log entry and reason are there", async () => {
    await world.subscribe("sub_dead");
    await world.subscribe("sub_ops", { eventTypes: ["hookwell.*"] });
    const sender = new FakeSender(world.time, ({ subscriptionId }) =>
      subscriptionId === "sub_dead" ? 404 : 200,
    );
    const { run } = begin(sender, {
      retry: Array(30).fill(day / 2),
      lanes: { disable: { failures: 4, overMs: 1.5 * day } },
    });
    await world.capture({ id: "evt_1", type: "thing.made" });
    // Three failures over a day: neither is reached.
    await world.advance(1_500);
    for (let n = 0; n < 2; n++) {
      world.time.skip(day / 2);
      await world.advance(1_500);
    }
    expect(sender.to("sub_dead").length).toBe(3);
    expect(await world.store.getSubscription("sub_dead", {})).toMatchObject({ status: "active" });
    world.time.skip(day / 2);
    await world.advance(4_000);
    expect(await world.store.getSubscription("sub_dead", {})).toMatchObject({
      status: "disabled",
      statusReason: "failing",
    });
    expect(lines.filter((line) => line.includes("sub_dead") && line.includes("failing"))).toHaveLength(1);
    const told = sender
      .to("sub_ops")
      .map(({ delivery }) => JSON.parse(Buffer.from(delivery.payload).toString()));
    expect(told.map(({ type }) => type)).toEqual(["hookwell.subscription.disabled"]);
    expect(told[0].data).toEqual({ subscription_id: "sub_dead", reason: "failing", failures: 4 });
    world.time.skip(5 * day);
    await world.advance(1_500);
    expect(sender.to("sub_dead").length).toBe(4);
    const closing = run.stop({ graceMs: 0 });
    await world.advance(10);
    await closing;
  });

  test("field-faults H4: one bad hour of an endpoint that is asked seldom does not disable it, by the documented limits", async () => {
    await world.subscribe("sub_quiet");
    let answer: FakeAnswer = "connect_refused";
    const sender = new FakeSender(world.time, () => answer);
    const { run } = begin(sender, { retry: Array(60).fill(60_000), lanes: { breaker: false } });
    await world.capture({ id: "evt_1" });
    for (let n = 0; n < 45; n++) {
      await world.advance(1_300);
      world.time.skip(60_000);
    }
    expect(sender.sent.length).toBeGreaterThan(30);
    expect(await world.store.getSubscription("sub_quiet", {})).toMatchObject({ status: "active" });
    answer = 200;
    world.time.skip(60_000);
    await world.advance(2_000);
    expect(await world.deliveries()).toMatchObject([{ status: "delivered" }]);
    const closing = run.stop({ graceMs: 0 });
    await world.advance(10);
    await closing;
  });
});

describe("on memory", () => {
  test("field-faults D10: deliveries to 120 endpoints of one host that fail together come back spread over the step", async () => {
    const world = await World.open();
    for (const id of names(0, 120, "sub_")) await world.subscribe(id);
    const sender = new FakeSender(world.time, () => 502);
    const run = createHookwell({
      store: world.store,
      project: "live",
      clock: world.time.clock,
      timers: world.time,
      sender,
      retention: false,
      logger: { info() {}, warn() {}, error() {} },
    }).start();
    await world.capture({ id: "evt_1" });
    await world.advance(1_500);
    expect(sender.sent.length).toBe(120);
    // The second step of the documented schedule is 5 min.
    await world.advance(8_000);
    expect(sender.sent.length).toBe(240);
    const due: number[] = [];
    for (const id of names(0, 120, "sub_")) {
      const [row] = await world.deliveries({ subscriptionId: id });
      due.push(row!.nextAttemptAt!.getTime() - sender.to(id).at(-1)!.at.getTime());
    }
    expect(Math.max(...due) - Math.min(...due)).toBeGreaterThan(30_000);
    expect(Math.min(...due)).toBeGreaterThanOrEqual(240_000);
    expect(Math.max(...due)).toBeLessThanOrEqual(361_000);
    const closing = run.stop({ graceMs: 0 });
    await world.advance(10);
    await closing;
    await world.close();
  });
});
