import type { TxAdapter } from "../adapters/seam.ts";
import { systemClock } from "../model/clock.ts";
import type { Catalogue } from "../model/definition.ts";
import { ConfigurationError } from "../model/errors.ts";
import { checkName } from "../model/identifiers.ts";
import { idFunc, systemRandom } from "../model/ids.ts";
import { systemTimers } from "../model/timers.ts";
import { AddressGuard } from "../send/address-guard.ts";
import type { EventShapes } from "./define-events.ts";
import { Emitter } from "./emitter.ts";
import { Engine } from "./engine.ts";
import type { AnyAdapter, HookwellFor } from "./hookwell.ts";
import { loggingObserver } from "./log-observed.ts";
import { manageDeliveries } from "./manage-deliveries.ts";
import { manageEvents } from "./manage-events.ts";
import { manageHolds } from "./manage-holds.ts";
import { manageKeys } from "./manage-keys.ts";
import { manageReplays } from "./manage-replays.ts";
import { manageSubscriptions } from "./manage-subscriptions.ts";
import { Metrics, mostLabelledSubscriptions } from "./metrics.ts";
import type { HookwellOptions } from "./options.ts";
import type { TenantMode } from "./prepare-event.ts";
import { Scopes } from "./scope.ts";
import { readStats } from "./stats.ts";
import type { CatalogueEntry, HookwellCore } from "./surface.ts";
import { transactionOf } from "./sync-transaction.ts";
import { sendTest, type TestSendParts } from "./test-send.ts";

/** Shapes of an instance without `events`: any type, any data. */
export type OpenShapes = { readonly [type: string]: { readonly data: unknown; readonly broadcast: false } };

/** Puts the parts of Hookwell together. It opens nothing: the first call that needs the database does. */
export function createHookwell<
  Adapter extends AnyAdapter = undefined,
  Shapes extends EventShapes = OpenShapes,
  const Tenants extends TenantMode = "optional",
>(options: HookwellOptions<Adapter, Shapes, Tenants>): HookwellFor<Adapter, Shapes, Tenants> {
  const { store, project } = options;
  const catalogue: Catalogue | undefined = options.events?.catalogue;
  const tenants: TenantMode = options.tenants ?? "optional";
  if (tenants !== "required" && tenants !== "optional")
    throw new ConfigurationError('tenants must be "required" or "optional".');
  if (project !== undefined) checkName(project, "project");

  const clock = options.clock ?? systemClock;
  const now = (): Date | null => (options.clock ? clock() : null);
  const random = options.random ?? systemRandom;
  const timers = options.timers ?? systemTimers;
  const logger = options.logger ?? console;
  const metrics = new Metrics(labelledSubscriptions(options.metrics?.subscriptions));
  const observe = loggingObserver(logger, metrics.observe, options.observe);
  const guard = new AddressGuard(options.network);
  const scopes = new Scopes(options.tx as TxAdapter<unknown> | undefined, store.dialect);
  const engine = new Engine({ options, catalogue, clock, observe });
  const wake = (): void => engine.wake();

  const rules = { catalogue, project, tenants, clock, eventId: idFunc("evt_", clock, random) };
  const emitter = new Emitter({ store, rules, scopes, observe, wake: () => engine.emitted() });
  const testParts: TestSendParts = {
    store,
    catalogue,
    clock,
    now,
    eventId: rules.eventId,
    wire: options.wire,
    sender: () => engine.sender,
  };
  const core: HookwellCore<unknown> = {
    store,
    project,
    catalogue: catalogueEntries(catalogue),
    clock,
    logger,
    observe,
    subscriptions: manageSubscriptions({
      store,
      scopes,
      endpoints: { guard, wire: options.wire },
      project,
      tenants,
      catalogue,
      random,
      subscriptionId: idFunc("sub_", clock, random),
      wake,
      sendTest: (id, testOptions) => sendTest(testParts, id, testOptions),
      maintainSoon: () => engine.maintainSoon(),
    }),
    events: manageEvents({ store, scopes, wake }),
    deliveries: manageDeliveries({ store, scopes, now, timers, wake }),
    replays: manageReplays({
      store,
      scopes,
      clock,
      now,
      timers,
      retention: engine.retention ?? null,
      replayId: idFunc("rpl_", clock, random),
      replaySoon: () => engine.replaySoon(),
    }),
    holds: manageHolds({
      store,
      scopes,
      clock,
      now,
      timers,
      holdId: idFunc("hld_", clock, random),
      wake,
      maintainSoon: () => engine.maintainSoon(),
    }),
    keys: manageKeys({ store, clock, random, keyId: idFunc("key_", clock, random), observe }),
    emitUnknown: (type, data, facts) => emitter.emit(type, data, facts),
    emitManyUnknown: (events, { tx }) => emitter.emitMany(events, { tx }),
    stats: (filter = {}) => readStats(store, now(), filter),
    async metrics() {
      try {
        return metrics.text(await readStats(store, now(), {}));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        logger.warn(`hookwell: metrics are without those of the database: ${why}`);
        return metrics.text(undefined);
      }
    },
    ready: () => store.open({ withKeys: true }),
    start: (startOptions) => engine.start(startOptions),
    drain: (drainOptions) => engine.drain(drainOptions),
    tryConnection: (url) => engine.tryConnection(url),
    retention: engine.retention,
    maintain: (maintainOptions) => engine.maintain(maintainOptions),
    close: () => engine.close(),
  };
  const surface = {
    ...core,
    emit: emitter.emit.bind(emitter),
    emitMany: emitter.emitMany.bind(emitter),
    emitSync: emitter.emitSync.bind(emitter),
    transaction: transactionOf(scopes),
  };
  // The compiler cannot see that the run-time checks are those of the types.
  return surface as unknown as HookwellFor<Adapter, Shapes, Tenants>;
}

/** @throws ConfigurationError */
function labelledSubscriptions(given = 0): number {
  if (Number.isSafeInteger(given) && given >= 0 && given <= mostLabelledSubscriptions) return given;
  throw new ConfigurationError(
    `metrics.subscriptions must be a whole number from 0 to ${mostLabelledSubscriptions}.`,
  );
}

function catalogueEntries(catalogue: Catalogue | undefined): CatalogueEntry[] {
  return [...(catalogue?.values() ?? [])].map(
    ({ type, description, jsonSchema, fields, example, fanOut, broadcast }) => ({
      type,
      jsonSchema,
      fanOut,
      broadcast,
      ...(description !== undefined && { description }),
      ...(fields && { fields }),
      ...(example !== undefined && { example }),
    }),
  );
}
