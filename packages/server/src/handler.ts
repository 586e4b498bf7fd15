import { randomUUID } from "node:crypto";
import type { HookwellCore } from "hookwell";
import { ConfigurationError } from "hookwell";
import type { MetricsAccess } from "hookwell/environment";
import { Api } from "./http/api.ts";
import { type Authorize, authorizeByKey } from "./http/caller.ts";
import { addCatalogueRoute } from "./routes/catalogue.ts";
import { addDeliveryRoutes } from "./routes/deliveries.ts";
import { addDocumentRoutes } from "./routes/documents.ts";
import { addEventRoutes } from "./routes/events.ts";
import { addHealthRoutes } from "./routes/health.ts";
import { addHoldRoutes } from "./routes/holds.ts";
import { addKeyRoutes } from "./routes/keys.ts";
import { addMetricsRoute } from "./routes/metrics.ts";
import { addReplayRoutes } from "./routes/replays.ts";
import { addStatsRoute } from "./routes/stats.ts";
import { addSecretRoutes } from "./routes/subscription-secrets.ts";
import { addTestSendRoute } from "./routes/subscription-test.ts";
import { addSubscriptionRoutes } from "./routes/subscriptions.ts";

export interface HandlerOptions {
  /** Path that the API is mounted at, such as `/hookwell`. Default: the root. */
  readonly basePath?: string;
  /**
   * Says who makes a request, for applications with their own sessions. Its answer is final: undefined is 401.
   * Default: the Bearer keys in the store (`hooks.keys`); while there are none, every request gets 401.
   */
  readonly authorize?: Authorize;
  /** From this age of the oldest due work on, in ms, `/healthz/delivery` answers 503. Default 300,000. */
  readonly maxLagMs?: number;
  /**
   * Who may read `/metrics`: `key` = a caller of all projects with the scope read (the default), `open` = everybody,
   * `off` = nobody.
   */
  readonly metrics?: MetricsAccess;
  /** Names a request that came without `x-request-id`. Default: a random UUID. */
  readonly requestId?: () => string;
}

/** Answers one request of the API. */
export type FetchHandler = (request: Request) => Promise<Response>;

/**
 * The REST API as a fetch handler, to be mounted in an application or given to a server.
 * @throws ConfigurationError for a base path that is none
 */
export function hookwellHandler(hooks: HookwellCore, options: HandlerOptions = {}): FetchHandler {
  return apiOf(hooks, options).fetch;
}

/** The API with its description. */
export function apiOf(hooks: HookwellCore, options: HandlerOptions = {}): Api {
  const basePath = (options.basePath ?? "").replace(/\/$/, "");
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(basePath))
    throw new ConfigurationError(
      `basePath must be a path such as "/hookwell", not ${JSON.stringify(options.basePath)}.`,
    );
  const api = new Api({
    basePath,
    authorize: options.authorize ?? authorizeByKey(hooks),
    logger: hooks.logger,
    requests: hooks.store,
    requestId: options.requestId ?? randomUUID,
  });
  addSubscriptionRoutes(api, hooks);
  addSecretRoutes(api, hooks);
  addTestSendRoute(api, hooks);
  addEventRoutes(api, hooks);
  addDeliveryRoutes(api, hooks);
  addReplayRoutes(api, hooks);
  addStatsRoute(api, hooks);
  addCatalogueRoute(api, hooks);
  addHoldRoutes(api, hooks);
  addKeyRoutes(api, hooks);
  addHealthRoutes(api, hooks, options.maxLagMs ?? 300_000);
  addMetricsRoute(api, hooks, options.metrics ?? "key");
  addDocumentRoutes(api);
  return api;
}
