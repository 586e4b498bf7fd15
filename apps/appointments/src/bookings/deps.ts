import type { AppDatabase } from "../database/schema.ts";
import type { AppHooks } from "../hooks.ts";
import type { Dialect } from "./booking-rows.ts";
import type { BookingTransitions } from "./capture.ts";
import type { BusyCalendars } from "./side-effect-planner.ts";

/** What the calls that change bookings are made of. */
export interface BookingDeps {
  readonly db: AppDatabase;
  readonly dialect: Dialect;
  readonly hooks: AppHooks;
  readonly now: () => Date;
  readonly newId: () => string;
  readonly transitions: BookingTransitions;
  readonly calendars: BusyCalendars;
}
