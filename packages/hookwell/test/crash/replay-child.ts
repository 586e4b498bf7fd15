// One life of a process that takes replays on. After so many statements it reports, and stands still to be killed.
import { MissingFiller } from "../../src/dispatch/missing-filler.ts";
import { systemClock } from "../../src/model/clock.ts";
import type { OutboxStore } from "../../src/store/contract.ts";
import type { ReplayOrder } from "./points.ts";
import { standStill } from "./stop.ts";
import { watchedPool, watchedSqlite } from "./watch.ts";

const order = JSON.parse(process.env.CRASH_ORDER ?? "") as ReplayOrder;
let left = Number.POSITIVE_INFINITY;
const watch = {
  after: () => {
    if (--left <= 0) standStill();
  },
};

async function onSqlite(path: string): Promise<OutboxStore> {
  const { sqliteStore } = await import("hookwell/sqlite");
  return sqliteStore({ path, encryptionKeys: order.encryptionKeys, open: watchedSqlite(watch) });
}

async function onPostgres(connectionString: string): Promise<OutboxStore> {
  const { default: pg } = await import("pg");
  const { postgresStore } = await import("hookwell/postgres");
  const pool = watchedPool(new pg.Pool({ connectionString, max: 1 }), watch);
  return postgresStore({ pool, encryptionKeys: order.encryptionKeys });
}

const store = await (order.store === "sqlite" ? onSqlite(order.address) : onPostgres(order.address));
await store.open({ withKeys: false });
const filler = new MissingFiller({ store, clock: systemClock, batch: 3 });
const limits = { look: 10, most: 3, pending: 10_000, waitMs: 0, missingMs: null, keepMs: null };
left = order.statements;
for (;;) {
  const step = await store.replays.advance(limits, null);
  await filler.fillOnce();
  if (!step.running) break;
}
process.exit(0);
