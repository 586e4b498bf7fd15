import type { Logger, LogLevel, ObservedEvents, Observer } from "../model/observe.ts";

/** How much an event matters to who reads a log. */
export const levels: Readonly<Record<keyof ObservedEvents, LogLevel>> = {
  captured: "info",
  dispatched: "info",
  dispatchFailed: "warn",
  enrichFailed: "warn",
  parked: "error",
  claimed: "debug",
  attempted: "debug",
  delivered: "info",
  rescheduled: "info",
  failed: "warn",
  cancelled: "info",
  released: "debug",
  leaseLost: "warn",
  laneOpened: "warn",
  laneClosed: "info",
  subscriptionDisabled: "warn",
  hookFailed: "error",
  storeLost: "error",
  storeRegained: "info",
  pruned: "debug",
  replayEnded: "info",
  warning: "warn",
};

/** What an operator should read without asking for it, as a sentence; the rest is for metrics and whole logs. */
export const sentences: {
  readonly [Name in keyof ObservedEvents]?: (event: ObservedEvents[Name]) => string;
} = {
  enrichFailed: (e) =>
    `enrich of ${e.type} failed, ${e.events} events go out with their snapshot: ${e.error}`,
  dispatchFailed: (e) => `event ${e.eventId} could not be dispatched (try ${e.tries}): ${e.error}`,
  parked: (e) => `event ${e.eventId} (${e.type}) is parked: ${e.error}`,
  failed: (e) =>
    `delivery ${e.deliveryId} of event ${e.eventId} failed after ${e.attempt} attempts: ${e.error}`,
  laneOpened: (e) => `subscription ${e.subscriptionId} does not answer, only single probes are sent to it`,
  laneClosed: (e) => `subscription ${e.subscriptionId} answers again`,
  subscriptionDisabled: (e) => `subscription ${e.subscriptionId} is disabled (${e.reason})`,
  replayEnded: (e) => `replay ${e.replayId} is ${e.status}`,
  hookFailed: (e) => `the failure hook threw for delivery ${e.deliveryId}: ${e.error}`,
  storeLost: (e) => `${e.loop} cannot reach its store: ${e.error}`,
  storeRegained: (e) => `${e.loop} reaches its store again`,
  warning: (e) => e.message,
};

/** Logs each event, or the sentences only; then tells the observers. One that throws stops nothing. */
export function loggingObserver(logger: Logger, ...observers: readonly (Observer | undefined)[]): Observer {
  const { structured } = logger;
  return (name, event) => {
    const message = sentences[name]?.(event);
    const level: LogLevel = levels[name];
    if (structured) structured.entry({ level, event: name, message, fields: fieldsOf(event) });
    else if (message !== undefined) logger[level === "debug" ? "info" : level](`hookwell: ${message}`);
    for (const observe of observers)
      try {
        observe?.(name, event);
      } catch (error) {
        logger.error(`hookwell: observe(${name}) threw: ${error instanceof Error ? error.message : error}`);
      }
  };
}

/** The fields of an event, names as in the API. What a receiver answered is left out: it may repeat a header. */
function fieldsOf(event: object): Readonly<Record<string, unknown>> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(event)) {
    if (name === "message" || name === "excerpt") continue;
    if (name === "exchange") Object.assign(fields, fieldsOf(value as object));
    else fields[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = value;
  }
  return fields;
}
