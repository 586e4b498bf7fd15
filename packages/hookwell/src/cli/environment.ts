/**
 * What the programs around the library share: `hookwell/environment`. The CLI, @hookwell/server and applications are
 * set up by environment variables in the same way, and write records as the same JSON; the library itself never reads
 * the environment this way.
 */

export { repeatableIds } from "../model/ids.ts";
export { canonicalJson } from "../model/json.ts";
export {
  type MetricsAccess,
  readSettings,
  type Setting,
  type Settings,
  settings,
} from "../model/settings.ts";
export {
  attemptToJson,
  decodeCursor,
  deliveryDetailToJson,
  deliveryToJson,
  encodeCursor,
  eventToJson,
  explanationToJson,
  holdToJson,
  keyToJson,
  pageToJson,
  replayToJson,
  subscriptionToJson,
  testSendToJson,
} from "../publish/api-json.ts";
export { keysOfFile } from "../store/key-file.ts";
export { type DeliveryHealth, deliveryHealth } from "./delivery-health.ts";
export { type HooksFromSettings, hooksFromSettings } from "./hooks-from-settings.ts";
export { type LogOutput, loggerFromSettings } from "./logger.ts";
export { mayReadMetrics, metricsType } from "./metrics-access.ts";
export { stopOnSignal } from "./stop-on-signal.ts";
export { type OpenedStore, type StoreOptions, storeFromEnvironment } from "./store-from-environment.ts";
