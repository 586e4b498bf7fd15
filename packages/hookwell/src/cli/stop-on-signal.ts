import type { Logger } from "../model/observe.ts";

const samePressMs = 500;

/**
 * Ends the process in good order on SIGTERM or SIGINT: `stop` runs once, then exit code 0, or 1 when it failed. A
 * second signal ends it at once with 1: leases run out and other workers take over. Under npm one Ctrl-C arrives
 * twice, from the terminal and passed on by npm, so a repeat within half a second counts as the same one.
 */
export function stopOnSignal(stop: () => Promise<void>, logger: Logger): void {
  let stoppingSince: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince < samePressMs) return;
      logger.warn(`${signal} again: stopping at once.`);
      process.exit(1);
    }
    stoppingSince = performance.now();
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
