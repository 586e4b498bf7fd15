import { HttpSender, type Sender } from "hookwell";
import { type PgPool, postgresStore } from "hookwell/postgres";
import { sqliteStore } from "hookwell/sqlite";
import pg from "pg";
import { type DatabaseLocation, openDatabase } from "../../src/database/open.ts";
import { type AppHooks, createAppHooks } from "../../src/hooks.ts";
import { sweepExpired } from "../../src/invitations/expiry.ts";
import { sideEffects } from "../../src/side-effects/index.ts";
import { startAppointments } from "../../src/start.ts";

type Store = AppHooks["store"];
type SqliteOpener = NonNullable<Parameters<typeof sqliteStore>[0]["open"]>;

/** A database that a world made, as another process needs it. */
export interface Place {
  readonly location: DatabaseLocation;
  readonly directory: string;
  readonly encryptionKeys?: string;
  /** The first admin's key. */
  readonly key: string;
}

/** What stands between the application and what it is made of, so that a test can stop it anywhere. */
export interface LifeOptions extends Place {
  readonly now: () => Date;
  readonly sender?: (real: Sender) => Sender;
  readonly store?: (real: Store) => Store;
  readonly hooks?: (real: AppHooks) => AppHooks;
  /** After a commit, before what follows from it begins. */
  readonly onKick?: () => void;
  readonly openSqlite?: SqliteOpener;
  readonly pool?: (real: pg.Pool) => PgPool;
  /** Limit of one exchange in ms. */
  readonly exchangeMs?: number;
  /** Captures the events of bookings without an invitation too. */
  readonly captureOrdinary?: boolean;
}

/** One life of the application on a database that is there already. It delivers only when `hooks.drain` is called. */
export interface Life {
  readonly url: string;
  readonly hooks: AppHooks;
  /** Everything that was logged. */
  readonly log: readonly string[];
  /** Marks the invitations that are over. */
  sweep(): Promise<number>;
  close(): Promise<void>;
}

export async function openLife(options: LifeOptions): Promise<Life> {
  const { location, now } = options;
  const log: string[] = [];
  const note = (line: string): void => {
    log.push(line);
  };
  const app = openDatabase(location);
  const { store, close: closeStore } = openStore(options);
  const network = { allow: ["127.0.0.0/8"], http: true };
  const real = new HttpSender({
    network,
    clock: now,
    ...(options.exchangeMs === undefined ? {} : { limits: { exchangeMs: options.exchangeMs } }),
  });
  const made = createAppHooks({
    db: app.db,
    store: options.store?.(store) ?? store,
    network,
    logger: { info: note, warn: note, error: note },
    clock: now,
    sender: options.sender?.(real) ?? real,
  });
  await made.ready();
  const hooks = options.hooks?.(made) ?? made;
  const running = await startAppointments({
    db: app.db,
    dialect: location.dialect,
    hooks,
    project: "live",
    dataDir: options.directory,
    port: 0,
    host: "127.0.0.1",
    worker: false,
    apiKey: options.key,
    tokenRouteLimits: { reads: 1e9, submissions: 1e9 },
    captureOrdinary: options.captureOrdinary ?? false,
    makeSideEffects(deps) {
      const effects = sideEffects({ ...deps, settings: {} });
      return {
        ...effects,
        start: () => {},
        kick() {
          options.onKick?.();
          effects.kick();
        },
      };
    },
  });
  return {
    url: running.url,
    hooks,
    log,
    sweep: () => sweepExpired({ db: app.db, dialect: location.dialect, now, hooks, logger: hooks.logger }),
    async close() {
      await running.stop();
      await made.close();
      await real.close();
      await app.close();
      await closeStore();
    },
  };
}

function openStore(options: LifeOptions): { store: Store; close: () => Promise<void> } {
  const { location, now, encryptionKeys } = options;
  if (location.dialect === "sqlite") {
    const open = options.openSqlite === undefined ? {} : { open: options.openSqlite };
    return { store: sqliteStore({ path: location.path, now, ...open }), close: async () => {} };
  }
  const pool = new pg.Pool({ connectionString: location.url, max: 4 });
  // A pool of one's own, and of a test that kills connections.
  pool.on("error", () => {});
  const store = postgresStore({
    pool: options.pool?.(pool) ?? pool,
    now,
    ...(encryptionKeys === undefined ? {} : { encryptionKeys }),
  });
  return { store, close: () => pool.end() };
}

/** The same object, with some of its methods replaced. */
export function instead<T extends object>(real: T, replaced: Partial<T>): T {
  return new Proxy(real, {
    get(target, key) {
      if (key in replaced) return Reflect.get(replaced, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
