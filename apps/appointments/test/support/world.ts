import { randomBytes } from "node:crypto";
import type { EventRecord, RetryPolicyInput, Sender } from "hookwell";
import { postgresStore } from "hookwell/postgres";
import { sqliteStore } from "hookwell/sqlite";
import pg from "pg";
import {
  freshPostgres,
  freshSqlite,
  migrated,
  type Template,
} from "../../../../packages/hookwell/test/support/databases.ts";
import { migrateApp } from "../../src/database/migrations.ts";
import { type DatabaseLocation, openDatabase } from "../../src/database/open.ts";
import type { AppDatabase } from "../../src/database/schema.ts";
import { type AppHooks, createAppHooks } from "../../src/hooks.ts";
import { type AppointmentsOptions, startAppointments } from "../../src/start.ts";
import { type Client, clientOf } from "./client.ts";

export const dialects = ["sqlite", "postgres"] as const;
export type TestDialect = (typeof dialects)[number];

export interface WorldOptions {
  readonly worker?: boolean;
  readonly retry?: RetryPolicyInput;
  /** Keeps the receiver page's own two subscriptions. Default: they are deleted, so that they add no deliveries. */
  readonly keepReceiver?: boolean;
  /** Time of the application, of Hookwell and of what it stores. Default: the machine's. */
  readonly clock?: () => Date;
  readonly sender?: Sender;
  /** What an older version left in the database; it migrates as far as it wants, the rest comes after it. */
  readonly populate?: (db: AppDatabase) => Promise<void>;
  /** What the application is started with. Default: customers are not limited. */
  readonly start?: Partial<
    Pick<
      AppointmentsOptions,
      | "captureOrdinary"
      | "trustProxy"
      | "tokenRouteLimits"
      | "sideEffects"
      | "calendars"
      | "makeSideEffects"
      | "providers"
    >
  >;
}

/** The whole application on a database of its own, reached over HTTP. */
export interface World extends AsyncDisposable {
  readonly url: string;
  readonly dialect: TestDialect;
  /** For another process on the same database. */
  readonly location: DatabaseLocation;
  /** The same, on PostgreSQL: what its secrets are sealed with. */
  readonly encryptionKeys?: string;
  /** Where the application keeps its files. */
  readonly directory: string;
  readonly db: AppDatabase;
  readonly hooks: AppHooks;
  /** Every line that was logged. */
  readonly log: readonly string[];
  /** The first admin's key. */
  readonly key: string;
  /** The first admin. */
  readonly admin: Client;
  /** Speaks to the Hookwell API with the operator's key. */
  readonly operator: Client;
  /** With the key of a user that the admin makes; `key` and `id` are in it. */
  user(fields?: Record<string, unknown>): Promise<UserClient>;
  /** Events in capture order, without the first run's own. */
  events(): Promise<EventRecord[]>;
  /** The same of one user. */
  eventsOf(userId: string): Promise<EventRecord[]>;
  /** From now on, capturing an event fails in the database. Answers how to end that. */
  breakCapture(): Promise<() => Promise<void>>;
  /** From now on, a transaction that captures an event fails at its COMMIT. Answers how to end that. */
  breakCommit(): Promise<() => Promise<void>>;
  /** Another instance on the same database, over connections of its own, as a second worker has it. */
  anotherHooks(): AppHooks;
  /** A raw statement, as another program would run it. */
  sql(text: string): Promise<void>;
}

export type UserClient = Client & { readonly id: string; readonly email: string; readonly key: string };

/** Hookwell's tables and the application's. */
const migratedApp: Template = {
  name: "appointments",
  async fill(url) {
    await migrated.fill(url);
    const opened = openDatabase({ dialect: "postgres", url });
    await migrateApp(opened.db);
    await opened.close();
  },
};

export async function openWorld(dialect: TestDialect, options: WorldOptions = {}): Promise<World> {
  const apiKey = `test_${randomBytes(16).toString("hex")}`;
  const place = await freshPlace(dialect, options.populate === undefined);
  const log: string[] = [];
  const note = (line: string): void => {
    log.push(line);
  };
  const logger = { info: note, warn: note, error: note };
  const opened = openDatabase(place.location);
  const openHooks = (): AppHooks =>
    createAppHooks({
      db: opened.db,
      store: place.openStore(),
      network: { allow: ["127.0.0.0/8"], http: true },
      logger,
      ...(options.retry === undefined ? {} : { retry: options.retry }),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      ...(options.sender === undefined ? {} : { sender: options.sender }),
    });
  const others: AppHooks[] = [];
  const hooks = openHooks();
  await options.populate?.(opened.db);
  await migrateApp(opened.db);
  await hooks.ready();
  const running = await startAppointments({
    db: opened.db,
    dialect,
    hooks,
    project: "live",
    dataDir: place.directory,
    port: 0,
    host: "127.0.0.1",
    worker: options.worker ?? false,
    apiKey,
    tokenRouteLimits: { reads: 1e9, submissions: 1e9 },
    ...options.start,
  });
  const admin = clientOf(running.url, apiKey);
  if (!options.keepReceiver)
    for (const subscription of (await hooks.subscriptions.list({ projectId: "live" })).items)
      await hooks.subscriptions.delete(subscription.id);
  let made = 0;
  const broken = async (fault: readonly string[], mend: readonly string[]) => {
    for (const statement of fault) await world.sql(statement);
    return async () => {
      for (const statement of mend) await world.sql(statement);
    };
  };

  const world: World = {
    url: running.url,
    dialect,
    location: place.location,
    ...(place.encryptionKeys === undefined ? {} : { encryptionKeys: place.encryptionKeys }),
    directory: place.directory,
    db: opened.db,
    hooks,
    log,
    key: apiKey,
    admin,
    operator: clientOf(`${running.url}/hookwell`, apiKey),
    async user(fields = {}) {
      const email = `user${++made}@example.com`;
      const created = await admin.post("/v1/users", { email, name: `User ${made}`, ...fields });
      if (created.status !== 201) throw new Error(`user not made: ${JSON.stringify(created.body)}`);
      const id = String(created.body.id);
      const { body } = await admin.post(`/v1/users/${id}/api-keys`, { name: "test" });
      const key = String(body.key);
      return { ...clientOf(running.url, key), id, email: String(created.body.email), key };
    },
    async events() {
      const found: EventRecord[] = [];
      let page = await hooks.events.list({ projectId: "live" }, { limit: 100 });
      found.push(...page.items);
      while (page.next) {
        page = await hooks.events.list({ projectId: "live" }, { limit: 100, after: page.next });
        found.push(...page.items);
      }
      return found.reverse().filter((event) => event.actor?.type !== "system");
    },
    async eventsOf(userId) {
      return (await world.events()).filter((event) => event.subject === `user:${userId}`);
    },
    breakCapture: () => broken(breakStatements[dialect], mendStatements[dialect]),
    breakCommit: () => broken(breakCommitStatements[dialect], mendCommitStatements[dialect]),
    anotherHooks() {
      const other = openHooks();
      others.push(other);
      return other;
    },
    async sql(text) {
      await place.run(text);
    },
    async [Symbol.asyncDispose]() {
      await running.stop();
      for (const other of others) await other.close();
      await hooks.close();
      await opened.close();
      await place.drop();
    },
  };
  return world;
}

const breakStatements = {
  sqlite: [
    "CREATE TRIGGER no_capture BEFORE INSERT ON hookwell_event BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
  ],
  postgres: [
    `CREATE FUNCTION no_capture() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$`,
    "CREATE TRIGGER no_capture BEFORE INSERT ON hookwell.event FOR EACH ROW EXECUTE FUNCTION no_capture()",
  ],
};

const mendStatements = {
  sqlite: ["DROP TRIGGER no_capture"],
  postgres: ["DROP TRIGGER no_capture ON hookwell.event", "DROP FUNCTION no_capture()"],
};

/** A constraint that is looked at when the transaction commits, and then violated. */
const breakCommitStatements = {
  sqlite: [
    "CREATE TABLE no_parent (id text PRIMARY KEY)",
    "CREATE TABLE no_child (parent text REFERENCES no_parent (id) DEFERRABLE INITIALLY DEFERRED)",
    "CREATE TRIGGER no_commit AFTER INSERT ON hookwell_event BEGIN INSERT INTO no_child VALUES ('nobody'); END",
  ],
  postgres: [
    `CREATE FUNCTION no_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the commit failed'; END $$`,
    "CREATE CONSTRAINT TRIGGER no_commit AFTER INSERT ON hookwell.event DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no_commit()",
  ],
};

const mendCommitStatements = {
  sqlite: ["DROP TRIGGER no_commit", "DROP TABLE no_child", "DROP TABLE no_parent"],
  postgres: ["DROP TRIGGER no_commit ON hookwell.event", "DROP FUNCTION no_commit()"],
};

/** `asNow`: with the tables of this version. */
async function freshPlace(dialect: TestDialect, asNow: boolean) {
  const files = freshSqlite();
  const directory = files.path.slice(0, files.path.lastIndexOf("/"));
  if (dialect === "sqlite") {
    const location: DatabaseLocation = { dialect, path: files.path };
    return {
      location,
      directory,
      encryptionKeys: undefined,
      openStore: () => sqliteStore({ path: files.path, migrate: true }),
      run: async (text: string) => {
        const { DatabaseSync } = await import("node:sqlite");
        const database = new DatabaseSync(files.path, { timeout: 5_000 });
        database.exec(text);
        database.close();
      },
      drop: async () => files.drop(),
    };
  }
  const { url, drop } = await freshPostgres(asNow ? migratedApp : undefined);
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const pools = [pool];
  const location: DatabaseLocation = { dialect, url };
  const encryptionKeys = `k1:${randomBytes(32).toString("base64")}`;
  return {
    location,
    directory,
    encryptionKeys,
    openStore() {
      const own = new pg.Pool({ connectionString: url, max: 6 });
      pools.push(own);
      return postgresStore({ pool: own, migrate: true, encryptionKeys });
    },
    run: async (text: string) => {
      await pool.query(text);
    },
    drop: async () => {
      for (const each of pools) await each.end();
      await drop();
      files.drop();
    },
  };
}
