import { startReceiver } from "hookwell/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, type StoreKind, startWorld, type World } from "./support/world.ts";

const day = 86_400_000;

// What the stores do is in the store contract; here it is the API, on the two that servers use.
describe.each<StoreKind>(["sqlite", "postgres"])("replays over HTTP on %s", (kind) => {
  let world: World;
  let broken = true;
  beforeAll(async () => {
    world = await startWorld(kind, { retry: { maxAttempts: 1, baseDelay: 1_000, maxDelay: 1_000 } });
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });
  const ago = (ms: number): string => new Date(world.clock.read().getTime() - ms).toISOString();
  const subscribe = async (project_id: string, url: string, more: object = {}): Promise<string> =>
    (await world.ok(201, "POST", "/v1/subscriptions", { body: { project_id, url, ...more } })).id;
  const emit = (project_id: string, more: object = {}): Promise<Json> =>
    world.ok(202, "POST", "/v1/events", {
      body: { project_id, type: "order.paid", data: { n: 1 }, ...more },
    });
  const replay = (body: object, key?: string) => world.call("POST", "/v1/replays", { body, key });
  const failedOn = async (project: string, url: string, count: number): Promise<string> => {
    const id = await subscribe(project, url);
    broken = true;
    for (let n = 0; n < count; n++) await emit(project);
    await world.work();
    broken = false;
    world.clock.advance(1);
    return id;
  };
  const receiverOf = () => startReceiver({ respond: () => (broken ? 500 : 200) });

  test("counted first, made, followed, and listed", async () => {
    await using receiver = await receiverOf();
    const project = `follow-${kind}`;
    const id = await failedOn(project, receiver.url, 3);
    const body = { subscription_id: id, since: ago(day), status: ["failed"] };
    expect(await replay({ ...body, dry_run: true })).toMatchObject({ status: 200, json: { count: 3 } });
    expect((await world.ok(200, "GET", `/v1/replays?project_id=${project}`)).items).toEqual([]);
    const made = await replay(body);
    expect(made).toMatchObject({ status: 202, json: { count: 3 } });
    expect(made.json.id).toMatch(/^rpl_/);
    await world.work();
    await world.work();
    const shown = await world.ok(200, "GET", `/v1/replays/${made.json.id}`);
    expect(shown).toMatchObject({
      id: made.json.id,
      status: "done",
      count: 3,
      queued: 3,
      delivered: 3,
      failed: 0,
      statuses: ["failed"],
      filter: { subscription_id: id, project_id: project, type: null },
      finished_at: world.clock.read().toISOString(),
    });
    expect(receiver.requests).toHaveLength(6);
    expect(new Set(receiver.requests.map(({ headers }) => headers["x-hookwell-delivery"])).size).toBe(3);
    const listed = await world.ok(200, "GET", `/v1/replays?subscription_id=${id}&status=done`);
    expect(listed.items).toEqual([shown]);
    const of = await world.ok(200, "GET", `/v1/deliveries?replay_id=${made.json.id}`);
    expect(of.items.map(({ status }: Json) => status)).toEqual(Array(3).fill("delivered"));
  });

  test("what cannot be is refused, with the field and what to do", async () => {
    await using receiver = await receiverOf();
    const project = `refused-${kind}`;
    const id = await subscribe(project, receiver.url);
    const body = { subscription_id: id, since: ago(day), status: ["failed"] };
    const refusals: [object, string, RegExp][] = [
      [{ ...body, filter: { type: "a.b" } }, "/filter", /exactly one/],
      [{ since: ago(day), status: ["failed"] }, "/filter", /exactly one/],
      [{ since: ago(day), status: ["failed"], filter: {} }, "/filter", /at least one of project_id/],
      [
        { since: ago(day), status: ["missing"], filter: { project_id: project } },
        "/status",
        /subscription_id/,
      ],
      [
        { since: ago(day), status: ["missing"], filter: { subscription_id: id, error_code: "timeout" } },
        "/filter/error_code",
        /without a delivery/,
      ],
      [{ ...body, status: [] }, "/status", /./],
      [{ ...body, status: ["pending"] }, "/status/0", /./],
      [{ ...body, since: ago(91 * day) }, "/since", /failed deliveries are kept 90 days, so since 20/],
      [
        { ...body, since: ago(31 * day), status: ["failed", "missing"] },
        "/since",
        /events are kept 30 days, so since 20/,
      ],
      [{ ...body, since: ago(-day) }, "/since", /past/],
      [{ ...body, until: ago(2 * day) }, "/until", /after since/],
    ];
    for (const [given, pointer, message] of refusals) {
      const answer = await replay(given);
      expect(answer, JSON.stringify(given)).toMatchObject({ status: 400 });
      const error = answer.json.errors.find((problem: Json) => problem.pointer === pointer);
      expect(error?.message, JSON.stringify(answer.json)).toMatch(message);
    }
    expect(await replay({ ...body, since: ago(30 * day), status: ["missing"] })).toMatchObject({
      status: 202,
    });
    expect(await replay({ ...body, subscription_id: "sub_none" })).toMatchObject({ status: 404 });
    await world.ok(200, "POST", `/v1/subscriptions/${id}/disable`);
    const disabled = await replay(body);
    expect(disabled).toMatchObject({ status: 409, json: { code: "invalid_state" } });
    expect(disabled.json.detail).toMatch(/disabled; enable it first/);
    expect(await world.call("GET", "/v1/replays/rpl_none")).toMatchObject({ status: 404 });
    expect(await world.call("DELETE", "/v1/replays/rpl_none")).toMatchObject({ status: 404 });
  });

  test("a key sees, makes and stops replays of its project only; read cannot make, operate can", async () => {
    await using receiver = await receiverOf();
    const [mine, theirs] = [`mine-${kind}`, `theirs-${kind}`];
    const own = await failedOn(mine, receiver.url, 1);
    const other = await failedOn(theirs, receiver.url, 1);
    const key = await world.key(["operate", "read"], mine);
    const body = { since: ago(day), status: ["failed"] };
    expect(await replay({ ...body, subscription_id: other }, key)).toMatchObject({ status: 404 });
    expect(await replay({ ...body, filter: { project_id: theirs } }, key)).toMatchObject({ status: 400 });
    expect(await replay({ ...body, subscription_id: own }, await world.key(["read"], mine))).toMatchObject({
      status: 403,
    });
    // A filter of the key is one of its project, whatever it leaves out.
    const filter = { type: "order.paid" };
    expect(await replay({ ...body, filter, dry_run: true }, key)).toMatchObject({ json: { count: 1 } });
    const { json: made } = await replay({ ...body, filter }, key);
    const { json: foreign } = await replay({ ...body, subscription_id: other });
    expect((await world.ok(200, "GET", "/v1/replays", { key })).items.map(({ id }: Json) => id)).toEqual([
      made.id,
    ]);
    expect(await world.call("GET", `/v1/replays/${foreign.id}`, { key })).toMatchObject({ status: 404 });
    expect(await world.call("DELETE", `/v1/replays/${foreign.id}`, { key })).toMatchObject({ status: 404 });
    expect(await world.ok(200, "DELETE", `/v1/replays/${made.id}`, { key })).toMatchObject({
      status: "stopped",
    });
    expect(await world.call("DELETE", `/v1/replays/${made.id}`, { key })).toMatchObject({ status: 409 });
    await world.work();
    expect(receiver.requests.length).toBe(3);
  });

  test("bulk cancel answers how many, after a dry run that changes nothing; it needs something to go by", async () => {
    await using receiver = await receiverOf();
    const project = `cancel-${kind}`;
    const id = await subscribe(project, receiver.url);
    const other = await subscribe(project, receiver.url, { event_types: ["order.lost"] });
    for (let n = 0; n < 4; n++) await emit(project, { subject: `order:${n % 2}` });
    await emit(project, { type: "order.lost" });
    await world.ok(200, "POST", `/v1/subscriptions/${id}/pause`);
    await world.ok(200, "POST", `/v1/subscriptions/${other}/pause`);
    await world.work();
    const cancel = (body: object, key?: string) => world.call("POST", "/v1/deliveries/cancel", { body, key });
    expect(await cancel({})).toMatchObject({ status: 400 });
    expect(await cancel({ subscription: id })).toMatchObject({ status: 400 });
    expect(await cancel({ project_id: project, dry_run: true })).toMatchObject({
      status: 200,
      json: { count: 6 },
    });
    expect(await cancel({ subscription_id: id, until: ago(day), dry_run: true })).toMatchObject({
      json: { count: 0 },
    });
    const key = await world.key(["operate"], `other-${kind}`);
    expect(await cancel({ subscription_id: id }, key)).toMatchObject({ status: 200, json: { count: 0 } });
    expect(await cancel({ subscription_id: id, subject: "order:1" })).toMatchObject({ json: { count: 2 } });
    expect(await cancel({ project_id: project, since: ago(day) })).toMatchObject({ json: { count: 4 } });
    expect(await cancel({ project_id: project })).toMatchObject({ json: { count: 0 } });
    const { items } = await world.ok(200, "GET", `/v1/deliveries?project_id=${project}`);
    expect(items.map(({ status, reason }: Json) => `${status} ${reason}`)).toEqual(
      Array(6).fill("cancelled by_hand"),
    );
  });
});
