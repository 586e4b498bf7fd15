import type { DeliveryRecord } from "hookwell";
import { expect } from "vitest";
import { type SideEffectDeps, type SideEffects, sideEffects } from "../../../src/side-effects/index.ts";
import { type BookingWorld, openBookingWorld } from "../../bookings/support/booking-world.ts";
import type { TestDialect } from "../../support/world.ts";
import { type CalendarServer, startCalendar } from "./calendar-server.ts";
import { type MailServer, startMail } from "./mail-server.ts";

/** A row of side_effects as GET /v1/bookings/{id} shows it. */
export interface ShownStep {
  readonly kind: string;
  readonly target: string;
  readonly revision: number;
  readonly status: string;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly error: string | null;
}

/** The application with a calendar and a mail server of its own. Side effects run only when `effects.runOnce` does. */
export interface EffectWorld extends BookingWorld {
  readonly calendar: CalendarServer;
  readonly mail: MailServer;
  readonly effects: SideEffects;
  /** Another process on the same database would have these. */
  readonly deps: SideEffectDeps;
  steps(bookingId: string): Promise<ShownStep[]>;
  /** `kind status` of each. */
  statuses(bookingId: string): Promise<string[]>;
  deliveries(bookingId: string): Promise<readonly DeliveryRecord[]>;
}

export interface EffectOptions {
  readonly without?: "calendar" | "mail";
  readonly limits?: SideEffectDeps["limits"];
  /** What the application is given instead. */
  readonly wrap?: (effects: SideEffects) => SideEffects;
}

export async function openEffectWorld(
  dialect: TestDialect,
  options: EffectOptions = {},
): Promise<EffectWorld> {
  const calendar = await startCalendar();
  const mail = await startMail();
  let deps: SideEffectDeps | undefined;
  let effects: SideEffects | undefined;
  const world = await openBookingWorld(dialect, {
    start: {
      makeSideEffects(made) {
        deps = {
          ...made,
          settings: {
            ...(options.without === "calendar" ? {} : { calendarUrl: calendar.url }),
            ...(options.without === "mail" ? {} : { smtpUrl: mail.url }),
            mailFrom: "Appointments <hello@book.example.com>",
          },
          limits: { eventMs: 30_000, freeBusyMs: 30_000, mailMs: 30_000, ...options.limits },
        };
        effects = sideEffects(deps);
        const given = options.wrap?.(effects) ?? effects;
        return { ...given, start: () => {} };
      },
    },
  });
  if (effects === undefined || deps === undefined) throw new Error("The application made no side effects.");
  const steps = async (bookingId: string): Promise<ShownStep[]> => {
    const { body } = await world.admin.get(`/v1/bookings/${bookingId}`);
    return (body as unknown as { side_effects: ShownStep[] }).side_effects;
  };
  return {
    ...world,
    calendar,
    mail,
    effects,
    deps,
    steps,
    statuses: async (id) => (await steps(id)).map(({ kind, status }) => `${kind} ${status}`),
    async deliveries(bookingId) {
      const found = await Promise.all(
        (await world.bookingEvents(bookingId)).map(({ id }) => world.deliveriesOf(id)),
      );
      return found.flat();
    },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await calendar.close();
      await mail.close();
    },
  };
}

export const hour = 3_600_000;
export const minute = 60_000;

/** Waits until it is so; how long that takes is the machine's business. */
export function eventually<T>(look: () => T) {
  return expect.poll(look, { timeout: 50_000, interval: 10 });
}
