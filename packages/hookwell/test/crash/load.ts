import type { ChildProcess } from "node:child_process";
import { createHookwell } from "hookwell";
import { pgTx } from "hookwell/pg";
import { postgresStore } from "hookwell/postgres";
import { startReceiver } from "hookwell/testing";
import pg from "pg";
import { events, network } from "./application.ts";
import { startProgram } from "./life.ts";
import { sentOf } from "./lives.ts";
import type { CrashServer } from "./server.ts";
import { type Tally, tally } from "./tally.ts";

/** What happens to three workers on one PostgreSQL while events come in. */
export type Trouble = "worker killed" | "restart" | "crash" | "connections cut" | "LISTEN lost";
export const troubles: Readonly<Record<Trouble, string>> = {
  "worker killed": "one of the three, at random, SIGKILL; another is started",
  restart: "PostgreSQL stopped and started",
  crash: "PostgreSQL's processes killed, recovery from its log",
  "connections cut": "every connection to the database ended",
  "LISTEN lost": "the listening connections ended",
};

const encryptionKeys = `k1:${Buffer.alloc(32, 9).toString("base64")}`;
const endpoints = Array.from({ length: 5 }, (_, number) => `e${number}`);
const emitters = 4;
/** What the application waits between two transactions of one emitter. */
const emitEveryMs = 40;
/** Longest time in which an endpoint answers: some sends are always under way. */
const answersWithinMs = 60;
/** How long the load goes on between two troubles. */
const betweenMs = 2_000;
const drainMs = 180_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Makes trouble `rounds` times under load, lets everything come to its end, and counts. */
export async function loadUnder(
  trouble: Trouble,
  rounds: number,
  { server, onRound }: { readonly server: CrashServer; readonly onRound?: () => void },
): Promise<Tally> {
  const database = await server.database();
  // What others wrote before is not in the way of a stop, nor in the log that a recovery reads.
  await server.run("CHECKPOINT");
  const arrivals = new Map<string, number>();
  const silence = new Silence();
  const receiver = await startReceiver({
    async respond(request) {
      const { to, event } = sentOf(request);
      const key = `${to} ${event}`;
      silence.heard();
      if (!arrivals.has(key)) arrivals.set(key, performance.now());
      await sleep(Math.random() * answersWithinMs);
      return 200;
    },
  });
  const pool = new pg.Pool({ connectionString: database, max: emitters + 2 });
  pool.on("error", () => {});
  const store = postgresStore({
    pool,
    migrate: true,
    encryptionKeys,
    listen: { connectionString: database },
  });
  const logger = { info() {}, warn() {}, error() {} };
  const hooks = createHookwell({ store, tx: pgTx(), project: "live", events, network, logger });
  await hooks.ready();
  for (const name of endpoints)
    await hooks.subscriptions.create({ url: `http://127.0.0.1:${receiver.port}/${name}` });
  await pool.query("CREATE TABLE thing (id text PRIMARY KEY)");

  const committedAt = new Map<string, number>();
  let made = 0;
  let rolledBack = 0;
  let over = false;
  /** One transaction in four is rolled back. One whose commit gets no answer is there or not: the table says. */
  async function change(): Promise<void> {
    const number = ++made;
    const id = `thing-${number}`;
    const tx = await pool.connect();
    tx.on("error", () => {});
    let broken: Error | undefined;
    try {
      await tx.query("BEGIN");
      await tx.query("INSERT INTO thing (id) VALUES ($1)", [id]);
      await hooks.emit("thing.made", { id }, { tx, id });
      committedAt.set(id, performance.now());
      if (number % 4 > 0) await tx.query("COMMIT");
      else {
        rolledBack++;
        await tx.query("ROLLBACK");
      }
    } catch (error) {
      broken = error as Error;
    } finally {
      tx.release(broken);
    }
  }
  const emitting = Array.from({ length: emitters }, async () => {
    while (!over) {
      // The database may be away: the next one finds it again.
      await change().catch(() => {});
      await sleep(emitEveryMs);
    }
  });

  const workers = [startWorker(database), startWorker(database), startWorker(database)];
  await Promise.all(workers.map(({ ready }) => ready));
  const make: Readonly<Record<Trouble, () => Promise<void>>> = {
    "worker killed": async () => {
      const place = Math.floor(Math.random() * workers.length);
      workers[place]!.process.kill("SIGKILL");
      workers[place] = startWorker(database);
      await workers[place].ready;
    },
    restart: () => server.restart(),
    crash: () => server.crash(),
    "connections cut": () => endConnections(server, database, "true"),
    "LISTEN lost": () => endConnections(server, database, "application_name = 'hookwell listen'"),
  };
  silence.begin();
  for (let round = 0; round < rounds; round++) {
    await sleep(betweenMs * (0.5 + Math.random()));
    await make[trouble]();
    onRound?.();
  }
  await sleep(betweenMs);
  silence.end();
  over = true;
  await Promise.all(emitting);
  await settled(pool);
  for (const worker of workers) await worker.end();
  const ids = async (sql: string): Promise<string[]> =>
    (await pool.query<{ id: string }>(sql)).rows.map(({ id }) => id);
  const committed = await ids("SELECT id FROM thing");
  const strangers = await ids("SELECT id FROM hookwell.event WHERE id NOT IN (SELECT id FROM thing)");
  await hooks.close();
  await pool.end();
  await receiver.close();
  let stallMs = 0;
  for (const [key, at] of arrivals)
    stallMs = Math.max(stallMs, at - (committedAt.get(key.split(" ")[1]!) ?? at));
  const sent = receiver.requests.map(sentOf);
  return {
    rounds,
    rolledBack,
    ...tally({ committed, strangers, endpoints, sent }, 0),
    stallMs,
    silentMs: silence.longestMs,
  };
}

/** Measures the longest time in which nothing arrived anywhere, while there was something to send. */
class Silence {
  longestMs = 0;
  #since: number | undefined;

  begin(): void {
    this.#since = performance.now();
  }

  heard(): void {
    if (this.#since === undefined) return;
    const now = performance.now();
    this.longestMs = Math.max(this.longestMs, now - this.#since);
    this.#since = now;
  }

  end(): void {
    this.heard();
    this.#since = undefined;
  }
}

/** Resolves when nothing is left to dispatch or deliver. */
async function settled(pool: pg.Pool): Promise<void> {
  const end = performance.now() + drainMs;
  const left = `SELECT (SELECT count(*) FROM hookwell.event WHERE state = 'new')
    + (SELECT count(*) FROM hookwell.delivery WHERE status = 'pending') AS count`;
  for (;;) {
    const { rows } = await pool.query(left);
    if (Number(rows[0].count) === 0) return;
    if (performance.now() > end)
      throw new Error(`${rows[0].count} events and deliveries were not done in ${drainMs} ms.`);
    await sleep(200);
  }
}

/** @throws when there was none: nothing would have been tried */
async function endConnections(server: CrashServer, database: string, which: string): Promise<void> {
  const ended = await server.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = '${new URL(database).pathname.slice(1)}' AND ${which}`);
  if (ended.length === 0) throw new Error(`There was no connection of the database where ${which}.`);
}

interface LoadWorker {
  readonly process: ChildProcess;
  readonly ready: Promise<void>;
  /** @throws when it had ended by itself before */
  end(): Promise<void>;
}

function startWorker(database: string): LoadWorker {
  const worker = startProgram("load-worker.ts", { CRASH_DATABASE: database, CRASH_KEYS: encryptionKeys });
  let errors = "";
  worker.stderr.on("data", (part) => {
    errors += part;
  });
  const closed = new Promise<number | null>((resolve) => worker.once("close", resolve));
  return {
    process: worker,
    ready: new Promise((resolve, reject) => {
      worker.stdout.once("data", () => resolve());
      void closed.then(() => reject(new Error(`A worker ended before it was ready:\n${errors}`)));
    }),
    async end() {
      worker.stdin.end();
      const code = await closed;
      if (code !== 0) throw new Error(`A worker that nobody killed had ended, with ${code}:\n${errors}`);
    },
  };
}
