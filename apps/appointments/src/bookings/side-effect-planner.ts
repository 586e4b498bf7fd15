import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppTransaction } from "../database/schema.ts";
import type { Period } from "../scheduling/calendar.ts";
import type { Interval } from "./snapshot.ts";

/** What happened to a booking, as what must follow from it outside the database is told. */
export interface PlannedTransition {
  /** As the transition left it. */
  readonly booking: BookingsTable;
  readonly transition: "created" | "rescheduled" | "cancelled";
  /** The interval before, when it moved. */
  readonly previous?: Interval;
}

/** Calendar, mail and reminders: noted in the transition's transaction, done after it. */
export interface SideEffectPlanner {
  /** Only writes rows. */
  plan(trx: AppTransaction, transition: PlannedTransition): Promise<void>;
  /** There is something to do. Returns at once, never throws. */
  kick(): void;
}

/** The calendars of hosts, outside of this database. Asked before a transaction, never inside one. */
export interface BusyCalendars {
  /** When these hosts are busy, in epoch ms, by user id. Rejects when a calendar cannot be asked. */
  freeBusy(
    hostIds: readonly string[],
    from: number,
    to: number,
  ): Promise<ReadonlyMap<string, readonly Period[]>>;
}
