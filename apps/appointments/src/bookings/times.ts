import { invalid, ProblemError } from "../http/problem.ts";
import { text } from "../http/text.ts";
import { instantOf, isTimestamp } from "../scheduling/calendar.ts";

/** A start or an end in a request. */
export function timestamp() {
  return text({ max: 64 }).refine(isTimestamp, "must be an RFC 3339 time such as 2031-03-10T09:00:00Z");
}

/** A start that is over: a slot that was lost for a customer, a mistake in the request of staff. */
export function refusePast(startAt: string, now: Date, by: "customer" | "staff"): void {
  if (instantOf(startAt) > now.getTime()) return;
  if (by === "staff") throw invalid([{ pointer: "/start_at", message: "must be in the future" }]);
  throw slotUnavailable();
}

export function slotUnavailable(): ProblemError {
  return new ProblemError(
    "slot_unavailable",
    "This time is not, or no longer, available. Choose another one.",
  );
}
