import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { hookwellHandler, type Listening, listen } from "@hookwell/server";
import type { MetricsAccess } from "hookwell/environment";
import { appointmentsApp } from "./app.ts";
import { bookingTransitions } from "./bookings/capture.ts";
import { ordinaryPublisher } from "./bookings/ordinary.ts";
import type { BusyCalendars, SideEffectPlanner } from "./bookings/side-effect-planner.ts";
import { userTies } from "./bookings/user-ties.ts";
import type { AppDatabase } from "./database/schema.ts";
import { type ExampleInvitation, ensureExampleInvitation } from "./example-invitation.ts";
import { firstRun } from "./first-run.ts";
import type { AppHooks } from "./hooks.ts";
import { clientAddress } from "./http/client-address.ts";
import { defaultTokenRouteLimits, type TokenRouteLimits } from "./http/token-routes.ts";
import { startExpirySweep } from "./invitations/expiry.ts";
import { apiKeys } from "./keys/api-keys.ts";
import { receivedWebhooks } from "./receiver/received-webhooks.ts";
import { receiverRoutes } from "./receiver/receiver-routes.ts";
import { receiverSecrets } from "./receiver/receiver-secrets.ts";
import { createReceiverSubscriptions, keepReceiverSubscriptions } from "./receiver/receiver-subscriptions.ts";
import { receiverPath } from "./receiver/receivers.ts";
import {
  type SideEffectDeps,
  type SideEffectSettings,
  type SideEffects,
  sideEffects as sideEffectsOf,
} from "./side-effects/index.ts";
import { userChanges } from "./users/user-changes.ts";
import { userOutlets } from "./users/user-outlets.ts";

export interface AppointmentsOptions {
  /** Migrated. */
  readonly db: AppDatabase;
  readonly dialect: "sqlite" | "postgres";
  /** Ready. */
  readonly hooks: AppHooks;
  /** Project of the first admin, and so of everybody it makes. */
  readonly project: string;
  /** Directory of the receiver page's secrets. */
  readonly dataDir: string;
  readonly port: number;
  /** Absent = every address of the machine. */
  readonly host?: string;
  /** Runs dispatcher and worker in this process. */
  readonly worker: boolean;
  /** The admin key, when the operator chose it. */
  readonly apiKey?: string;
  readonly maxLagMs?: number;
  /** Who may read `/hookwell/metrics`. Default: keys of all projects with the scope read. */
  readonly metrics?: MetricsAccess;
  /** Captures the events of bookings without an invitation too, with their transitions. */
  readonly captureOrdinary?: boolean;
  /** Proxies whose X-Forwarded-For counts. */
  readonly trustProxy?: string;
  /** Default: 60 reads and 20 submissions a minute. */
  readonly tokenRouteLimits?: TokenRouteLimits;
  /** Sees to it that there is an invitation to try. Default: no. */
  readonly example?: boolean;
  /** Where customers reach the application from outside. Default: its address for this machine. */
  readonly publicUrl?: string;
  /** The mail server and the calendar provider. Default: none. */
  readonly providers?: SideEffectSettings;
  /** Makes what follows from bookings outside of the database. Default: calendars and mail of `providers`. */
  readonly makeSideEffects?: (deps: Omit<SideEffectDeps, "settings">) => SideEffects;
  /** Instead of what `makeSideEffects` makes. */
  readonly sideEffects?: SideEffectPlanner;
  readonly calendars?: BusyCalendars;
}

export interface Appointments {
  /** Address for people on this machine, such as `http://localhost:8787`. */
  readonly url: string;
  /** The admin key, when this start made it: the only time it is seen. */
  readonly newKey?: string;
  /** With `example`, where there is one: its link when this start made it, the only time it is seen. */
  readonly example?: { readonly link?: string };
  /** Lets sends finish, then requests. The database and the hooks stay open: they are the caller's. */
  stop(): Promise<void>;
}

/**
 * Puts the application together and runs it: its API, the Hookwell server at `/hookwell`, the receiver page, and
 * the loops. @throws ConfigurationError when the port cannot be had; nothing was made then
 */
export async function startAppointments(options: AppointmentsOptions): Promise<Appointments> {
  const { db, dialect, hooks } = options;
  const deps = { db, dialect, now: hooks.clock, newId: randomUUID };
  const outlets = userOutlets(hooks);
  const place: { url?: string } = options.publicUrl === undefined ? {} : { url: options.publicUrl };
  const makeSideEffects =
    options.makeSideEffects ?? ((made) => sideEffectsOf({ ...made, settings: options.providers ?? {} }));
  const effects = makeSideEffects({
    ...deps,
    logger: hooks.logger,
    manageUrl: (token) => `${place.url}/manage/${token}`,
  });
  const { sideEffects = effects, calendars = effects } = options;
  const secrets = receiverSecrets(join(options.dataDir, "receiver-secrets.json"));
  const app = appointmentsApp({
    ...deps,
    hooks,
    calendars,
    ...(options.publicUrl === undefined ? {} : { publicUrl: options.publicUrl }),
    transitions: bookingTransitions({
      hooks,
      sideEffects,
      ordinary: ordinaryPublisher(db, hooks),
      captureOrdinary: options.captureOrdinary ?? false,
    }),
    keys: apiKeys(deps),
    changes: userChanges({ ...deps, outlets, ties: userTies(deps.now) }),
    address: clientAddress(options.trustProxy),
    tokenRouteLimits: options.tokenRouteLimits ?? defaultTokenRouteLimits,
    logger: hooks.logger,
  });
  app.route(receiverPath, receiverRoutes(receivedWebhooks(deps), secrets));
  const hookwell = hookwellHandler(hooks, {
    basePath: "/hookwell",
    ...(options.maxLagMs === undefined ? {} : { maxLagMs: options.maxLagMs }),
    ...(options.metrics === undefined ? {} : { metrics: options.metrics }),
  });
  app.all("/hookwell/*", (context) => hookwell(context.req.raw));

  // Before anything is made, so that a key is never made by a start that fails.
  const listening = await listen({
    fetch: app.fetch,
    port: options.port,
    ...(options.host === undefined ? {} : { host: options.host }),
  });
  place.url ??= listening.url;
  try {
    const receiver = { hooks, secrets, origin: receiverOrigin(listening, options.host) };
    const { admin, newKey } = await firstRun(
      {
        ...deps,
        hooks,
        outlets,
        project: options.project,
        alsoMake: (trx, made) => createReceiverSubscriptions(receiver, trx, made),
      },
      options.apiKey,
    );
    await keepReceiverSubscriptions(receiver, db, admin);
    const example = options.example ? await ensureExampleInvitation({ ...deps, hooks }, admin) : undefined;
    const run = options.worker ? hooks.start() : undefined;
    // Not the worker's: what it writes are this application's own rows.
    const sweep = startExpirySweep({ ...deps, hooks, logger: hooks.logger });
    effects.start();
    return {
      url: listening.url,
      ...(newKey === undefined ? {} : { newKey }),
      ...(example === undefined ? {} : { example: exampleLink(example, options.publicUrl ?? listening.url) }),
      async stop() {
        // The loops first: what they are sending may be on its way to our own receiver.
        await run?.stop();
        await sweep.stop();
        await listening.close();
        // Last: a request that was still answered may have begun one.
        await effects.stop();
      },
    };
  } catch (error) {
    await listening.close();
    throw error;
  }
}

function exampleLink({ token }: ExampleInvitation, origin: string): { readonly link?: string } {
  return token === undefined ? {} : { link: `${origin}/s/${token}` };
}

/** By address and not by name: `localhost` is two addresses, and only one may be listened on. */
function receiverOrigin({ port, url }: Listening, host: string | undefined): string {
  return host === undefined || host === "0.0.0.0" || host === "::" ? `http://127.0.0.1:${port}` : url;
}
