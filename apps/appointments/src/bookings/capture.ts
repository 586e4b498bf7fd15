import type { Actor } from "hookwell";
import type { BookingsTable } from "../database/scheduling-tables.ts";
import type { AppTransaction } from "../database/schema.ts";
import { CommitFailedError } from "../database/transaction-guard.ts";
import type { AppHooks } from "../hooks.ts";
import { ProblemError } from "../http/problem.ts";
import type { BookingEventType } from "./events.ts";
import type { OrdinaryPublisher } from "./ordinary.ts";
import type { SideEffectPlanner } from "./side-effect-planner.ts";
import { bookingData, type Interval, readFacts } from "./snapshot.ts";

/** A change of a booking that somebody is told of. */
export interface Transition {
  readonly type: BookingEventType;
  /** As the transition left it, its revision raised. */
  readonly booking: BookingsTable;
  readonly actor: Actor;
  /** The interval before, when it moved. */
  readonly previous?: Interval;
}

/** The event could not be written: the change must not commit without it. */
class CaptureFailedError extends Error {
  constructor(cause: unknown) {
    super("The event of a booking could not be captured.", { cause });
    this.name = "CaptureFailedError";
  }
}

/** What every transition of a booking ends with, whoever makes it. */
export interface BookingTransitions {
  /** Which bookings have their events captured in the transition's transaction, and so have revisions. */
  isCaptured(booking: Pick<BookingsTable, "scheduling_invitation_id">): boolean;
  /** The last call before commit: notes the side effects, then captures the event. */
  record(trx: AppTransaction, transition: Transition): Promise<void>;
  /** After commit: starts the side effects; an ordinary booking is published. Never rejects. */
  committed(transition: Transition): Promise<void>;
}

export interface TransitionDeps {
  readonly hooks: AppHooks;
  readonly sideEffects: SideEffectPlanner;
  readonly ordinary: OrdinaryPublisher;
  /** ORDINARY_BOOKINGS=captured: bookings without an invitation too have their events captured. */
  readonly captureOrdinary: boolean;
}

const transitions = {
  "booking.created": "created",
  "booking.rescheduled": "rescheduled",
  "booking.cancelled": "cancelled",
} as const;

export function bookingTransitions(deps: TransitionDeps): BookingTransitions {
  const { hooks, sideEffects, ordinary, captureOrdinary } = deps;

  const isCaptured: BookingTransitions["isCaptured"] = (booking) =>
    captureOrdinary || booking.scheduling_invitation_id !== null;

  async function capture(trx: AppTransaction, { type, booking, actor, previous }: Transition): Promise<void> {
    const facts = await readFacts(trx, booking.id);
    if (facts === undefined) throw new Error(`Booking ${booking.id} is gone inside its own transaction.`);
    const data = bookingData(type, facts, { captured: true, ...(previous && { previous }) });
    const audience = [booking.host_id, ...(facts.invitation ? [facts.invitation.creatorId] : [])];
    await hooks.emitUnknown(type, data, {
      tx: trx,
      projectId: booking.project_id,
      ...(booking.tenant_id === "" ? {} : { tenantId: booking.tenant_id }),
      occurredAt: booking.updated_at,
      revision: booking.revision,
      actor,
      audience,
    });
  }

  return {
    isCaptured,
    async record(trx, transition) {
      const { booking, type, previous } = transition;
      await sideEffects.plan(trx, {
        booking,
        transition: transitions[type],
        ...(previous && { previous }),
      });
      if (!isCaptured(booking)) return;
      await capture(trx, transition).catch((cause: unknown) => {
        throw new CaptureFailedError(cause);
      });
    },
    async committed(transition) {
      if (!isCaptured(transition.booking)) await ordinary.publish(transition);
      sideEffects.kick();
    },
  };
}

/** Of a transition whose event or whose commit failed: 503 where it may simply be repeated, else 500. */
export function notRecorded(code: "event_not_captured" | "change_not_recorded") {
  return (error: unknown): never => {
    if (!(error instanceof CaptureFailedError || error instanceof CommitFailedError)) throw error;
    throw new ProblemError(
      code,
      "The event of this change could not be recorded, so nothing was changed. Try again.",
      { cause: error },
    );
  };
}
