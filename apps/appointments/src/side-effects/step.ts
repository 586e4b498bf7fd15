import { z } from "zod";

/** What is done after a booking changed. */
export type CalendarKind = "calendar_create" | "calendar_move" | "calendar_delete";
export type MailKind = "mail_confirmation" | "mail_moved" | "mail_cancelled" | "reminder_24h" | "reminder_1h";

const person = z.object({ name: z.string(), email: z.string() });

/** What a mail says: the booking as the transition left it, however late the mail is sent. */
export const mailDetailSchema = z.object({
  to: z.enum(["customer", "host"]),
  recipient: person,
  appointment: z.object({
    title: z.string(),
    start_at: z.string(),
    end_at: z.string(),
    /** The primary first. */
    hosts: z.array(person).min(1),
    attendee: person.extend({ timezone: z.string() }),
    /** Of the recipient. */
    timezone: z.string(),
    location_type: z.enum(["in_person", "phone", "link", "meeting"]),
    location_value: z.string(),
  }),
  previous: z.object({ start_at: z.string(), end_at: z.string() }).optional(),
  reason: z.string().optional(),
});
export type MailDetail = z.output<typeof mailDetailSchema>;

interface AnyStep {
  readonly id: string;
  readonly bookingId: string;
  readonly revision: number;
  readonly sequence: number;
  /** User id of the host (calendar), or the address (mail). */
  readonly target: string;
  /** Tries, this one included. */
  readonly attempts: number;
  /** JSON. */
  readonly detail: string;
}

export type CalendarStep = AnyStep & { readonly lane: "calendar"; readonly kind: CalendarKind };
export type MailStep = AnyStep & { readonly lane: "mail" | "reminder"; readonly kind: MailKind };

/** One step, as the one that does it gets it. */
export type Step = CalendarStep | MailStep;
export type StepLane = Step["lane"];
export type StepKind = Step["kind"];

/** The step cannot succeed however often it is tried. */
export class PermanentFailure extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "PermanentFailure";
  }
}

/** How a step ended when nothing went wrong. */
export type StepResult =
  | { readonly done: true }
  /** There was nothing to do any more, or nobody to do it. */
  | { readonly skipped: string };
