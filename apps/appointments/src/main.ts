import { randomUUID } from "node:crypto";
import { isHookwellError } from "hookwell";
import { loggerFromSettings, readSettings, stopOnSignal } from "hookwell/environment";
import { readAppSettings } from "./app-settings.ts";
import { banner } from "./banner.ts";
import { migrateApp } from "./database/migrations.ts";
import { exampleSlug } from "./example-invitation.ts";
import { hooksFromSettings } from "./from-settings.ts";
import { readSideEffectSettings } from "./side-effects/index.ts";
import { startAppointments } from "./start.ts";

/** `npm start`: everything in one process, in development mode. */
async function main(): Promise<void> {
  const settings = readSettings(process.env);
  const appSettings = readAppSettings(process.env);
  const providers = readSideEffectSettings(process.env);
  const logger = loggerFromSettings(settings);
  const { hooks, opened, app } = await hooksFromSettings(settings, logger);
  const closing: (() => Promise<void>)[] = [() => hooks.close(), () => app.close(), () => opened.close()];
  const closeAll = async (): Promise<void> => {
    for (const close of closing) await close();
  };
  try {
    // Who runs npm start on an empty database wants it to work; a production deploy migrates by itself.
    await opened.migrations.migrate();
    await hooks.ready();
    const { db, dialect } = app;
    await migrateApp(db);
    const running = await startAppointments({
      db,
      dialect,
      hooks,
      project: "live",
      dataDir: settings.dataDir,
      port: settings.port,
      worker: settings.worker,
      maxLagMs: settings.maxLagMs,
      metrics: settings.metrics,
      ...appSettings,
      providers,
      example: true,
      ...(settings.host === undefined ? {} : { host: settings.host }),
      ...(settings.apiKey === undefined ? {} : { apiKey: settings.apiKey }),
    });
    closing.unshift(() => running.stop());
    stopOnSignal(closeAll, logger);
    const { url, newKey, example } = running;
    // In a log of records the addresses are a line like any other. What is shown this once is said beside it.
    const print = logger.structured ? (text: string) => process.stderr.write(`${text}\n`) : console.log;
    if (logger.structured) logger.info(`The application listens on ${url}, store: ${opened.description}.`);
    if (!logger.structured || newKey !== undefined || example?.link !== undefined)
      print(
        banner({
          url,
          database: opened.description,
          worker: settings.worker,
          userId: randomUUID(),
          expiresAt: new Date(hooks.clock().getTime() + 30 * 86_400_000).toISOString(),
          ...(example === undefined ? {} : { example: { ...example, eventTypeSlug: exampleSlug } }),
          ...(newKey === undefined ? {} : { newKey }),
        }),
      );
  } catch (error) {
    await closeAll();
    throw error;
  }
}

main().catch((error: unknown) => {
  // Our own errors say what to do; of others the stack is needed.
  console.error(isHookwellError(error) ? error.message : error);
  process.exitCode = 1;
});
