import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigurationError } from "../model/errors.ts";
import type { Logger } from "../model/observe.ts";
import type { Settings } from "../model/settings.ts";
import type { OutboxStore } from "../store/contract.ts";
import type { Migrations } from "../store/migrations.ts";
import type { PgClient, PgPool } from "../store/postgres/options.ts";

/** A store with what it stands on, so that an application can share its database. */
export type OpenedStore = {
  readonly store: OutboxStore;
  readonly migrations: Migrations;
  /** For people: which database it is, without its password. */
  readonly description: string;
  /** Ends what was opened here besides the store: the pool. Close the store first. */
  close(): Promise<void>;
} & (
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly pool: PgPool & { end(): Promise<void> } }
);

export interface StoreOptions {
  /** Name of the SQLite file in the data directory. Default `hookwell.db`. */
  readonly fileName?: string;
  /** Most connections to PostgreSQL. Default 10. */
  readonly poolSize?: number;
  /** SQLite brings its tables up to date when it is opened. Default true. PostgreSQL never does. */
  readonly migrate?: boolean;
  /** Makes the data directory when it is missing. Default true. */
  readonly makeDirectory?: boolean;
  readonly logger?: Logger;
}

/**
 * Makes the store that the settings name: PostgreSQL by its url, else SQLite in the data directory. Drivers are
 * loaded only here. It connects at the first use (`store.open`).
 * @throws ConfigurationError when the driver is not installed or the directory cannot be made
 */
export async function storeFromEnvironment(
  settings: Pick<Settings, "databaseUrl" | "dataDir" | "encryptionKeys">,
  options: StoreOptions = {},
): Promise<OpenedStore> {
  return settings.databaseUrl === undefined
    ? sqliteFrom(settings, options)
    : postgresFrom(settings.databaseUrl, settings.encryptionKeys, options);
}

async function sqliteFrom(
  { dataDir, encryptionKeys }: Pick<Settings, "dataDir" | "encryptionKeys">,
  { fileName = "hookwell.db", migrate = true, makeDirectory = true, logger }: StoreOptions,
): Promise<OpenedStore> {
  try {
    if (makeDirectory) mkdirSync(dataDir, { recursive: true });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(
      `The directory of the database cannot be made (${why}); set HOOKWELL_DATA_DIR to one that can.`,
    );
  }
  const { sqliteStore } = await import("../store/sqlite/index.ts");
  const path = resolve(join(dataDir, fileName));
  const store = sqliteStore({ path, encryptionKeys, migrate, logger });
  return {
    kind: "sqlite",
    path,
    store,
    migrations: store.migrations,
    description: `SQLite (${join(dataDir, fileName)})`,
    close: async () => {},
  };
}

async function postgresFrom(
  url: string,
  encryptionKeys: string | undefined,
  { poolSize = 10, logger }: StoreOptions,
): Promise<OpenedStore> {
  const { Pool } = await loadPg();
  let pool: InstanceType<typeof Pool>;
  let address: URL;
  try {
    address = new URL(url);
    pool = new Pool({ connectionString: url, max: poolSize, connectionTimeoutMillis: 10_000 });
  } catch {
    throw new ConfigurationError(
      "The database url is not a url such as postgres://user:password@host:5432/name.",
    );
  }
  // A lost connection, idle or checked out, must not end the process: the next statement says what is wrong.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on?.("error", () => {}));
  const { postgresStore } = await import("../store/postgres/index.ts");
  const store = postgresStore({ pool, encryptionKeys, logger });
  return {
    kind: "postgres",
    url,
    pool,
    store,
    migrations: store.migrations,
    description: `PostgreSQL (${address.host}${address.pathname})`,
    close: () => pool.end(),
  };
}

interface PgModule {
  readonly Pool: new (options: {
    readonly connectionString: string;
    readonly max: number;
    readonly connectionTimeoutMillis: number;
  }) => PgPool & {
    on(event: "error", listener: (error: Error) => void): unknown;
    on(event: "connect", listener: (client: PgClient) => void): unknown;
    end(): Promise<void>;
  };
}

async function loadPg(): Promise<PgModule> {
  try {
    const { default: pg } = (await import("pg")) as unknown as { default: PgModule };
    return pg;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new ConfigurationError(
      "PostgreSQL needs the driver pg, which is not installed; run `npm install pg`.",
      "driver_missing",
    );
  }
}
