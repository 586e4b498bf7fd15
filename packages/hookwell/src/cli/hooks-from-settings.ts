import { parseRetrySchedule } from "../deliver/retry-policy.ts";
import type { Logger } from "../model/observe.ts";
import type { Settings } from "../model/settings.ts";
import { createHookwell } from "../publish/create-hookwell.ts";
import type { HookwellCore } from "../publish/surface.ts";
import {
  AddressGuard,
  developmentNetwork,
  type NetworkOptions,
  parseNetworkList,
} from "../send/address-guard.ts";
import { type OpenedStore, type StoreOptions, storeFromEnvironment } from "./store-from-environment.ts";

/** An instance that is set up by the environment alone: it has no catalogue, so it takes every valid type. */
export interface HooksFromSettings {
  readonly hooks: HookwellCore;
  readonly opened: OpenedStore;
}

/**
 * Makes an instance from settings; `dev` opens loopback addresses and plain http.
 * @throws ConfigurationError
 */
export async function hooksFromSettings(
  settings: Settings,
  options: {
    readonly dev?: boolean;
    readonly logger?: Logger;
    readonly store?: Omit<StoreOptions, "logger">;
  } = {},
): Promise<HooksFromSettings> {
  const { dev = false, logger } = options;
  const retry = settings.retrySchedule ? parseRetrySchedule(settings.retrySchedule) : undefined;
  const network: NetworkOptions = {
    allow: [...((dev && developmentNetwork.allow) || []), ...parseNetworkList(settings.allowNetworks ?? "")],
    http: dev,
  };
  // Throws for a network that is none, before a directory is made or a database touched.
  new AddressGuard(network);
  const opened = await storeFromEnvironment(settings, { ...options.store, logger });
  const hooks = createHookwell({
    store: opened.store,
    network,
    metrics: { subscriptions: settings.metricsSubscriptions },
    ...(retry && { retry }),
    ...(logger && { logger }),
  });
  return { hooks: hooks as unknown as HookwellCore, opened };
}
