import { inTransaction } from "../database/transaction-guard.ts";
import { lockInvitation } from "./invitation-queries.ts";
import type { InvitationDeps } from "./issue.ts";
import { moveInvitation } from "./lifecycle.ts";

const batch = 100;

export interface ExpiryDeps extends Omit<InvitationDeps, "newId"> {
  readonly logger: { error(message: string): void };
}

/**
 * Makes the one expired transition, with its event, of every active invitation whose time is over. Safe to run
 * anywhere at any time: an invitation that somebody else moved meanwhile is left alone, and one that fails is logged,
 * stays as it is for the next sweep and stops no other.
 *
 * @returns how many became expired
 */
export async function sweepExpired(deps: ExpiryDeps): Promise<number> {
  let swept = 0;
  let after: { readonly expires_at: string; readonly id: string } | undefined;
  for (;;) {
    let query = deps.db
      .selectFrom("scheduling_invitations")
      .select(["id", "expires_at"])
      .where("status", "=", "active")
      .where("expires_at", "<=", deps.now().toISOString())
      .orderBy("expires_at")
      .orderBy("id")
      .limit(batch);
    const from = after;
    if (from !== undefined)
      query = query.where((where) =>
        where.or([
          where("expires_at", ">", from.expires_at),
          where.and([where("expires_at", "=", from.expires_at), where("id", ">", from.id)]),
        ]),
      );
    const due = await query.execute();
    for (const { id } of due) if (await expire(deps, id)) swept++;
    after = due.at(-1);
    if (due.length < batch) return swept;
  }
}

async function expire(deps: ExpiryDeps, id: string): Promise<boolean> {
  try {
    return await inTransaction(deps.db, async (trx) => {
      const invitation = await lockInvitation(trx, deps.dialect, id);
      if (invitation === undefined) return false;
      const actor = { type: "sweep", id: "invitation-expiry" };
      const moved = await moveInvitation(deps.hooks, trx, invitation, {
        to: "expired",
        at: deps.now(),
        actor,
      });
      return moved !== undefined;
    });
  } catch (error) {
    deps.logger.error(`Invitation ${id} could not be marked as expired: ${words(error)}`);
    return false;
  }
}

/** The sweep's loop. */
export interface ExpirySweep {
  /** Ends it, after the sweep that runs. */
  stop(): Promise<void>;
}

/** Sweeps now and then every `everyMs` (30 s) after the last sweep ended; a failed one is logged. */
export function startExpirySweep(deps: ExpiryDeps, everyMs = 30_000): ExpirySweep {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const round = async (): Promise<void> => {
    try {
      await sweepExpired(deps);
    } catch (error) {
      deps.logger.error(`The sweep of expired invitations failed: ${words(error)}`);
    }
    if (!stopped) timer = setTimeout(next, everyMs).unref();
  };
  const next = (): void => {
    running = round();
  };
  let running = round();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
