import type { Now, OutboxStore } from "../store/contract.ts";
import type { Claims } from "./claims.ts";
import { DeliveryLoop, type DeliveryLoopConfig } from "./delivery-loop.ts";
import type { DispatchRounds } from "./loops.ts";
import type { ReplayRounds } from "./replay-rounds.ts";

/** What `drain` did, and what it left. */
export interface DrainResult {
  readonly dispatched: number;
  readonly delivered: number;
  readonly rescheduled: number;
  readonly failed: number;
  /**
   * Due deliveries and undispatched events left, counted up to 10,000. What an operator holds is not among them:
   * `holds` says how many holds are in force.
   */
  readonly remaining: { readonly pending: number; readonly newEvents: number };
  readonly holds: number;
}

export interface DrainConfig extends DeliveryLoopConfig {
  readonly store: Pick<OutboxStore, "claim" | "record" | "countRemaining" | "listHolds" | "giveBackHeld">;
  readonly dispatcher?: DispatchRounds;
  readonly replays?: Pick<ReplayRounds, "once">;
}

const mostRemaining = 10_000;
const abandonMs = 1_000;
const givenBack = 1_000;

/**
 * Dispatches and delivers what is due until nothing is, `deadlineMs` have passed, or `max` sends were begun. At
 * the deadline what is in flight is stopped and given back. Leaves no timer and no lease behind. Rejects when the
 * store fails, after giving back what it can.
 */
export async function drain(
  config: DrainConfig,
  options: { readonly deadlineMs: number; readonly max?: number },
): Promise<DrainResult> {
  const loop = new DeliveryLoop(config);
  const now = (): Now => (config.virtualTime ? config.clock() : null);
  const over = new AbortController();
  let late = false;
  const deadline = config.timers.sleep(options.deadlineMs, over.signal).then(() => {
    late = true;
  });
  let dispatched = 0;
  try {
    const max = options.max ?? Number.POSITIVE_INFINITY;
    // Where nothing but drain runs, nobody else finishes a release.
    while (!late && (await config.store.giveBackHeld(givenBack, now())).more);
    const claims: Claims = {
      get free() {
        return loop.free;
      },
      begin: async () => (late ? undefined : await loop.begin(max - loop.counts.claimed)),
    };
    while (!late) {
      const wanted = new Promise<void>((resolve) => {
        loop.onWanted = resolve;
      });
      const round = await config.dispatcher?.dispatchOnce(claims);
      dispatched += round?.dispatched ?? 0;
      const replayed = await config.replays?.once();
      // Slots that sends free while a claim is under way are not in it: only a claim that had them all is the last.
      const wasIdle = loop.idle;
      const { claimed, again } = late ? nothing : await loop.claimOnce(max - loop.counts.claimed);
      if (again || round?.again || replayed?.again) {
        await config.timers.sleep(0);
        continue;
      }
      if (loop.inFlight > 0) await Promise.race([wanted, loop.settled(), deadline]);
      else {
        await Promise.race([loop.settled(), deadline]);
        if (wasIdle && claimed === 0 && !round?.taken && !replayed?.queued) break;
      }
      if (loop.counts.claimed >= max && loop.inFlight === 0) break;
    }
  } finally {
    loop.close();
    await Promise.race([loop.settled(), deadline]);
    loop.abort();
    over.abort();
    await finish(loop, config);
  }
  const { delivered, rescheduled, failed } = loop.counts;
  const remaining = await config.store.countRemaining(mostRemaining, now());
  const holds = (await config.store.listHolds()).length;
  return { dispatched, delivered, rescheduled, failed, remaining, holds };
}

const nothing = { claimed: 0, again: false };

async function finish(loop: DeliveryLoop, { timers }: DrainConfig): Promise<void> {
  const end = new AbortController();
  const patience = timers.sleep(abandonMs, end.signal);
  await Promise.race([loop.settled(), patience]);
  loop.abandon();
  await Promise.race([loop.settled(), patience]);
  end.abort();
}
