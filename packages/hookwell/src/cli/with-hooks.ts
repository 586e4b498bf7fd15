import type { HookwellCore } from "../publish/surface.ts";
import type { Terminal } from "./command.ts";
import { loadConfig } from "./load-config.ts";

/** The database that a command works on: the settings' or, with `--config`, the application's. */
export interface DatabaseFlags {
  readonly config?: string;
  readonly dev?: boolean;
}

/** An instance on an opened database, with its name for people. */
export interface OpenedHooks {
  readonly hooks: HookwellCore;
  readonly description: string;
}

/**
 * Runs `work` on the database, directly: no server needs to run, and one that does sees what is done. The tables must
 * be there; nothing is made or migrated here, so a wrong directory is told of instead of becoming a new database.
 * @throws SchemaVersionError, StorageError, ConfigurationError
 */
export async function withHooks<T>(
  terminal: Terminal,
  flags: DatabaseFlags,
  work: (hooks: HookwellCore, opened: OpenedHooks) => Promise<T>,
): Promise<T> {
  return withInstance(terminal, flags, async (opened) => {
    await opened.hooks.store.open({ withKeys: false });
    return work(opened.hooks, opened);
  });
}

/** The same before the database is opened: for who wants to know why that fails. */
export async function withInstance<T>(
  terminal: Terminal,
  flags: DatabaseFlags,
  work: (opened: OpenedHooks) => Promise<T>,
): Promise<T> {
  const { hooks, description, close } = await open(terminal, flags);
  try {
    return await work({ hooks, description });
  } finally {
    await hooks.close();
    await close();
  }
}

async function open(
  terminal: Terminal,
  { config, dev }: DatabaseFlags,
): Promise<OpenedHooks & { close(): Promise<void> }> {
  if (config !== undefined) {
    if (dev)
      terminal.note(
        "--dev has no say with --config: the module's own `network` decides where webhooks may go.",
      );
    const hooks = await quietly(() => loadConfig(config));
    return { hooks, description: config, close: async () => {} };
  }
  const { readSettings } = await import("../model/settings.ts");
  const settings = readSettings(terminal.environment);
  // Loaded only now, so that --help and a wrong flag need not wait for the whole library.
  const { hooksFromSettings } = await import("./hooks-from-settings.ts");
  const logger = { info: terminal.note, warn: terminal.note, error: terminal.note };
  const { hooks, opened } = await hooksFromSettings(settings, {
    dev,
    logger,
    store: { migrate: false, makeDirectory: false, poolSize: 2 },
  });
  return { hooks, description: opened.description, close: () => opened.close() };
}

/** What an application's module prints while it is loaded is no data of ours: it goes to standard error. */
async function quietly<T>(work: () => Promise<T>): Promise<T> {
  const { log, info, debug } = console;
  const aside = console.error.bind(console);
  Object.assign(console, { log: aside, info: aside, debug: aside });
  try {
    return await work();
  } finally {
    Object.assign(console, { log, info, debug });
  }
}
