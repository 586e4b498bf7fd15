export type { AsyncTxAdapter, Dialect, Row, Statement, SyncTxAdapter, TxAdapter } from "./adapters/seam.ts";
export { dayLongRetryPolicy, defaultRetryPolicy, parseRetrySchedule } from "./deliver/retry-policy.ts";
export { Worker, type WorkerConfig } from "./deliver/worker.ts";
export { userEnvelope } from "./dispatch/user-envelope.ts";
export type { Clock } from "./model/clock.ts";
export type {
  Catalogue,
  EnrichEvent,
  EnvelopeEvent,
  EventTypeDefinition,
  FieldRules,
} from "./model/definition.ts";
export type {
  AttemptRecord,
  Delivery,
  DeliveryDetail,
  DeliveryRecord,
  Exchange,
} from "./model/delivery.ts";
export * from "./model/errors.ts";
export type { Actor, EventKey, EventOutcome, EventRecord } from "./model/event.ts";
export { describeSelector, type HoldRecord, type HoldSelector } from "./model/hold.ts";
export type { IdFunc, RandomBytes } from "./model/ids.ts";
export { type JsonValue, parseJson, stringifyJson } from "./model/json.ts";
export type {
  LogEntry,
  Logger,
  LogLevel,
  ObservedEvents,
  Observer,
  StructuredLog,
} from "./model/observe.ts";
export type { DeliverySelection, ReplayedStatus, ReplayRecord } from "./model/replay.ts";
export type { RetryPolicy, RetryPolicyInput, RetrySchedule } from "./model/retry.ts";
export type {
  DeliveryStatus,
  DisabledReason,
  EventState,
  Hold,
  ReplayStatus,
  SubscriptionStatus,
} from "./model/states.ts";
export type { RateLimit, Subscription, SubscriptionMerge, SubscriptionRecord } from "./model/subscription.ts";
export type { Timers } from "./model/timers.ts";
export {
  type Event,
  type EventType,
  type User,
  type UserEventType,
  userEventTypes,
} from "./model/user-event.ts";
export { createHookwell, type OpenShapes } from "./publish/create-hookwell.ts";
export {
  defineEvents,
  type EventDefinition,
  type EventSet,
  type EventShapes,
} from "./publish/define-events.ts";
export type { EmitItem, Hookwell, HookwellFor, SyncHookwell } from "./publish/hookwell.ts";
export { type ApiScope, apiScopes } from "./publish/manage-keys.ts";
export type { HookwellOptions } from "./publish/options.ts";
export { OutboxPublisher } from "./publish/outbox-publisher.ts";
export { bodyLimit, type TenantMode } from "./publish/prepare-event.ts";
export { Discard, type Publisher } from "./publish/publisher.ts";
export type { Rate, Stats } from "./publish/stats.ts";
export type * from "./publish/surface.ts";
export { developmentNetwork, parseNetworkList } from "./send/address-guard.ts";
export { HttpSender, type HttpSenderOptions, type SendLimits } from "./send/http-sender.ts";
export {
  DeliveryError,
  type DeliveryErrorDetails,
  SendAbortedError,
  type Sender,
  type SendOptions,
  type SendReceipt,
} from "./send/sender.ts";
export { generateSecret } from "./send/signatures.ts";
export {
  type IncomingHeaders,
  type VerifiedWebhook,
  type VerifyOptions,
  verify,
  verifyBodySignature,
} from "./send/verify.ts";
export type { WireOptions } from "./send/wire.ts";
export type {
  ApiKeyRecord,
  DeliveryFilter,
  EventFilter,
  OutboxStore,
  Page,
  PageOf,
  PagePosition,
  ReferenceStore,
  RetentionPolicy,
  SubscriptionFilter,
  TimeRange,
  Visibility,
} from "./store/contract.ts";
export { MemoryOutbox, type MemoryTransaction, memoryTx } from "./store/memory/index.ts";
export type { ReplayFilter } from "./store/replay-contract.ts";
export type { RequestBegin, RequestBegun, RequestName, RequestStore } from "./store/request-contract.ts";
export type { Counted, LaneTrouble, MinuteCounts, StoreStats, Trouble } from "./store/stats-contract.ts";
