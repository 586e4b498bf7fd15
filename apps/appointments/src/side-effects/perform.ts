import { type CalendarStepDeps, doCalendarStep, noteOutOfLine } from "./calendar-steps.ts";
import { doMailStep, type MailStepDeps } from "./mail-steps.ts";
import { skipReasons } from "./plan.ts";
import { safeReason } from "./safe-text.ts";
import { PermanentFailure, type Step, type StepResult } from "./step.ts";
import type { StepOutcome } from "./step-queue.ts";

export type PerformDeps = Pick<MailStepDeps, "db" | "now" | "manageUrl"> & {
  readonly calendar?: CalendarStepDeps["calendar"];
  readonly mailer?: MailStepDeps["mailer"];
  readonly logger: { warn(message: string): void };
  /** Waits between the tries, in ms: one more try than there are waits. */
  readonly retryDelaysMs: readonly number[];
};

/** Half a minute to four hours: six tries in a little over five hours. */
export const defaultRetryDelaysMs = [30_000, 120_000, 600_000, 3_600_000, 14_400_000] as const;

/** Does one step and says how it ended. Rejects only when what failed cannot be noted in the database. */
export async function perform(deps: PerformDeps, step: Step): Promise<StepOutcome> {
  const tries = deps.retryDelaysMs.length + 1;
  // A process that dies during every try must not send for ever.
  if (step.lane !== "calendar" && step.attempts > tries)
    return { status: "failed", reason: `the process ended during try ${tries}` };
  try {
    const result = await doStep(deps, step);
    return "done" in result ? { status: "done" } : { status: "skipped", reason: result.skipped };
  } catch (error) {
    const reason = safeReason(error);
    deps.logger.warn(
      `${step.kind} of booking ${step.bookingId}, revision ${step.revision}, failed at try ${step.attempts}: ${reason}`,
    );
    if (step.lane === "calendar") await noteOutOfLine(deps.db, step);
    const delay = deps.retryDelaysMs[step.attempts - 1];
    if (error instanceof PermanentFailure || delay === undefined) return { status: "failed", reason };
    return { status: "waiting", reason, runAt: new Date(deps.now().getTime() + delay) };
  }
}

async function doStep({ calendar, mailer, ...deps }: PerformDeps, step: Step): Promise<StepResult> {
  if (step.lane === "calendar")
    return calendar === undefined
      ? { skipped: skipReasons.calendar }
      : await doCalendarStep({ ...deps, calendar }, step);
  return mailer === undefined
    ? { skipped: skipReasons.mail }
    : await doMailStep({ ...deps, mailer, hostsHaveCalendar: calendar !== undefined }, step);
}
