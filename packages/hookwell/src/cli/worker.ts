import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { ConfigurationError } from "../model/errors.ts";
import { readSettings, type Settings } from "../model/settings.ts";
import type { HookwellCore } from "../publish/surface.ts";
import { readFlags, readPort } from "./arguments.ts";
import { type Command, exitCodesHelp } from "./command.ts";
import { deliveryHealth } from "./delivery-health.ts";
import { loadConfig } from "./load-config.ts";
import { loggerFromSettings } from "./logger.ts";
import { mayReadMetrics, metricsType } from "./metrics-access.ts";
import { stopOnSignal } from "./stop-on-signal.ts";

const help = `hookwell worker: the dispatcher and the worker, without the API

  hookwell worker [--config <file>] [--dev] [--port <port>]

Options
  --config <file>   work for the instance that this module exports as \`hooks\`. Events of its types are dispatched
                    only by a process that has them
  --dev             development: webhooks may go to loopback addresses and over plain http
  --port <port>     port of the health routes; default HOOKWELL_HEALTH_PORT (8788), 0 = a free one
  --help

The database is HOOKWELL_DATABASE_URL or DATABASE_URL (PostgreSQL), else SQLite in HOOKWELL_DATA_DIR (./data). Any
number of workers may run on one PostgreSQL database. Health: /healthz, /readyz and /healthz/delivery (503 when
webhooks leave later than HOOKWELL_MAX_LAG). Metrics for Prometheus: /metrics (HOOKWELL_METRICS says who may read them).

SIGTERM or Ctrl-C finishes the sends (5 s) and gives the rest back; a second one stops at once.

${exitCodesHelp}`;

export const worker: Command = {
  name: "worker",
  summary: "dispatch and deliver, without the API",
  help,
  async run(args, terminal) {
    const flags = readFlags(args, {
      config: { type: "string" },
      dev: { type: "boolean" },
      port: { type: "string" },
    });
    const flagPort = readPort(flags.port, "--port");
    const settings = readSettings(terminal.environment);
    // Loaded only now, so that --help and a wrong flag need not wait for the whole library.
    const { hooksFromSettings } = await import("./hooks-from-settings.ts");
    const logger = loggerFromSettings(settings);
    const own =
      flags.config === undefined ? await hooksFromSettings(settings, { dev: flags.dev, logger }) : undefined;
    const hooks = own?.hooks ?? (await loadConfig(flags.config!));
    const close = async (): Promise<void> => {
      await hooks.close();
      await own?.opened.close();
    };
    try {
      await hooks.ready();
      const port = flagPort ?? settings.healthPort;
      const health = await listenForHealth(hooks, settings, port);
      const run = hooks.start();
      const say = logger.structured ? logger.info : terminal.print;
      say(
        `Hookwell worker runs on ${own?.opened.description ?? flags.config}; health: http://localhost:${portOf(health)}/healthz`,
      );
      stopOnSignal(async () => {
        health.close();
        health.closeAllConnections();
        await run.stop();
        await close();
      }, logger);
    } catch (error) {
      await close();
      throw error;
    }
    return undefined;
  },
};

async function listenForHealth(hooks: HookwellCore, settings: Settings, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    void answer(hooks, settings, request, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "EADDRINUSE"
          ? new ConfigurationError(
              `Cannot listen on port ${port}: another program uses it. Set HOOKWELL_HEALTH_PORT (or --port) to a free port.`,
              "port_in_use",
            )
          : error,
      ),
    );
    server.listen(port, settings.host, resolve);
  });
  return server;
}

async function answer(
  hooks: HookwellCore,
  { maxLagMs, metrics }: Settings,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = request.url?.split("?")[0];
  try {
    if (path === "/healthz") return send(response, 200, { status: "ok" });
    if (path === "/readyz") {
      await hooks.ready();
      return send(response, 200, { status: "ok" });
    }
    if (path === "/healthz/delivery") {
      const { late, holds } = await deliveryHealth(hooks, maxLagMs);
      const body = late ? { status: "late", detail: late, holds } : { status: "ok", holds };
      return send(response, late ? 503 : 200, body);
    }
    if (path === "/metrics" && metrics !== "off")
      return await answerMetrics(hooks, metrics, request, response);
    return send(response, 404, { status: "not found" });
  } catch (error) {
    hooks.logger.error(`GET ${path} failed: ${error instanceof Error ? error.message : String(error)}`);
    return send(response, 503, { status: "unavailable" });
  }
}

async function answerMetrics(
  hooks: HookwellCore,
  access: "key" | "open",
  { headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const may = access === "open" ? "yes" : await mayReadMetrics(hooks, headers.authorization);
  if (may === "unknown") {
    response.setHeader("www-authenticate", "Bearer");
    return send(response, 401, {
      status: "unauthorized",
      detail: "Send a key as `Authorization: Bearer <key>`.",
    });
  }
  if (may === "forbidden")
    return send(response, 403, {
      status: "forbidden",
      detail: "This needs a key of all projects with the scope read.",
    });
  const page = await hooks.metrics();
  response.writeHead(200, { "content-type": metricsType, "cache-control": "no-store" });
  response.end(page);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
