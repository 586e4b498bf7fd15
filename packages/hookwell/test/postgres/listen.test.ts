import { connect, createServer, type Server, type Socket } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDatabase } from "./database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.make();
});
afterAll(() => database.drop());

/** Counts wake-ups, and waits for the next one. */
class Wakes {
  count = 0;
  #waiting: (() => void)[] = [];
  readonly hear = (): void => {
    this.count++;
    for (const resolve of this.#waiting.splice(0)) resolve();
  };
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

async function listeners(admin: pg.Pool): Promise<number[]> {
  const { rows } = await admin.query(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'hookwell listen' AND datname = current_database()",
  );
  return rows.map((row) => row.pid);
}

test("field-faults D3: after its LISTEN backend is terminated, again and again, a store still hears the others", async () => {
  const admin = database.pool();
  const listen = { connectionString: database.url };
  const said: string[] = [];
  const logger = {
    info: (m: string) => said.push(m),
    warn: (m: string) => said.push(m),
    error: (m: string) => said.push(m),
  };
  const worker = await database.store({ listen, logger });
  const emitter = await database.store({ listen });
  const wakes = new Wakes();
  let woken = wakes.next();
  const stop = worker.watch(wakes.hear);
  // Every new connection wakes once: what happened meanwhile was not heard.
  await woken;

  for (let round = 0; round < 3; round++) {
    const pids = await listeners(admin);
    expect(pids).toHaveLength(1);
    woken = wakes.next();
    await admin.query("SELECT pg_terminate_backend($1)", [pids[0]]);
    await woken;
    woken = wakes.next();
    emitter.notify();
    await woken;
  }
  stop();
  expect(said.filter((message) => message.includes("lost the listening connection"))).toHaveLength(3);
  expect(said.join()).not.toContain("test@");
});

test("field-faults D3: a network that drops and then refuses the connection delays notices, and no more", async () => {
  const target = new URL(database.url);
  const sockets = new Set<Socket>();
  let refuse = 0;
  const proxy: Server = createServer((inner) => {
    if (refuse > 0) {
      refuse--;
      inner.destroy();
      return;
    }
    const outer = connect(Number(target.port), target.hostname);
    for (const socket of [inner, outer]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        inner.destroy();
        outer.destroy();
      });
    }
    inner.pipe(outer).pipe(inner);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = new URL(database.url);
  url.port = String((proxy.address() as { port: number }).port);

  const worker = await database.store({ listen: { connectionString: url.toString() } });
  const emitter = await database.store({ listen: { connectionString: database.url } });
  const wakes = new Wakes();
  let woken = wakes.next();
  worker.watch(wakes.hear);
  await woken;

  refuse = 3;
  woken = wakes.next();
  for (const socket of sockets) socket.resetAndDestroy();
  await woken;
  expect(refuse).toBe(0);
  woken = wakes.next();
  emitter.notify();
  await woken;

  await worker.close();
  await new Promise((resolve) => proxy.close(resolve));
});

test("notices are coalesced, carry nothing, and the last one is not left out", async () => {
  const emitter = await database.store({ listen: { connectionString: database.url } });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const heard: (string | undefined)[] = [];
  const marker = new Promise<void>((resolve) => {
    client.on("notification", ({ payload }) => {
      heard.push(payload);
      // The second notice ends the burst; whatever else was sent before the marker arrives before it.
      if (heard.length === 2) void client.query("SELECT pg_notify('hookwell_hookwell', 'marker')");
      if (payload === "marker") resolve();
    });
  });
  await client.query("LISTEN hookwell_hookwell");
  for (let i = 0; i < 200; i++) emitter.notify();
  await marker;
  expect(heard).toEqual(["", "", "marker"]);
  await client.end();
});

test("without `listen` a store neither listens nor sends notices, and nothing throws", async () => {
  const admin = database.pool();
  const store = await database.store();
  const stop = store.watch(() => {
    throw new Error("not to be called");
  });
  store.notify();
  stop();
  expect(await listeners(admin)).toEqual([]);
});
