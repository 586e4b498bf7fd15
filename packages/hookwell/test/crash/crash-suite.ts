import { spawn } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { createHookwell } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import { sqliteStore } from "hookwell/sqlite";
import { startReceiver } from "hookwell/testing";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileCache } from "../support/compile-cache.ts";
import { freshPostgres, freshSqlite } from "../support/databases.ts";
import { type CrashOrder, crashPoints } from "./order.ts";

// npm test shows that each point is survived; npm run test:long (.ci/run) kills twenty processes at each.
const rounds = process.env.HOOKWELL_LONG ? 20 : 5;
const child = fileURLToPath(new URL("child.ts", import.meta.url));
const keys = `k1:${Buffer.alloc(32, 7).toString("base64")}`;
const network = { allow: ["127.0.0.0/8"], http: true };

/** Runs one life until it reports its point, kills it there with SIGKILL, and waits until it is gone. */
function live(order: CrashOrder): Promise<string> {
  const process_ = spawn(process.execPath, ["--conditions=@hookwell/source", "--no-warnings", child], {
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache, CRASH_ORDER: JSON.stringify(order) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  process_.stderr.on("data", (part) => {
    errors += part;
  });
  process_.stdout.on("data", (part) => {
    output += part;
    if (output.includes(`POINT ${order.point}\n`)) process_.kill("SIGKILL");
  });
  return new Promise((resolve, reject) => {
    process_.once("close", (code, signal) => {
      if (order.point === "drain" ? code === 0 : signal === "SIGKILL") resolve(output);
      else reject(new Error(`the process ended with ${code ?? signal} before its point:\n${errors}`));
    });
  });
}

interface World {
  readonly address: string;
  readonly things: () => Promise<string[]>;
  readonly events: () => Promise<string[]>;
  readonly close: () => Promise<void>;
}

async function sqliteWorld(receiver: string): Promise<World> {
  const { path, drop } = freshSqlite();
  const hooks = createHookwell({ store: sqliteStore({ path, migrate: true }), project: "live", network });
  await hooks.ready();
  for (const name of ["a", "b"]) await hooks.subscriptions.create({ url: `${receiver}/${name}` });
  await hooks.close();
  const db = new DatabaseSync(path);
  db.exec("CREATE TABLE thing (id TEXT PRIMARY KEY)");
  const ids = (sql: string) =>
    Promise.resolve(
      db
        .prepare(sql)
        .all()
        .map((row) => String(row.id)),
    );
  return {
    address: path,
    things: () => ids("SELECT id FROM thing ORDER BY id"),
    events: () => ids("SELECT id FROM hookwell_event ORDER BY id"),
    close: async () => {
      db.close();
      drop();
    },
  };
}

async function postgresWorld(receiver: string): Promise<World> {
  const { url, drop } = await freshPostgres();
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const store = postgresStore({ pool, migrate: true, encryptionKeys: keys });
  const hooks = createHookwell({ store, project: "live", network });
  await hooks.ready();
  for (const name of ["a", "b"]) await hooks.subscriptions.create({ url: `${receiver}/${name}` });
  await pool.query("CREATE TABLE thing (id text PRIMARY KEY)");
  const ids = async (sql: string) => (await pool.query<{ id: string }>(sql)).rows.map((row) => row.id);
  return {
    address: url,
    things: () => ids(`SELECT id FROM thing ORDER BY id COLLATE "C"`),
    events: () => ids(`SELECT id FROM hookwell.event ORDER BY id COLLATE "C"`),
    close: async () => {
      await hooks.close();
      await pool.end();
      await drop();
    },
  };
}

/** The promise of the crash tests, on one store. */
export function crashSuite(store: "sqlite" | "postgres"): void {
  describe(`processes killed with SIGKILL on ${store}`, () => lives(store));
}

function lives(store: "sqlite" | "postgres"): void {
  const makeWorld = store === "sqlite" ? sqliteWorld : postgresWorld;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let world: World;
  let lived = 0;
  const expected: string[] = [];
  const order = (point: CrashOrder["point"], thing: string): CrashOrder => ({
    store,
    address: world.address,
    point,
    thing,
    clockOffsetMs: ++lived * 3_600_000,
    ...(store === "postgres" ? { encryptionKeys: keys } : {}),
  });

  beforeAll(async () => {
    receiver = await startReceiver();
    world = await makeWorld(`http://127.0.0.1:${receiver.port}`);
  });
  afterAll(async () => {
    await world.close();
    await receiver.close();
  });

  test.each(crashPoints)(
    `field-faults A1, D1: ${rounds} processes killed between %s`,
    async (point) => {
      for (let round = 0; round < rounds; round++) {
        const thing = `${point}-${String(round).padStart(3, "0")}`;
        if (point !== "write-commit") expected.push(thing);
        await live(order(point, thing));
      }
      expect(await world.things()).toEqual([...expected].sort());
      expect(await world.events()).toEqual([...expected].sort());
    },
    180_000,
  );

  test("field-faults A1, C5, C6: after all of them 0 events are lost, none is invented, and every repeat is byte-equal", async () => {
    for (;;) {
      const output = await live(order("drain", ""));
      const result = JSON.parse(output.slice(output.indexOf("{"))) as {
        remaining: { pending: number; newEvents: number };
      };
      if (result.remaining.pending + result.remaining.newEvents === 0) break;
    }
    const bodies = new Map<string, Set<string>>();
    for (const request of receiver.requests) {
      const key = `${request.path} ${request.headers["webhook-id"]} ${request.headers["x-hookwell-delivery"]} ${request.headers["x-hookwell-signature"]}`;
      bodies.set(key, (bodies.get(key) ?? new Set()).add(request.body.toString()));
    }
    const got = [...bodies.keys()].map((key) => key.split(" ").slice(0, 2).join(" ")).sort();
    const wanted = expected.flatMap((id) => [`/a ${id}`, `/b ${id}`]).sort();
    expect(got).toEqual(wanted);
    for (const texts of bodies.values()) expect(texts.size).toBe(1);
    const sent = receiver.requests.length;
    await live(order("drain", ""));
    expect(receiver.requests.length, "a delivered row is not sent again").toBe(sent);
    console.log(
      `${store}: ${lived} lives, ${expected.length} committed, 0 lost, ${sent - wanted.length} repeats`,
    );
  });
}
