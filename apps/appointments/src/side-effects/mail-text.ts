import { Temporal } from "temporal-polyfill";
import { instantOf } from "../scheduling/calendar.ts";
import type { MailDetail, MailKind } from "./step.ts";

export interface MailText {
  readonly subject: string;
  readonly text: string;
}

/**
 * What a mail says. `manageUrl`: where the customer can move and cancel the booking; only in the customer's mails,
 * and never in the invite, which calendars pass on.
 */
export function mailText(kind: MailKind, detail: MailDetail, manageUrl?: string): MailText {
  const { appointment, recipient, previous, reason } = detail;
  const { title, timezone } = appointment;
  const others =
    detail.to === "customer"
      ? appointment.hosts.map((host) => host.name).join(", ")
      : `${appointment.attendee.name} <${appointment.attendee.email}>`;
  const when = interval(appointment, timezone);
  const lines = [
    `Hello ${recipient.name},`,
    "",
    sentences[kind](title),
    "",
    `  What:  ${title}`,
    `  When:  ${when}`,
    ...(previous === undefined ? [] : [`  Was:   ${interval(previous, timezone)}`]),
    `  With:  ${others}`,
    ...(kind === "mail_cancelled" ? [] : [`  Where: ${place(detail)}`]),
    ...(reason === undefined || reason === "" ? [] : [`  Why:   ${reason}`]),
    ...(manageUrl === undefined
      ? []
      : ["", "Move or cancel it here. Whoever has this link can do so, too:", manageUrl]),
    "",
  ];
  return { subject: `${subjects[kind]}: ${title}, ${when}`, text: lines.join("\n") };
}

const subjects: Readonly<Record<MailKind, string>> = {
  mail_confirmation: "Confirmed",
  mail_moved: "Changed",
  mail_cancelled: "Cancelled",
  reminder_24h: "Reminder",
  reminder_1h: "Reminder",
};

const sentences: Readonly<Record<MailKind, (title: string) => string>> = {
  mail_confirmation: (title) => `${title} is booked.`,
  mail_moved: (title) => `${title} has changed.`,
  mail_cancelled: (title) => `${title} is cancelled.`,
  reminder_24h: (title) => `${title} begins within a day.`,
  reminder_1h: (title) => `${title} begins soon.`,
};

/** "Mon, 10 Mar 2031, 10:00 to 10:30 (Europe/Vienna)" */
function interval(
  { start_at, end_at }: { readonly start_at: string; readonly end_at: string },
  zone: string,
): string {
  const start = local(start_at, zone);
  const end = local(end_at, zone);
  const day = (at: Temporal.ZonedDateTime) =>
    at.toLocaleString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
  const time = (at: Temporal.ZonedDateTime) => at.toPlainTime().toString({ smallestUnit: "minute" });
  const isSameDay = start.toPlainDate().equals(end.toPlainDate());
  return `${day(start)}, ${time(start)} to ${isSameDay ? "" : `${day(end)}, `}${time(end)} (${zone}, UTC${start.offset})`;
}

function local(timestamp: string, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instantOf(timestamp)).toZonedDateTimeISO(zone);
}

/** Where it takes place, in words. */
function place({ appointment, to }: MailDetail): string {
  const { location_type: type, location_value: value } = appointment;
  if (value !== "") return value;
  if (type === "phone") return "by phone";
  if (type === "in_person") return to === "customer" ? "ask your host" : "not set";
  return "the link is not there yet; you find it on the page of the booking";
}
