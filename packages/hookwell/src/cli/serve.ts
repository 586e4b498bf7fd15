import { ConfigurationError } from "../model/errors.ts";
import type { Logger } from "../model/observe.ts";
import { readSettings } from "../model/settings.ts";
import type { HookwellCore } from "../publish/surface.ts";
import { readFlags } from "./arguments.ts";
import { type Command, exitCodesHelp } from "./command.ts";
import { loadConfig } from "./load-config.ts";
import { loggerFromSettings } from "./logger.ts";
import { stopOnSignal } from "./stop-on-signal.ts";

const help = `hookwell serve: the REST API, the dispatcher and the worker in one process

  hookwell serve [--config <file>] [--dev]

Options
  --config <file>   serve the instance that this module exports as \`hooks\`, with its event types and database
  --dev             development: webhooks may go to loopback addresses and over plain http
  --help

Without --config it takes every well-formed event type. It listens on PORT (8787), keeps SQLite in
HOOKWELL_DATA_DIR (./data) or uses HOOKWELL_DATABASE_URL / DATABASE_URL (PostgreSQL, after \`hookwell migrate\`),
and on its first start makes an admin key and prints it once, unless HOOKWELL_API_KEY gives one. /docs describes
the API. HOOKWELL_WORKER=off answers requests only; \`hookwell worker\` beside it then delivers. All settings:
docs/reference/configuration.md.

SIGTERM or Ctrl-C finishes what is in work (5 s) and gives the rest back; a second one stops at once.
It needs the package @hookwell/server.

${exitCodesHelp}`;

/** The part of @hookwell/server that is used here: it depends on this package, not this one on it. */
interface ServerModule {
  serve(options: {
    readonly hooks?: HookwellCore;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly logger: Logger;
    readonly dev: boolean;
  }): Promise<{ stop(): Promise<void> }>;
}

export const serve: Command = {
  name: "serve",
  summary: "run the REST API with dispatcher and worker",
  help,
  async run(args, terminal) {
    const flags = readFlags(args, { config: { type: "string" }, dev: { type: "boolean" } });
    // Read before anything is loaded or opened; the server reads them again.
    const logger = loggerFromSettings(readSettings(terminal.environment));
    const module = await loadServer();
    const hooks = flags.config === undefined ? undefined : await loadConfig(flags.config);
    if (hooks && flags.dev)
      terminal.note(
        "--dev has no say with --config: the module's own `network` decides where webhooks may go.",
      );
    const server = await module.serve({
      hooks,
      environment: terminal.environment,
      logger,
      dev: flags.dev ?? false,
    });
    stopOnSignal(() => server.stop(), logger);
    return undefined;
  },
};

async function loadServer(): Promise<ServerModule> {
  // A variable, so that neither compilers nor bundlers take it for a dependency.
  const name: string = "@hookwell/server";
  try {
    return (await import(name)) as ServerModule;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" || !message.includes(name)) throw error;
    throw new ConfigurationError(
      `hookwell serve needs the package ${name}, which is not installed; run \`npm install ${name}\`.`,
      "server_missing",
    );
  }
}
