import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { developmentNetwork, type Logger, parseNetworkList, parseRetrySchedule } from "hookwell";
import { keysOfFile, type OpenedStore, type Settings, storeFromEnvironment } from "hookwell/environment";
import { type DatabaseLocation, type OpenDatabase, openDatabase } from "./database/open.ts";
import { type AppHooks, createAppHooks } from "./hooks.ts";

/** Hookwell and the database that it shares with the application. */
export interface OpenedHooks {
  readonly hooks: AppHooks;
  readonly opened: OpenedStore;
  /** The application's own rows in the same database, over connections of its own. */
  readonly app: OpenDatabase;
}

/**
 * Hookwell as the settings say, in development mode: webhooks may go to loopback and over http.
 * @throws ConfigurationError, EncryptionKeyError
 */
export async function hooksFromSettings(settings: Settings, logger: Logger): Promise<OpenedHooks> {
  const encryptionKeys = settings.encryptionKeys ?? developmentKeys(settings, logger);
  const opened = await storeFromEnvironment({ ...settings, encryptionKeys }, { logger });
  const location: DatabaseLocation =
    opened.kind === "sqlite"
      ? { dialect: "sqlite", path: opened.path }
      : { dialect: "postgres", url: opened.url };
  const app = openDatabase(location);
  const hooks = createAppHooks({
    db: app.db,
    store: opened.store,
    network: {
      ...developmentNetwork,
      allow: [...(developmentNetwork.allow ?? []), ...parseNetworkList(settings.allowNetworks ?? "")],
    },
    metrics: { subscriptions: settings.metricsSubscriptions },
    ...(settings.retrySchedule === undefined ? {} : { retry: parseRetrySchedule(settings.retrySchedule) }),
    logger,
  });
  return { hooks, opened, app };
}

/**
 * For PostgreSQL the library asks for a key. This application keeps its other secrets in the data directory, so a
 * first `npm start` makes one there, as the SQLite store does by itself.
 */
function developmentKeys({ databaseUrl, dataDir }: Settings, logger: Logger): string | undefined {
  if (databaseUrl === undefined) return undefined;
  mkdirSync(dataDir, { recursive: true });
  return keysOfFile(join(dataDir, "encryption.key"), logger);
}
