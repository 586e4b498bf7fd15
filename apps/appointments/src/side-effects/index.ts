import type { Logger, Timers } from "hookwell";
import type { BusyCalendars, SideEffectPlanner } from "../bookings/side-effect-planner.ts";
import type { AppDatabase } from "../database/schema.ts";
import { refuseInTransaction } from "../database/transaction-guard.ts";
import type { Period } from "../scheduling/calendar.ts";
import { type CalendarClient, calendarClient } from "./calendar-client.ts";
import { type Mailer, smtpMailer } from "./mailer.ts";
import { defaultRetryDelaysMs, perform } from "./perform.ts";
import { planSideEffects } from "./plan.ts";
import { reconcileCalendars } from "./reconcile.ts";
import type { SideEffectSettings } from "./settings.ts";
import { type StepLoop, stepLoop, systemTimers } from "./step-loop.ts";
import { stepQueue } from "./step-queue.ts";

export { type BookingStep, bookingSteps } from "./booking-steps.ts";
export { readSideEffectSettings, type SideEffectSettings } from "./settings.ts";

export interface SideEffectDeps {
  readonly db: AppDatabase;
  readonly now: () => Date;
  readonly newId: () => string;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
  readonly settings: SideEffectSettings;
  /** The page where the customer manages the booking, such as `https://host/manage/<token>`. */
  readonly manageUrl: (token: string) => string;
  readonly timers?: Timers;
  /** Waits between the tries of a step, in ms. */
  readonly retryDelaysMs?: readonly number[];
  /** Time limits in ms: of a change in a calendar, of free/busy, of a mail. */
  readonly limits?: { readonly eventMs?: number; readonly freeBusyMs?: number; readonly mailMs?: number };
}

/**
 * What follows from a booking outside of the database: calendars, mails and reminders. `plan` notes it in the
 * transaction of the transition; it is done after the commit, with a limit of time and of tries, and never publishes
 * an event. Any number of processes may run it on one database.
 */
export interface SideEffects extends SideEffectPlanner, BusyCalendars {
  /** Does the work in the background until `stop`. */
  start(): void;
  /** Does what is due now. @returns how many steps were done */
  runOnce(): Promise<number>;
  /** Gives every calendar that is out of line another try; the background does so once an hour. */
  reconcile(): Promise<number>;
  /** Takes nothing more and waits for what was begun. What waits stays in the database. */
  stop(): Promise<void>;
}

const reconcileEveryMs = 300_000;
/** One calendar is tried at most so often when its own tries are used up. */
const reconcileRestMs = 3_600_000;

/** @throws TypeError for addresses that {@link readSideEffectSettings} refuses */
export function sideEffects(deps: SideEffectDeps): SideEffects {
  const { db, now, logger, settings, limits = {} } = deps;
  const calendar = openCalendar(settings, limits);
  const mailer = openMailer(settings, limits);
  const queue = stepQueue({ db, now });
  const timers = deps.timers ?? systemTimers;
  const doStep = perform.bind(undefined, {
    db,
    now,
    logger,
    manageUrl: deps.manageUrl,
    retryDelaysMs: deps.retryDelaysMs ?? defaultRetryDelaysMs,
    ...(calendar && { calendar }),
    ...(mailer && { mailer }),
  });
  const reconcile = async (restMs = 0): Promise<number> =>
    calendar === undefined ? 0 : await reconcileCalendars(db, now(), restMs);
  let reconcileAt = 0;
  const loops: StepLoop[] = [];
  const kick = (): void => {
    for (const loop of loops) loop.kick();
  };
  const common = { queue, timers, logger, perform: doStep, onOver: kick };
  // Two, so that calendars that hang take no places from mails.
  const calendars = stepLoop({
    ...common,
    lanes: ["calendar"],
    async beforeLook() {
      if (now().getTime() < reconcileAt) return;
      reconcileAt = now().getTime() + reconcileEveryMs;
      await reconcile(reconcileRestMs);
    },
  });
  const mails = stepLoop({ ...common, lanes: ["mail", "reminder"] });
  loops.push(calendars, mails);

  return {
    plan: planSideEffects({
      now,
      newId: deps.newId,
      configured: { calendar: calendar !== undefined, mail: mailer !== undefined },
    }),
    kick,
    reconcile: () => reconcile(),
    async freeBusy(hostIds, from, to) {
      refuseInTransaction("A call to the calendar");
      if (calendar === undefined || hostIds.length === 0) return new Map<string, Period[]>();
      return await calendar.freeBusy(await readHosts(db, hostIds), from, to);
    },
    start() {
      for (const loop of loops) loop.start();
    },
    async runOnce() {
      let done = 0;
      // A mail may wait for a calendar, so one more look after each.
      for (;;) {
        const counts = await Promise.all(loops.map((loop) => loop.drain()));
        const count = counts.reduce((sum, each) => sum + each, 0);
        if (count === 0) return done;
        done += count;
      }
    },
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

type Limits = NonNullable<SideEffectDeps["limits"]>;

function openCalendar({ calendarUrl }: SideEffectSettings, limits: Limits): CalendarClient | undefined {
  if (calendarUrl === undefined) return undefined;
  const { eventMs, freeBusyMs } = limits;
  return calendarClient({
    url: calendarUrl,
    ...(eventMs === undefined ? {} : { eventMs }),
    ...(freeBusyMs === undefined ? {} : { freeBusyMs }),
  });
}

function openMailer({ smtpUrl, mailFrom }: SideEffectSettings, { mailMs }: Limits): Mailer | undefined {
  if (smtpUrl === undefined) return undefined;
  return smtpMailer({
    url: smtpUrl,
    from: mailFrom ?? "Appointments <appointments@localhost>",
    ...(mailMs === undefined ? {} : { limitMs: mailMs }),
  });
}

function readHosts(db: AppDatabase, ids: readonly string[]) {
  return db
    .selectFrom("users")
    .select(["id", "email", "name"])
    .where("id", "in", [...ids])
    .execute();
}
