import {
  ConfigurationError,
  developmentNetwork,
  type Logger,
  parseNetworkList,
  parseRetrySchedule,
} from "hookwell";
import { type OpenedStore, type Settings, storeFromEnvironment } from "hookwell/environment";
import type { DatabaseLocation } from "./database/open.ts";
import { type AppHooks, createAppHooks } from "./hooks.ts";

/** Hookwell and the database that it shares with the application. */
export interface OpenedHooks {
  readonly hooks: AppHooks;
  readonly opened: OpenedStore;
  /** Where the application keeps its own rows, over connections of its own. */
  readonly location: DatabaseLocation;
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
  const hooks = createAppHooks({
    store: opened.store,
    network: {
      ...developmentNetwork,
      allow: [...(developmentNetwork.allow ?? []), ...parseNetworkList(settings.allowNetworks ?? "")],
    },
    ...(settings.retrySchedule === undefined ? {} : { retry: parseRetrySchedule(settings.retrySchedule) }),
    logger,
  });
  const location: DatabaseLocation =
    opened.kind === "sqlite"
      ? { dialect: "sqlite", path: opened.path }
      : { dialect: "postgres", url: opened.url };
  return { hooks, opened, location };
}
