import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { PostgresOutbox } from "../../src/store/postgres/index.ts";
import { dispatchAll, eventInput, own, subscriptionInput, TestDatabase } from "./database.ts";

let database: TestDatabase;
let store: PostgresOutbox;
beforeAll(async () => {
  database = await TestDatabase.make();
  store = await database.store();
});
afterAll(() => database.drop());
afterEach(() => {
  vi.useRealTimers();
});

const minute = 60_000;
const claimOf = (outbox: PostgresOutbox) => outbox.claim({ now: null, limit: 10, leaseMs: 30_000 });
const exchange = () => ({
  startedAt: new Date(),
  durationMs: 1,
  statusCode: 500,
  errorCode: "http_500",
  error: "500",
});

/** Makes the clock of this process wrong; the database keeps its own. */
function processClock(offBy: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: performance.timeOrigin + performance.now() + offBy });
}

async function databaseNow(): Promise<number> {
  const { rows } = await database
    .pool({ max: 1 })
    .query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now");
  return rows[0].now;
}

async function queued(projectId: string): Promise<void> {
  await store.createSubscription(own, subscriptionInput(`sub_${projectId}`, { projectId }));
  await store.capture(own, [eventInput(`evt_${projectId}`, { projectId })]);
  await dispatchAll(store);
}

test.each([
  ["ten minutes ahead", 10 * minute],
  ["a day ahead", 1_440 * minute],
  ["two hours behind", -120 * minute],
])(
  "field-faults D11: a worker whose clock is %s neither takes a leased row nor retries early",
  async (name, offBy) => {
    await queued(name.replaceAll(" ", "-"));
    const [row] = (await claimOf(store)).deliveries;

    processClock(offBy);
    const other = await database.store();
    expect((await claimOf(other)).deliveries).toEqual([]);
    // Its outcome, too, is timed by the database: the retry is due five minutes from the real now.
    await other.record(
      [
        {
          id: row!.id,
          leaseToken: row!.leaseToken!,
          kind: "retry",
          delayMs: 5 * minute,
          exchange: exchange(),
        },
      ],
      null,
    );
    expect((await claimOf(other)).deliveries).toEqual([]);
    const { nextAttemptAt } = (await other.getDelivery(row!.id, {}))!;
    const now = await databaseNow();
    expect(nextAttemptAt!.getTime()).toBeGreaterThan(now + 4 * minute);
    expect(nextAttemptAt!.getTime()).toBeLessThanOrEqual(now + 5 * minute);
  },
);

test("field-faults D11: a worker whose clock is behind still gets what is due, and its lease lasts", async () => {
  processClock(-600 * minute);
  const late = await database.store();
  await queued("behind");
  const { deliveries } = await claimOf(late);
  expect(deliveries.map(({ eventId }) => eventId)).toEqual(["evt_behind"]);
  vi.useRealTimers();
  expect((await claimOf(store)).deliveries).toEqual([]);
  expect(deliveries[0]!.leaseUntil!.getTime()).toBeGreaterThan((await databaseNow()) + 15_000);
});

test("field-faults D11: capture is stamped by the database, so a host with a wrong clock hides no event", async () => {
  processClock(48 * 60 * minute);
  await store.capture(own, [eventInput("evt_future", { projectId: "stamp" })]);
  vi.useRealTimers();
  const [event] = await store.takeNew(["user.created"], 10, null);
  expect(event?.id).toBe("evt_future");
  expect(Math.abs(event!.capturedAt.getTime() - (await databaseNow()))).toBeLessThan(minute);
});
