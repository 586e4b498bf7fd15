import type { HostRole } from "../database/scheduling-tables.ts";
import type { AppDatabase, AppTransaction } from "../database/schema.ts";
import type { AvailabilityOverride, AvailabilityRule } from "../scheduling/availability.ts";
import type { BusyPeriod } from "../scheduling/busy.ts";
import { addDays, dateAt, dayMs, type Period, storedInstant, timestampOf } from "../scheduling/calendar.ts";
import type { SlotHost } from "../scheduling/slots.ts";

type Reader = AppDatabase | AppTransaction;

/** What the calendars of hosts say is taken, by user id. Asked before a transaction, never in it. */
export type CalendarBusy = ReadonlyMap<string, readonly Period[]>;

export interface SlotHostsRequest {
  /** In their order. */
  readonly hosts: readonly { readonly userId: string; readonly role: HostRole }[];
  /** Starts that are asked for, in epoch milliseconds. */
  readonly range: Period;
  /** Epoch milliseconds: bookings from here on count as upcoming. */
  readonly now: number;
  /** The booking that is being moved does not stand in its own way. */
  readonly exceptBookingId?: string;
  readonly calendarBusy?: CalendarBusy;
}

// An appointment and its buffers have at most a day each.
const reachMs = 3 * dayMs;

/**
 * The hosts with everything that decides when they are free, as it is now, in the order given. Users that are not
 * active (archived, suspended) or gone are left out: they take part in no routing.
 */
export async function loadSlotHosts(db: Reader, request: SlotHostsRequest): Promise<SlotHost[]> {
  const ids = request.hosts.map((host) => host.userId);
  if (ids.length === 0) return [];
  const users = await db
    .selectFrom("users")
    .select(["id", "iana_timezone"])
    .where("id", "in", ids)
    .where("status", "=", "active")
    .execute();
  const zones = new Map(users.map((user) => [user.id, user.iana_timezone]));
  const rules = await loadRules(db, ids);
  const overrides = await loadOverrides(db, ids, request.range);
  const busy = await loadBookings(db, ids, request);
  const upcoming = await countUpcoming(db, ids, request);
  return request.hosts.flatMap(({ userId, role }) => {
    const timeZone = zones.get(userId);
    if (timeZone === undefined) return [];
    const fromCalendar = (request.calendarBusy?.get(userId) ?? []).map(withoutBuffers);
    return [
      {
        userId,
        role,
        timeZone,
        rules: rules.get(userId) ?? [],
        overrides: overrides.get(userId) ?? [],
        busy: [...(busy.get(userId) ?? []), ...fromCalendar],
        upcomingBookings: upcoming.get(userId) ?? 0,
      },
    ];
  });
}

async function loadRules(db: Reader, ids: readonly string[]): Promise<Map<string, AvailabilityRule[]>> {
  const rows = await db.selectFrom("availability_rules").selectAll().where("user_id", "in", ids).execute();
  return byUser(rows, (row) => ({
    eventTypeId: row.event_type_id,
    dayOfWeek: row.day_of_week,
    startTime: row.start_time,
    endTime: row.end_time,
  }));
}

async function loadOverrides(
  db: Reader,
  ids: readonly string[],
  range: Period,
): Promise<Map<string, AvailabilityOverride[]>> {
  // Two dates wider than the range in UTC: no zone is further away than that.
  const rows = await db
    .selectFrom("availability_overrides")
    .selectAll()
    .where("user_id", "in", ids)
    .where("date", ">=", addDays(dateAt(range.start, "UTC"), -3))
    .where("date", "<=", addDays(dateAt(range.end, "UTC"), 4))
    .execute();
  return byUser(rows, (row) => ({
    date: row.date,
    isAvailable: row.is_available === 1,
    startTime: row.start_time,
    endTime: row.end_time,
  }));
}

async function loadBookings(
  db: Reader,
  ids: readonly string[],
  { range, exceptBookingId }: SlotHostsRequest,
): Promise<Map<string, BusyPeriod[]>> {
  let query = db
    .selectFrom("booking_hosts as host")
    .innerJoin("bookings as booking", "booking.id", "host.booking_id")
    .select([
      "host.user_id",
      "booking.start_at",
      "booking.end_at",
      "booking.buffer_before_minutes",
      "booking.buffer_after_minutes",
    ])
    .where("host.user_id", "in", ids)
    .where("booking.status", "=", "confirmed")
    .where("booking.end_at", ">", timestampOf(range.start - reachMs))
    .where("booking.start_at", "<", timestampOf(range.end + reachMs));
  if (exceptBookingId !== undefined) query = query.where("booking.id", "!=", exceptBookingId);
  return byUser(await query.execute(), (row) => ({
    start: storedInstant(row.start_at),
    end: storedInstant(row.end_at),
    bufferBeforeMinutes: row.buffer_before_minutes,
    bufferAfterMinutes: row.buffer_after_minutes,
  }));
}

async function countUpcoming(
  db: Reader,
  ids: readonly string[],
  { now, exceptBookingId }: SlotHostsRequest,
): Promise<Map<string, number>> {
  let query = db
    .selectFrom("booking_hosts as host")
    .innerJoin("bookings as booking", "booking.id", "host.booking_id")
    .select((select) => ["host.user_id", select.fn.countAll().as("count")])
    .where("host.user_id", "in", ids)
    .where("booking.status", "=", "confirmed")
    .where("booking.start_at", ">", timestampOf(now))
    .groupBy("host.user_id");
  if (exceptBookingId !== undefined) query = query.where("booking.id", "!=", exceptBookingId);
  return new Map((await query.execute()).map((row) => [row.user_id, Number(row.count)]));
}

function withoutBuffers(period: Period): BusyPeriod {
  return { ...period, bufferBeforeMinutes: 0, bufferAfterMinutes: 0 };
}

function byUser<Row extends { readonly user_id: string }, Item>(
  rows: readonly Row[],
  read: (row: Row) => Item,
): Map<string, Item[]> {
  const found = new Map<string, Item[]>();
  for (const row of rows) {
    const list = found.get(row.user_id);
    if (list === undefined) found.set(row.user_id, [read(row)]);
    else list.push(read(row));
  }
  return found;
}
