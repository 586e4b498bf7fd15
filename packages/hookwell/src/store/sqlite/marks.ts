import { runProgramSync } from "../../adapters/seam.ts";
import { NotFoundError } from "../../model/errors.ts";
import { afterMark, isGuarded } from "../lane-state.ts";
import { countsOfMark, Tally } from "../minute-counts.ts";
import { storable } from "../storable.ts";
import type { Connection } from "./connection.ts";
import { readLane, writeLane } from "./lane-rows.ts";
import { laneDue } from "./lanes.ts";
import { countMinute } from "./minute-counts.ts";
import { behindReplayed, settleOrder } from "./ordering.ts";
import { integer, optionalText, text } from "./rows.ts";

const free = "lease_token = NULL, lease_until = NULL, updated_at = ?";

const lockText = `
UPDATE hookwell_delivery SET attempts = attempts WHERE id = ?
RETURNING status, lease_token, subscription_id, project_id, attempts`;

const markText = (set: string): string => `UPDATE hookwell_delivery SET ${set}, ${free} WHERE id = ?`;
const markDeliveredText = markText(
  "status = 'delivered', delivered_at = ?, attempts = attempts + (lease_token IS NULL)",
);
const rescheduleText = markText(
  `attempts = ?, last_error = ?, next_attempt_at = ?, due_at = CAST(? AS INTEGER) + ${behindReplayed}`,
);
const markFailedText = markText(
  "status = 'failed', reason = 'attempts_exhausted', attempts = ?, last_error = ?",
);

export type Mark =
  | { readonly kind: "delivered"; readonly at: number }
  | { readonly kind: "retry"; readonly attempts: number; readonly error: string; readonly due: number }
  | { readonly kind: "failed"; readonly attempts: number; readonly error: string };

/** Inside a write: a reference mark; false when its token is not current or the row is final. */
export function applyMark(
  connection: Connection,
  id: string,
  mark: Mark,
  leaseToken: string | undefined,
  now: number,
): boolean {
  const [row] = connection.all(lockText, [id]);
  if (!row) throw new NotFoundError("delivery", id);
  if (row.status !== "pending" || optionalText(row.lease_token) !== leaseToken) return false;
  const tally = new Tally();
  const sentBefore = integer(row.attempts) - (leaseToken === undefined ? 0 : 1);
  tally.add(text(row.project_id), countsOfMark(mark.kind, "attempts" in mark && mark.attempts > sentBefore));
  countMinute(connection, tally, now);
  switch (mark.kind) {
    case "delivered":
      connection.all(markDeliveredText, [mark.at, mark.at, id]);
      break;
    case "failed":
      connection.all(markFailedText, [mark.attempts, storable(mark.error), now, id]);
      break;
    case "retry": {
      const { attempts, error, due } = mark;
      connection.all(rescheduleText, [attempts, storable(error), due, due, now, id]);
      connection.run(laneDue(text(row.subscription_id), due));
    }
  }
  if (mark.kind !== "retry") runProgramSync(settleOrder(id, now), connection.run);
  const lane = text(row.subscription_id);
  const known = readLane(connection, lane);
  if (known && isGuarded(known.state, known.limits))
    writeLane(
      connection,
      lane,
      afterMark(known.state, known.limits, id, mark.kind === "delivered", now),
      now,
    );
  return true;
}
