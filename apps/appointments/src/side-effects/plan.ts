import { type Insertable, sql } from "kysely";
import { currentLocation } from "../bookings/location.ts";
import type { PlannedTransition, SideEffectPlanner } from "../bookings/side-effect-planner.ts";
import { type BookingFacts, readFacts } from "../bookings/snapshot.ts";
import type { BookingsTable, SideEffectsTable } from "../database/scheduling-tables.ts";
import type { AppTransaction, UsersTable } from "../database/schema.ts";
import { instantOf, timestampOf } from "../scheduling/calendar.ts";
import type { MailDetail, StepKind, StepLane } from "./step.ts";

export interface PlanDeps {
  readonly now: () => Date;
  readonly newId: () => string;
  /** What there is a provider for; steps of the others are noted as skipped. */
  readonly configured: { readonly calendar: boolean; readonly mail: boolean };
}

/** How long before the start a customer is reminded, in ms. */
export const reminders = { reminder_24h: 86_400_000, reminder_1h: 3_600_000 } as const;

const kinds = {
  created: { calendar: "calendar_create", mail: "mail_confirmation" },
  rescheduled: { calendar: "calendar_move", mail: "mail_moved" },
  cancelled: { calendar: "calendar_delete", mail: "mail_cancelled" },
} as const;

export const skipReasons = {
  calendar: "CALENDAR_URL is not set",
  mail: "SMTP_URL is not set",
  reminder: "SMTP_URL is not set",
} as const;

interface Planned {
  readonly lane: StepLane;
  readonly kind: StepKind;
  readonly target: string;
  readonly runAt: string;
  readonly detail: object;
}

/** Writes the rows of what follows from a transition, in its transaction: no calendar and no mail is touched here. */
export function planSideEffects(deps: PlanDeps): SideEffectPlanner["plan"] {
  return async (trx, planned) => {
    const { booking, transition } = planned;
    const facts = await readFacts(trx, booking.id);
    if (facts === undefined) throw new Error(`Booking ${booking.id} is gone inside its own transaction.`);
    const now = deps.now().toISOString();
    const sequence = await nextSequence(trx, booking);
    if (transition !== "created") await dropReminders(trx, booking.id, transition, now);
    const former = await formerHosts(trx, facts);
    const users = await readUsers(trx, [...facts.hosts.map((host) => host.id), ...former]);
    const details = mailDetails(facts, users);
    const steps = [
      ...calendarSteps(planned, facts, former, now),
      ...mailSteps(planned, details, now),
      ...former.flatMap((id) => takenOver(details, users.get(id), now)),
      ...(transition === "cancelled" ? [] : reminderSteps(details, now)),
    ];
    const rows = steps.map((step): Insertable<SideEffectsTable> => {
      const isSkipped = step.lane !== "reminder" && !deps.configured[step.lane];
      return {
        id: deps.newId(),
        booking_id: booking.id,
        revision: booking.revision,
        sequence,
        lane: step.lane,
        kind: step.kind,
        target: step.target,
        status: isSkipped ? "skipped" : "waiting",
        attempts: 0,
        run_at: step.runAt,
        lease_until: null,
        last_error: isSkipped ? skipReasons[step.lane] : null,
        detail: JSON.stringify(step.detail),
        created_at: now,
        updated_at: now,
      };
    });
    await trx.insertInto("side_effects").values(rows).execute();
  };
}

/**
 * The revision where there is one; an ordinary booking has none, and counts. It is the SEQUENCE of the calendar
 * entry too, so it must rise with every change.
 */
async function nextSequence(trx: AppTransaction, booking: BookingsTable): Promise<number> {
  const { last } = await trx
    .selectFrom("side_effects")
    .select(({ fn }) => fn.max("sequence").as("last"))
    .where("booking_id", "=", booking.id)
    .executeTakeFirstOrThrow();
  return last === null ? booking.revision : Math.max(booking.revision, Number(last) + 1);
}

async function dropReminders(
  trx: AppTransaction,
  bookingId: string,
  why: "rescheduled" | "cancelled",
  now: string,
): Promise<void> {
  await trx
    .updateTable("side_effects")
    .set({ status: "skipped", last_error: `the booking was ${why}`, lease_until: null, updated_at: now })
    .where("booking_id", "=", bookingId)
    .where("lane", "=", "reminder")
    .where("status", "=", "waiting")
    .execute();
}

/** Users whose calendars were given this booking, and who are not its hosts any more. */
async function formerHosts(trx: AppTransaction, facts: BookingFacts): Promise<string[]> {
  const rows = await trx
    .selectFrom("side_effects as step")
    .select("step.target")
    .where("step.booking_id", "=", facts.booking.id)
    .where("step.lane", "=", "calendar")
    .groupBy("step.target")
    // Their last step did not take it out already.
    .having(
      sql<number>`max(case when step.kind <> 'calendar_delete' then step.sequence else -1 end)`,
      ">",
      sql<number>`max(case when step.kind = 'calendar_delete' then step.sequence else -1 end)`,
    )
    .execute();
  const present = new Set(facts.hosts.map((host) => host.id));
  return rows.map((row) => row.target).filter((target) => !present.has(target));
}

function calendarSteps(
  { transition }: PlannedTransition,
  facts: BookingFacts,
  former: readonly string[],
  runAt: string,
): Planned[] {
  const step = (kind: StepKind, target: string): Planned => ({
    lane: "calendar",
    kind,
    target,
    runAt,
    detail: {},
  });
  return [
    ...facts.hosts.map((host) => step(kinds[transition].calendar, host.id)),
    ...former.map((id) => step("calendar_delete", id)),
  ];
}

function mailSteps(
  { booking, transition, previous }: PlannedTransition,
  details: readonly MailDetail[],
  runAt: string,
): Planned[] {
  const more = {
    ...(previous && { previous: { start_at: previous.start_at, end_at: previous.end_at } }),
    ...(booking.cancellation_reason ? { reason: booking.cancellation_reason } : {}),
  };
  return details.map((detail) => ({
    lane: "mail",
    kind: kinds[transition].mail,
    target: detail.recipient.email,
    runAt,
    detail: { ...detail, ...more },
  }));
}

/** Tells a host that somebody else has the appointment now. */
function takenOver([first]: readonly MailDetail[], host: User | undefined, runAt: string): Planned[] {
  if (first === undefined || host === undefined) return [];
  const detail: MailDetail = {
    to: "host",
    recipient: { name: host.name, email: host.email },
    appointment: { ...first.appointment, timezone: host.iana_timezone },
    reason: `${first.appointment.hosts[0]?.name} has taken it over`,
  };
  return [{ lane: "mail", kind: "mail_cancelled", target: host.email, runAt, detail }];
}

/** To the customer, for those whose time is still ahead. */
function reminderSteps([detail]: readonly MailDetail[], now: string): Planned[] {
  if (detail === undefined) return [];
  const start = instantOf(detail.appointment.start_at);
  return (["reminder_24h", "reminder_1h"] as const)
    .map((kind) => ({ kind, runAt: timestampOf(start - reminders[kind]) }))
    .filter(({ runAt }) => runAt > now)
    .map(({ kind, runAt }) => ({ lane: "reminder", kind, target: detail.recipient.email, runAt, detail }));
}

/** The customer's first, then one for each host. */
function mailDetails(
  { booking, eventType, hosts, organizer }: BookingFacts,
  users: ReadonlyMap<string, User>,
): MailDetail[] {
  const appointment = {
    title: eventType.name,
    start_at: booking.start_at,
    end_at: booking.end_at,
    hosts: hosts.map(({ name, email }) => ({ name, email })),
    attendee: organizer,
    location_type: booking.location_type,
    location_value: currentLocation(booking),
  };
  return [
    {
      to: "customer",
      recipient: { name: organizer.name, email: organizer.email },
      appointment: { ...appointment, timezone: organizer.timezone },
    },
    ...hosts.map(
      ({ id, name, email }): MailDetail => ({
        to: "host",
        recipient: { name, email },
        appointment: { ...appointment, timezone: users.get(id)?.iana_timezone ?? "UTC" },
      }),
    ),
  ];
}

type User = Pick<UsersTable, "id" | "name" | "email" | "iana_timezone">;

async function readUsers(trx: AppTransaction, ids: readonly string[]): Promise<Map<string, User>> {
  const rows = await trx
    .selectFrom("users")
    .select(["id", "name", "email", "iana_timezone"])
    .where("id", "in", [...ids])
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}
