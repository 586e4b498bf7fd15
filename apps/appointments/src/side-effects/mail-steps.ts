import { issueManageToken } from "../bookings/manage-token.ts";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppDatabase } from "../database/schema.ts";
import { bookingUid, icalendar } from "./icalendar.ts";
import { mailText } from "./mail-text.ts";
import type { Mail, Mailer } from "./mailer.ts";
import { reminders } from "./plan.ts";
import { type MailDetail, type MailStep, mailDetailSchema, type StepResult } from "./step.ts";

export interface MailStepDeps {
  readonly db: AppDatabase;
  readonly now: () => Date;
  readonly mailer: Mailer;
  /** Where the customer manages the booking, from a token. */
  readonly manageUrl: (token: string) => string;
  /** Hosts have a calendar that is kept for them, and need no invite to put in by hand. */
  readonly hostsHaveCalendar: boolean;
}

type Present = Pick<BookingsTable, "status" | "location_value" | "location_revision">;

/** Sends what the transition left to say; only a link that came since then is new in it. */
export async function doMailStep(deps: MailStepDeps, step: MailStep): Promise<StepResult> {
  const booking = await deps.db
    .selectFrom("bookings")
    .select(["status", "location_value", "location_revision"])
    .where("id", "=", step.bookingId)
    .executeTakeFirst();
  if (booking === undefined) return { skipped: "the booking is gone" };
  const detail = withLink(mailDetailSchema.parse(JSON.parse(step.detail)), step, booking);
  const late = tooLate(step.kind, detail, booking, deps.now());
  if (late !== undefined) return { skipped: late };
  await deps.mailer.send(await compose(deps, step, detail, booking));
  return { done: true };
}

/** Why a reminder is not sent any more. */
function tooLate(
  kind: MailStep["kind"],
  { appointment }: MailDetail,
  booking: Present,
  now: Date,
): string | undefined {
  if (kind !== "reminder_24h" && kind !== "reminder_1h") return undefined;
  if (booking.status === "cancelled") return "the booking was cancelled";
  const left = Date.parse(appointment.start_at) - now.getTime();
  if (left <= 0) return "the appointment has begun";
  if (kind === "reminder_24h" && left <= reminders.reminder_1h) return "the last reminder is due";
  return undefined;
}

function withLink(detail: MailDetail, { revision }: MailStep, booking: Present): MailDetail {
  if (booking.location_revision !== revision || booking.location_value === "") return detail;
  return { ...detail, appointment: { ...detail.appointment, location_value: booking.location_value } };
}

async function compose(
  { db, now, manageUrl, hostsHaveCalendar }: MailStepDeps,
  step: MailStep,
  detail: MailDetail,
  booking: Present,
): Promise<Mail> {
  const { to, appointment, recipient } = detail;
  const isManageable = to === "customer" && step.kind !== "mail_cancelled" && booking.status === "confirmed";
  // Tokens are stored as hashes only, so no mail can repeat one: each has a link of its own.
  const url = isManageable ? manageUrl(await issueManageToken(db, step.bookingId, now())) : undefined;
  const wantsInvite = step.lane === "mail" && (to === "customer" || !hostsHaveCalendar);
  return {
    id: step.id,
    to: recipient,
    replyTo: to === "customer" ? primary(detail) : appointment.attendee,
    ...mailText(step.kind, detail, url),
    ...(wantsInvite ? { invite: invite(step, detail, now()) } : {}),
  };
}

function invite(step: MailStep, detail: MailDetail, stamp: Date): NonNullable<Mail["invite"]> {
  const { appointment } = detail;
  const method = step.kind === "mail_cancelled" ? "CANCEL" : "REQUEST";
  const content = icalendar({
    method,
    uid: bookingUid(step.bookingId),
    sequence: step.sequence,
    stamp,
    startAt: appointment.start_at,
    endAt: appointment.end_at,
    title: appointment.title,
    description: detail.reason ?? "",
    location: appointment.location_value,
    organizer: primary(detail),
    attendees: [appointment.attendee, ...appointment.hosts.slice(1)],
  });
  return { method, content };
}

function primary({ appointment }: MailDetail) {
  const [host] = appointment.hosts;
  if (host === undefined) throw new Error("An appointment has at least one host.");
  return host;
}
