import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { runMigrations } from "graphile-worker";
import pg from "pg";
import type { World } from "../contestants/contract.ts";
import { postgresInstance, sqliteInstance } from "../contestants/hookwell.ts";
import { steadyMs } from "../measuring.ts";
import { makeBody, makeData } from "../webhook.ts";

/** Rates of transactions with one insert and something else, in turns. */
export interface CaptureResult {
  readonly database: "PostgreSQL" | "SQLite";
  /** What follows the first insert. */
  readonly second: string;
  /** In each round: the rate, as a share of that with a second insert. */
  readonly shares: readonly number[];
  /** Transactions per second of the plain pair of inserts, in each round. */
  readonly plainPerSecond: readonly number[];
}

interface Settings {
  readonly bodyBytes: number;
  readonly rounds: number;
  /** Transactions of one block; blocks of the kinds follow each other. */
  readonly block: number;
  readonly connections: number;
}

type Kind = readonly [name: string, run: (client: pg.PoolClient) => Promise<unknown>];

const tables = `CREATE TABLE app_user (id text PRIMARY KEY, email text NOT NULL, note text NOT NULL);
CREATE TABLE app_audit (id text PRIMARY KEY, type text NOT NULL, data text NOT NULL, created_at text NOT NULL)`;
const insertUser = "INSERT INTO app_user VALUES ($1, $2, $3)";
const insertAudit = "INSERT INTO app_audit VALUES ($1, $2, $3, $4)";

export async function measureCapture(world: World, settings: Settings): Promise<CaptureResult[]> {
  return [...(await onPostgres(world, settings)), ...(await onSqlite(world, settings))];
}

async function onPostgres(
  { postgres }: World,
  { bodyBytes, rounds, block, connections }: Settings,
): Promise<CaptureResult[]> {
  const storage = await postgres.database();
  const { hooks, pool: own } = postgresInstance({ storage });
  await hooks.ready();
  await runMigrations({ connectionString: storage });
  const pool = new pg.Pool({ connectionString: storage, max: connections });
  await pool.query(tables);
  const data = makeData(bodyBytes);
  const text = JSON.stringify(data);
  const kinds: readonly Kind[] = [
    ["insert", (client) => client.query(insertAudit, [randomUUID(), "bench.happened", text, "2025-01-01"])],
    ["emit", (client) => hooks.emit("bench.happened", data, { tx: client })],
    [
      "graphile-worker job",
      (client) =>
        client.query("SELECT graphile_worker.add_job('webhook', $1::json)", [makeBody(randomUUID(), data)]),
    ],
  ];
  const block_ = async (second: Kind[1]): Promise<number> => {
    const begun = steadyMs();
    let left = block;
    await Promise.all(
      Array.from({ length: connections }, async () => {
        const client = await pool.connect();
        while (left-- > 0) {
          await client.query("BEGIN");
          await client.query(insertUser, [randomUUID(), "someone@example.com", text]);
          await second(client);
          await client.query("COMMIT");
        }
        client.release();
      }),
    );
    return (block * 1_000) / (steadyMs() - begun);
  };
  try {
    return await inTurns("PostgreSQL", kinds, rounds, block_);
  } finally {
    await pool.end();
    await hooks.close();
    await own.end();
  }
}

async function onSqlite(
  { directory }: World,
  { bodyBytes, rounds, block }: Settings,
): Promise<CaptureResult[]> {
  const storage = join(directory, `capture-${randomUUID()}.db`);
  const hooks = sqliteInstance(storage);
  await hooks.ready();
  const db = new DatabaseSync(storage);
  db.exec(`PRAGMA synchronous = FULL; ${tables}`);
  const user = db.prepare(insertUser.replaceAll(/\$\d/g, "?"));
  const audit = db.prepare(insertAudit.replaceAll(/\$\d/g, "?"));
  const data = makeData(bodyBytes);
  const text = JSON.stringify(data);
  const kinds: readonly (readonly [string, () => unknown])[] = [
    ["insert", () => audit.run(randomUUID(), "bench.happened", text, "2025-01-01")],
    ["emit", () => hooks.emitSync("bench.happened", data, { tx: db })],
  ];
  try {
    return await inTurns("SQLite", kinds, rounds, async (second) => {
      const begun = steadyMs();
      for (let n = 0; n < block; n++) {
        db.exec("BEGIN IMMEDIATE");
        user.run(randomUUID(), "someone@example.com", text);
        second();
        db.exec("COMMIT");
      }
      return (block * 1_000) / (steadyMs() - begun);
    });
  } finally {
    db.close();
    await hooks.close();
  }
}

/** The kinds one after the other in short blocks, so that a busy moment of the machine meets all of them. */
async function inTurns<Run>(
  database: CaptureResult["database"],
  kinds: readonly (readonly [string, Run])[],
  rounds: number,
  block: (second: Run) => Promise<number>,
): Promise<CaptureResult[]> {
  for (const [, second] of kinds) await block(second);
  const rates = kinds.map((): number[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [index, [, second]] of kinds.entries()) rates[index]!.push(await block(second));
  const plain = rates[0]!;
  return kinds.slice(1).map(([second], index) => ({
    database,
    second,
    plainPerSecond: plain,
    shares: rates[index + 1]!.map((rate, round) => rate / plain[round]!),
  }));
}
