import type { Logger } from "../model/observe.ts";

/**
 * Ends the process in good order on SIGTERM or SIGINT: `stop` runs once, then exit code 0, or 1 when it failed. A
 * second signal ends it at once with 1: leases run out and other workers take over.
 */
export function stopOnSignal(stop: () => Promise<void>, logger: Logger): void {
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) {
      logger.warn(`${signal} again: stopping at once.`);
      process.exit(1);
    }
    stopping = true;
    logger.info(`${signal}: finishing what is in work; once more to stop at once.`);
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error(`Stopping failed: ${error instanceof Error ? error.message : String(error)}`);
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
