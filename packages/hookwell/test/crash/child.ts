// One life of an application process: it changes something and publishes it, again and again, and does what its order
// names until it is at the point. There it reports, stands still, and waits to be killed.
import { createHookwell, HttpSender, type Sender } from "hookwell";
import type { OutboxStore } from "../../src/store/contract.ts";
import { events, network, retry } from "./application.ts";
import type { CrashOrder } from "./points.ts";
import { Stop } from "./stop.ts";
import { watchedPool, watchedSqlite } from "./watch.ts";

const order = JSON.parse(process.env.CRASH_ORDER ?? "") as CrashOrder;
const stop = new Stop(order);
const clock = () => new Date(Date.now() + order.clockOffsetMs);
const halfAnHour = 1_800_000;

const real = new HttpSender({ network });
const sender: Sender = {
  async deliver(delivery, options) {
    stop.at("send", "before");
    const receipt = await real.deliver(delivery, options);
    stop.at("send", "after");
    return receipt;
  },
};

const common = (store: OutboxStore) => ({
  store: stop.store(store),
  project: "live",
  events,
  network,
  sender,
  clock,
  retry,
  ...(order.step === "prune" ? { retention: { deliveredMs: 1, failedMs: 1, eventsMs: 1 } } : {}),
});

/** What the application has: a way to change something and to publish it in one transaction. */
interface Application {
  readonly hooks: Pick<ReturnType<typeof createHookwell>, "start" | "drain" | "maintain" | "replays">;
  change(id: string): Promise<void>;
}

async function onSqlite(): Promise<Application> {
  // Drivers are loaded where they are used: hundreds of lives start faster.
  const { DatabaseSync } = await import("node:sqlite");
  const { nodeSqlite } = await import("hookwell/node-sqlite");
  const { sqliteStore } = await import("hookwell/sqlite");
  const { address: path, encryptionKeys } = order;
  const store = sqliteStore({ path, now: clock, encryptionKeys, open: watchedSqlite(stop.watch) });
  if (order.step === "migrate") await stop.during("migrate", () => store.migrations.migrate());
  const db = new DatabaseSync(path, { timeout: 5_000 });
  const hooks = createHookwell({ ...common(store), tx: nodeSqlite() });
  await hooks.ready();
  return {
    hooks,
    async change(id) {
      db.exec("BEGIN IMMEDIATE");
      db.prepare("INSERT INTO thing (id) VALUES (?)").run(id);
      hooks.emitSync("thing.made", { id }, { tx: db, id });
      stop.at("capture", "before");
      db.exec("COMMIT");
      stop.at("capture", "after");
    },
  };
}

async function onPostgres(): Promise<Application> {
  const { default: pg } = await import("pg");
  const { pgTx } = await import("hookwell/pg");
  const { postgresStore } = await import("hookwell/postgres");
  const { address, schema, encryptionKeys } = order;
  const pool = new pg.Pool({ connectionString: address, max: 4 });
  const store = postgresStore({ pool: watchedPool(pool, stop.watch), schema, now: clock, encryptionKeys });
  if (order.step === "migrate") await stop.during("migrate", () => store.migrations.migrate());
  const hooks = createHookwell({ ...common(store), tx: pgTx() });
  await hooks.ready();
  return {
    hooks,
    async change(id) {
      const tx = await pool.connect();
      await tx.query("BEGIN");
      await tx.query(`INSERT INTO ${schema}.thing (id) VALUES ($1)`, [id]);
      await hooks.emit("thing.made", { id }, { tx, id });
      stop.at("capture", "before");
      await tx.query("COMMIT");
      stop.at("capture", "after");
      tx.release();
    },
  };
}

async function live({ hooks, change }: Application): Promise<void> {
  for (let number = 0; ; number++) {
    await change(`${order.thing}-${number}`);
    if (order.step !== "prune" && order.step !== "replay") break;
    await hooks.drain({ deadlineMs: 20_000 });
    if (order.step === "prune") await hooks.maintain();
    else {
      const since = new Date(clock().getTime() - halfAnHour);
      await hooks.replays.create({ filter: { projectId: "live" }, since, status: ["delivered"] });
      await hooks.drain({ deadlineMs: 20_000 });
    }
  }
  hooks.start();
}

// Ends when the one that would kill it is gone.
process.stdin.resume().once("end", () => process.exit(1));
await live(await (order.store === "sqlite" ? onSqlite() : onPostgres()));
