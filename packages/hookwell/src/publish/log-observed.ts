import type { Logger, ObservedEvents, Observer } from "../model/observe.ts";

type Lines = {
  readonly [Name in keyof ObservedEvents]?: (event: ObservedEvents[Name], logger: Logger) => void;
};

/** What an operator should read without asking for it; the rest is for metrics. */
const lines: Lines = {
  enrichFailed: (e, log) =>
    log.warn(
      `hookwell: enrich of ${e.type} failed, ${e.events} events go out with their snapshot: ${e.error}`,
    ),
  dispatchFailed: (e, log) =>
    log.warn(`hookwell: event ${e.eventId} could not be dispatched (try ${e.tries}): ${e.error}`),
  parked: (e, log) => log.error(`hookwell: event ${e.eventId} (${e.type}) is parked: ${e.error}`),
  failed: (e, log) =>
    log.warn(
      `hookwell: delivery ${e.deliveryId} of event ${e.eventId} failed after ${e.attempt} attempts: ${e.error}`,
    ),
  laneOpened: (e, log) =>
    log.warn(`hookwell: subscription ${e.subscriptionId} does not answer, only single probes are sent to it`),
  laneClosed: (e, log) => log.info(`hookwell: subscription ${e.subscriptionId} answers again`),
  subscriptionDisabled: (e, log) =>
    log.warn(`hookwell: subscription ${e.subscriptionId} is disabled (${e.reason})`),
  replayEnded: (e, log) => log.info(`hookwell: replay ${e.replayId} is ${e.status}`),
  hookFailed: (e, log) =>
    log.error(`hookwell: the failure hook threw for delivery ${e.deliveryId}: ${e.error}`),
  storeLost: (e, log) => log.error(`hookwell: ${e.loop} cannot reach its store: ${e.error}`),
  storeRegained: (e, log) => log.info(`hookwell: ${e.loop} reaches its store again`),
  warning: (e, log) => log.warn(`hookwell: ${e.message}`),
};

/** Logs what matters and tells `observe` everything; an observer that throws stops nothing. */
export function loggingObserver(logger: Logger, observe: Observer | undefined): Observer {
  return (name, event) => {
    lines[name]?.(event, logger);
    try {
      observe?.(name, event);
    } catch (error) {
      logger.error(`hookwell: observe(${name}) threw: ${error instanceof Error ? error.message : error}`);
    }
  };
}
