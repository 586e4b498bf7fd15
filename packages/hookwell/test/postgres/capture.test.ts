import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deliveryId } from "../../src/model/ids.ts";
import { captureTexts, factNames } from "../../src/store/postgres/capture-sql.ts";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import {
  begin,
  dispatchAll,
  emitted,
  eventInput,
  own,
  subscriptionInput,
  TestDatabase,
  waitsForLock,
} from "./database.ts";

let database: TestDatabase;
let store: PostgresOutbox;
let application: pg.Pool;
let admin: pg.Pool;
beforeAll(async () => {
  database = await TestDatabase.make();
  store = await database.store();
  application = database.pool();
  admin = database.pool();
});
afterAll(() => database.drop());

async function stored(projectId: string): Promise<Record<string, string[]>> {
  const ids = async (sql: string): Promise<string[]> =>
    (await admin.query(sql, [projectId])).rows.map((row) => row.id);
  return {
    events: await ids("SELECT id FROM hookwell.event WHERE project_id = $1 ORDER BY 1"),
    bodies: await ids("SELECT event_id AS id FROM hookwell.body WHERE project_id = $1 ORDER BY 1"),
    deliveries: await ids("SELECT event_id AS id FROM hookwell.delivery WHERE project_id = $1 ORDER BY 1"),
  };
}

test("the texts take each parameter once, in order, and have no question mark: every client library runs them", () => {
  const { one, many, fanOut } = captureTexts('"hookwell"');
  for (const [text, count] of [
    [one, 13],
    [many, 1],
    [fanOut, 1],
  ] as const) {
    expect(text).not.toContain("?");
    expect(text.match(/\$\d+/g)).toEqual(Array.from({ length: count }, (_, index) => `$${index + 1}`));
  }
});

test("the function's arguments are those that a capture gives, in their order, and all of them text", async () => {
  const { rows } = await admin.query(
    "SELECT proargnames AS names, pg_get_function_identity_arguments(oid) AS types FROM pg_proc WHERE proname = 'capture_event'",
  );
  const names = [...factNames, "now"].map((name) => `given_${name}`);
  expect(rows).toEqual([{ names, types: names.map((name) => `${name} text`).join(", ") }]);
});

test("delivery ids made in SQL are those of deliveryId()", async () => {
  const projectId = "ids";
  const subscriptions = ["sub_1", "sub_ü-ж-漢", "sub_😀"];
  for (const id of subscriptions)
    await store.createSubscription(own, subscriptionInput(id, { projectId, url: "https://x.example/" }));
  await store.capture(own, [emitted("evt:A-b_9", { projectId })]);
  const { items } = await store.listDeliveries({ projectId }, { limit: 10 });
  expect(items.map(({ id }) => id).sort()).toEqual(
    subscriptions.map((id) => deliveryId("evt:A-b_9", id)).sort(),
  );
});

test("two transactions with one id: the second waits, and is a repeat or the first, as the first one ends", async () => {
  for (const how of ["COMMIT", "ROLLBACK"] as const) {
    const input = eventInput(`evt_race_${how}`, { projectId: "race" });
    const first = await begin(application);
    const second = await begin(application);
    await store.capture(first.scope, [input]);
    const waiting = store.capture(second.scope, [input]);
    await waitsForLock(admin, second.pid);
    await first.end(how);
    expect(await waiting).toEqual([{ id: input.id, duplicate: how === "COMMIT" }]);
    await second.end("COMMIT");
  }
  expect((await stored("race")).events).toEqual(["evt_race_COMMIT", "evt_race_ROLLBACK"]);
});

test("two transactions with one revision: the second is refused, and goes on", async () => {
  const projectId = "revision";
  const revision = { projectId, subject: "user:1", revision: 7 };
  const first = await begin(application);
  const second = await begin(application);
  await store.capture(first.scope, [eventInput("evt_r1", revision)]);
  const waiting = store
    .capture(second.scope, [eventInput("evt_r2", revision)])
    .catch((error: unknown) => error);
  await waitsForLock(admin, second.pid);
  await first.end("COMMIT");
  expect(await waiting).toMatchObject({ code: "revision_conflict" });
  // The caller caught it, and its transaction is whole.
  await store.capture(second.scope, [eventInput("evt_r3", { ...revision, revision: 8 })]);
  await second.end("COMMIT");
  expect((await stored(projectId)).events).toEqual(["evt_r1", "evt_r3"]);
});

test("several events of which one loses a race: none is left, and the transaction goes on", async () => {
  const projectId = "whole";
  await store.createSubscription(own, subscriptionInput("sub_whole", { projectId }));
  const revision = { projectId, subject: "user:1", revision: 1 };
  const first = await begin(application);
  const second = await begin(application);
  await store.capture(first.scope, [emitted("evt_w0", revision)]);
  const waiting = store
    .capture(second.scope, [
      emitted("evt_w1", { projectId }),
      emitted("evt_w2", revision),
      emitted("evt_w3", { projectId }),
    ])
    .catch((error: unknown) => error);
  await waitsForLock(admin, second.pid);
  await first.end("COMMIT");
  expect(await waiting).toMatchObject({ code: "revision_conflict" });
  await store.capture(second.scope, [emitted("evt_w4", { projectId })]);
  await second.end("COMMIT");
  const left = ["evt_w0", "evt_w4"];
  expect(await stored(projectId)).toEqual({ events: left, bodies: left, deliveries: left });
});

test("a refusal in a REPEATABLE READ transaction leaves it usable", async () => {
  const projectId = "repeatable";
  await store.capture(own, [eventInput("evt_q1", { projectId, subject: "s", revision: 1 })]);
  const caller = await begin(application, "REPEATABLE READ");
  await expect(
    store.capture(caller.scope, [eventInput("evt_q2", { projectId, subject: "s", revision: 1 })]),
  ).rejects.toMatchObject({ code: "revision_conflict" });
  await expect(
    store.capture(caller.scope, [eventInput("evt_q1", { projectId, contentHash: "other" })]),
  ).rejects.toMatchObject({ code: "event_mismatch" });
  await store.capture(caller.scope, [eventInput("evt_q3", { projectId })]);
  await caller.end("COMMIT");
  expect((await stored(projectId)).events).toEqual(["evt_q1", "evt_q3"]);
});

test("capture waits for no operator: subscriptions locked by another transaction are only read", async () => {
  const projectId = "operator";
  await store.createSubscription(own, subscriptionInput("sub_operator", { projectId }));
  const operator = await begin(application);
  await store.setSubscriptionStatus(operator.scope, "sub_operator", "deleted", undefined, {});
  await operator.client.query(
    "SELECT 1 FROM hookwell.lane WHERE subscription_id = 'sub_operator' FOR UPDATE",
  );
  await store.capture(own, [emitted("evt_o1", { projectId })]);
  await operator.end("COMMIT");
  await dispatchAll(store);
  // The row is the deleted subscription's: it is never claimed, and upkeep cancels it.
  expect(
    (await store.claim({ now: null, limit: 50, leaseMs: 1 })).deliveries.filter(
      (d) => d.projectId === projectId,
    ),
  ).toEqual([]);
  await store.maintain(null, 10, null);
  expect((await store.listDeliveries({ projectId }, { limit: 5 })).items).toMatchObject([
    { status: "cancelled", reason: "deleted" },
  ]);
});

test("beyond a thousand matches fan-out is left to the dispatcher", async () => {
  const projectId = "crowd";
  await admin.query(
    `INSERT INTO hookwell.subscription (id, project_id, url, url_host, event_types, header_names, status, endpoint_id, created_at,
       updated_at, status_changed_at)
     SELECT 'sub_crowd_' || i, 'crowd', 'https://x/', 'x', '[]', '[]', 'active', 'end_none', 1, 1, 1 FROM generate_series(1, 1000) i`,
  );
  await admin.query(
    "INSERT INTO hookwell.subscription_filter SELECT 'crowd', '', '', '', 'sub_crowd_' || i FROM generate_series(1, 1000) i",
  );
  await store.capture(own, [emitted("evt_c1", { projectId })]);
  expect(await store.getEvent("evt_c1", {})).toMatchObject({ fannedOut: true, route: "*" });
  await store.createSubscription(own, subscriptionInput("sub_crowd_more", { projectId }));
  await store.capture(own, [emitted("evt_c2", { projectId })]);
  expect(await store.getEvent("evt_c2", {})).toMatchObject({ fannedOut: false, route: "user.created" });
  const { rows } = await admin.query(
    "SELECT event_id, count(*)::int AS n FROM hookwell.delivery WHERE project_id = 'crowd' GROUP BY 1",
  );
  expect(rows).toEqual([{ event_id: "evt_c1", n: 1000 }]);
});
