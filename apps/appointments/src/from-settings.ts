import {
  ConfigurationError,
  developmentNetwork,
  type Logger,
  parseNetworkList,
  parseRetrySchedule,
} from "hookwell";
import { type OpenedStore, type Settings, storeFromEnvironment } from "hookwell/environment";
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
 * @throws ConfigurationError, for PostgreSQL without encryption keys too
 */
export async function hooksFromSettings(settings: Settings, logger: Logger): Promise<OpenedHooks> {
  if (settings.databaseUrl !== undefined && settings.encryptionKeys === undefined)
    throw new ConfigurationError(
      "On PostgreSQL the signing secrets are sealed with a key that is not in the database. Run `npm run hookwell -- keys generate`, and give what it prints as HOOKWELL_ENCRYPTION_KEYS on every start.",
    );
  const opened = await storeFromEnvironment(settings, { logger });
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
    ...(settings.retrySchedule === undefined ? {} : { retry: parseRetrySchedule(settings.retrySchedule) }),
    logger,
  });
  return { hooks, opened, app };
}
