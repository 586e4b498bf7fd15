import type { AppDatabase } from "../database/schema.ts";
import type { AppHooks } from "../hooks.ts";
import type { Transition } from "./capture.ts";
import { bookingData, readFacts } from "./snapshot.ts";

/** Publishes what happened to a booking without an invitation, after its commit. */
export interface OrdinaryPublisher {
  /** One that fails is logged and not repeated. Never rejects. */
  publish(transition: Transition): Promise<void>;
}

/**
 * The older behaviour, kept for bookings that have no invitation: the event is written after the commit, so a crash
 * between the two loses it. It has no id in its envelope, no revision, and goes to the primary host.
 */
export function ordinaryPublisher(db: AppDatabase, hooks: AppHooks): OrdinaryPublisher {
  return {
    async publish({ type, booking, actor, previous }) {
      try {
        const facts = await readFacts(db, booking.id);
        if (facts === undefined) throw new Error("it is gone");
        await hooks.emitUnknown(
          type,
          bookingData(type, facts, { captured: false, ...(previous && { previous }) }),
          {
            tx: "own",
            projectId: booking.project_id,
            ...(booking.tenant_id === "" ? {} : { tenantId: booking.tenant_id }),
            occurredAt: booking.updated_at,
            actor,
            audience: [booking.host_id],
          },
        );
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        hooks.logger.error(`The ${type} of ordinary booking ${booking.id} was not published: ${why}`);
      }
    },
  };
}
