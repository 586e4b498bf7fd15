import { notRecorded } from "../bookings/capture.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { ProblemError } from "../http/problem.ts";
import type { Caller } from "../users/user-access.ts";
import { type Invitation, statusAt } from "./invitation.ts";
import { lockInvitation, requireInvitation } from "./invitation-queries.ts";
import type { InvitationDeps } from "./issue.ts";
import { moveInvitation } from "./lifecycle.ts";

/**
 * Takes an invitation back. Again is the same answer without a second event.
 * @throws ProblemError 404, 409 when it is booked or expired, 503
 */
export function cancelInvitation(deps: InvitationDeps, caller: Caller, id: string): Promise<Invitation> {
  return inTransaction(deps.db, async (trx) => {
    const invitation = requireInvitation(caller, await lockInvitation(trx, deps.dialect, id), id);
    const at = deps.now();
    const status = statusAt(invitation, at);
    if (status === "cancelled") return invitation;
    const cancelled =
      status === "active"
        ? await moveInvitation(deps.hooks, trx, invitation, {
            to: "cancelled",
            at,
            actor: { type: "api_key", id: caller.keyId },
          })
        : undefined;
    if (cancelled === undefined)
      throw new ProblemError(
        "conflict",
        `Invitation ${id} is ${status}; only an active one can be cancelled.`,
      );
    return cancelled;
  }).catch(notRecorded("event_not_captured"));
}
