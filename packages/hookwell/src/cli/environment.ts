/**
 * What every program that is set up by environment variables shares: `hookwell/environment`. The CLI,
 * @hookwell/server and applications use it; the library itself never reads the environment this way.
 */

export { readSettings, type Setting, type Settings, settings } from "../model/settings.ts";
export { keysOfFile } from "../store/key-file.ts";
export { type DeliveryHealth, deliveryHealth } from "./delivery-health.ts";
export { type HooksFromSettings, hooksFromSettings } from "./hooks-from-settings.ts";
export { stopOnSignal } from "./stop-on-signal.ts";
export { type OpenedStore, type StoreOptions, storeFromEnvironment } from "./store-from-environment.ts";
