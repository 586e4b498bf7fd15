import type { HookwellCore, Logger, Run } from "hookwell";
import { hooksFromSettings, loggerFromSettings, readSettings } from "hookwell/environment";
import { firstAdminKey } from "./first-key.ts";
import { hookwellHandler } from "./handler.ts";
import { listen } from "./listen.ts";

export interface ServeOptions {
  /** The application's own instance. Default: one made from the environment. Stopping closes it. */
  readonly hooks?: HookwellCore;
  /** Default: the environment of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Opens loopback addresses and plain http for webhooks. An instance that is given decides that itself. */
  readonly dev?: boolean;
  /** Default: as HOOKWELL_LOG and HOOKWELL_LOG_LEVEL say. */
  readonly logger?: Logger;
}

/** A server that answers and, unless told otherwise, delivers. */
export interface RunningServer {
  readonly url: string;
  readonly port: number;
  readonly hooks: HookwellCore;
  /** Takes no new request, finishes those in work and the sends (5 s), gives back the rest, and closes the store. */
  stop(): Promise<void>;
}

/**
 * Runs the API, the dispatcher and the worker in this process.
 * @throws ConfigurationError for settings that cannot work, SchemaVersionError when PostgreSQL is not migrated
 * (`hookwell migrate`), EncryptionKeyError, StorageError
 */
export async function serve(options: ServeOptions = {}): Promise<RunningServer> {
  const settings = readSettings(options.environment ?? process.env);
  const { dev = false, logger = loggerFromSettings(settings) } = options;
  const own = options.hooks ? undefined : await hooksFromSettings(settings, { dev, logger });
  const hooks = options.hooks ?? own!.hooks;
  let run: Run | undefined;
  const close = async (): Promise<void> => {
    await run?.stop();
    await hooks.close();
    await own?.opened.close();
  };
  try {
    await hooks.ready();
    const first = await firstAdminKey(hooks, settings.apiKey);
    const fetch = hookwellHandler(hooks, { maxLagMs: settings.maxLagMs, metrics: settings.metrics });
    const server = await listen({ fetch, port: settings.port, host: settings.host });
    if (settings.worker) run = hooks.start();
    sayHello(logger, {
      url: server.url,
      database: own?.opened.description ?? hooks.store.dialect,
      worker: settings.worker,
      dev: Boolean(dev && own),
      madeKey: first.made && settings.apiKey === undefined ? first.key : undefined,
    });
    return {
      url: server.url,
      port: server.port,
      hooks,
      stop: async () => {
        await Promise.all([server.close(), run?.stop()]);
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function sayHello(
  logger: Logger,
  facts: {
    readonly url: string;
    readonly database: string;
    readonly worker: boolean;
    readonly dev: boolean;
    readonly madeKey: string | undefined;
  },
): void {
  logger.info(
    `Hookwell listens on ${facts.url} (API description: ${facts.url}/docs), store: ${facts.database}.`,
  );
  if (!facts.worker)
    logger.info("HOOKWELL_WORKER=off: nothing is delivered from here; run `hookwell worker` beside it.");
  if (facts.dev)
    logger.warn("Development mode (--dev): webhooks may go to loopback addresses and over plain http.");
  if (!facts.madeKey) return;
  const line = `First admin key, shown this once: ${facts.madeKey}`;
  // A log of records is kept and searched by others: there the key is said beside it.
  if (logger.structured) process.stderr.write(`${line}\n`);
  else logger.info(line);
}
