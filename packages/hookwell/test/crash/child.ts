// One life of an application process: it changes something, publishes it, and reports the point it was told to
// stop at. There it waits to be killed. In mode "drain" it finishes what earlier lives left.
import { createHookwell, defineEvents, HttpSender, type Sender } from "hookwell";
import type { OutboxStore } from "../../src/store/contract.ts";
import type { CrashOrder } from "./order.ts";

const order = JSON.parse(process.env.CRASH_ORDER ?? "") as CrashOrder;
const network = { allow: ["127.0.0.0/8"], http: true };
// Each life runs an hour after the one before: leases have ended and retries are due, without waiting.
const clock = () => new Date(Date.now() + order.clockOffsetMs);
// Drivers are loaded where they are used, and the schema is written out: two hundred lives start faster.
const schema = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value: unknown) => ({ value: value as { id: string } }),
  },
} as const;
const events = defineEvents({ "thing.made": { schema, jsonSchema: { type: "object" } } });

function report(): Promise<never> {
  process.stdout.write(`POINT ${order.point}\n`);
  return new Promise<never>(() => {
    setInterval(() => {}, 1_000);
  });
}

/** The store, with one method stopping at the point. */
function stopAt<Name extends keyof OutboxStore>(
  store: OutboxStore,
  name: Name,
  when: () => boolean,
): OutboxStore {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      const method = value.bind(target) as (...args: unknown[]) => unknown;
      if (key !== name) return method;
      return (...args: unknown[]) => (when() ? report() : method(...args));
    },
  });
}

const real = new HttpSender({ network });
const sender: Sender = {
  async deliver(delivery, options) {
    if (order.point === "claim-send") return report();
    const receipt = await real.deliver(delivery, options);
    if (order.point === "send-record") return report();
    return receipt;
  },
};

let dispatched = false;
const common = {
  project: "live",
  events,
  network,
  sender,
  clock,
  retry: Array.from({ length: 200 }, () => 1_000),
  observe: (name: string) => {
    if (name === "dispatched") dispatched = true;
  },
};
const wrap = (store: OutboxStore) =>
  order.point === "dispatch-claim" ? stopAt(store, "claim", () => dispatched) : store;

async function onSqlite(path: string): Promise<void> {
  const { DatabaseSync } = await import("node:sqlite");
  const { nodeSqlite } = await import("hookwell/node-sqlite");
  const { sqliteStore } = await import("hookwell/sqlite");
  const db = new DatabaseSync(path, { timeout: 5_000 });
  const hooks = createHookwell({
    ...common,
    store: wrap(sqliteStore({ path, now: clock })),
    tx: nodeSqlite(),
  });
  await hooks.ready();
  if (order.point === "drain") return finish(hooks);
  db.exec("BEGIN IMMEDIATE");
  db.prepare("INSERT INTO thing (id) VALUES (?)").run(order.thing);
  hooks.emitSync("thing.made", { id: order.thing }, { tx: db, id: order.thing });
  if (order.point === "write-commit") await report();
  db.exec("COMMIT");
  if (order.point === "commit-dispatch") await report();
  hooks.start();
}

async function onPostgres(url: string): Promise<void> {
  const { default: pg } = await import("pg");
  const { pgTx } = await import("hookwell/pg");
  const { postgresStore } = await import("hookwell/postgres");
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const hooks = createHookwell({
    ...common,
    store: wrap(postgresStore({ pool, now: clock, encryptionKeys: order.encryptionKeys })),
    tx: pgTx(),
  });
  await hooks.ready();
  if (order.point === "drain") return finish(hooks);
  const client = await pool.connect();
  await client.query("BEGIN");
  await client.query("INSERT INTO thing (id) VALUES ($1)", [order.thing]);
  await hooks.emit("thing.made", { id: order.thing }, { tx: client, id: order.thing });
  if (order.point === "write-commit") await report();
  await client.query("COMMIT");
  client.release();
  if (order.point === "commit-dispatch") await report();
  hooks.start();
}

async function finish(hooks: { drain(o: { deadlineMs: number }): Promise<unknown> }): Promise<never> {
  process.stdout.write(`DRAINED ${JSON.stringify(await hooks.drain({ deadlineMs: 20_000 }))}\n`);
  process.exit(0);
}

await (order.store === "sqlite" ? onSqlite(order.address) : onPostgres(order.address));
